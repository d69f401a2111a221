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
from monocontext.records import NamedTuple

if TYPE_CHECKING:
    from monocontext.format.filters.columns import ColumnFile

GROUP_FRAMES = 1 << 16  # the most columns of one filter: 16 GiB of text, rows of 8 KiB
LEAST_FRAME_BYTES = 512  # smaller frames get no filter, which would be larger than they are
_HELD_FRAMES = 1024
"""A new filter of up to this many frames is joined with others before it is stored: it takes 5 to 40 MB of memory."""
LEAST_FRAMES = 9  # a text of fewer frames gets no filter: two requests read all of it
OVERLAP_BYTES = 4096
"""The most bytes of folded text after a frame that its column covers, to find matches across the frame's end."""


class Columns:
    """The columns of some frames of a text, in order. Feed frames, then `finish`, then `store`."""

    def __init__(self, overlap_bytes: int, least_frames: int):
        """Fewer than `least_frames` frames get no columns."""
        self.overlap_bytes = overlap_bytes
        self.reach_bytes = overlap_bytes + GRAM_BYTES - 1
        """The number of folded bytes after a frame that its column is computed from, besides those of the frame."""
        self.least_frames = least_frames
        self._frames = TextAfter(self.reach_bytes, least_frames)
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

    def _compute(self, frames: Iterable[FollowedFrame]) -> None:
        for frame in frames:
            if not self._groups or self._groups[-1].frames == GROUP_FRAMES:
                if self._groups:
                    self._groups[-1].flush()
                from monocontext.format.filters.columns import ColumnFile  # imports numpy

                self._groups.append(ColumnFile())
            self._groups[-1].add(frame.text, frame.text_after)

    def store(self, put: Put, frames: Sequence[range] | None = None) -> tuple[FilterRef, ...]:
        """Store filters of these columns, and return their entries (1 PUT for each 16 MiB). `frames`: the frames of the
        text that they belong to, in order; by default the first ones."""
        remaining = deque(frames if frames is not None else [range(self.frames)])
        return tuple(self._store(put, group, runs_of(_take(remaining, group.frames))) for group in self._groups)

    def _store(self, put: Put, group: ColumnFile, runs: tuple[FilterRun, ...]) -> FilterRef:
        ref = FilterRef(FILTER_KIND, TABLES, group.bits, self.overlap_bytes, group.frames, runs, (), fresh_seed())
        return put_filter(ref, lambda start, stop: group.rows(start, stop, ref.bits), put)


def add_columns(
    refs: Sequence[FilterRef], columns: Columns, frames: Sequence[range], get: Get, put: Put, *, most_times: int = 2
) -> tuple[FilterRef, ...]:
    """All filters of a text: the old ones in `refs`, then new ones of `columns`, joined as by `append_filters`."""
    if columns.frames > _HELD_FRAMES:
        return append_filters(refs, columns.store(put, frames), get, put, most_times=most_times)
    unstored: dict[str, bytes] = {}
    new = columns.store(unstored.__setitem__, frames)
    filters = append_filters(refs, new, lambda key: unstored.get(key) or get(key), put, most_times=most_times)
    for key in (key for ref in filters for key in ref.keys if key in unstored):
        put(key, unstored[key])
    return filters


def _take(ranges: deque[range], count: int) -> Iterator[range]:
    """Take the first `count` frames out of some ranges, and yield them as ranges."""
    while count:
        numbers = ranges.popleft()
        if len(numbers) > count:
            ranges.appendleft(numbers[count:])
        yield numbers[:count]
        count -= len(numbers[:count])


def overlap_for(frame_bytes: int) -> int:
    """The number of folded bytes after a frame that its column covers: 1.6 % of a frame of 256 KiB."""
    return min(OVERLAP_BYTES, max(frame_bytes // 64, 64))


class FollowedFrame(NamedTuple):
    """A frame, and what follows it."""

    number: int
    text: bytes  # in UTF-8
    text_after: bytes  # folded, at most as much as a column covers


class TextAfter:
    """Pairs each frame of a text with the folded text after it. A frame waits until enough of that is known."""

    def __init__(self, reach_bytes: int, least_frames: int = 1):
        """`reach_bytes`: the length of the folded text after each frame. Fewer than `least_frames` are not yielded."""
        self._reach_bytes, self._least_frames = reach_bytes, least_frames
        self._is_held = least_frames > 1  # so far there are too few frames to yield any
        self._waiting: deque[tuple[int, bytes]] = deque()  # the numbers and texts of the frames that wait
        self._waiting_bytes = 0

    def add(self, number: int, frame: bytes) -> Iterator[FollowedFrame]:
        """Add the next frame (UTF-8), and yield those whose following text is known now."""
        self._waiting.append((number, frame))
        self._waiting_bytes += len(frame)
        if self._is_held and len(self._waiting) < self._least_frames:
            return
        self._is_held = False
        while self._waiting_bytes - len(self._waiting[0][1]) >= self._reach_bytes:
            text_after = self._known_after_first()
            if len(text_after) < self._reach_bytes:
                return  # some marks fold to nothing: wait for more text
            yield self._take_first(text_after)

    def end(self, text_after: bytes = b"") -> Iterator[FollowedFrame]:
        """Yield the last frames, given the folded text after them. The next one may be of another part."""
        if self._is_held:
            self._waiting.clear()
        while self._waiting:
            yield self._take_first((self._known_after_first() + text_after)[: self._reach_bytes])
        self._waiting_bytes = 0

    def _known_after_first(self) -> bytes:
        """The folded text of the frames that wait after the first one, at most what its column covers."""
        return fold_head((frame for _, frame in list(self._waiting)[1:]), self._reach_bytes)

    def _take_first(self, text_after: bytes) -> FollowedFrame:
        number, frame = self._waiting.popleft()
        self._waiting_bytes -= len(frame)
        return FollowedFrame(number, frame, text_after)


def fold_head(frames: Iterable[bytes], size_bytes: int) -> bytes:
    """The first `size_bytes` bytes of the folded text of some frames, or all of it if it is shorter."""
    head = b""
    for frame in frames:
        stop = min(2 * (size_bytes - len(head)) + 8, len(frame))  # nearly always enough
        while 0 < stop < len(frame) and frame[stop] & 0xC0 == 0x80:  # to the start of a character
            stop -= 1
        head += fold_bytes(frame[:stop])
        if len(head) < size_bytes:
            head += fold_bytes(frame[stop:])
        if len(head) >= size_bytes:
            return head[:size_bytes]
    return head
