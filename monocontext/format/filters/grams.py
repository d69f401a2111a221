"""Map grams to rows: the rows that a text sets in a filter, and the rows that a search for a literal reads.

A gram is 5 bytes of folded UTF-8, and one begins at each byte of a text. Its row is the upper bits of its product with
a constant modulo 2 ** 40 (Fibonacci hashing, Knuth, The Art of Computer Programming, 6.4), so halving the height of a
filter halves the row number. One hash is enough: a search reads the rows of several grams, so each may be weak.

The rows of words (`words.py`) follow the rows of grams.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from monocontext.format.filters.case_folding import MAX_BYTES, fold
from monocontext.format.filters.words import GRAM_ROWS_PER_WORD_ROW
from monocontext.format.refs import GRAM_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BITS = 18
"""At most 2 ** 18 rows: 32 KiB a frame, an eighth of a frame of 256 KiB."""
MIN_BITS = 8
MAX_ROWS = 16
"""The most rows that a search for one literal reads: more would rule out few other frames, and each is a request."""

MULTIPLIER = 0x9E3779B97F
"""2 ** 40 over the golden ratio."""
GRAM_BITS = 8 * GRAM_BYTES


def height(bits: int) -> int:
    """The total number of rows of a filter with 2 ** bits rows of grams."""
    return (1 << bits) + (1 << bits) // GRAM_ROWS_PER_WORD_ROW


HIGHEST = height(MAX_BITS)


def shrink_rows(rows: NDArray[np.uint8], height: int, axis: int) -> NDArray[np.uint8]:
    """Reduce the rows along an axis to `height` of them: neighbours are joined by OR."""
    while rows.shape[axis] > height:
        even = [slice(None)] * rows.ndim
        odd = list(even)
        even[axis], odd[axis] = slice(0, None, 2), slice(1, None, 2)
        rows = rows[tuple(even)] | rows[tuple(odd)]
    return rows


@lru_cache(256)
def rows_to_read(literal: str, bits: int, within_bytes: int, ascii_only: bool = False) -> tuple[int, ...]:
    """The rows that are all set in the column of a frame in which the literal begins; empty if the filter cannot tell.

    Only grams that begin in the first `within_bytes` of the folded literal count: the column may lack later ones.
    `ascii_only` says that the filter has other folding tables, so only ASCII is certain.
    """
    if ascii_only:
        # Other characters may have been folded to any number of bytes up to `MAX_BYTES`.
        parts = [(match.start() * MAX_BYTES, match[0]) for match in re.finditer(r"[\0-\x7f]+", literal)]
    else:
        parts = [(0, literal)]
    grams: list[bytes] = []
    for bytes_before, part in parts:
        folded = fold(part).encode("utf-8", "surrogatepass")
        starts = range(min(within_bytes - bytes_before, len(folded) - GRAM_BYTES + 1))
        grams += [folded[start : start + GRAM_BYTES] for start in starts]
    last = len(grams) - 1
    picked = grams if len(grams) <= MAX_ROWS else [grams[i * last // (MAX_ROWS - 1)] for i in range(MAX_ROWS)]
    return tuple(dict.fromkeys(_row_of(gram, bits) for gram in picked))


def _row_of(gram: bytes, bits: int) -> int:
    """The row of a gram in a filter with 2 ** bits rows of grams."""
    return int.from_bytes(gram, "little") * MULTIPLIER % (1 << GRAM_BITS) >> (GRAM_BITS - bits)
