"""Compute the column of a frame: the rows of a filter that the text of the frame sets.

A column also covers the first `overlap_bytes` of folded text after its frame, so that one column finds a needle that
begins in the frame and ends after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from monocontext.format.filters.case_folding import fold_bytes
from monocontext.format.filters.grams import HIGHEST, MAX_BITS, set_rows
from monocontext.format.filters.words import set_word_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OVERLAP_BYTES = 4096


def overlap_for(frame_bytes: int) -> int:
    """The number of folded bytes after a frame that its column covers: 1.6 % of a frame of 256 KiB."""
    return min(OVERLAP_BYTES, max(frame_bytes // 64, 64))


def compute_column(frame: bytes, following: bytes, rows: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """The column of a frame (UTF-8) with the folded text that follows it: a byte for each of the `HIGHEST` rows, 1 if
    the row is set. Runs in any thread or process.

    `rows` is an array of zeros to use instead of a new one. Words are counted in the frame alone.
    """
    import numpy as np

    folded = fold_bytes(frame)
    rows = np.zeros(HIGHEST, np.uint8) if rows is None else rows
    set_word_rows(rows[1 << MAX_BITS :], folded)
    set_rows(rows, folded + following)
    return rows


def fold_head(frames: Iterable[bytes], size: int) -> bytes:
    """The first `size` folded bytes of the text of some frames, or all of it if it is shorter."""
    head = b""
    for frame in frames:
        start = _first_characters(frame, 2 * (size - len(head)) + 8)  # nearly always enough
        head += fold_bytes(start)
        if len(head) < size:
            head += fold_bytes(frame[len(start) :])
        if len(head) >= size:
            return head[:size]
    return head


def _first_characters(data: bytes, most: int) -> bytes:
    """At most `most` bytes from the start of a text, cut between characters."""
    while 0 < most < len(data) and data[most] & 0xC0 == 0x80:
        most -= 1
    return data[:most]
