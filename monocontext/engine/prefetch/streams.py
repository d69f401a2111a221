"""Recognize streams of reads (forward, backward or in strides) and predict their next reads.

    [0, 5000) [5000, 10000) [10000, 15000)         a walk forward: [15000, 20000) is next
    [0, 100) [40000, 40100) [80000, 80100)         a stride of 40,000: [120000, 120100) is next

A loop over slices is a stream, and several streams may take turns. Reads answered from memory are not reported here.
Two reads make a walk, three a stride. Whenever its reader has to wait, a stream doubles how many reads it is ahead, up
to a quarter of the reads so far, so that a loop that ends early wastes little.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from monocontext.records import dataclass, field

MOST_STREAMS = 16  # a loop that zips eight logs has eight, and other reads in between add some
MOST_AHEAD = 32  # the most reads that one stream is ahead
_MOST_SINGLE = 16  # the most reads outside of streams that are remembered: two of them and a third make a stride

Prefetch = Literal["all", "code", "history", "off"]
"""What is read ahead: what code announces, what earlier reads (the history) suggest, both, or nothing."""


@dataclass(frozen=True, slots=True)
class SeenRead:
    """A read that needed fetching: characters [start, stop), in frames `first` to `last`."""

    start: int
    stop: int
    first: int
    last: int


@dataclass(slots=True, eq=False)
class _Stream:
    """Reads that follow one another in one direction."""

    last: SeenRead
    direction: int  # 1 forward, -1 backward
    step_characters: int  # from one predicted read to the next
    reads_ahead: int  # the number of reads that it may be ahead of its reader
    ahead: int = 0  # the characters after the last read that were predicted
    reads: int = 2  # the number of reads so far


class _Walk(_Stream):
    """Reads that each begin in the last frame of the read before, or in the next frame. A step is as long as a read."""

    def distance(self, read: SeenRead) -> int:
        """The characters from the last read to another, in the direction of the stream."""
        return read.stop - self.last.stop if self.direction > 0 else self.last.start - read.start

    def accepts(self, read: SeenRead) -> bool:
        """Whether a read continues this stream."""
        return 0 < self.distance(read) <= self.ahead or _continues(self.last, read, self.direction)

    def following(self) -> tuple[int, int]:
        """The characters [start, stop) after all that were predicted; they may be beyond the ends of the text."""
        if self.direction > 0:
            start = self.last.stop + self.ahead
            return start, start + self.step_characters
        stop = self.last.start - self.ahead
        return stop - self.step_characters, stop


class _Stride(_Stream):
    """Reads whose starts are one step apart."""

    def distance(self, read: SeenRead) -> int:
        return (read.start - self.last.start) * self.direction

    def accepts(self, read: SeenRead) -> bool:
        distance = self.distance(read)
        return distance % self.step_characters == 0 and 0 < distance <= self.ahead + self.step_characters

    def following(self) -> tuple[int, int]:
        moved = (self.ahead + self.step_characters) * self.direction
        return self.last.start + moved, self.last.stop + moved


@dataclass(slots=True, eq=False)
class Streams:
    """Finds the streams in what one reader reads. Its owner holds the lock."""

    characters: int  # the length of the text
    frame_characters: int  # the characters of a usual frame
    _streams: deque[_Walk | _Stride] = field(default_factory=lambda: deque(maxlen=MOST_STREAMS))
    """The stream that was read last is at the end."""
    _single: deque[SeenRead] = field(default_factory=lambda: deque(maxlen=_MOST_SINGLE))
    """The last reads outside of streams."""

    def note(self, read: SeenRead, *, waited: bool, room_characters: int) -> list[tuple[int, int]]:
        """Record a read, for which its caller waited or not. Returns the ranges to fetch now, within the room."""
        stream = self._walk_of(read, waited) or self._stride_of(read, waited)
        return self._predict(stream, room_characters) if stream else []

    def _predict(self, stream: _Walk | _Stride, room_characters: int) -> list[tuple[int, int]]:
        """The next reads of a stream that were not predicted before, as far ahead as it may be."""
        reads_ahead = min(stream.reads_ahead, max(stream.reads // 4, 1))
        # Reads of a walk differ in length, so half of one may be missing.
        wanted_characters = (reads_ahead - 0.5) * stream.step_characters
        results: list[tuple[int, int]] = []
        while stream.ahead < wanted_characters:
            start, stop = stream.following()
            start, stop = max(start, 0), min(stop, self.characters)
            frames = -(-(stop - start) // self.frame_characters)  # rounded up
            room_characters -= frames * self.frame_characters
            if start >= stop or room_characters < 0:
                break
            stream.ahead += stream.step_characters
            results.append((start, stop))
        return results

    def _walk_of(self, read: SeenRead, waited: bool) -> _Walk | None:
        """The walk that a read continues, or begins together with an earlier read; None if it is in no walk."""
        step = max(read.stop - read.start, self.frame_characters)
        for stream in reversed(self._streams):
            if isinstance(stream, _Walk) and stream.accepts(read):
                self._continue(stream, read, waited)
                stream.step_characters = step
                return stream
        for single in reversed(self._single):
            for direction in (1, -1):
                touches = read.start == single.stop if direction > 0 else read.stop == single.start
                is_in_frame = read.first == single.last if direction > 0 else read.last == single.first
                if _continues(single, read, direction) and (touches or is_in_frame):
                    self._single.remove(single)
                    walk = _Walk(read, direction, step, reads_ahead=int(waited))
                    self._streams.append(walk)
                    return walk
        return None

    def _stride_of(self, read: SeenRead, waited: bool) -> _Stride | None:
        """The stride that a read continues, or begins with two earlier reads, if any. Walks that take turns at equal
        distances look like a stride too, so each read of a stride may still begin a walk."""
        strides = (stream for stream in reversed(self._streams) if isinstance(stream, _Stride))
        stride = next((stream for stream in strides if stream.accepts(read)), None)
        if stride is not None:
            self._continue(stride, read, waited)
        else:
            starts = {single.start for single in self._single}
            steps = (read.start - single.start for single in reversed(self._single))
            step = next((step for step in steps if step and read.start - 2 * step in starts), None)
            if step is not None:
                stride = _Stride(read, 1 if step > 0 else -1, abs(step), reads_ahead=int(waited))
                self._streams.append(stride)
        if read not in self._single:
            self._single.append(read)
        return stride

    def _continue(self, stream: _Walk | _Stride, read: SeenRead, waited: bool) -> None:
        """Record a read that continues a stream."""
        if stream.last != read:
            passed = max(stream.distance(read), 0)  # negative for a read that begins in the frame of the last one
            stream.ahead = max(stream.ahead - passed, 0)
            stream.last = read
            stream.reads += 1
            if waited:
                stream.reads_ahead = min(max(1, 2 * stream.reads_ahead), MOST_AHEAD)
        self._streams.remove(stream)
        self._streams.append(stream)


def _continues(before: SeenRead, after: SeenRead, direction: int) -> bool:
    """Whether `after` begins in the frame in which `before` ended, or in the next frame, and ends further on."""
    if direction > 0:
        return before.last <= after.first <= before.last + 1 and after.last > before.last
    return before.first - 1 <= after.last <= before.first and after.first < before.first
