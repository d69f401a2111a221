"""Map words to rows: how often each word occurs in a frame, so that a search by words knows where to begin.

Behind the rows of grams, a filter has 2 ** (bits - 4) rows of words for each of `LEVELS`. A word has the same position,
its slot, in each. A column has a bit there if some word of that slot occurs in the frame that often. These rows rule
nothing out: they order the frames that may hold the words.

A word is a run of three or more ASCII letters, digits, `_` and bytes of other scripts in folded UTF-8, without an
English ending (`strip`). In CJK, any two neighbouring characters are a word too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from monocontext.format.filters.suffixes import EDGE, LEAST_BYTES, Signs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVELS = (3, 8, 24, 64)
"""The counts of a word in a frame that are told apart. The rows of grams say whether it occurs at all. Eight levels
give 0.01 more recall for twice the space (docs/decisions/005-search-filters.md)."""
SLOT_BITS = 4
"""There are 2 ** (bits - SLOT_BITS) slots."""
WORD_SHARE = (1 << SLOT_BITS) // len(LEVELS)
"""The number of rows of grams for each row of words."""

_TOP_BITS = 14
"""Bits of the highest slot."""
_APART = 4
"""The number of groups of words in a slot that are counted separately: the most frequent one counts."""
_HASH_BITS = 16
"""2 ** _TOP_BITS * _APART hashes; the lower bits are the slot."""
_FIRST, _LAST = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
_MOST = 99
"""How much longer a word is does not matter."""
_PAIR_BYTES = 6
"""Bytes of two CJK characters."""
_PAIRED = range(0xE3, 0xEA)
_ENDINGS = (b"ed", b"er", b"or", b"ing", b"ion", b"e")


def set_word_rows(rows: NDArray[np.uint8], signs: Signs, size: int) -> None:
    """Set the rows of words, zeros before, of the first `size` bytes of a folded text (0.4 ms for 256 KiB)."""
    import numpy as np

    slots = len(rows) // len(LEVELS)
    counts = np.bincount(_hashes(signs, size), minlength=_APART * slots)
    most = counts.reshape(_APART, slots).max(axis=0)
    for number, level in enumerate(LEVELS):
        rows[number * slots : (number + 1) * slots] = most >= level


def word_rows(words: tuple[str, ...], level: int, bits: int) -> tuple[int, ...]:
    """Rows, at least one of which is set for a frame in which one of these folded words occurs `LEVELS[level]`
    times."""
    slots = (1 << bits) >> SLOT_BITS
    first = (1 << bits) + level * slots
    return tuple({first + (_hash(word) % (1 << _TOP_BITS) * slots >> _TOP_BITS): None for word in words})


def strip(word: bytes) -> bytes:
    """A word without its English ending, roughly: `s`, then one of `_ENDINGS` where 3 bytes are left."""
    if len(word) > 3 and word.endswith(b"s"):
        word = word[:-1]
    ending = next((one for one in _ENDINGS if word.endswith(one) and len(word) - len(one) >= 3), b"")
    return word[: len(word) - len(ending)]


@lru_cache(256)
def _hash(word: str) -> int:
    stem = strip(word.encode("utf-8", "surrogatepass"))
    last = int.from_bytes(stem[-EDGE:], "little") if len(stem) > EDGE else 0
    mixed = int.from_bytes(stem[:EDGE], "little") * _FIRST ^ last * _LAST
    return mixed * _LAST % (1 << 64) >> (64 - _HASH_BITS)


def _hashes(signs: Signs, size: int) -> NDArray[np.int64]:
    """The hash of each word of a text's first `size` bytes, and of each pair of characters of CJK."""
    import numpy as np

    eights, end = signs.eights, EDGE + size
    count = int(np.searchsorted(signs.starts, end - LEAST_BYTES, "right"))
    starts, stops = signs.starts[:count], np.minimum(signs.stops[:count], end)
    stops = stops - ((signs.raw.take(stops - 1) == ord("s")) & (stops - starts > LEAST_BYTES))
    cuts = _cuts().take(signs.raw.take(stops - 1).astype(np.uint16) << np.uint16(8) | signs.raw.take(stops - 2))
    three = np.flatnonzero(cuts == 3)
    cuts[three] *= signs.raw.take(stops.take(three) - 3) == ord("i")
    sizes = np.minimum(stops - starts, _MOST).astype(np.int8)
    cuts *= sizes - cuts >= 3
    sizes -= cuts
    mixed = eights.take(starts)
    mixed &= _masks().take(sizes)
    mixed *= np.uint64(_FIRST)
    longer = np.flatnonzero(sizes > EDGE)
    mixed[longer] ^= eights.take(stops.take(longer) - cuts.take(longer) - EDGE) * np.uint64(_LAST)
    if signs.others.any():
        leads = signs.raw[:end] - np.uint8(_PAIRED.start) < len(_PAIRED)
        pairs = np.flatnonzero(leads[:-3] & leads[3:])
        mixed = np.concatenate([mixed, (eights.take(pairs) & _masks()[_PAIR_BYTES]) * np.uint64(_FIRST)])
    mixed *= np.uint64(_LAST)
    mixed >>= np.uint64(64 - _HASH_BITS)
    hashes: NDArray[np.int64] = mixed.view(np.int64)
    return hashes


@lru_cache(1)
def _cuts() -> NDArray[np.int8]:
    """Bytes that an ending takes, by the last two bytes of a word; of 3 the one before must be an `i`."""
    import numpy as np

    found = np.zeros(1 << 16, np.int8)
    found[ord("e") << 8 : (ord("e") + 1) << 8] = 1
    for one in _ENDINGS[:-1]:
        found[int.from_bytes(one[-2:], "little")] = len(one)
    return found


@lru_cache(1)
def _masks() -> NDArray[np.uint64]:
    """The mask for a word of this many bytes."""
    import numpy as np

    return np.array([(1 << 8 * min(each, EDGE)) - 1 for each in range(_MOST + 1)], np.uint64)
