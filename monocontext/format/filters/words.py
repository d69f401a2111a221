"""Map words to rows, which record how often words occur in a frame, so that a search by words knows where to begin.

After the rows of grams, a filter has one row for each slot and level. A word belongs to one *slot*, by its hash. In the
row of a slot and a level, the bit of a frame is set if some word of the slot occurs in it at least as often as the
level says. These rows exclude no frame: they order the frames that may contain the words.

A word is a run of three or more ASCII letters, digits, `_` and bytes of other scripts in folded UTF-8, without an
English ending (`stem_of`). In CJK, any two neighbouring characters are a word too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_BYTES = 3
"""The least number of bytes in a word."""
LEVELS = (3, 8, 24, 64)
"""The counts of a word in a frame that filters distinguish; rows of grams say whether it occurs at all. Eight levels
would give 0.01 more recall for twice the space (docs/decisions/005-search-filters.md)."""
SLOT_BITS = 4
"""A filter has 2 ** (bits - SLOT_BITS) slots."""
GRAM_ROWS_PER_WORD_ROW = (1 << SLOT_BITS) // len(LEVELS)
"""The number of rows of grams for each row of words."""

_TOP_BITS = 14
"""The number of bits of a slot in the highest filter."""
_GROUPS = 4
"""The words of a slot are counted in this many groups, of which the most frequent one counts."""
_HASH_BITS = 16
"""The hash of a word is the number of its group, then its slot: 2 ** _TOP_BITS * _GROUPS values."""
_FIRST, _LAST = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
"""The factors of the first and the last 8 bytes of a word in its hash."""
_MIX = _LAST
"""The factor that mixes the bits of both: the hash is the upper bits of the product."""
_LONGEST = 99
"""Longer words count as words of this length."""
_EDGE = 8
"""The bytes at either end of a word that its hash depends on."""
_PAIR_BYTES = 6
"""The length of two CJK characters."""
_PAIRED = range(0xE3, 0xEA)
"""The first bytes of CJK characters."""
_ENDINGS = (b"ed", b"er", b"or", b"ing", b"ion", b"e")


def set_word_rows(rows: NDArray[np.uint8], folded: bytes) -> None:
    """Set the rows of words of one folded frame in the highest filter: `rows` is zeros (1 ms for 256 KiB)."""
    import numpy as np

    slots = len(rows) // len(LEVELS)
    counts = np.bincount(_hashes(folded), minlength=_GROUPS * slots)
    most = counts.reshape(_GROUPS, slots).max(axis=0)
    for number, level in enumerate(LEVELS):
        rows[number * slots : (number + 1) * slots] = most >= level


def word_rows(words: tuple[str, ...], level: int, bits: int) -> tuple[int, ...]:
    """The rows of folded words at a level: a frame with one of the words at least `LEVELS[level]` times has a bit in at
    least one of them."""
    slots = (1 << bits) >> SLOT_BITS
    first = (1 << bits) + level * slots
    rows = (first + (_hash(word) % (1 << _TOP_BITS) * slots >> _TOP_BITS) for word in words)
    return tuple(dict.fromkeys(rows))  # without duplicates, in order


def stem_of(word: bytes) -> bytes:
    """A word without `s`, then without the first of `_ENDINGS` that it has, if that leaves 3 bytes."""
    if len(word) > 3 and word.endswith(b"s"):
        word = word[:-1]
    ending = next((item for item in _ENDINGS if word.endswith(item) and len(word) - len(item) >= 3), b"")
    return word[: len(word) - len(ending)]


@lru_cache(256)
def _hash(word: str) -> int:
    stem = stem_of(word.encode("utf-8", "surrogatepass"))
    last = int.from_bytes(stem[-_EDGE:], "little") if len(stem) > _EDGE else 0
    mixed = int.from_bytes(stem[:_EDGE], "little") * _FIRST ^ last * _LAST
    return mixed * _MIX % (1 << 64) >> (64 - _HASH_BITS)


def _hashes(folded: bytes) -> NDArray[np.int64]:
    """The hash of each word of a folded text, and of each pair of CJK characters."""
    import numpy as np

    data = bytes(_EDGE) + folded + bytes(_EDGE)
    raw = np.frombuffer(data, np.uint8)
    eights: NDArray[np.uint64] = np.ndarray(len(data) - _EDGE + 1, "<u8", data, 0, 1)  # the 8 bytes from each offset on
    # Comparisons of all bytes at once take half the time of a table.
    inside = (raw | np.uint8(32)) - np.uint8(ord("a")) < 26
    inside |= raw == ord("_")
    inside |= raw - np.uint8(ord("0")) < 10
    inside |= raw >= 128
    threes = inside[:-2] & inside[1:-1]
    threes &= inside[2:]
    edges = np.flatnonzero(threes[1:] != threes[:-1])
    starts, stops = edges[::2] + 1, edges[1::2] + LEAST_BYTES
    # 1. a final s
    stops = stops - ((raw.take(stops - 1) == ord("s")) & (stops - starts > LEAST_BYTES))
    # 2. an ending, by the last two bytes (and the one before, for `ing` and `ion`)
    cuts = _cuts().take(raw.take(stops - 1).astype(np.uint16) << np.uint16(8) | raw.take(stops - 2))
    three = np.flatnonzero(cuts == 3)
    cuts[three] *= raw.take(stops.take(three) - 3) == ord("i")
    sizes = np.minimum(stops - starts, _LONGEST).astype(np.int8)
    cuts *= sizes - cuts >= 3
    sizes -= cuts
    # 3. hash the first and the last eight bytes
    mixed = eights[starts]
    mixed &= _masks().take(sizes)
    mixed *= np.uint64(_FIRST)
    longer = np.flatnonzero(sizes > _EDGE)
    mixed[longer] ^= eights[stops.take(longer) - cuts.take(longer) - _EDGE] * np.uint64(_LAST)
    if not folded.isascii():
        leads = raw - np.uint8(_PAIRED.start) < len(_PAIRED)
        pairs = np.flatnonzero(leads[:-3] & leads[3:])
        mixed = np.concatenate([mixed, (eights[pairs] & _masks()[_PAIR_BYTES]) * np.uint64(_FIRST)])
    mixed *= np.uint64(_MIX)
    mixed >>= np.uint64(64 - _HASH_BITS)
    hashes: NDArray[np.int64] = mixed.view(np.int64)
    return hashes


@lru_cache(1)
def _cuts() -> NDArray[np.int8]:
    """The length of a word's ending by the last two bytes of the word. For 3, the byte before must be an `i`."""
    import numpy as np

    result = np.zeros(1 << 16, np.int8)
    result[ord("e") << 8 : (ord("e") + 1) << 8] = 1
    for item in _ENDINGS[:-1]:
        result[int.from_bytes(item[-2:], "little")] = len(item)
    return result


@lru_cache(1)
def _masks() -> NDArray[np.uint64]:
    """The mask of the first 8 bytes of a word, by its length."""
    import numpy as np

    return np.array([(1 << 8 * min(index, _EDGE)) - 1 for index in range(_LONGEST + 1)], np.uint64)
