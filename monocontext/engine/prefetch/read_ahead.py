"""Read ahead for one reader: expected reads become fetches, within a budget, after every read that a caller waits for.

Reads that code announces come as routes (see `routes`), predictions from earlier reads from `streams`, `hits` and
`names`. Both become plans, which are walked a little at a time: when a model begins to think, when a fetch has ended,
when a prefetched frame is used. So few requests are queued at any time, and there are few to cancel.

Invariants:

- bytes that are expected and not used stay within the shares of the ledger, at every step
- nothing here waits, and failures are dropped: a caller that needs the data asks for it and gets the error
- each step is a change of the fetcher, which sends the requests that the step starts
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from monocontext.engine.fetch.listeners import Listener
from monocontext.engine.fetch.scheduler import Fetch, FetchItem, Missing, Priority
from monocontext.engine.frame import FRAME_BYTES, FrameText
from monocontext.engine.frame_table import Frames, frame_item
from monocontext.engine.prefetch import HitWindows, Kind, Ledger, Prefetch, Read, Streams, ThinkTime
from monocontext.engine.prefetch.hits import Names
from monocontext.engine.prefetch.streams import ExpectedRead
from monocontext.errors import MonocontextError
from monocontext.format.index import Frame
from monocontext.records import KW_ONLY, dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.engine.prefetch.routes import Routes

THINK_READS = 2
"""Reads ahead of each stream while a model thinks: with seconds per read the next two arrive in time."""
BATCH_BYTES = 4 << 20
"""Bytes requested at a time for a long plan: four requests of 1 MiB rather than sixteen frames one by one."""
UNDER_WAY_BYTES = 16 << 20
"""The most bytes in flight, as 100 MB/s transfer in a round trip of 150 ms; on a faster link, half a second of it."""


@dataclass(slots=True, eq=False)
class PrefetchPlan:
    """A route that is being walked ahead of the reader."""

    route: Iterator[Frame | Missing]
    priority: Priority
    kind: Kind
    _: KW_ONLY
    stream: int | None = None
    """The number of the stream that predicted it."""
    skips_used: bool = False
    """Whether it skips frames that this code has read already, in memory or not: a loop does not come back."""
    is_scan: bool = False
    """Whether it serves one pass, and is useless after that."""
    free_bytes: int | None = None
    """For a plan that code may abandon at any step: the bytes that it may still fetch, however few were used."""
    missing: tuple[Hashable, ...] = ()
    """Keys of the items that must arrive before the route continues."""
    some_will_do: bool = False
    """Whether the route continues once any of these has arrived."""
    next: Frame | Missing | None = None
    """The step of the route that was reached and not taken."""


class ReadAhead(Listener):
    """The read-ahead of one reader. Safe for use by many threads."""

    def __init__(
        self, prefetch: Prefetch, routes: Routes, fetcher: Fetcher, *, frames: int, text_bytes: int, has_tail: bool
    ):
        """`prefetch`: "off" if nothing can be read ahead. `has_tail`: the end of the text is in memory."""
        self.prefetch = prefetch
        self.follows_code = prefetch in ("all", "code")
        """Whether reads that code announces are prefetched."""
        self.follows_reads = prefetch in ("all", "history")
        """Whether reads are predicted from earlier reads."""
        self.routes = routes
        self.fresh = 0
        """The number of frames that were used for the first time since they were fetched."""
        self.late = 0
        """The number of these that a caller waited for."""
        self.used_bytes = 0
        """The text of frames that were used, in whole frames, each counted once a fetch."""
        self._fetcher = fetcher
        self._cache = fetcher.cache
        self._frames = frames
        self._text_bytes = text_bytes
        self._has_tail = has_tail
        self._characters_per_byte = routes.characters / max(text_bytes, 1)
        self.reset_state()
        self.think = ThinkTime()

    def reset_state(self) -> None:
        """Forget all that is expected. Only `think` stays, since the call of a model goes on."""
        self.ledger = Ledger(self._cache.capacity_bytes, self._text_bytes + FRAME_BYTES * self._frames)
        self._fetcher.expected = self.ledger.kinds
        self.streams = Streams(self.routes.characters, self._frames)
        self.hits = HitWindows(self.routes.characters)
        self.names = Names()
        self._plans: list[PrefetchPlan] = []
        self._under_way: dict[int, int] = {}
        """The sizes of frames that were requested and have not arrived, by number."""
        self._under_way_bytes = 0
        self._used: set[int] = set()
        """The frames that this code has used."""
        self._unused: dict[int, int] = {}
        """The sizes of unused frames of plans that code may abandon, by number."""
        self._unused_bytes = 0
        self._allowance_bytes = 0
        """The bytes that may still be guessed while the model thinks."""
        self._is_warm = False
        """Whether the first and the last frame were planned."""

    # -- events of a model: each within a change ---------------------------------------------------------------------

    def begin_thinking(self) -> None:
        """Read ahead while a model is at work. Calls may overlap; each has its `end_thinking`."""
        now = self._fetcher.workers.now()
        if not self.think.begin(now) or self.prefetch == "off":
            return
        bytes_per_second = self._fetcher.link.bandwidth.bytes_per_second
        self._allowance_bytes = int(bytes_per_second * self.think.expected_seconds)
        if self.follows_reads:
            self._warm_up()
            if self.names.has_hits:
                for name in self.names.take(self._cache.peek, self.routes.name_bytes, self.used_bytes // 4):
                    self._guess(self.routes.name(name), free_bytes=0)
                for start, stop in self.hits.windows():
                    self._guess(self.routes.whole(start, stop))
            for expected in self.streams.think(THINK_READS, self._room):
                self._follow(expected)
        self._walk()

    def end_thinking(self) -> bool:
        """Drop guesses that have not started, since the model is done and its code runs. Returns whether no other call
        of a model is under way."""
        if not self.think.end(self._fetcher.workers.now()):
            return False
        self._cancel(self.ledger.frames(Kind.GUESSED))
        self._plans = [plan for plan in self._plans if plan.kind is not Kind.GUESSED]
        return True

    def turn(self) -> None:
        """Drop the reads that earlier code announced and did not do, since a new reply of the model begins."""
        self._plans = [plan for plan in self._plans if plan.kind is not Kind.KNOWN]
        if self.ledger.outstanding_bytes[Kind.KNOWN]:
            remaining = self.ledger.frames(Kind.KNOWN)
            self._cancel(remaining)
            self._give_up(remaining)
        self._used.clear()
        if self.follows_reads:
            self._warm_up()
            self._walk()

    def expect(self, plans: Iterable[PrefetchPlan], *, runs_now: bool = False) -> None:
        """Prefetch the reads that code announces. `runs_now`: before those of all other code."""
        if self.prefetch == "off":
            return
        added = list(plans)
        if runs_now:
            self._used.clear()
        self._plans = added + self._plans if runs_now else self._plans + added
        self._walk()

    def look(self) -> None:
        """Send late predicted requests a second time while no caller waits. Cheap."""
        hedging = self._fetcher.hedging
        if hedging is not None:
            with self._fetcher.lock:
                due = hedging.next_due()
            if due is not None and due <= self._fetcher.workers.now():
                self._fetcher.hedge()

    # -- events of a reader ----------------------------------------------------------------------------------------

    def read(self, read: Read, late: int) -> None:
        """Within a change: plan the reads that may follow one of missing or prefetched data. `late`: the count of late
        frames before the read; if it has grown, the caller waited."""
        if not self.follows_reads:
            return
        for frame in range(read.first, read.last + 1):
            if self.ledger.settle(frame):  # it was fetched again, after its use and before the end of the read
                self._cache.get(frame)
        stale, streams = self.ledger.read()
        if stale:
            self._give_up(stale)
            self.streams.unused(streams)
        for expected in self.streams.read(read, self.late != late, self._room):
            self._follow(expected)
        self._walk()

    def before_read(self, start: int, stop: int, frame: int) -> None:
        """Request the two reads that may follow one of these characters in a binary search, together with that read.
        Not if this frame was itself requested in that way."""
        if self.follows_reads and (places := self.streams.halves(start)) and frame not in self._fetcher.scheduler:
            self._fetcher.act(partial(self._guess_reads, places, stop - start))

    def _guess_reads(self, starts: Iterable[int], width: int) -> None:
        for start in starts:
            route = self.routes.whole(max(start, 0), min(start + width, self.routes.characters))
            self._guess(route, free_bytes=0)
        self._walk()

    def end_scan(self) -> None:
        """Fetch no more for a pass that has ended or was abandoned. Its prefetched data stays."""
        if self._plans:
            self._fetcher.act(self._drop_scan)

    def _drop_scan(self) -> None:
        for plan in self._plans:
            if plan.is_scan:
                self._plans.remove(plan)
                return

    def hit(self, character: int, frame: int) -> None:
        """Within a change: remember a hit of a search, since a window around it is likely read next."""
        if self.hits.found(character):
            self._cache.hold(frame)
            self.names.hit(character, frame)

    # -- events of requests ----------------------------------------------------------------------------------------

    def ended(self, fetch: Fetch, now: float, is_last: bool) -> None:
        if not fetch.forgotten:
            return  # another attempt is under way
        if self._under_way:  # also for a fetch of a caller, which takes frames out of queued speculation
            for item in fetch.request.items:
                if isinstance(item.key, int) and item.key in self._under_way:
                    self._arrive(item.key)
                    if item.key not in self._cache:
                        self.ledger.settle(item.key)
        self._walk()

    def used(self, text: FrameText) -> None:
        self.fresh += 1
        self.late += text.was_awaited
        self.used_bytes += text.frame.bytes
        number = text.frame.number
        if self._plans or self.follows_code:
            self._used.add(number)
        if text.is_prefetched:
            self._cache.get(number)
            if self.ledger.settle(number):
                self._walk()
        if number in self._unused:
            self._unused_bytes -= self._unused.pop(number)
            self._walk()

    def forked(self) -> None:
        self.think.forget()
        for number in [number for number in self._under_way if number not in self._fetcher.scheduler]:
            self._arrive(number)
            self.ledger.settle(number)

    # -- walking ---------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Walk all plans as far as budgets allow, the most certain first, and request their items."""
        if not self._plans:
            return
        most_bytes = self._most_under_way_bytes()
        wanted: dict[Priority, list[FetchItem]] = {}
        for plan in sorted(self._plans, key=lambda plan: plan.priority):
            # A loop under way does not hold up a single slice that comes after it.
            limit_bytes = 2 * most_bytes if plan.priority <= Priority.LITERAL_HINT else most_bytes
            if self._under_way_bytes > limit_bytes * 3 // 4 or self._waits_for_room(plan):
                continue
            try:
                self._walk_plan(plan, limit_bytes, wanted.setdefault(plan.priority, []))
            except MonocontextError:  # a caller that reads there gets the error
                self._end_plan(plan)
        for priority, items in wanted.items():
            if items:
                self._fetcher.scheduler.speculate(items, priority)

    def _walk_plan(self, plan: PrefetchPlan, limit_bytes: int, wanted: list[FetchItem]) -> None:
        """Walk a plan, and add the items that it needs to `wanted`, up to so many bytes under way in all."""
        if self._waits_for_items(plan):
            return
        plan.missing = ()
        while (step := plan.next or next(plan.route, None)) is not None:
            plan.next = step
            if isinstance(step, Missing):
                missing = [item for item in step.items if item.key not in self._cache]
                wanted += [item for item in missing if item.key not in self._fetcher.scheduler]
                plan.missing = tuple(item.key for item in missing)
                plan.some_will_do = step.some_will_do
                plan.next = None
                if missing:
                    return
            elif self._pass_frame(plan, step, limit_bytes, wanted):
                plan.next = None
            else:
                return
        self._end_plan(plan)

    def _end_plan(self, plan: PrefetchPlan) -> None:
        """Remove a plan, unless a pass that the garbage collector closed during the walk has removed it."""
        if plan in self._plans:
            self._plans.remove(plan)

    def _waits_for_items(self, plan: PrefetchPlan) -> bool:
        remaining = sum(key in self._fetcher.scheduler for key in plan.missing)
        return remaining > 0 and (remaining == len(plan.missing) or not plan.some_will_do)

    def _pass_frame(self, plan: PrefetchPlan, frame: Frame, limit_bytes: int, wanted: list[FetchItem]) -> bool:
        """Request the next frame of a plan if it has to be fetched; False if there is no room for it now."""
        if plan.free_bytes is not None and not self._may_go_on(plan, frame):
            return False
        size_bytes = frame.bytes + FRAME_BYTES
        if self._is_cached(frame, plan) or size_bytes > self.ledger.share_bytes[plan.kind]:
            return True
        if self._under_way_bytes + size_bytes > limit_bytes or not self._reserve(frame, size_bytes, plan):
            return False
        wanted.append(frame_item(frame))
        return True

    def _may_go_on(self, plan: PrefetchPlan, frame: Frame) -> bool:
        """Whether a plan that code may abandon is not too far ahead.

        All such plans together may have fetched, unused, no more than callers have used, plus the free bytes of each.
        """
        number, size = frame.number, frame.bytes
        result = self._cache.peek(number)
        if number in self._unused or number in self._used or (isinstance(result, FrameText) and result.is_used):
            return True
        assert plan.free_bytes is not None
        if plan.free_bytes < size and self._unused_bytes + size > self.used_bytes:
            return False
        plan.free_bytes -= size
        self._unused[number] = size
        self._unused_bytes += size
        return True

    def _is_cached(self, frame: Frame, plan: PrefetchPlan) -> bool:
        """Whether a plan need not fetch a frame."""
        number = frame.number
        if number in self.ledger.kinds or number in self._cache or number in self._fetcher.scheduler:
            return True
        return plan.skips_used and number in self._used

    def _reserve(self, frame: Frame, size_bytes: int, plan: PrefetchPlan) -> bool:
        """Reserve room for a frame, and expect it. Returns whether there was room."""
        is_guess = plan.kind is Kind.GUESSED and self.think.is_thinking
        if is_guess and size_bytes > self._allowance_bytes:
            return False
        if size_bytes > self.ledger.room_bytes(plan.kind) - self._kept_bytes(plan):
            return False
        self.ledger.expect(frame.number, plan.kind, size_bytes, plan.stream)
        self._under_way[frame.number] = size_bytes
        self._under_way_bytes += size_bytes
        if is_guess:
            self._allowance_bytes -= size_bytes
        return True

    def _waits_for_room(self, plan: PrefetchPlan) -> bool:
        """Whether the plan could now advance by one frame only, and by many a little later."""
        if plan.kind is Kind.GUESSED:
            return self._guess_room_bytes() <= 0
        if not self._under_way:
            return False
        room_bytes = self.ledger.room_bytes(plan.kind) - self._kept_bytes(plan)
        return room_bytes < min(BATCH_BYTES, self.ledger.share_bytes[plan.kind] // 4)

    def _kept_bytes(self, plan: PrefetchPlan) -> int:
        """The bytes that a plan leaves free. In a text larger than the cache, loops leave an eighth of their share to
        single slices after them."""
        share_bytes = self.ledger.share_bytes[plan.kind]
        is_loop = plan.kind is Kind.KNOWN and plan.priority > Priority.LITERAL_HINT
        return share_bytes // 8 if is_loop and share_bytes < self._cache.capacity_bytes else 0

    def _guess_room_bytes(self) -> int:
        room_bytes = self.ledger.room_bytes(Kind.GUESSED)
        return min(room_bytes, self._allowance_bytes) if self.think.is_thinking else room_bytes

    def _room(self) -> int:
        """The number of characters that may be guessed."""
        return int(max(self._guess_room_bytes(), 0) * self._characters_per_byte)

    def _most_under_way_bytes(self) -> int:
        """The most bytes in flight: few enough to be cancelled cheaply, enough for the link never to idle."""
        bytes_per_second = self._fetcher.link.bandwidth.bytes_per_second
        return min(max(UNDER_WAY_BYTES, int(bytes_per_second / 2)), self._fetcher.window_bytes // 2)

    # -- single steps ----------------------------------------------------------------------------------------------

    def _guess(self, route: Frames, priority: Priority = Priority.SEQUENTIAL, free_bytes: int | None = None) -> None:
        self._plans.append(PrefetchPlan(route, priority, Kind.GUESSED, free_bytes=free_bytes))

    def _warm_up(self) -> None:
        """Plan the first and the last frame: 68 % of first blocks look at the head, many at the tail. If the root has
        the tail, its frame may never be needed; after the head most go on."""
        if not self._is_warm and self._frames:
            self._is_warm = True
            numbers = (0,) if self._has_tail else (0, self._frames - 1)
            self._guess(self.routes.frames(dict.fromkeys(numbers)), Priority.WARM_UP)

    def _follow(self, expected: ExpectedRead) -> None:
        """Fetch an expected read of a stream, all or nothing: a part of it would save no request."""
        start, stop = expected.start, expected.stop
        route = self.routes.frames(range(start, stop)) if expected.in_frames else self.routes.whole(start, stop)
        plan = PrefetchPlan(route, Priority.SEQUENTIAL, Kind.GUESSED, stream=expected.stream)
        steps = list(route)
        frames = [step for step in steps if isinstance(step, Frame)]
        missing = [frame for frame in frames if not self._is_cached(frame, plan)]
        if len(frames) < len(steps):  # its index page comes first, in time for the next reads
            plan.route = iter([step for step in steps if isinstance(step, Missing)])
        elif sum(frame.bytes + FRAME_BYTES for frame in missing) > self._guess_room_bytes():
            return
        else:
            plan.route = iter(missing)
            for frame in frames if missing else ():
                self._hold(frame, plan)
        self._plans.append(plan)
        self._walk()

    def _hold(self, frame: Frame, plan: PrefetchPlan) -> None:
        """Keep a frame of an expected read in memory, if it is there and used: fetching it again is one more
        request."""
        size_bytes = frame.bytes + FRAME_BYTES
        if frame.number in self.ledger or size_bytes > self._guess_room_bytes():
            return
        if self._cache.expect(frame.number):
            self.ledger.expect(frame.number, Kind.GUESSED, size_bytes, plan.stream)

    def _cancel(self, frames: Iterable[int]) -> None:
        """Drop the requests for these frames that are still queued."""
        queued = [frame for frame in frames if frame in self._under_way]
        for key in self._fetcher.scheduler.cancel(queued) if queued else ():
            if isinstance(key, int):
                self._arrive(key)
                self.ledger.settle(key)

    def _give_up(self, frames: Iterable[int]) -> None:
        """Stop expecting these frames, and let the cache evict them first."""
        for frame in frames:
            self.ledger.settle(frame)
            self._cache.give_up_first(frame)

    def _arrive(self, frame: int) -> None:
        self._under_way_bytes -= self._under_way.pop(frame, 0)
