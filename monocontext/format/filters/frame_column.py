"""Compute the column of a frame: the rows of a filter that the text of the frame sets.

A column also covers the first `overlap_bytes` of folded text after its frame, so that one column finds a needle that
begins in the frame and ends after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
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


class TextAfter:
    """Gives each frame of a text with the folded text that follows it. A frame waits until enough of that is known."""

    def __init__(self, reach: int, least_frames: int = 1):
        """`reach` is the number of bytes that follow a frame. With fewer than `least_frames`, none is given."""
        self._reach = reach
        self._least = least_frames
        self.waiting: deque[tuple[int, bytes]] = deque()
        """The frames that wait, with their numbers."""
        self._waiting_bytes = 0

    def add(self, number: int, frame: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Add the next frame (UTF-8), and yield those whose following text is known now."""
        self.waiting.append((number, frame))
        self._waiting_bytes += len(frame)
        if len(self.waiting) < self._least:
            return
        self._least = 0
        while self._waiting_bytes - len(self.waiting[0][1]) >= self._reach:
            following = fold_head((frame for _, frame in list(self.waiting)[1:]), self._reach)
            if len(following) < self._reach:
                return  # some marks fold to nothing: wait for more text
            yield self._first(following)

    def end(self, text_after: bytes = b"") -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the last frames, given the folded text after them. The next frame may be one of another part."""
        if self._least > 1:
            self.waiting.clear()
        while self.waiting:
            following = fold_head((frame for _, frame in list(self.waiting)[1:]), self._reach)
            yield self._first((following + text_after)[: self._reach])
        self._waiting_bytes = 0

    def _first(self, following: bytes) -> tuple[int, bytes, bytes]:
        number, frame = self.waiting.popleft()
        self._waiting_bytes -= len(frame)
        return number, frame, following


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
