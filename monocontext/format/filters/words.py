"""Map words to rows, which record how often words occur in a frame, so that a search by words knows where to begin.

After the rows of grams, a filter has one row for each slot and level. A word belongs to one *slot*, by its hash. In the
row of a slot and a level, the bit of a frame is set if some word of the slot occurs in it at least as often as the
level says. These rows exclude no frame: they order the frames that may contain the words.

A word is a run of three or more ASCII letters, digits, `_` and bytes of other scripts in folded UTF-8, without an
English ending (`stem_of`). In CJK, any two neighbouring characters are a word too.
"""

from __future__ import annotations

from functools import lru_cache

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
HASH_BITS = 16
"""The hash of a word is the number of its group, then its slot: 2 ** _TOP_BITS * _GROUPS values."""
FIRST, LAST = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
"""The factors of the first and the last 8 bytes of a word in its hash."""
MIX = LAST
"""The factor that mixes the bits of both: the hash is the upper bits of the product."""
EDGE = 8
"""The bytes at either end of a word that its hash depends on."""
ENDINGS = (b"ed", b"er", b"or", b"ing", b"ion", b"e")


def word_rows(words: tuple[str, ...], level: int, bits: int) -> tuple[int, ...]:
    """The rows of folded words at a level: a frame with one of the words at least `LEVELS[level]` times has a bit in at
    least one of them."""
    slots = (1 << bits) >> SLOT_BITS
    first = (1 << bits) + level * slots
    rows = (first + (_hash(word) % (1 << _TOP_BITS) * slots >> _TOP_BITS) for word in words)
    return tuple(dict.fromkeys(rows))  # without duplicates, in order


def stem_of(word: bytes) -> bytes:
    """A word without `s`, then without the first of `ENDINGS` that it has, if that leaves 3 bytes."""
    if len(word) > 3 and word.endswith(b"s"):
        word = word[:-1]
    ending = next((item for item in ENDINGS if word.endswith(item) and len(word) - len(item) >= 3), b"")
    return word[: len(word) - len(ending)]


@lru_cache(256)
def _hash(word: str) -> int:
    stem = stem_of(word.encode("utf-8", "surrogatepass"))
    last = int.from_bytes(stem[-EDGE:], "little") if len(stem) > EDGE else 0
    mixed = int.from_bytes(stem[:EDGE], "little") * FIRST ^ last * LAST
    return mixed * MIX % (1 << 64) >> (64 - HASH_BITS)
