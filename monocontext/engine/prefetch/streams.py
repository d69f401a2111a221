"""Recognize streams of reads (forward, backward, in strides or halving) and predict their next reads.

A loop over slices is a stream, and a program may have several streams that take turns. The last reads of a stream
predict the next ones. How far to read ahead depends on whether the reader had to wait. Reads that are served from
memory do not come here, so a loop over short slices shows up once a frame.

Invariants:

- nothing is read ahead of a first touch, nor of a second one elsewhere
- a stream reads further ahead only after its reader has waited, and less far after prefetched data was not used
- it is ahead by a quarter of what it has read, or by one read: a loop that ends early has wasted little
- the expected reads are fetched whole: half of one would save no request
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count

from monocontext.records import dataclass, field

STREAMS = 16
"""The most streams: a loop that zips eight logs has eight, and other reads between add some."""
MOST_AHEAD = 32
"""Reads ahead of one stream: with seconds of thinking in between one or two are enough, a burst takes more."""
_LONE = 16
"""The number of single reads that are remembered: two of them and a third make a stride."""


@dataclass(frozen=True, slots=True)
class Read:
    """A read that needed fetching: characters [start, stop), in frames `first` to `last`."""

    start: int
    stop: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """The expected next read of a stream: [start, stop) in characters, or numbers of frames."""

    start: int
    stop: int
    in_frames: bool
    stream: int


class _Stream:
    """Reads that follow one another, by the same step in characters, or frame by frame."""

    __slots__ = ("ahead", "in_frames", "last", "name", "reads", "reads_ahead", "step")

    def __init__(self, name: int, last: Read, step: int, in_frames: bool):
        self.name = name
        self.reads = 2
        self.last = last
        self.step = step
        """To the next read: characters, or 1 and -1 in frames."""
        self.in_frames = in_frames
        self.reads_ahead = 0
        """The number of reads that it may be ahead of its reader."""
        self.ahead: deque[Ahead] = deque()
        """Reads that were planned and not reached, in the order of the reader."""

    @property
    def is_walk(self) -> bool:
        """Whether each read goes on where the last ended."""
        return self.in_frames or abs(self.step) <= self.last.stop - self.last.start

    def takes(self, read: Read) -> bool:
        """Whether a read goes on in this stream. One that walked in characters may go on by frames."""
        last = self.last
        if not self.in_frames:
            if read.start == last.start + self.step or any(one.start == read.start for one in self.ahead):
                return True
            if not self.is_walk:
                return False
        direction = 1 if self.step > 0 else -1
        reached = [read.first if direction > 0 else read.last]
        if not (_follows(last, read, direction) or any(one.in_frames and one.start in reached for one in self.ahead)):
            return False
        if not self.in_frames:
            self.in_frames, self.step = True, direction
            self.ahead.clear()
        return True

    def passed(self, one: Ahead) -> bool:
        """Whether the reader has reached the reads that were predicted."""
        last = self.last
        if one.in_frames:
            return one.start <= last.last if self.step > 0 else one.start >= last.first
        return one.start <= last.start if self.step > 0 else one.start >= last.start


@dataclass(slots=True, eq=False)
class Streams:
    """The streams of one reader. Its owner holds the lock."""

    _characters: int
    _frames: int
    last_start: int = 0
    """The offset of the last read."""
    _start_before: int = 0
    _streams: OrderedDict[int, _Stream] = field(default_factory=OrderedDict)
    _lone: deque[Read] = field(default_factory=partial(deque, maxlen=_LONE))
    _names: Iterator[int] = field(default_factory=count)

    @property
    def _frame_characters(self) -> int:
        return max(1, self._characters // max(self._frames, 1))

    def __len__(self) -> int:
        return len(self._streams)

    def __contains__(self, stream: int) -> bool:
        return stream in self._streams

    def read(self, read: Read, waited: bool, room: Callable[[], int]) -> list[Ahead]:
        """A read has ended; `waited`: for storage. What to fetch now, of at most `room()` characters."""
        self._start_before, self.last_start = self.last_start, read.start
        stream = self._walk_of(read, waited) or self._stride_of(read, waited)
        return self._extend(stream, stream.reads_ahead, room()) if stream else []

    def halves(self, start: int) -> tuple[int, ...]:
        """Where the next read may begin if each read goes half as far as the one before: two places or none.

        The next step of a binary search depends on what it finds, but only two places are possible. Both are fetched
        with the read that it waits for: two steps take one round trip, and three frames are fetched where two are used.
        """
        step, frame = abs(start - self.last_start), self._frame_characters
        is_half = abs(2 * step - abs(self.last_start - self._start_before)) <= 2 * frame
        return (start - step // 2, start + step // 2) if is_half and step >= frame and self.last_start else ()

    def think(self, reads: int, room_now: Callable[[], int]) -> list[Ahead]:
        """There is time: the next reads of each stream, the one first that was read last, as far as there is room."""
        found: list[Ahead] = []
        room = room_now() if self._streams else 0
        for stream in reversed(self._streams.values()):
            more = self._extend(stream, max(reads, stream.reads_ahead), room)
            room -= sum(self._size(one) for one in more)
            found += more
        return found

    def unused(self, streams: Iterable[int]) -> None:
        """Give up streams whose read-ahead was not used in a long time."""
        for name in set(streams):
            if stream := self._streams.get(name):
                stream.reads_ahead //= 2
                stream.ahead.clear()

    def _walk_of(self, read: Read, waited: bool) -> _Stream | None:
        """The stream in which a read goes on where another ended."""
        for stream in reversed(self._streams.values()):
            if stream.is_walk and stream.takes(read):
                return self._go_on(stream, read, waited)
        for lone in reversed(self._lone):
            for direction in (1, -1):
                if _goes_on(lone, read, direction):
                    self._lone.remove(lone)
                    if read.stop - read.start < self._frame_characters or not _overlap(lone, read):
                        return self._begin(read, direction, True, waited)
                    return self._begin(read, read.start - lone.start, False, waited)
                if _follows(lone, read, direction):
                    earlier = next((one for one in self._lone if _follows(one, lone, direction)), None)
                    if earlier is not None:
                        self._lone.remove(lone)
                        self._lone.remove(earlier)
                        return self._begin(read, direction, True, waited)
        return None

    def _stride_of(self, read: Read, waited: bool) -> _Stream | None:
        """The stream in which a read is one step from another. Scans that take turns at equal distances look like that
        too, so each read of a stride may still turn out to begin a walk."""
        found = next((one for one in reversed(self._streams.values()) if not one.is_walk and one.takes(read)), None)
        if found is not None:
            found = self._go_on(found, read, waited)
        else:
            starts = {lone.start for lone in self._lone}
            steps = (read.start - lone.start for lone in reversed(self._lone))
            step = next((step for step in steps if step and read.start - 2 * step in starts), None)
            if step is not None:
                found = self._begin(read, step, False, waited)
        if read not in self._lone:
            self._lone.append(read)
        return found

    def _begin(self, read: Read, step: int, in_frames: bool, waited: bool) -> _Stream:
        stream = _Stream(next(self._names), read, step, in_frames)
        stream.reads_ahead = 1 if waited else 0
        self._streams[stream.name] = stream
        if len(self._streams) > STREAMS:
            self._streams.popitem(last=False)
        return stream

    def _go_on(self, stream: _Stream, read: Read, waited: bool) -> _Stream:
        if stream.last != read:
            stream.last = read
            stream.reads += 1
            while stream.ahead and stream.passed(stream.ahead[0]):
                stream.ahead.popleft()
            if waited:
                stream.reads_ahead = min(max(1, 2 * stream.reads_ahead), MOST_AHEAD)
        self._streams.move_to_end(stream.name)
        return stream

    def _extend(self, stream: _Stream, reads: int, room: int) -> list[Ahead]:
        found: list[Ahead] = []
        while len(stream.ahead) < min(reads, max(stream.reads // 4, 1)):
            one = self._following(stream)
            if one is None or (size := self._size(one)) > room:
                break
            room -= size
            stream.ahead.append(one)
            found.append(one)
        return found

    def _following(self, stream: _Stream) -> Ahead | None:
        """The read after all that were planned; None at an end of the text."""
        last, step = stream.last, stream.step
        if stream.in_frames:
            edge = last.last if step > 0 else last.first
            number = (stream.ahead[-1].start if stream.ahead else edge) + step
            return Ahead(number, number + 1, True, stream.name) if 0 <= number < self._frames else None
        start = (stream.ahead[-1].start if stream.ahead else last.start) + step
        stop = min(start + last.stop - last.start, self._characters)
        return Ahead(start, stop, False, stream.name) if 0 <= start < stop else None

    def _size(self, one: Ahead) -> int:
        """Characters of the frames that it takes, about."""
        each = self._frame_characters
        return each if one.in_frames else -(-(one.stop - one.start) // each) * each


def _follows(one: Read, other: Read, direction: int) -> bool:
    """Whether a read begins in the frame in which another ended, or the next to it, and goes further."""
    if direction > 0:
        return one.last <= other.first <= one.last + 1 and other.last > one.last
    return one.first - 1 <= other.last <= one.first and other.first < one.first


def _goes_on(one: Read, other: Read, direction: int) -> bool:
    """Whether a read begins where another ended, to the character, or reaches over the border of its last frame."""
    if direction > 0:
        return _follows(one, other, 1) and (other.first == one.last or other.start == one.stop)
    return _follows(one, other, -1) and (other.last == one.first or other.stop == one.start)


def _overlap(one: Read, other: Read) -> bool:
    """Whether two reads touch or overlap, so that their starts give the step."""
    return max(one.start, other.start) <= min(one.stop, other.stop)
