"""Read ahead for one reader: expected reads become requests, within a budget.

Streams of reads (`streams`), windows around the hits of searches, and code that announces reads make plans: routes
that are walked a little at a time, when a model begins to think, when a request has ended, when a prefetched
frame is used. What is prefetched and not used takes at most a share of the cache. Nothing here waits, and failures are
dropped: a caller that needs the data gets the error. An exception that interrupts a step at any line costs a plan or a
request at most, since the cache and the requests alone say what is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from itertools import chain
from typing import TYPE_CHECKING

from monocontext.engine.fetch.requests import FetchItem, FetchRequest, Missing, Priority
from monocontext.engine.fetch.workers import LOCK
from monocontext.engine.filter_lookup import FilterLookup, RecordsInMemory
from monocontext.engine.frame import FRAME_OVERHEAD_BYTES, FrameText
from monocontext.engine.frame_table import frame_item
from monocontext.engine.prefetch.streams import ExpectedRead, Prefetch, SeenRead, Streams
from monocontext.errors import MonocontextError
from monocontext.format.filters.query import Query
from monocontext.format.index import Frame, Page
from monocontext.records import dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.cache import Cache
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.engine.frame_table import Column, FrameTable
    from monocontext.engine.hints import Reach

GUESSED_SHARE = 0.25
"""The share of the cache for predictions from earlier reads. Without a limit, growing read-ahead is worse than none
once it exceeds the cache (simulated: 14 s of stall, and 10 GB moved for 126 MB of need)."""
ANNOUNCED_SHARE = 0.5
"""The share of the cache for reads that code or a caller announces; all of it if the text fits, since nothing is
evicted then."""
THINK_READS = 2
"""Reads ahead of each stream while a model thinks: with seconds per read the next two arrive in time."""
BATCH_BYTES = 4 << 20
"""Bytes requested at a time for a long plan, rather than one frame after another."""
UNDER_WAY_BYTES = 16 << 20
"""The most bytes in flight, as 100 MB/s transfer in a round trip of 150 ms; on a faster link, half a second of it."""
STALE_READS = 64
"""The number of reads without room for a guess after which what was prefetched and not used is no longer expected: four
for each of 16 streams."""
MOST_PLANS = 1024
"""The most plans: a worker that is not trusted may make one by each request."""
HITS = 32
"""The most hits that are remembered: a model looks at the first ones, not at ten thousand."""
HIT_WINDOW = 10_000
"""Characters of a window on either side of its hit: models take 300 to 1500 at first, and up to 9000 when that was not
enough. It costs a frame more if the hit is so near to the frame's end: 8 % of hits in ASCII."""
CANDIDATES_BYTES = 8 << 20
"""The most text of a search's candidates that is fetched ahead; a search that reads all of them then fetches the rest.
"""
FIRST_BYTES = 512 << 10
"""The same limit for a search that may end at its first match: two frames of the usual size, since the first may be
read in vain."""

Route = Generator[Frame | Missing, None, None]


