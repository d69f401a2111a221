"""Map grams to rows: the rows that a text sets in a filter, and those that a search for a literal reads.

A gram is 5 bytes of folded UTF-8. Its row is the upper bits of its product with a constant modulo 2 ** 40 (Fibonacci
hashing, Knuth, The Art of Computer Programming, 6.4), so halving the height of a filter halves the row number. One hash
is enough: a search probes many grams, so each may be weak. Shorter grams do not help in frames of 256 KiB: every second
frame of source code holds all trigrams of any word (measured).

Behind the rows of grams lie those of words (`words.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from monocontext.format.filters.fold import MAX_BYTES, fold
from monocontext.format.filters.words import WORD_SHARE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GRAM_BYTES = 5
MAX_BITS = 18
"""2 ** 18 rows: 32 KiB a frame, an eighth of a frame of 256 KiB."""
MIN_BITS = 8
MAX_ROWS = 16
"""Most rows that one literal reads. More would rule out little more, and each is a request."""

_MULTIPLIER = 0x9E3779B97F
"""2 ** 40 over the golden ratio."""
_GRAM_BITS = 8 * GRAM_BYTES
_AT_ONCE = 1 << 16
"""Grams hashed at once at most: 512 KiB fit the processor's cache; smaller steps would make threads wait for each
other."""


def set_rows(folded: bytes, column: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """The column of a folded text at `MAX_BITS`: 1 for each row that a gram of it has, else 0 (0.3 ms for 256 KiB). The
    rows of words are behind them (`words.set_word_rows`).

    `column`: zeros, to be used for it.
    """
    import numpy as np

    if column is None:
        column = np.zeros(HIGHEST, np.uint8)
    multiplier, shift = np.uint64(_MULTIPLIER << (64 - _GRAM_BITS)), np.uint64(64 - MAX_BITS)
    room = np.empty(min(_AT_ONCE, len(folded) // 8), np.uint64)  # for all: fresh pages cost more than arithmetic
    for start in range(0, len(folded), 8 * _AT_ONCE):
        for half in (0, 4):  # of 8 bytes the first 4 begin a gram that ends in them
            stretch = folded[start + half : start + half + 8 * _AT_ONCE]  # a copy: its numbers lie aligned
            eights = np.ndarray(len(stretch) // 8, "<u8", stretch)
            for byte in range(4):
                # Multiplying shifts out what stands behind the gram. No loop over bytes.
                grams = np.right_shift(eights, np.uint64(8 * byte), out=room[: len(eights)])
                grams *= multiplier
                grams >>= shift
                column[grams.view(np.int64)] = 1
    for at in range(max(len(folded) - 8, 0), len(folded) - GRAM_BYTES + 1):
        column[row_of(folded[at : at + GRAM_BYTES], MAX_BITS)] = 1
    return column


def height(bits: int, with_words: bool = True) -> int:
    """The rows of a filter of 2 ** bits rows of grams."""
    return (1 << bits) + ((1 << bits) // WORD_SHARE if with_words else 0)


HIGHEST = height(MAX_BITS)


def shrink_rows(rows: NDArray[np.uint8], height: int, axis: int) -> NDArray[np.uint8]:
    """Reduce the rows along an axis to that many: neighbours are joined by OR."""
    while rows.shape[axis] > height:
        even = [slice(None)] * rows.ndim
        odd = list(even)
        even[axis], odd[axis] = slice(0, None, 2), slice(1, None, 2)
        rows = rows[tuple(even)] | rows[tuple(odd)]
    return rows


def row_of(gram: bytes, bits: int) -> int:
    """The row of one gram in a filter of 2 ** bits rows."""
    product = int.from_bytes(gram, "little") * _MULTIPLIER
    return product % (1 << _GRAM_BITS) >> (_GRAM_BITS - bits)


@lru_cache(256)
def rows_to_read(literal: str, bits: int, within_bytes: int, ascii_only: bool = False) -> tuple[int, ...]:
    """Rows that are all set in the column of a frame in which the literal begins; empty: the filter cannot tell.

    Grams that begin `within_bytes` of folded text or more after the beginning of the literal are left out: the frame's
    column may not hold them. `ascii_only`: the filter has other folding tables, and only ASCII is certain.
    """
    if ascii_only:
        # Other characters may have been folded to any number of bytes up to `MAX_BYTES`.
        stretches = [(found.start() * MAX_BYTES, found[0]) for found in re.finditer(r"[\0-\x7f]+", literal)]
    else:
        stretches = [(0, literal)]
    grams = []
    for before, stretch in stretches:
        folded = fold(stretch).encode("utf-8", "surrogatepass")
        offsets = range(min(len(folded) - GRAM_BYTES + 1, within_bytes - before))
        grams += [folded[at : at + GRAM_BYTES] for at in offsets]
    return tuple(dict.fromkeys(row_of(gram, bits) for gram in _pick_evenly(grams)))


def _pick_evenly(grams: list[bytes]) -> list[bytes]:
    """At most `MAX_ROWS` of the grams, evenly spaced: neighbours tell nearly the same."""
    if len(grams) <= MAX_ROWS:
        return grams
    last = len(grams) - 1
    return [grams[i * last // (MAX_ROWS - 1)] for i in range(MAX_ROWS)]
