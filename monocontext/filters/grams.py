"""Which rows of a filter a text sets, and which ones a needle asks for.

A gram is 5 bytes of folded UTF-8. Its row is the upper bits of its product with a constant modulo 2 ** 40 (Fibonacci
hashing, Knuth, The Art of Computer Programming, 6.4), so the row in a filter of half the height is the row halved. One
hash is enough: a needle probes many grams, so each may be poor. Shorter grams are no use in frames of 256 KiB: every
second frame of source code holds all trigrams of any word (measured).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from monocontext.filters.fold import MAX_BYTES, fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GRAM_BYTES = 5
MAX_BITS = 18
"""2 ** 18 rows: 32 KiB a frame, an eighth of a frame of 256 KiB."""
MIN_BITS = 8
MAX_ROWS = 16
"""Rows that one needle asks for. More would find little more, and each is a request."""

_MULTIPLIER = 0x9E3779B97F
"""2 ** 40 over the golden ratio."""
_GRAM_BITS = 8 * GRAM_BYTES
_AT_ONCE = 1 << 16
"""Grams hashed at once: 512 KiB stay in the processor's cache; with fewer, threads would wait for each other more."""


def set_rows(folded: bytes) -> NDArray[np.uint8]:
    """The column of a folded text at `MAX_BITS`: 1 for each row that a gram of it has, else 0 (0.4 ms for 256 KiB)."""
    import numpy as np

    column = np.zeros(1 << MAX_BITS, np.uint8)
    padded = folded + bytes(8)
    for start in range(0, len(folded) - GRAM_BYTES + 1, _AT_ONCE):
        count = min(_AT_ONCE, len(folded) - GRAM_BYTES + 1 - start)
        # Every byte begins a little-endian integer of 8 bytes; multiplying shifts the upper 3 out. No loop over bytes.
        grams = np.ndarray((count,), "<u8", padded, start, (1,)) * np.uint64(_MULTIPLIER << (64 - _GRAM_BITS))
        grams >>= np.uint64(64 - MAX_BITS)
        column[grams.view(np.int64)] = 1
    return column


def lowered(rows: NDArray[np.uint8], bits: int, axis: int) -> NDArray[np.uint8]:
    """The rows along an axis as those of a filter of 2 ** bits: neighbours are joined until so many are left."""
    while rows.shape[axis] > 1 << bits:
        even = [slice(None)] * rows.ndim
        odd = list(even)
        even[axis], odd[axis] = slice(0, None, 2), slice(1, None, 2)
        rows = rows[tuple(even)] | rows[tuple(odd)]
    return rows


def row_of(gram: bytes, bits: int) -> int:
    """The row of one gram in a filter of 2 ** bits rows."""
    product = int.from_bytes(gram, "little") * _MULTIPLIER
    return product % (1 << _GRAM_BITS) >> (_GRAM_BITS - bits)


def asked_rows(literal: str, bits: int, within_bytes: int, *, ascii_only: bool = False) -> list[int]:
    """Rows that are all set where the literal begins; none: the filter cannot help.

    Grams that begin `within_bytes` or more of folded text after the literal's beginning are left out, since the frame's
    column may not hold them. `ascii_only`: the filter was made with other tables, only ASCII is certain.
    """
    if ascii_only:
        # How many bytes other characters were folded to is not known: `MAX_BYTES` at most.
        stretches = [(found.start() * MAX_BYTES, found[0]) for found in re.finditer(r"[\0-\x7f]+", literal)]
    else:
        stretches = [(0, literal)]
    grams = []
    for before, stretch in stretches:
        folded = fold(stretch).encode("utf-8", "surrogatepass")
        offsets = range(min(len(folded) - GRAM_BYTES + 1, within_bytes - before))
        grams += [folded[at : at + GRAM_BYTES] for at in offsets]
    return list(dict.fromkeys(row_of(gram, bits) for gram in _spread(grams)))


def _spread(grams: list[bytes]) -> list[bytes]:
    """At most `MAX_ROWS` of them, evenly: neighbours tell nearly the same."""
    if len(grams) <= MAX_ROWS:
        return grams
    last = len(grams) - 1
    return [grams[i * last // (MAX_ROWS - 1)] for i in range(MAX_ROWS)]