class Routes:
    """Turns expected reads into the frames that they need, in order. The owner of a route holds the lock.

    A route fetches nothing itself: it yields the frames to prefetch, and `Missing` items that must be in memory before
    it continues. It ends if they have not arrived when it is continued.
    """

    def __init__(self, table: FrameTable, filters: Callable[[], FilterLookup], cache: Cache):
        self._table = table
        self._filters = filters
        self._cache = cache
        self.characters = table.characters

    def numbered(self, numbers: Iterable[int]) -> Route:
        """Frames by number."""
        for number in numbers:
            page = yield from self._page("frames", number)
            if page is None:
                return
            yield page[number - page.first_frame]

    def between(self, start: int, stop: int, backward: bool = False) -> Route:
        """The frames that hold characters [start, stop), in order or from the end."""
        start, stop = max(start, 0), min(stop, self.characters)
        while start < stop:
            page = yield from self._page("characters", stop - 1 if backward else start)
            if page is None:
                return
            for i in page.between(start, stop, backward):
                yield page[i]
            if backward:
                stop = page.starts[0]
            else:
                start = page.starts[-1]

    def ranges(self, start: int, width: int, step: int, count: int) -> Route:
        """The frames of `count` ranges of `width` characters, each `step` characters after the one before. Consecutive
        ranges in one frame take constant time, and yield the frame once."""
        low = high = 0  # the characters of the last frame
        number = 0
        while number < count:
            first = start + number * step
            for frame in self.between(first, first + width):
                if not isinstance(frame, Missing):
                    if low <= frame.start and frame.stop <= high:
                        continue
                    low, high = frame.start, frame.stop
                yield frame
            number += 1
            if step > 0 and high > first:
                number = max(number, (high - width - start) // step + 1)  # the first that ends beyond the frame
            elif step < 0 and low <= first:
                number = max(number, (start - low) // -step + 1)  # the first that begins before the frame

    def search(
        self, query: Query | None, start: int, stop: int, within_line: bool, backward: bool, reach: Reach
    ) -> Route:
        """The first frames that a search reads, after rows of filters: candidates if filters name some, else all frames
        from its beginning, if that is known. `reach`: see `hints.Reach`."""
        filters = self._filters()
        if stop <= start or filters.is_asked_elsewhere(query, within_line):
            return
        requested: set[object] = set()
        while True:
            narrowed = filters.narrow(
                query, start, stop, within_line, have=self._peek, records=RecordsInMemory(self._table), needs_text=False
            )
            if not isinstance(narrowed, Missing):
                break
            keys = {item.key for item in narrowed.items}
            if keys <= requested:
                return
            requested |= keys
            yield narrowed
        if narrowed.runs is not None:
            runs = [range(*run) for run in narrowed.runs]
            numbers = chain.from_iterable(map(reversed, reversed(runs)) if backward else runs)
            yield from _first(self.numbered(numbers), FIRST_BYTES if reach == "first" else CANDIDATES_BYTES)
        elif reach == "first":
            yield from _first(self.between(start, stop, backward), FIRST_BYTES)
        elif reach == "all":
            yield from self.between(start, stop, backward)

    def _peek(self, key: object) -> object:
        with LOCK:
            return self._cache.peek(key)

    def _page(self, column: Column, value: int) -> Generator[Missing, None, Page | None]:
        """The index page of a character or frame; None if it did not arrive."""
        requested = None
        while isinstance(page := self._table.page_or_item(column, value, self._peek), FetchItem):
            if page.key == requested:
                return None
            requested = page.key
            yield Missing((page,))
        return page


def _first(route: Route, most_bytes: int) -> Route:
    """A route, limited to an amount of text."""
    for step in route:
        if not isinstance(step, Missing):
            most_bytes -= step.bytes
            if most_bytes < 0:
                return
        yield step


@dataclass(slots=True, eq=False)
class Plan:
    """A route that is being walked ahead of the reader."""

    route: Route
    priority: Priority
    is_guess: bool = False
    """Whether earlier reads or searches suggest it; else code or a caller announces it."""
    missing: tuple[FetchItem, ...] = ()
    """The items that must arrive before the route continues."""
    next: Frame | None = None
    """The frame that the route has reached and that was not requested."""


class ReadAhead:
    """The read-ahead of one reader. Its owner holds the lock during each call."""

    def __init__(self, prefetch: Prefetch, routes: Routes, fetcher: Fetcher, *, frames: int, text_bytes: int):
        """`prefetch`: "off" if nothing can be read ahead."""
        self.is_off = prefetch == "off"
        self.follows_code = prefetch in ("all", "code")
        self.follows_reads = prefetch in ("all", "history")
        self.routes = routes
        self._calls = 0
        """The calls of a model that are under way."""
        self._fetcher = fetcher
        self._cache = fetcher.cache
        self._frames = frames
        self._characters_per_byte = routes.characters / max(text_bytes, 1)
        capacity, memory_bytes = self._cache.capacity_bytes, text_bytes + FRAME_OVERHEAD_BYTES * frames
        self._guessed_bytes = int(capacity * GUESSED_SHARE)
        self._announced_bytes = capacity if memory_bytes <= capacity else int(capacity * ANNOUNCED_SHARE)
        self._streams = Streams(routes.characters, frames)
        self._hits: dict[tuple[int, int], None] = {}
        """Windows around the first hits since the model thought last."""
        self.plans: list[Plan] = []
        self._requests: list[FetchRequest] = []
        """The requests of plans that are not done: one that is dropped here and not started is never sent."""
        self._reads_without_room = 0
        if not self.is_off:
            fetcher.refill = self.walk

    # -- events of a model -----------------------------------------------------------------------------------------

    @property
    def is_thinking(self) -> bool:
        """Whether a model is at work."""
        return self._calls > 0

    def begin_thinking(self) -> None:
        """Read ahead while a model is at work. Calls may overlap; each has its `end_thinking`."""
        self._calls += 1
        if self._calls > 1 or not self.follows_reads:
            return
        for start, stop in self._hits:
            self.plans.append(Plan(self.routes.between(start, stop), Priority.SEQUENTIAL, is_guess=True))
        self._hits.clear()
        for expected in self._streams.think(THINK_READS, self._room()):
            self._follow(expected)
        self.walk()

    def end_thinking(self) -> bool:
        """Drop guesses that have not started, since the model is done and its code runs. Returns whether this was the
        last call of a model under way."""
        self._calls = max(self._calls - 1, 0)
        if not self._calls:
            self._drop(guesses=True)
        return not self._calls

    def turn(self) -> None:
        """Drop the reads that earlier code announced and did not do, since a new reply of the model begins."""
        self._drop(guesses=False)
        self._cache.expect_nothing()

    def expect(self, plans: Iterable[Plan]) -> None:
        """Prefetch the reads that code announces."""
        if not self.is_off:
            self.plans = [*self.plans, *plans][-MOST_PLANS:]
            self.walk()

    def forget(self) -> None:
        """Drop all plans and requests, since the reader is closed."""
        self.plans, self._requests = [], []

    # -- events of a reader ----------------------------------------------------------------------------------------

    def read(self, read: SeenRead, waited: bool) -> None:
        """Plan the reads that may follow one of missing or prefetched data, for which the caller waited or not."""
        if not self.follows_reads:
            return
        room = self._room()
        is_announced = any(not plan.is_guess for plan in self.plans)
        self._reads_without_room = 0 if room or is_announced else self._reads_without_room + 1
        if self._reads_without_room == STALE_READS:
            self._cache.expect_nothing()
        for expected in self._streams.read(read, waited, room):
            self._follow(expected)
        self.walk()

    def used(self, text: FrameText) -> None:
        """Take note of the first use of a frame since it was fetched; one that was not prefetched matters to plans
        alone."""
        if text.is_prefetched:
            self._cache.get(text.frame.number)  # it is no longer expected
        if self.plans:
            self.walk()

    def hit(self, character: int) -> None:
        """Remember a hit of a search, since a window around it is likely read next."""
        if self.follows_reads and len(self._hits) < HITS:
            self._hits[character - HIT_WINDOW, character + HIT_WINDOW] = None

    # -- walking ---------------------------------------------------------------------------------------------------

    def walk(self) -> None:
        """Walk all plans as far as budgets allow, the most certain first, and request their items."""
        pid = os.getpid()
        self._requests = [request for request in self._requests if not request.is_done and request.pid == pid]
        if not self.plans or self._fetcher.is_closed:
            return
        most_bytes = min(
            max(UNDER_WAY_BYTES, int(self._fetcher.link.bytes_per_second / 2)), self._fetcher.window_bytes // 2
        )
        for plan in sorted(self.plans, key=lambda plan: plan.priority):
            under_way = self._under_way_bytes()
            # A loop under way does not hold up a single slice that comes after it.
            limit_bytes = 2 * most_bytes if plan.priority <= Priority.LITERAL_HINT else most_bytes
            room_bytes = min(limit_bytes, self._share_bytes(plan) - self._cache.expected_bytes) - under_way
            # A long plan advances by batches, not by one frame whenever there is room for one.
            if under_way and room_bytes < min(BATCH_BYTES, limit_bytes // 4, self._share_bytes(plan) // 4):
                continue
            items: list[FetchItem] = []
            try:
                is_at_end = self._walk_plan(plan, room_bytes, items)
            except MonocontextError:  # a caller that reads there gets the error
                is_at_end = True
            if is_at_end and plan in self.plans:
                self.plans.remove(plan)
            if items:
                requests = self._fetcher.request(items, plan.priority)
                self._requests += [request for request in set(requests.values()) if request not in self._requests]

    def _walk_plan(self, plan: Plan, room_bytes: int, items: list[FetchItem]) -> bool:
        """Walk a plan, and add the items that it needs to `items`, of so many bytes; returns whether it has ended."""
        if any(self._fetcher.is_fetching(item.key) for item in plan.missing):
            return False
        plan.missing = ()
        while (step := plan.next or next(plan.route, None)) is not None:
            if isinstance(step, Missing):
                plan.missing = tuple(item for item in step.items if item.key not in self._cache)
                if plan.missing:
                    items += plan.missing
                    return False
                continue
            plan.next = step
            size_bytes = step.bytes + FRAME_OVERHEAD_BYTES
            is_here = step.number in self._cache or self._fetcher.is_fetching(step.number)
            if not is_here and size_bytes <= self._share_bytes(plan):
                if size_bytes > room_bytes:
                    return False
                room_bytes -= size_bytes
                items.append(frame_item(step))
            elif plan.is_guess and size_bytes <= room_bytes and self._cache.expect(step.number):
                room_bytes -= size_bytes
            plan.next = None
        return True

    def _under_way_bytes(self) -> int:
        return sum([item.bytes for request in self._requests if not request.is_done for item in request.items])

    def _share_bytes(self, plan: Plan) -> int:
        return self._guessed_bytes if plan.is_guess else self._announced_bytes

    def _room(self) -> int:
        """The number of characters that may be guessed."""
        room_bytes = self._guessed_bytes - self._cache.expected_bytes - self._under_way_bytes()
        return int(max(room_bytes, 0) * self._characters_per_byte)

    def _follow(self, expected: ExpectedRead) -> None:
        """Plan an expected read of a stream."""
        start, stop = expected.start, expected.stop
        frames = self.routes.numbered(range(start, stop)) if expected.in_frames else self.routes.between(start, stop)
        self.plans.append(Plan(frames, Priority.SEQUENTIAL, is_guess=True))

    def _drop(self, guesses: bool) -> None:
        """Drop the plans that are guesses, or all others, and their requests that have not started."""
        self.plans = [plan for plan in self.plans if plan.is_guess != guesses]
        self._requests = [
            request
            for request in self._requests
            if request.is_started
            or request.priority == Priority.DEMAND
            or (request.priority >= Priority.SEQUENTIAL) != guesses
        ]
