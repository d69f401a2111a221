"""Build search filters from the frames of a text, in bounded memory, and store them.

Frames come in the order of the text, and each becomes a column in a temporary file (`column_file`). At the end, rows
are read across all columns and stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from monocontext.errors import DamagedData, ForeignObject, NotFound
from monocontext.format.filters.byte_facts import ByteFacts
from monocontext.format.filters.case_folding import TABLES, fold_bytes
from monocontext.format.filters.column_file import ColumnFile
from monocontext.format.filters.frame_column import Column, compute_column, fold_head
from monocontext.format.filters.grams import HIGHEST, height, set_rows, shrink_rows
from monocontext.format.filters.joining import (
    can_join,
    encode_parts,
    fresh_seed,
    join_columns,
    joined_ref,
    put_parts,
    read_rows,
)
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import FILTER_KIND, LONGEST_GRAM, FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GROUP_FRAMES = 1 << 16
"""The most columns of one filter: 16 GiB of text, rows of 8 KiB."""
LEAST_FRAME_BYTES = 512
"""The size of the smallest frames with a filter, which would be larger than smaller frames."""
LEAST_FRAMES = 9
"""The least number of frames of a text with a filter: two requests read all of a shorter text."""
MERGED_BYTES = 4 << 20
"""The largest filter for which an append merges its own filter with the last one of the context."""


class FilteredText(Protocol):
    """A text with filters, such as a `Manifest`."""

    @property
    def frames(self) -> int: ...

    @property
    def filters(self) -> tuple[FilterRef, ...]: ...


class Columns:
    """The columns of the frames that one writer stores, in order. Feed frames, then `finish`, then `store`.

    Columns are computed in the thread that calls `feed`. Other threads would take a third more CPU time, since numpy
    releases the GIL a dozen times a frame, and twice the memory.
    """

    def __init__(self, overlap_bytes: int, least_frames: int):
        """With fewer than `least_frames` nothing is computed or stored."""
        self.overlap_bytes = overlap_bytes
        self.head = b""
        """The first folded bytes of the text, for the border column."""
        self.reach = overlap_bytes + LONGEST_GRAM[FILTER_KIND] - 1
        """The number of folded bytes after a frame from which its column is computed."""
        self.least_frames = least_frames
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._rows: NDArray[np.uint8] | None = None
        """The rows of the current frame, reused: fresh memory for each frame would cost as much as the grams."""
        self._groups: list[ColumnFile] = []

    @property
    def frames(self) -> int:
        return sum(group.frames for group in self._groups)

    def feed(self, frame: bytes) -> None:
        """Add the next frame (UTF-8)."""
        if len(self.head) < self.reach:
            self.head += fold_head([frame], self.reach - len(self.head))
        self._waiting.append(frame)
        self._waiting_bytes += len(frame)
        if not self._groups and len(self._waiting) < self.least_frames:
            return
        while self._waiting_bytes - len(self._waiting[0]) >= self.reach:
            text_after = fold_head(list(self._waiting)[1:], self.reach)
            if len(text_after) < self.reach:
                return  # some marks fold to nothing: wait for more text
            self._compute(text_after)

    def finish(self) -> None:
        """Compute the columns of the last frames: no frame follows."""
        if not self._groups and len(self._waiting) < self.least_frames:
            self._waiting.clear()
        while self._waiting:
            self._compute(fold_head(list(self._waiting)[1:], self.reach))
        for group in self._groups:
            group.flush()

    def _compute(self, text_after: bytes) -> None:
        import numpy as np

        frame = self._waiting.popleft()
        self._waiting_bytes -= len(frame)
        if self._rows is None:
            self._rows = np.empty(HIGHEST, np.uint8)
        self._rows.fill(0)
        self.add(compute_column(frame, text_after, self._rows))

    def add(self, computed: Column) -> None:
        """Add the column of the next frame. Its rows are overwritten."""
        if not self._groups or self._groups[-1].frames == GROUP_FRAMES:
            if self._groups:
                self._groups[-1].flush()
            self._groups.append(ColumnFile())
        self._groups[-1].add(computed)

    def store(
        self,
        put: Callable[[str, bytes], object],
        get: Callable[[str], bytes],
        base: FilteredText | None,
        last_frames: Callable[[], Iterator[bytes]],
    ) -> tuple[FilterRef, ...]:
        """Store filters for these frames, which follow the text of `base`; returns all filters of the new text.

        `last_frames` gives the frames of `base` from its end backwards: a needle may cross the border. A small last
        filter of `base` is merged with the first new one (1 GET). Costs 1 PUT for each 16 MiB.
        """
        earlier = list(base.filters) if base else []
        first = base.frames if base else 0
        border, border_frames = None, 0
        if first and self._groups:
            border, border_frames = _border_column(last_frames, self.head, self.reach)
        refs: list[FilterRef] = []
        for number, group in enumerate(self._groups):
            bytes_after = sum(later.folded_bytes for later in self._groups[number + 1 :])
            ref = FilterRef(
                kind=FILTER_KIND,
                fold=TABLES,
                first_frame=first,
                frames=group.frames,
                bits=group.bits,
                overlap_bytes=self.overlap_bytes,
                tail_frames=group.tail_frames(self.reach - bytes_after) if bytes_after < self.reach else 0,
                border_frames=border_frames,
                parts=(),
                seed=fresh_seed(),
            )
            parts = _encode_parts(ref, group, border)
            if border is not None and earlier and _can_merge(earlier[-1], ref):
                try:
                    ref, parts = _merge(earlier[-1], get, group, ref, border)
                    earlier.pop()
                except (DamagedData, NotFound):
                    pass  # a lost filter does not prevent a write: the new one has its own border
            refs.append(put_parts(ref, parts, put))
            first += group.frames
            border, border_frames = None, 0  # the next group follows in the same stream: its columns overlap
        return (*earlier, *refs)


def _border_column(
    last_frames: Callable[[], Iterator[bytes]], head: bytes, reach: int
) -> tuple[NDArray[np.uint8] | None, int]:
    """The border column before new text, and the number of earlier frames that it covers.

    `None` if the earlier text may not be read: then its last frames may contain anything.
    """
    import numpy as np

    before, number = b"", 0
    try:
        for frame in last_frames():
            before, number = fold_bytes(frame) + before, number + 1
            if len(before) >= reach:
                break
    except ForeignObject:
        return None, 0

    column = np.zeros(HIGHEST, np.uint8)
    set_rows(column, ByteFacts(before[-reach:], head))
    return column, number


def _encode_parts(ref: FilterRef, group: ColumnFile, border: NDArray[np.uint8] | None) -> Iterator[bytes]:
    """The objects of a new filter, in order."""
    import numpy as np

    layout = FilterLayout(ref)
    border_rows = None if border is None else shrink_rows(border, layout.rows, axis=0)

    def encode_rows(start: int, stop: int) -> bytes:
        rows = group.rows(start, stop, ref.bits)
        if border_rows is not None:
            at, bit = divmod(ref.frames, 8)
            if at == rows.shape[1]:
                rows = np.concatenate([rows, np.zeros((len(rows), 1), np.uint8)], axis=1)
            rows[:, at] |= border_rows[start:stop] << np.uint8(bit)
        return layout.encode(rows, start)

    return encode_parts(ref, encode_rows, layout.row_bytes)


def _can_merge(tail: FilterRef, ref: FilterRef) -> bool:
    """Whether the last filter of a text and a new one can be joined and are small."""
    return can_join(tail, ref) and FilterLayout(tail).size_bytes + FilterLayout(ref).size_bytes <= MERGED_BYTES


def _merge(
    tail: FilterRef, get: Callable[[str], bytes], group: ColumnFile, ref: FilterRef, border: NDArray[np.uint8]
) -> tuple[FilterRef, Iterator[bytes]]:
    """One filter over the frames of a stored one and of a group that follows them (1 GET for each stored object)."""
    import numpy as np

    merged = joined_ref([tail, ref])
    rows, layout = height(merged.bits), FilterLayout(merged)
    stored = read_rows(tail, get, merged.bits)
    old = np.unpackbits(stored, axis=1, count=FilterLayout(tail).columns, bitorder="little")
    new = np.unpackbits(group.rows(0, rows, merged.bits), axis=1, count=ref.frames, bitorder="little")
    new = np.concatenate([new, shrink_rows(border, rows, axis=0)[:, None]], axis=1)
    packed = join_columns([(tail, old), (ref, new)])
    return merged, (layout.encode(packed[first:last], first) for first, last in layout.row_ranges())
