"""Recognize streams of reads (forward, backward or in strides) and predict their next reads.

A loop over slices is a stream, and a program may have several streams that take turns. Reads that memory answers are
not reported here, so a loop over short slices shows up once a frame. Invariants:

- nothing is read ahead after a first read, nor after a second one elsewhere
- a stream reads further ahead only after its reader has waited
- it is ahead by a quarter of its reads, or by one read: a loop that ends early has wasted little
- expected reads are fetched whole: half of one would save no request
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from monocontext.records import dataclass, field

STREAMS = 16
"""The most streams: a loop that zips eight logs has eight, and other reads in between add some."""
MOST_AHEAD = 32
"""The most reads ahead of one stream."""
_MOST_SINGLE = 16
"""The most reads outside of streams that are remembered: two of them and a third make a stride."""


Prefetch = Literal["all", "code", "history", "off"]
"""The sources of read-ahead: the code, the reads before, both, or neither."""


@dataclass(frozen=True, slots=True)
class SeenRead:
    """A read that needed fetching: characters [start, stop), in frames `first` to `last`."""

    start: int
    stop: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ExpectedRead:
    """A predicted read of a stream: [start, stop)."""

    start: int
    stop: int
    in_frames: bool
    """Whether these are numbers of frames; else they are characters."""


@dataclass(slots=True, eq=False)
class _Stream:
    """Reads that follow one another, by the same step in characters, or frame by frame."""

    last: SeenRead
    step: int
    """The distance to the next read: in characters, or 1 or -1 in frames."""
    in_frames: bool
    reads_ahead: int
    """The number of reads that it may be ahead of its reader."""
    ahead: int = 0
    """The number of reads after the last one that were predicted."""
    reads: int = 2

    @property
    def is_walk(self) -> bool:
        """Whether each read begins where the last ended."""
        return self.in_frames or abs(self.step) <= self.last.stop - self.last.start

    def steps_to(self, read: SeenRead) -> float:
        """The number of steps from the last read to another."""
        if not self.in_frames:
            return (read.start - self.last.start) / self.step
        return read.first - self.last.last if self.step > 0 else self.last.first - read.last

    def accepts(self, read: SeenRead) -> bool:
        """Whether a read continues this stream. If it continues a walk in characters by frames only, the walk is one in
        frames from then on."""
        steps = self.steps_to(read)
        if steps in range(1, self.ahead + 1) or (steps == 1 and not self.in_frames):
            return True
        if not self.is_walk or not _continues(self.last, read, 1 if self.step > 0 else -1):
            return False
        if not self.in_frames:
            self.in_frames, self.step, self.ahead = True, 1 if self.step > 0 else -1, 0
        return True

    def following(self, characters: int, frames: int) -> ExpectedRead | None:
        """The read after all that were predicted, in a text of this size; None at one of its ends."""
        last, distance = self.last, self.step * (self.ahead + 1)
        if self.in_frames:
            frame = (last.last if self.step > 0 else last.first) + distance
            return ExpectedRead(frame, frame + 1, True) if 0 <= frame < frames else None
        start = last.start + distance
        stop = min(start + last.stop - last.start, characters)
        return ExpectedRead(start, stop, False) if 0 <= start < stop else None


@dataclass(slots=True, eq=False)
class Streams:
    """The streams of one reader. Its owner holds the lock."""

    characters: int
    frames: int
    _streams: deque[_Stream] = field(default_factory=lambda: deque(maxlen=STREAMS))
    """The one that was read last is at the end."""
    _single: deque[SeenRead] = field(default_factory=lambda: deque(maxlen=_MOST_SINGLE))
    """The last reads outside of streams."""

    @property
    def _frame_characters(self) -> int:
        return max(1, self.characters // max(self.frames, 1))

    def read(self, read: SeenRead, waited: bool, room: int) -> list[ExpectedRead]:
        """Record a read, and return the reads to fetch now, of at most `room` characters. `waited`: for storage."""
        stream = self._walk_of(read, waited) or self._stride_of(read, waited)
        return self._extend(stream, stream.reads_ahead, room) if stream else []

    def think(self, reads: int, room: int) -> list[ExpectedRead]:
        """The next reads of each stream, the one that was read last first, of at most `room` characters."""
        results: list[ExpectedRead] = []
        for stream in reversed(self._streams):
            more = self._extend(stream, max(reads, stream.reads_ahead), room)
            room -= sum(self._size(expected) for expected in more)
            results += more
        return results

    def _walk_of(self, read: SeenRead, waited: bool) -> _Stream | None:
        """The stream in which a read begins where the one before ended."""
        for stream in reversed(self._streams):
            if stream.is_walk and stream.accepts(read):
                return self._record(stream, read, waited)
        for single in reversed(self._single):
            for direction in (1, -1):
                if _continues_closely(single, read, direction):
                    self._single.remove(single)
                    step = read.start - single.start
                    if not step or read.stop - read.start < self._frame_characters or not _touch(single, read):
                        return self._begin(read, direction, True, waited)
                    return self._begin(read, step, False, waited)
                if _continues(single, read, direction):
                    earlier = next((item for item in self._single if _continues(item, single, direction)), None)
                    if earlier is not None:
                        self._single.remove(single)
                        self._single.remove(earlier)
                        return self._begin(read, direction, True, waited)
        return None

    def _stride_of(self, read: SeenRead, waited: bool) -> _Stream | None:
        """The stream in which a read is one step from the one before. Scans that take turns at equal distances look
        like that too, so each read of a stride may still turn out to begin a walk."""
        strides = (stream for stream in reversed(self._streams) if not stream.is_walk)
        result = next((stream for stream in strides if stream.accepts(read)), None)
        if result is not None:
            self._record(result, read, waited)
        else:
            starts = {single.start for single in self._single}
            steps = (read.start - single.start for single in reversed(self._single))
            step = next((step for step in steps if step and read.start - 2 * step in starts), None)
            if step is not None:
                result = self._begin(read, step, False, waited)
        if read not in self._single:
            self._single.append(read)
        return result

    def _begin(self, read: SeenRead, step: int, in_frames: bool, waited: bool) -> _Stream:
        """Begin a stream with its second read."""
        self._streams.append(stream := _Stream(read, step, in_frames, int(waited)))
        return stream

    def _record(self, stream: _Stream, read: SeenRead, waited: bool) -> _Stream:
        """Record a read that continues a stream."""
        if stream.last != read:
            reached: float = stream.steps_to(read)
            if stream.in_frames:  # as many frames more as it is long
                reached += read.last - read.first
            stream.ahead = min(max(stream.ahead - int(reached), 0), stream.ahead)
            stream.last = read
            stream.reads += 1
            if waited:
                stream.reads_ahead = min(max(1, 2 * stream.reads_ahead), MOST_AHEAD)
        self._streams.remove(stream)
        self._streams.append(stream)
        return stream

    def _extend(self, stream: _Stream, reads: int, room: int) -> list[ExpectedRead]:
        """Predict reads until a stream is that many ahead, or has no room for one more; return the new ones."""
        results: list[ExpectedRead] = []
        while stream.ahead < min(reads, max(stream.reads // 4, 1)):
            expected = stream.following(self.characters, self.frames)
            if expected is None or (size := self._size(expected)) > room:
                break
            room -= size
            stream.ahead += 1
            results.append(expected)
        return results

    def _size(self, read: ExpectedRead) -> int:
        """The approximate characters of the frames of a read."""
        item = self._frame_characters
        return item if read.in_frames else -(-(read.stop - read.start) // item) * item


def _continues(before: SeenRead, after: SeenRead, direction: int) -> bool:
    """Whether `after` begins in the frame in which `before` ended, or in the next frame, and ends further on."""
    if direction > 0:
        return before.last <= after.first <= before.last + 1 and after.last > before.last
    return before.first - 1 <= after.last <= before.first and after.first < before.first


def _continues_closely(before: SeenRead, after: SeenRead, direction: int) -> bool:
    """Whether `after` begins at the character at which `before` ended, or in its last frame, and ends further on."""
    if direction > 0:
        return _continues(before, after, 1) and (after.first == before.last or after.start == before.stop)
    return _continues(before, after, -1) and (after.last == before.first or after.stop == before.start)


def _touch(first: SeenRead, second: SeenRead) -> bool:
    """Whether two reads touch or overlap, and so the distance of their starts is the step."""
    return max(first.start, second.start) <= min(first.stop, second.stop)
