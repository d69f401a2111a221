"""Reading ahead of one reader: what is expected becomes fetches, within a budget, and behind whatever is waited for.

What code says it will read comes as routes (`routes`), what was read before comes from `prefetch.streams`. Both stand
here as courses and are walked a little at a time: when a model begins to think, when a fetch has landed, when a frame
that was fetched ahead was used. So little is queued at any time that there is little to cancel.

Invariants:
- bytes that are expected and not used stay within the shares of the ledger, at every step;
- nothing here waits, and what fails here is forgotten: whoever needs it asks for it and is told why;
- its owner holds the lock; requests are started and sent by its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager

from monocontext.cache import Cache
from monocontext.errors import MonocontextError
from monocontext.frametext import FrameText
from monocontext.index import Frame
from monocontext.plan import Need
from monocontext.prefetch import Bandwidth, Hits, Kind, Ledger, Prefetch, Read, Streams, ThinkTime
from monocontext.routes import Gate, Route, Routes
from monocontext.scheduler import Fetch, Priority, Scheduler

THINK_READS = 2
"""Reads ahead of each stream while a model thinks: with seconds per read the next two are there in time."""
BATCH_BYTES = 4 << 20
"""What is asked for at a time where a course is long: four requests of 1 MiB rather than sixteen frames one by one."""
LEAST_UNDER_WAY_BYTES = 16 << 20
"""Under way at once: what 100 MB/s bring in a round trip of 150 ms; where the link is faster, half a second of it."""
_FRAME_BYTES = 600
"""What a frame takes beside its text, in the cache and in an index page."""


class Course:
    """A route that is being walked ahead of the reader."""

    __slots__ = ("gate", "is_scan", "kind", "next", "priority", "route", "skips_used", "stream")

    def __init__(
        self,
        route: Route,
        priority: Priority,
        kind: Kind,
        *,
        stream: int | None = None,
        skips_used: bool = False,
        is_scan: bool = False,
    ):
        self.route = route
        self.priority = priority
        self.kind = kind
        self.stream = stream
        self.skips_used = skips_used
        """Frames that this code has read already are passed over, in memory or not: a loop does not come back."""
        self.is_scan = is_scan
        """It serves one pass, and is of no use once that has ended."""
        self.gate: tuple[Hashable, ...] = ()
        self.next: Frame | Gate | None = None


class ReadAhead:
    """What one reader fetches before anybody asks for it. Its owner holds the lock."""

    def __init__(
        self,
        prefetch: Prefetch,
        routes: Routes,
        cache: Cache,
        scheduler: Scheduler,
        now: Callable[[], float],
        frame_need: Callable[[Frame], Need],
        *,
        frames: int,
        text_bytes: int,
        window_bytes: int,
    ):
        self.prefetch = prefetch
        self.routes = routes
        self.ledger = Ledger(cache.capacity_bytes, text_bytes + _FRAME_BYTES * frames)
        self.streams = Streams(routes.characters, frames)
        self.hits = Hits(routes.characters)
        self.think = ThinkTime()
        self.bandwidth = Bandwidth()
        self._cache = cache
        self._scheduler = scheduler
        self._now = now
        self._frame_need = frame_need
        self._frames = frames
        self._characters_per_byte = routes.characters / max(text_bytes, 1)
        self._window_bytes = window_bytes
        self._courses: list[Course] = []
        self._under_way: dict[int, int] = {}
        self._under_way_bytes = 0
        self._used: set[int] = set()
        self._allowance_bytes = 0
        self._is_warm = False

    @property
    def follows_code(self) -> bool:
        return self.prefetch in ("all", "code")

    @property
    def follows_reads(self) -> bool:
        return self.prefetch in ("all", "history")

    # -- what a model does -----------------------------------------------------------------------------------------

    def begin_thinking(self) -> None:
        """A model is at work: what was read before tells where to go on."""
        now = self._now()
        if not self.think.begin(now) or self.prefetch == "off":
            return
        self._allowance_bytes = int(self.bandwidth.bytes_per_second * self.think.expected_seconds)
        if self.follows_reads:
            self._warm_up()
            windows = self.hits.windows()
            for start, stop in windows:
                self._add(self.routes.whole(start, stop), Priority.SEQUENTIAL, Kind.GUESSED)
            for ahead in self.streams.think(THINK_READS, self._room()):
                self._follow(ahead.start, ahead.stop, ahead.in_frames, ahead.stream)
        self.walk()

    def end_thinking(self) -> bool:
        """The model is done, its code runs: guesses that have not started are dropped. Whether it was the last."""
        if not self.think.end(self._now()):
            return False
        self._courses = [course for course in self._courses if course.kind is not Kind.GUESSED]
        self._cancel(self.ledger.frames(Kind.GUESSED))
        return True

    def turn(self) -> None:
        """Other code comes: what the last was expected to read, and did not, is expected no more."""
        self._courses = [course for course in self._courses if course.kind is not Kind.KNOWN]
        left = self.ledger.frames(Kind.KNOWN)
        self._cancel(left)
        self._give_up(left)
        self._used.clear()
        if self.follows_reads:
            self._warm_up()
            self.walk()

    def expect(self, courses: Iterable[Course], *, runs_now: bool = False) -> None:
        """Code will read this. `runs_now`: before all that other code will read."""
        if self.prefetch == "off":
            return
        added = list(courses)
        if runs_now:
            self._used.clear()
        self._courses = added + self._courses if runs_now else self._courses + added
        self.walk()

    # -- what a reader does ----------------------------------------------------------------------------------------

    def read(self, read: Read, waited: bool) -> None:
        """Somebody has read what was not at hand, or was fetched ahead."""
        if not self.follows_reads:
            return
        for frame in range(read.first, read.last + 1):
            if self.ledger.settle(frame):  # fetched once more, after it was used and before the read had ended
                self._cache.get(frame)
        stale, streams = self.ledger.read()
        self._give_up(stale)
        self.streams.unused(streams)
        for ahead in self.streams.read(read, waited, self._room()):
            self._follow(ahead.start, ahead.stop, ahead.in_frames, ahead.stream)
        self.walk()

    def used(self, text: FrameText) -> None:
        """A frame is looked at for the first time since it was fetched."""
        number = text.frame.number
        if self._courses or self.follows_code:
            self._used.add(number)
        if text.ahead:
            self._cache.get(number)
            if self.ledger.settle(number) and self._courses:
                self.walk()

    def scanned(self) -> None:
        """A pass has ended or was given up: what was fetched ahead of it stays, the rest is not."""
        for course in self._courses:
            if course.is_scan:
                self._courses.remove(course)
                return

    def found(self, character: int, frame: int) -> None:
        """A search found something here: a window around it is likely read next."""
        if self.follows_reads and self.hits.found(character):
            self._cache.hold(frame)

    # -- what requests do ------------------------------------------------------------------------------------------

    def sent(self) -> None:
        """A request is about to be sent while none is under way."""
        self.bandwidth.begin(self._now())

    def is_expected(self, key: Hashable) -> bool:
        """Whether this was planned here and is not used yet."""
        return isinstance(key, int) and key in self.ledger

    def landed(self, fetch: Fetch) -> None:
        """A fetch has ended, well or badly."""
        if fetch.error is None:
            idle = not self._scheduler.running
            self.bandwidth.arrived(fetch.request.stored_bytes, self._now(), idle)
        if self._under_way:  # also of a fetch for a caller, who takes frames out of what is queued ahead of him
            for need in fetch.request.needs:
                if isinstance(need.key, int) and need.key in self._under_way:
                    self._arrive(need.key)
                    if need.key not in self._cache:
                        self.ledger.settle(need.key)
        if self._courses:
            self.walk()

    def lost(self) -> None:
        """In the child of a fork: what was under way will not come, and other threads are not here."""
        self.think.forget()
        for number in [number for number in self._under_way if number not in self._scheduler]:
            self._arrive(number)
            self.ledger.settle(number)

    def close(self) -> None:
        self._courses.clear()
        self._under_way.clear()
        self._under_way_bytes = 0
        for kind in Kind:
            self.ledger.drop(kind)

    # -- walking ---------------------------------------------------------------------------------------------------

    def walk(self) -> None:
        """Go on as far as budgets allow, the most certain first."""
        if not self._courses:
            return
        most = self._under_way_limit()
        wanted: dict[Priority, list[Need]] = {}
        for course in sorted(self._courses, key=lambda course: course.priority):
            # A loop under way does not hold up a single slice that comes after it.
            limit = 2 * most if course.priority <= Priority.LITERAL_HINT else most
            if self._under_way_bytes > limit * 3 // 4 or self._waits_for_room(course):
                continue
            with self._forgetting(course):
                self._walk_one(course, limit, wanted.setdefault(course.priority, []))
        for priority, needs in wanted.items():
            if needs:
                self._scheduler.speculate(needs, priority)

    def _walk_one(self, course: Course, limit: int, wanted: list[Need]) -> None:
        while True:
            if course.gate:
                if any(key in self._scheduler for key in course.gate):
                    return
                course.gate = ()
            step = course.next = course.next or next(course.route, None)
            if step is None:
                self._courses.remove(course)
                return
            if isinstance(step, Gate):
                missing = [need for need in step.needs if need.key not in self._cache]
                wanted += [need for need in missing if need.key not in self._scheduler]
                course.gate = tuple(need.key for need in missing)
                course.next = None
                if missing:
                    return
            elif not self._is_at_hand(step, course):
                size = step.bytes + _FRAME_BYTES
                if size <= self.ledger.share_bytes[course.kind]:
                    if self._under_way_bytes + size > limit or size > self._room_of(course):
                        return
                    self._plan(step, size, course)
                    wanted.append(self._frame_need(step))
                course.next = None
            else:
                course.next = None

    def _is_at_hand(self, frame: Frame, course: Course) -> bool:
        number = frame.number
        if number in self._cache or number in self._scheduler or number in self.ledger:
            return True
        return course.skips_used and number in self._used

    def _plan(self, frame: Frame, size_bytes: int, course: Course) -> None:
        self.ledger.expect(frame.number, course.kind, size_bytes, course.stream)
        self._under_way[frame.number] = size_bytes
        self._under_way_bytes += size_bytes
        if course.kind is Kind.GUESSED and self.think.is_thinking:
            self._allowance_bytes -= size_bytes

    def _waits_for_room(self, course: Course) -> bool:
        """Whether it would go on by a frame only, where a little later it can by many."""
        room = self._room_of(course)
        if course.kind is Kind.GUESSED:
            return room <= 0
        return bool(self._under_way) and room < min(BATCH_BYTES, self.ledger.share_bytes[course.kind] // 4)

    def _room_of(self, course: Course) -> int:
        """Where a text is larger than the cache, loops leave an eighth of their share to single slices after them."""
        room, share = self._room_bytes(course.kind), self.ledger.share_bytes[course.kind]
        is_loop = course.kind is Kind.KNOWN and course.priority > Priority.LITERAL_HINT
        return room - share // 8 if is_loop and share < self._cache.capacity_bytes else room

    def _room_bytes(self, kind: Kind) -> int:
        room = self.ledger.room_bytes(kind)
        if kind is Kind.GUESSED and self.think.is_thinking:
            return min(room, self._allowance_bytes)
        return room

    def _room(self) -> int:
        """Characters that may be guessed."""
        return int(max(self._room_bytes(Kind.GUESSED), 0) * self._characters_per_byte)

    def _under_way_limit(self) -> int:
        """Little enough to be cancelled cheaply, enough for the link never to idle."""
        return min(max(LEAST_UNDER_WAY_BYTES, int(self.bandwidth.bytes_per_second / 2)), self._window_bytes // 2)

    @contextmanager
    def _forgetting(self, course: Course) -> Iterator[None]:
        """A course that ends in an error ends: whoever reads there is told of it."""
        try:
            yield
        except MonocontextError:
            if course in self._courses:
                self._courses.remove(course)

    # -- single steps ----------------------------------------------------------------------------------------------

    def _warm_up(self) -> None:
        """The first and the last frame: 68 % of first blocks look at the head, many at the tail."""
        if not self._is_warm and self._frames:
            self._is_warm = True
            self._add(self.routes.frames(dict.fromkeys((0, self._frames - 1))), Priority.WARM_UP, Kind.GUESSED)

    def _follow(self, start: int, stop: int, in_frames: bool, stream: int) -> None:
        """Fetch what a stream is expected to read, all of it or nothing: a part would be a request more."""
        route = self.routes.frames(range(start, stop)) if in_frames else self.routes.whole(start, stop)
        course = Course(route, Priority.SEQUENTIAL, Kind.GUESSED, stream=stream)
        steps = list(route)
        missing = [step for step in steps if isinstance(step, Frame) and not self._is_at_hand(step, course)]
        if any(isinstance(step, Gate) for step in steps):  # its index page comes first; it is in time for what follows
            course.route = iter([step for step in steps if isinstance(step, Gate)])
        elif sum(frame.bytes + _FRAME_BYTES for frame in missing) > self._room_bytes(Kind.GUESSED):
            return
        else:
            course.route = iter(missing)
            if missing:
                for frame in steps:
                    assert isinstance(frame, Frame)
                    self._hold(frame, course)
        self._courses.append(course)
        self.walk()

    def _hold(self, frame: Frame, course: Course) -> None:
        """Of an expected read this part is in memory: lost by then it would be a request more."""
        size = frame.bytes + _FRAME_BYTES
        if frame.number in self.ledger or size > self._room_bytes(Kind.GUESSED):
            return
        if self._cache.expect(frame.number):
            self.ledger.expect(frame.number, Kind.GUESSED, size, course.stream)

    def _add(self, route: Route, priority: Priority, kind: Kind, stream: int | None = None) -> None:
        self._courses.append(Course(route, priority, kind, stream=stream))

    def _cancel(self, frames: Iterable[int]) -> None:
        """Drop what is queued of these."""
        for key in self._scheduler.cancel([frame for frame in frames if frame in self._under_way]):
            if isinstance(key, int):
                self._arrive(key)
                self.ledger.settle(key)

    def _give_up(self, frames: Iterable[int]) -> None:
        for frame in frames:
            self.ledger.settle(frame)
            self._cache.give_up_first(frame)

    def _arrive(self, frame: int) -> None:
        self._under_way_bytes -= self._under_way.pop(frame, 0)
