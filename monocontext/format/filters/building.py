"""Build search filters from the frames of a text, in bounded memory, and store them.

Each frame, in order, becomes a column in a temporary file (`columns`). At the end, the rows across them are stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from monocontext.format.filters.grams import TABLES, fold_bytes
from monocontext.format.filters.joining import Get, Put, append_filters, fresh_seed, put_filter, runs_of
from monocontext.format.refs import FILTER_KIND, GRAM_BYTES, FilterRef, FilterRun

if TYPE_CHECKING:
    from monocontext.format.filters.columns import ColumnFile

GROUP_FRAMES = 1 << 16  # the most columns of one filter: 16 GiB of text, rows of 8 KiB
LEAST_FRAME_BYTES = 512  # smaller frames get no filter, which would be larger than they are
_HELD_FRAMES = 1024
"""A new filter of up to this many frames is joined with others before it is stored: it takes some 5 to 40 MB."""
LEAST_FRAMES = 9  # a text of fewer frames gets no filter: two requests read all of it
OVERLAP_BYTES = 4096
"""The most folded text after a frame that its column covers, so that one column finds a match across its end."""


class Columns:
    """The columns of some frames of a text, in order. Feed frames, then `finish`, then `store`."""

    def __init__(self, overlap_bytes: int, least_frames: int):
        """Fewer than `least_frames` frames get no columns."""
        self.overlap_bytes = overlap_bytes
        self.reach = overlap_bytes + GRAM_BYTES - 1
        """The number of folded bytes after a frame from which its column is computed."""
        self.least_frames = least_frames
        self._frames = TextAfter(self.reach, least_frames)
        self._groups: list[ColumnFile] = []

    @property
    def frames(self) -> int:
        return sum(group.frames for group in self._groups)

    def feed(self, frame: bytes) -> None:
        """Add the next frame (UTF-8)."""
        self._compute(self._frames.add(0, frame))

    def end(self, text_after: bytes = b"") -> None:
        """Compute the columns of the last frames, given the folded text after them, which gets no column. The next
        frame may belong to another part of the text."""
        self._compute(self._frames.end(text_after))

    def finish(self) -> None:
        """Compute the columns of the last frames: no text follows."""
        self.end()
        for group in self._groups:
            group.flush()

    def _compute(self, frames: Iterable[tuple[int, bytes, bytes]]) -> None:
        for _, frame, text_after in frames:
            if not self._groups or self._groups[-1].frames == GROUP_FRAMES:
                if self._groups:
                    self._groups[-1].flush()
                from monocontext.format.filters.columns import ColumnFile  # imports numpy

                self._groups.append(ColumnFile())
            self._groups[-1].add(frame, text_after)

    def store(self, put: Put, frames: Sequence[tuple[int, int]] | None = None) -> tuple[FilterRef, ...]:
        """Store filters of these columns, and return their entries (1 PUT for each 16 MiB). `frames`: the frames of the
        text that they belong to, in order, as pairs (first frame, number of frames); by default the first ones."""
        remaining = deque(frames if frames is not None else [(0, self.frames)])
        return tuple(self._store(put, group, runs_of(_take(remaining, group.frames))) for group in self._groups)

    def _store(self, put: Put, group: ColumnFile, runs: tuple[FilterRun, ...]) -> FilterRef:
        ref = FilterRef(FILTER_KIND, TABLES, group.bits, self.overlap_bytes, group.frames, runs, (), fresh_seed())
        return put_filter(ref, lambda start, stop: group.rows(start, stop, ref.bits), put)


def add_columns(
    refs: Sequence[FilterRef],
    columns: Columns,
    frames: Sequence[tuple[int, int]],
    get: Get,
    put: Put,
    most_times: int = 2,
) -> tuple[FilterRef, ...]:
    """All filters of a text, given those before and the columns of its other frames (`joining.append_filters`)."""
    if columns.frames > _HELD_FRAMES:
        return append_filters(refs, columns.store(put, frames), get, put, most_times)
    unstored: dict[str, bytes] = {}
    new = columns.store(unstored.__setitem__, frames)
    filters = append_filters(refs, new, lambda key: unstored[key] if key in unstored else get(key), put, most_times)
    for key in (key for ref in filters for key in ref.keys if key in unstored):
        put(key, unstored[key])
    return filters


def _take(runs: deque[tuple[int, int]], frames: int) -> Iterator[tuple[int, int]]:
    """Take the first `frames` frames of some runs."""
    while frames:
        first, count = runs.popleft()
        if count > frames:
            runs.appendleft((first + frames, count - frames))
        yield first, min(count, frames)
        frames -= min(count, frames)


def overlap_for(frame_bytes: int) -> int:
    """The number of folded bytes after a frame that its column covers: 1.6 % of a frame of 256 KiB."""
    return min(OVERLAP_BYTES, max(frame_bytes // 64, 64))


class TextAfter:
    """Pairs each frame of a text with the folded text after it. A frame waits until enough of that is known."""

    def __init__(self, reach: int, least_frames: int = 1):
        """`reach` is the length of the text after a frame, in bytes. Of fewer than `least_frames`, none is yielded."""
        self._reach, self._least_frames = reach, least_frames
        self._is_held = least_frames > 1  # so far there are too few frames to yield any
        self.waiting: deque[tuple[int, bytes]] = deque()
        """The frames that wait, with their numbers."""
        self._waiting_bytes = 0

    def add(self, number: int, frame: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Add the next frame (UTF-8), and yield those whose following text is known now."""
        self.waiting.append((number, frame))
        self._waiting_bytes += len(frame)
        if self._is_held and len(self.waiting) < self._least_frames:
            return
        self._is_held = False
        while self._waiting_bytes - len(self.waiting[0][1]) >= self._reach:
            following = fold_head((frame for _, frame in list(self.waiting)[1:]), self._reach)
            if len(following) < self._reach:
                return  # some marks fold to nothing: wait for more text
            yield self._first(following)

    def end(self, text_after: bytes = b"") -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the last frames, given the folded text after them. The next frame may belong to another part."""
        if self._is_held:
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
        most = min(2 * (size - len(head)) + 8, len(frame))  # nearly always enough
        while 0 < most < len(frame) and frame[most] & 0xC0 == 0x80:  # to the start of a character
            most -= 1
        head += fold_bytes(frame[:most])
        if len(head) < size:
            head += fold_bytes(frame[most:])
        if len(head) >= size:
            return head[:size]
    return head
