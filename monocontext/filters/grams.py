"""Which rows of a filter a text sets, and which ones a needle asks for.

A gram is 5 bytes of folded UTF-8. Its row is the upper bits of its product with a constant (Fibonacci hashing, Knuth,
The Art of Computer Programming, 6.4), so the row in a filter of half the height is the row halved. One hash is enough:
a needle probes many grams, so each may be poor. Shorter grams are no use in frames of 256 KiB (measured: every second
frame of source code holds all trigrams of any word).
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

_MULTIPLIER = 0x9E3779B97F4A7C15
"""2 ** 64 over the golden ratio."""
_GRAM_MASK = (1 << 8 * GRAM_BYTES) - 1


def set_rows(folded: bytes) -> NDArray[np.uint8]:
    """The column of a folded text at `MAX_BITS`: 1 for each row that a gram of it has, else 0 (0.6 ms for 256 KiB)."""
    import numpy as np

    column = np.zeros(1 << MAX_BITS, np.uint8)
    count = len(folded) - GRAM_BYTES + 1
    if count > 0:
        # Every byte begins a little-endian integer of 8 bytes, of which 5 are kept: no copy, no loop.
        grams = np.ndarray((count,), "<u8", folded + bytes(8), 0, (1,)) & np.uint64(_GRAM_MASK)
        column[(grams * np.uint64(_MULTIPLIER)) >> np.uint64(64 - MAX_BITS)] = 1
    return column


def row_of(gram: bytes, bits: int) -> int:
    """The row of one gram in a filter of 2 ** bits rows."""
    return (int.from_bytes(gram, "little") * _MULTIPLIER & 0xFFFFFFFFFFFFFFFF) >> (64 - bits)


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
