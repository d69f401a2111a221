"""Read ahead for one reader: request what it will likely read, within a budget.

A plan is a route through frames that will likely be read. Three things make plans: streams of reads (`streams`), hits
of searches, and code or callers that announce reads. A plan is walked step by step: when a model begins to think, when
a request has ended, and when a prefetched frame is used.

Nothing here waits, and failures are dropped: a caller that needs the data gets the error. A step that an exception
interrupts costs a plan or a request at most, since only the cache and the requests record what was fetched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from monocontext.engine.candidates import Narrowing
from monocontext.engine.fetch.requests import FetchItem, FetchRequest, Missing, Priority
from monocontext.engine.filter_lookup import FilterLookup, FilterSearch
from monocontext.engine.frame import FRAME_OVERHEAD_BYTES, FrameText
from monocontext.engine.frame_table import Column, FrameTable, RecordsInMemory, frame_item
from monocontext.engine.prefetch.streams import Prefetch, SeenRead, Streams
from monocontext.errors import MonocontextError
from monocontext.format.index import Frame, Page
from monocontext.records import dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.engine.hints import Reach

GUESSED_SHARE = 0.25  # the share of the cache for predictions from earlier reads
ANNOUNCED_SHARE = 0.5  # the share for reads that code or a caller announces; all of it if the text fits
BATCH_BYTES = 4 << 20  # bytes requested at a time for a long plan, rather than one frame after another
UNDER_WAY_BYTES = 16 << 20
"""The most bytes in flight, as 100 MB/s transfer in a round trip of 150 ms; on a faster link, half a second of it."""
STALE_READS = 64  # after so many reads without room for a guess, unused prefetched data is no longer expected
MOST_PLANS = 1024  # a limit, since each request of a worker, which is not trusted, may make a plan
_MOST_HITS = 32  # the hits that are remembered: a model looks at the first ones, not at ten thousand
HIT_WINDOW = 10_000  # characters on either side of a hit: models read 300 to 1500 at first, then up to 9000
CANDIDATES_BYTES = 8 << 20  # the most text of a search's candidates that is fetched ahead
FIRST_MATCH_BYTES = 512 << 10  # the same for a search for one match: two usual frames, since the first may have none

Route = Generator[Frame | Missing, None, None]
"""Yields the frames that expected reads need, in order. Where items are missing, it yields these, and continues once
they have arrived; if they have not, it ends. It fetches nothing itself."""


@dataclass(slots=True, eq=False)
class Plan:
    """A route to walk ahead of the reader, and how far it was walked."""

    route: Iterator[Frame | Missing]
    priority: Priority
    is_guess: bool = False  # whether earlier reads or searches suggest it; else code or a caller announces it
    missing: tuple[FetchItem, ...] = ()  # the items that must arrive before the route continues
    next: Frame | None = None  # the frame that the route has reached, and for which there was no room yet


class ReadAhead:
    """The read-ahead of one reader. The caller holds `workers.LOCK`, also while it walks a route."""

    def __init__(
        self, prefetch: Prefetch, table: FrameTable, filters: Callable[[], FilterLookup], fetcher: Fetcher
    ) -> None:
        """`prefetch`: which reads are fetched ahead. `filters`: returns the search filters of the text."""
        self._table, self._filters = table, filters
        self.is_off = prefetch == "off"
        self.follows_code = prefetch in ("all", "code")
        self.follows_reads = prefetch in ("all", "history")
        self.calls = 0  # the number of model calls that are under way
        self._fetcher, self._cache = fetcher, fetcher.cache
        text_bytes, capacity_bytes = table.manifest.text_bytes, self._cache.capacity_bytes
        self._characters_per_byte = table.characters / max(text_bytes, 1)
        self._guessed_bytes = int(capacity_bytes * GUESSED_SHARE)
        fits = text_bytes + FRAME_OVERHEAD_BYTES * table.frames <= capacity_bytes
        self._announced_bytes = capacity_bytes if fits else int(capacity_bytes * ANNOUNCED_SHARE)
        self._streams = Streams(table.characters, max(1, table.characters // max(table.frames, 1)))
        self._hits: dict[tuple[int, int], None] = {}
        """The characters [start, stop) around the first hits of searches since the last call of the model, in order."""
        self.plans: list[Plan] = []  # the plans that are not done; others only read this
        self._requests: list[FetchRequest] = []
        """The requests of plans that are not done: one that is dropped here and not started is never sent."""
        self._reads_without_room = 0
        if not self.is_off:
            fetcher.refill = self.walk

    # -- events ----------------------------------------------------------------------------------------------------

    def begin_thinking(self) -> None:
        """Prefetch around the last hits while a model is at work. Calls may overlap; each needs an `end_thinking`."""
        self.calls += 1
        if self.calls > 1 or not self.follows_reads:
            return
        self.plans += [Plan(self.between(*window), Priority.SEQUENTIAL, is_guess=True) for window in self._hits]
        self._hits.clear()
        self.walk()

    def end_thinking(self) -> bool:
        """Drop guesses that have not started: the model's code runs next. Returns whether no model call is left."""
        self.calls = max(self.calls - 1, 0)
        if not self.calls:
            self._drop(guesses=True)
        return not self.calls

    def begin_reply(self) -> None:
        """Drop the announced reads that have not happened, since a new reply of the model begins."""
        self._drop(guesses=False)
        self._cache.unmark_expected()

    def expect(self, plans: Iterable[Plan]) -> None:
        """Add plans for reads that code announces or that will likely follow, and begin to fetch."""
        if not self.is_off:
            self.plans = [*self.plans, *plans][-MOST_PLANS:]
            self.walk()

    def forget(self) -> None:
        """Drop all plans and requests, since the reader is closed."""
        self.plans, self._requests = [], []

    def note_read(self, read: SeenRead, waited: bool) -> None:
        """Plan what may follow a read of missing or prefetched data. `waited`: its caller waited for the data."""
        if not self.follows_reads:
            return
        room_bytes = self._guessed_bytes - self._cache.expected_bytes - self._under_way_bytes()
        room_characters = int(max(room_bytes, 0) * self._characters_per_byte)
        has_announced = any(not plan.is_guess for plan in self.plans)
        self._reads_without_room = 0 if room_characters or has_announced else self._reads_without_room + 1
        if self._reads_without_room == STALE_READS:
            self._cache.unmark_expected()
        expected = self._streams.note(read, waited=waited, room_characters=room_characters)
        self.plans += [Plan(self.between(*span), Priority.SEQUENTIAL, is_guess=True) for span in expected]
        self.walk()

    def note_use(self, text: FrameText) -> None:
        """Continue the plans after the first use of a frame since it was fetched."""
        if text.is_prefetched:
            self._cache.get(text.frame.number)  # it is no longer expected
        if self.plans:
            self.walk()

    def note_hit(self, character: int) -> None:
        """Remember a hit of a search, since a window around it is likely read next."""
        if self.follows_reads and len(self._hits) < _MOST_HITS:
            self._hits[character - HIT_WINDOW, character + HIT_WINDOW] = None

    # -- routes --------------------------------------------------------------------------------------------------------

    def numbered(self, numbers: Iterable[int]) -> Route:
        """The frames with these numbers."""
        for number in numbers:
            page = yield from self._page("frames", number)
            if page is None:
                return
            yield page[number - page.first_frame]

    def between(self, start: int, stop: int, backward: bool = False) -> Route:
        """The frames that hold characters [start, stop), in order or backward."""
        start, stop = max(start, 0), min(stop, self._table.characters)
        while start < stop:
            page = yield from self._page("characters", stop - 1 if backward else start)
            if page is None:
                return
            for i in page.numbers_between(start, stop, backward):
                yield page[i]
            if backward:
                stop = page.starts[0]
            else:
                start = page.starts[-1]

    def ranges(self, start: int, width: int, step: int, count: int) -> Route:
        """The frames of `count` ranges of `width` characters, each `step` characters after the one before. Consecutive
        ranges in one frame take constant time, and yield the frame once."""
        frame_start = frame_stop = number = 0  # the characters of the last frame, and the number of the next range
        while number < count:
            range_start = start + number * step
            for frame in self.between(range_start, range_start + width):
                if not isinstance(frame, Missing):
                    if frame_start <= frame.start and frame.stop <= frame_stop:
                        continue
                    frame_start, frame_stop = frame.start, frame.stop
                yield frame
            number += 1
            if step > 0 and frame_stop > range_start:
                number = max(number, (frame_stop - width - start) // step + 1)  # the first that ends beyond the frame
            elif step < 0 and frame_start <= range_start:
                number = max(number, (start - frame_start) // -step + 1)  # the first that begins before the frame

    def search(self, search: FilterSearch, *, backward: bool, reach: Reach) -> Route:
        """The first frames that a search reads: the candidates of filters; without filters, the searched text in the
        order of the search. `reach`: the matches that it looks for (see `hints.Reach`)."""
        narrowed = yield from self._narrow(search)
        if narrowed is None:
            return
        if narrowed.runs is not None:
            runs = [range(*run) for run in narrowed.runs]
            if backward:
                runs = [run[::-1] for run in reversed(runs)]
            route = self.numbered(chain.from_iterable(runs))
            yield from _within(route, FIRST_MATCH_BYTES if reach == "first" else CANDIDATES_BYTES)
        elif reach != "unplaced":
            route = self.between(search.start, search.stop, backward)
            yield from _within(route, FIRST_MATCH_BYTES) if reach == "first" else route

    def _narrow(self, search: FilterSearch) -> Generator[Missing, None, Narrowing | None]:
        """The frames that search filters leave; None if what the filters need did not arrive."""
        filters = self._filters()
        if search.stop <= search.start:
            return None
        requested, records = set[object](), RecordsInMemory(self._table)
        while True:
            narrowed = filters.narrow(search, self._cache.peek, records)
            if isinstance(narrowed, Narrowing):
                return narrowed
            keys = {item.key for item in narrowed.items}
            if keys <= requested:
                return None
            requested |= keys
            yield narrowed

    def _page(self, column: Column, value: int) -> Generator[Missing, None, Page | None]:
        """The index page of a character or frame; None if it did not arrive."""
        requested = None
        while isinstance(page := self._table.page_or_item(column, value, self._cache.peek), FetchItem):
            if page.key == requested:
                return None
            requested = page.key
            yield Missing((page,))
        return page

    # -- walking ---------------------------------------------------------------------------------------------------

    def walk(self) -> None:
        """Walk all plans as far as budgets allow, those of the highest priority first, and request their items."""
        pid = os.getpid()
        self._requests = [request for request in self._requests if not request.is_done and request.pid == pid]
        if not self.plans or self._fetcher.is_closed:
            return
        half_second_bytes = int(self._fetcher.link.bytes_per_second / 2)
        most_bytes = min(max(UNDER_WAY_BYTES, half_second_bytes), self._fetcher.window_bytes // 2)
        for plan in sorted(self.plans, key=lambda plan: plan.priority):
            under_way = self._under_way_bytes()
            share_bytes = self._guessed_bytes if plan.is_guess else self._announced_bytes
            # A loop under way does not hold up a single slice that comes after it.
            limit_bytes = 2 * most_bytes if plan.priority <= Priority.LITERAL_HINT else most_bytes
            room_bytes = min(limit_bytes, share_bytes - self._cache.expected_bytes) - under_way
            # A long plan advances in batches, not by one frame whenever there is room for one.
            if under_way and room_bytes < min(BATCH_BYTES, limit_bytes // 4, share_bytes // 4):
                continue
            items = self._advance(plan, room_bytes, share_bytes)
            if items:
                requests = self._fetcher.queue_requests(items, plan.priority)
                self._requests += [request for request in set(requests.values()) if request not in self._requests]

    def _advance(self, plan: Plan, room_bytes: int, share_bytes: int) -> list[FetchItem]:
        """Walk a plan until it lacks items, exceeds the room or ends, and return the items to request."""
        items: list[FetchItem] = []
        if any(self._fetcher.is_fetching(item.key) for item in plan.missing):
            return items
        plan.missing = ()
        while True:
            try:
                step = plan.next or next(plan.route, None)
            except MonocontextError:  # a caller that reads there gets the error
                step = None
            if step is None:
                if plan in self.plans:
                    self.plans.remove(plan)
                return items
            if isinstance(step, Missing):
                plan.missing = tuple(item for item in step.items if item.key not in self._cache)
                if plan.missing:
                    return [*items, *plan.missing]
                continue
            plan.next = step
            size_bytes = step.bytes + FRAME_OVERHEAD_BYTES
            is_fetched = step.number in self._cache or self._fetcher.is_fetching(step.number)
            if not is_fetched and size_bytes <= share_bytes:
                if size_bytes > room_bytes:
                    return items
                room_bytes -= size_bytes
                items.append(frame_item(step))
            elif plan.is_guess and size_bytes <= room_bytes and self._cache.mark_expected(step.number):
                room_bytes -= size_bytes
            plan.next = None

    def _under_way_bytes(self) -> int:
        """The memory that items of queued and running requests will take."""
        return sum([item.decoded_bytes for request in self._requests if not request.is_done for item in request.items])

    def _drop(self, *, guesses: bool) -> None:
        """Drop the plans that are guesses, or those that are announced, and their requests that have not started."""
        self.plans = [plan for plan in self.plans if plan.is_guess != guesses]
        dropped = (Priority.SEQUENTIAL,) if guesses else (Priority.LITERAL_HINT, Priority.COMPUTED_HINT)
        self._requests = [item for item in self._requests if item.is_started or item.priority not in dropped]


def _within(route: Route, most_bytes: int) -> Route:
    """The beginning of a route, with at most `most_bytes` of text."""
    for step in route:
        if not isinstance(step, Missing):
            most_bytes -= step.bytes
            if most_bytes < 0:
                return
        yield step
