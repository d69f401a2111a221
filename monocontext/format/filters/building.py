"""Build search filters from the frames of a text, in bounded memory, and store them.

Frames come in the order of the text, and each becomes a column in a temporary file (`column_file`). At the end, rows
are read across all columns and stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from monocontext.format.filters.case_folding import TABLES
from monocontext.format.filters.column_file import ColumnFile
from monocontext.format.filters.frame_column import TextAfter, compute_column
from monocontext.format.filters.grams import HIGHEST
from monocontext.format.filters.joining import Get, Put, added, fresh_seed, put_filter, runs_of
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import FILTER_KIND, GRAM_BYTES, FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GROUP_FRAMES = 1 << 16
"""The most columns of one filter: 16 GiB of text, rows of 8 KiB."""
LEAST_FRAME_BYTES = 512
"""The size of the smallest frames with a filter, which would be larger than smaller frames."""
_HELD_FRAMES = 1024
"""A new filter of up to this many frames is joined with others before it is stored: it takes some 5 to 40 MB."""
LEAST_FRAMES = 9
"""The least number of frames of a text with a filter: two requests read all of a shorter text."""


class Columns:
    """The columns of some frames of a text, in order. Feed frames, then `finish`, then `store`.

    Columns are computed in the thread that calls `feed`. Other threads would take a third more CPU time, since numpy
    releases the GIL a dozen times a frame, and twice the memory.
    """

    def __init__(self, overlap_bytes: int, least_frames: int):
        """With fewer than `least_frames` nothing is computed or stored."""
        self.overlap_bytes = overlap_bytes
        self.reach = overlap_bytes + GRAM_BYTES - 1
        """The number of folded bytes after a frame from which its column is computed."""
        self.least_frames = least_frames
        self._frames = TextAfter(self.reach, least_frames)
        self._rows: NDArray[np.uint8] | None = None
        """The rows of the current frame, reused: fresh memory for each frame would cost as much as the grams."""
        self._groups: list[ColumnFile] = []

    @property
    def frames(self) -> int:
        return sum(group.frames for group in self._groups)

    def feed(self, frame: bytes) -> None:
        """Add the next frame (UTF-8)."""
        self._compute(self._frames.add(0, frame))

    def end(self, text_after: bytes = b"") -> None:
        """Compute the columns of the last frames, given the folded text after them, which gets no column. The next
        frame may be one of another part of the text."""
        self._compute(self._frames.end(text_after))

    def finish(self) -> None:
        """Compute the columns of the last frames: no text follows."""
        self.end()
        for group in self._groups:
            group.flush()

    def _compute(self, frames: Iterable[tuple[int, bytes, bytes]]) -> None:
        import numpy as np

        for _, frame, text_after in frames:
            if self._rows is None:
                self._rows = np.empty(HIGHEST, np.uint8)
            self._rows.fill(0)
            self.add(compute_column(frame, text_after, self._rows))

    def add(self, column: NDArray[np.uint8]) -> None:
        """Add the column of the next frame (`compute_column`). Its rows are overwritten."""
        if not self._groups or self._groups[-1].frames == GROUP_FRAMES:
            if self._groups:
                self._groups[-1].flush()
            self._groups.append(ColumnFile())
        self._groups[-1].add(column)

    def store(self, put: Put, frames: Sequence[tuple[int, int]] | None = None) -> tuple[FilterRef, ...]:
        """Store filters of these columns, and return their entries (1 PUT for each 16 MiB).

        `frames`: the frames of the text whose columns these are, in order, as pairs of a first one and a number; by
        default the first ones of the text.
        """
        remaining = deque(frames if frames is not None else [(0, self.frames)])
        return tuple(self._store(put, group, runs_of(_take(remaining, group.frames))) for group in self._groups)

    def _store(self, put: Put, group: ColumnFile, runs: tuple[tuple[int, int, int], ...]) -> FilterRef:
        ref = FilterRef(FILTER_KIND, TABLES, group.bits, self.overlap_bytes, group.frames, runs, (), fresh_seed())
        layout = FilterLayout(ref)
        return put_filter(ref, lambda start, stop: layout.encode(group.rows(start, stop, ref.bits), start), put)


def add_columns(
    refs: Sequence[FilterRef], columns: Columns, frames: Sequence[tuple[int, int]], get: Get, put: Put
) -> tuple[FilterRef, ...]:
    """All filters of a text, given those before and the columns of other frames (`joining.added`)."""
    if columns.frames > _HELD_FRAMES:
        return added(refs, columns.store(put, frames), get, put)
    held: dict[str, bytes] = {}
    filters = added(
        refs, columns.store(held.__setitem__, frames), lambda key: held[key] if key in held else get(key), put
    )
    for ref in filters:
        for key in ref.keys:
            if key in held:
                put(key, held[key])
    return filters


def _take(left: deque[tuple[int, int]], frames: int) -> Iterator[tuple[int, int]]:
    """Take the first `frames` frames of some runs."""
    while frames:
        first, count = left.popleft()
        if count > frames:
            left.appendleft((first + frames, count - frames))
        yield first, min(count, frames)
        frames -= min(count, frames)
