"""Map grams and words to rows: the rows that a text sets in a filter, and those that a search reads.

A gram is 5 bytes of folded UTF-8, and one begins at each byte of a text. Its row is the upper bits of its product with
a constant modulo 2 ** 40 (Fibonacci hashing, Knuth, The Art of Computer Programming, 6.4), so halving the height of a
filter halves the row number. One hash is enough: a search reads the rows of several grams, so each may be weak.

After the rows of grams, a filter has one row for each slot and level, so that a search by words knows where to begin. A
word belongs to one *slot*, by its hash. In the row of a slot and a level, the bit of a frame is set if some word of the
slot occurs in it at least as often as the level says. These rows exclude no frame: they order the frames.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from monocontext.format.refs import GRAM_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_FOLDED_BYTES = 6  # the most UTF-8 bytes that folding makes of a character, such as U+FB03 and U+1FB7

_FOLDED_ALIKE = ("14.0.0", "15.0.0", "15.1.0")  # versions of Unicode with the same case foldings
TABLES = "unicode-15.1" if unicodedata.unidata_version in _FOLDED_ALIKE else f"unicode-{unicodedata.unidata_version}"
"""The name of the folding tables of this Python, which filters record. In a filter with other tables, only ASCII
literals are looked up, since their foldings never change."""
MAX_BITS = 18  # at most 2 ** 18 rows: 32 KiB a frame, an eighth of a frame of 256 KiB
MIN_BITS = 8
MAX_LITERAL_ROWS = 64  # the most rows of one literal that a search reads
MULTIPLIER = 0x9E3779B97F  # 2 ** 40 over the golden ratio
GRAM_BITS = 8 * GRAM_BYTES

LEAST_WORD_BYTES = 3  # the least number of bytes in a word
LEVELS = (3, 8, 24, 64)  # the counts of a word in a frame that filters distinguish
SLOT_BITS = 4  # a filter has 2 ** (bits - SLOT_BITS) slots
GRAM_ROWS_PER_WORD_ROW = (1 << SLOT_BITS) // len(LEVELS)  # the number of rows of grams for each row of words

_HIGHEST_SLOT_BITS = 14  # the number of bits of a slot's number in the highest filter
HASH_BITS = 16  # the hash of a word is the number of its group, then its slot: 2 ** _HIGHEST_SLOT_BITS * _GROUPS values
EDGE_BYTES = 8  # the hash of a word depends on so many bytes at either end
FIRST_FACTOR, LAST_FACTOR = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # of the first and the last of these bytes
MIX_FACTOR = LAST_FACTOR  # mixes the bits of both products: the hash is the upper bits of the result
ENDINGS = (b"ed", b"er", b"or", b"ing", b"ion", b"e")


def fold(text: str) -> str:
    """The folded form of a text, so that one filter serves searches in any case.

    Each character is mapped by itself: full case folding, then U+0131 (dotless i) becomes `i`, and U+0307 (the dot
    above that `lower()` makes of U+0130) is removed. For every character, on every Python from 3.11 to 3.13 (tested):
    - fold(f(text)) = fold(text) for f = lower, upper, casefold, title, swapcase, capitalize;
    - characters that `re.IGNORECASE` treats as equal have the same folded form;
    - fold(a + b) = fold(a) + fold(b), and a character becomes at most `MAX_FOLDED_BYTES` bytes.
    """
    if text.isascii():
        return text.lower()
    return text.casefold().replace("\u0307", "").replace("\u0131", "i")


def fold_bytes(data: bytes) -> bytes:
    """The folded form of whole characters in UTF-8 (256 KiB take 0.07 ms if all ASCII, else 1-3 ms)."""
    if data.isascii():
        return data.lower()
    return fold(data.decode()).encode()


def height(bits: int) -> int:
    """The total number of rows of a filter with 2 ** bits rows of grams."""
    return (1 << bits) + (1 << bits) // GRAM_ROWS_PER_WORD_ROW


HIGHEST = height(MAX_BITS)  # the number of rows of the highest filter


def shrink_rows(rows: NDArray[np.uint8], height: int, axis: int) -> NDArray[np.uint8]:
    """Halve the rows along an axis until there are `height`: neighbours are joined by OR."""
    while rows.shape[axis] > height:
        even = [slice(None)] * rows.ndim
        odd = list(even)
        even[axis], odd[axis] = slice(0, None, 2), slice(1, None, 2)
        rows = rows[tuple(even)] | rows[tuple(odd)]
    return rows


@lru_cache(256)
def rows_to_read(literal: str, bits: int, within_bytes: int, ascii_only: bool = False) -> tuple[int, ...]:
    """The rows that are set in the column of every frame in which the literal begins, in the order of its grams; empty
    if the filter cannot tell. A column may lack grams after the first `within_bytes` of the folded literal.
    `ascii_only`: the filter has other folding tables, so that only ASCII is certain."""
    if ascii_only:
        # Other characters may have been folded to any number of bytes up to `MAX_FOLDED_BYTES`.
        parts = [(match.start() * MAX_FOLDED_BYTES, match[0]) for match in re.finditer(r"[\0-\x7f]+", literal)]
    else:
        parts = [(0, literal)]
    grams: list[bytes] = []
    for bytes_before, part in parts:
        folded = fold(part).encode("utf-8", "surrogatepass")
        starts = range(min(within_bytes - bytes_before, len(folded) - GRAM_BYTES + 1))
        grams += [folded[start : start + GRAM_BYTES] for start in starts]
    last = len(grams) - 1
    if len(grams) > MAX_LITERAL_ROWS:  # keep some, at equal distances
        grams = [grams[i * last // (MAX_LITERAL_ROWS - 1)] for i in range(MAX_LITERAL_ROWS)]
    products = (int.from_bytes(gram, "little") * MULTIPLIER % (1 << GRAM_BITS) for gram in grams)
    return tuple(dict.fromkeys(product >> (GRAM_BITS - bits) for product in products))


def word_rows(words: tuple[str, ...], level: int, bits: int) -> tuple[int, ...]:
    """The rows of a level for folded words. If a frame has one of the words at least `LEVELS[level]` times, the
    bit of the frame is set in at least one of these rows."""
    slots = (1 << bits) >> SLOT_BITS
    first = (1 << bits) + level * slots
    rows = (first + (_hash(word) % (1 << _HIGHEST_SLOT_BITS) * slots >> _HIGHEST_SLOT_BITS) for word in words)
    return tuple(dict.fromkeys(rows))  # without duplicates, in order


def stem_of(word: bytes) -> bytes:
    """A word without a final `s`, then without the first of `ENDINGS` that it has, if at least 3 bytes remain."""
    if len(word) > 3 and word.endswith(b"s"):
        word = word[:-1]
    ending = next((item for item in ENDINGS if word.endswith(item) and len(word) - len(item) >= 3), b"")
    return word[: len(word) - len(ending)]


@lru_cache(256)
def _hash(word: str) -> int:
    stem = stem_of(word.encode("utf-8", "surrogatepass"))
    last = int.from_bytes(stem[-EDGE_BYTES:], "little") if len(stem) > EDGE_BYTES else 0
    mixed = int.from_bytes(stem[:EDGE_BYTES], "little") * FIRST_FACTOR ^ last * LAST_FACTOR
    return mixed * MIX_FACTOR % (1 << 64) >> (64 - HASH_BITS)
