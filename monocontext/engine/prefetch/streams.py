"""Recognize streams of reads (forward, backward or in strides) and predict their next reads.

A loop over slices is a stream, and several may take turns. Reads that memory answers are not reported here. Nothing is
read ahead after a first read, nor after a second one elsewhere; a stream reads further ahead only after its reader has
waited, and by a quarter of its reads or one read: a loop that ends early has wasted little.
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


@dataclass(slots=True, eq=False)
class _Stream:
    """Reads that follow one another: a walk, in which each begins where the last ended, or a stride by equal steps."""

    last: SeenRead
    step: int
    """The characters from read to read; only the sign matters for a walk."""
    is_walk: bool
    unit: int
    """The characters that one more read adds to `ahead`."""
    reads_ahead: int
    """The number of reads that it may be ahead of its reader."""
    ahead: int = 0
    """The characters after the last read that were predicted."""
    reads: int = 2

    def distance(self, read: SeenRead) -> int:
        """The characters from the last read to another, in the direction of the stream."""
        if self.is_walk:
            return read.stop - self.last.stop if self.step > 0 else self.last.start - read.start
        return read.start - self.last.start if self.step > 0 else self.last.start - read.start

    def accepts(self, read: SeenRead) -> bool:
        """Whether a read continues this stream."""
        distance = self.distance(read)
        if self.is_walk:
            return 0 < distance <= self.ahead or _continues(self.last, read, self.step)
        return distance % self.unit == 0 and 0 < distance <= self.ahead + self.unit

    def following(self, characters: int) -> tuple[int, int] | None:
        """The characters [start, stop) after all that were predicted, in a text of this size; None at its ends."""
        if not self.is_walk:
            start = self.last.start + (self.ahead + self.unit) * (1 if self.step > 0 else -1)
            stop = start + self.last.stop - self.last.start
        elif self.step > 0:
            start = self.last.stop + self.ahead
            stop = start + self.unit
        else:
            stop = self.last.start - self.ahead
            start = stop - self.unit
        start, stop = max(start, 0), min(stop, characters)
        return (start, stop) if start < stop else None


@dataclass(slots=True, eq=False)
class Streams:
    """Finds streams, reads at equal distances, in what one reader reads. Its owner holds the lock."""

    characters: int
    frame_characters: int
    """The characters of a usual frame."""
    _streams: deque[_Stream] = field(default_factory=lambda: deque(maxlen=STREAMS))
    """The one that was read last is at the end."""
    _single: deque[SeenRead] = field(default_factory=lambda: deque(maxlen=_MOST_SINGLE))
    """The last reads outside of streams."""

    def read(self, read: SeenRead, waited: bool, room: int) -> list[tuple[int, int]]:
        """Record a read, and return the ranges to fetch now: whole frames, at most `room` characters in all. `waited`:
        the caller waited for storage."""
        stream, results = self._walk_of(read, waited) or self._stride_of(read, waited), list[tuple[int, int]]()
        while stream:
            least = (min(stream.reads_ahead, max(stream.reads // 4, 1)) - 0.5) * stream.unit
            expected = stream.following(self.characters) if stream.ahead < least else None
            if expected is None:
                break
            size = -(-(expected[1] - expected[0]) // self.frame_characters) * self.frame_characters
            if size > room:
                break
            room -= size
            stream.ahead += stream.unit
            results.append(expected)
        return results

    def _walk_of(self, read: SeenRead, waited: bool) -> _Stream | None:
        """The stream in which a read begins where the one before ended."""
        for stream in reversed(self._streams):
            if stream.is_walk and stream.accepts(read):
                return self._record(stream, read, waited)
        for single in reversed(self._single):
            for step in (1, -1):
                touches = read.start == single.stop if step > 0 else read.stop == single.start
                is_in_frame = read.first == single.last if step > 0 else read.last == single.first
                if _continues(single, read, step) and (touches or is_in_frame):
                    self._single.remove(single)
                    return self._begin(read, step, True, waited)
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

    def _begin(self, read: SeenRead, step: int, is_walk: bool, waited: bool) -> _Stream:
        """Begin a stream with its second read."""
        self._streams.append(stream := _Stream(read, step, is_walk, self._unit(read, step, is_walk), int(waited)))
        return stream

    def _unit(self, read: SeenRead, step: int, is_walk: bool) -> int:
        return max(read.stop - read.start, self.frame_characters) if is_walk else abs(step)

    def _record(self, stream: _Stream, read: SeenRead, waited: bool) -> _Stream:
        """Record a read that continues a stream."""
        if stream.last != read:
            stream.ahead = min(max(stream.ahead - stream.distance(read), 0), stream.ahead)
            stream.last, stream.unit = read, self._unit(read, stream.step, stream.is_walk)
            stream.reads += 1
            if waited:
                stream.reads_ahead = min(max(1, 2 * stream.reads_ahead), MOST_AHEAD)
        self._streams.remove(stream)
        self._streams.append(stream)
        return stream


def _continues(before: SeenRead, after: SeenRead, step: int) -> bool:
    """Whether `after` begins in the frame in which `before` ended, or in the next frame, and ends further on."""
    if step > 0:
        return before.last <= after.first <= before.last + 1 and after.last > before.last
    return before.first - 1 <= after.last <= before.first and after.first < before.first
