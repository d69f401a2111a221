"""Read ahead for one reader: expected reads become fetches, within a budget, behind every read that a caller waits for.

Reads that code announces come as routes (`routes`), predictions from earlier reads come from `prefetch.streams`. Both
are plans here, and are walked a little at a time: when a model begins to think, when a fetch has ended, when a
prefetched frame is used. So little is queued at any time, and there is little to cancel.

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
from monocontext.engine.fetch.requests import FetchItem, Missing
from monocontext.engine.fetch.scheduler import Fetch, Priority
from monocontext.engine.frame import FRAME_BYTES, FrameText
from monocontext.engine.frame_table import Frames, frame_item
from monocontext.engine.prefetch import HitWindows, Kind, Ledger, Prefetch, Read, Streams, ThinkTime
from monocontext.engine.prefetch.hits import AFTER, BEFORE, names_in, rarest_in
from monocontext.errors import MonocontextError
from monocontext.format.index import Frame
from monocontext.records import KW_ONLY, dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.engine.prefetch.routes import Routes

THINK_READS = 2
"""Reads ahead of each stream while a model thinks: with seconds per read the next two are there in time."""
BATCH_BYTES = 4 << 20
"""Bytes requested at a time for a long plan: four requests of 1 MiB rather than sixteen frames one by one."""
NAMES = 4
"""Names that are looked up before code has searched for any of them, and once more for each that it searches for: they
take some five requests each."""
NEEDLES = 2
"""The most needles by which code has found something. The other places of these needles are looked up, in rows that are
mostly in memory."""
NAMES_BYTES = 64 << 10
"""Bytes of filter rows that may be fetched for names, on top of a quarter of the bytes that callers used. A row of 10
GB is 5 KB long."""
LEAST_UNDER_WAY_BYTES = 16 << 20
"""The most bytes in flight: what 100 MB/s transfer in a round trip of 150 ms; on a faster link, half a second of it."""


@dataclass(slots=True, eq=False)
class PrefetchPlan:
    """A route that is being walked ahead of the reader."""

    route: Iterator[Frame | Missing]
    priority: Priority
    kind: Kind
    _: KW_ONLY
    stream: int | None = None
    skips_used: bool = False
    """Frames that this code has read already are passed over, in memory or not: a loop does not come back."""
    is_scan: bool = False
    """It serves one pass, and is of no use once that has ended."""
    free_bytes: int | None = None
    """For a plan that the code may abandon at any step: the bytes that it may still fetch, however few were used."""
    missing: tuple[Hashable, ...] = ()
    """Keys of the items that must arrive before the route continues."""
    some_will_do: bool = False
    """Whether the route continues with a part of these."""
    next: Frame | Missing | None = None


class ReadAhead(Listener):
    """The read-ahead of one reader. Safe for use by many threads."""

    def __init__(
        self, prefetch: Prefetch, routes: Routes, fetcher: Fetcher, *, frames: int, text_bytes: int, has_tail: bool
    ):
        self.prefetch = prefetch
        """The mode of read-ahead; "off" where nothing can be read ahead."""
        self.follows_code = prefetch in ("all", "code")
        """Whether reads that code announces are prefetched."""
        self.follows_reads = prefetch in ("all", "history")
        self.routes = routes
        self.fresh = 0
        """Frames that were looked at for the first time since they were fetched."""
        self.late = 0
        """The frames among these that a caller waited for."""
        self.used_bytes = 0
        """Text of the frames that were looked at, in whole frames, each once a fetch."""
        self._fetcher = fetcher
        self._cache = fetcher.cache
        self._frames = frames
        self._text_bytes = text_bytes
        self._has_tail = has_tail
        self._characters_per_byte = routes.characters / max(text_bytes, 1)
        self.reset_state()
        self.think = ThinkTime()

    def reset_state(self) -> None:
        """Only `think` stays: a call of a model goes on."""
        self.ledger = Ledger(self._cache.capacity_bytes, self._text_bytes + FRAME_BYTES * self._frames)
        self._fetcher.expected = self.ledger.kinds
        self.streams = Streams(self.routes.characters, self._frames)
        self.hits = HitWindows(self.routes.characters)
        self._plans: list[PrefetchPlan] = []
        self._under_way: dict[int, int] = {}
        self._under_way_bytes = 0
        self._used: set[int] = set()
        self._hoped: dict[int, int] = {}
        self._hoped_bytes = 0
        self._passages: list[tuple[int, int, int]] = []
        self._needle = ""
        self._found: dict[str, None] = {}
        self._names: set[str] = set()
        self._names_left = NAMES
        self._names_bytes = 0
        self._allowance_bytes = 0
        self._is_warm = False

    # -- what a model does: each within a change ---------------------------------------------------------------------

    def begin_thinking(self) -> None:
        """A model is at work: time to read ahead. Calls may overlap; each has its `end_thinking`."""
        now = self._fetcher.workers.now()
        if not self.think.begin(now) or self.prefetch == "off":
            return
        bytes_per_second = self._fetcher.link.bandwidth.bytes_per_second
        self._allowance_bytes = int(bytes_per_second * self.think.expected_seconds)
        if self.follows_reads:
            self._warm_up()
            if self._found:  # a search has, since the model thought last
                self._look_up_names()
                for start, stop in self.hits.windows():
                    self._add(self.routes.whole(start, stop), Priority.SEQUENTIAL, Kind.GUESSED)
            for ahead in self.streams.think(THINK_READS, self._room):
                self._follow(ahead.start, ahead.stop, ahead.in_frames, ahead.stream)
        self._walk()

    def _look_up_names(self) -> None:
        """Look around the last hits for names that the model may search for next."""
        for needle in list(self._found)[:NEEDLES]:  # the first place was read; the other places are looked up next
            for word in filter(None, dict.fromkeys((needle, rarest_in(needle)))):
                self._look_up_name(word)
        self._found.clear()
        passages, self._passages = self._passages, []
        for start, stop, number in passages:
            text = self._cache.peek(number)
            if not isinstance(text, FrameText) or not self._names_left:
                continue
            first = text.frame.start
            passage = text.slice(max(start - first, 0), min(stop - first, text.frame.characters))
            for name in names_in(passage, text.data):
                cost = self.routes.name_bytes(name)
                if self._names_left and self._names_bytes + cost <= NAMES_BYTES + self.used_bytes // 4:
                    self._names_left -= 1
                    self._names_bytes += cost
                    self._names.add(name)
                    self._look_up_name(name)

    def _look_up_name(self, name: str) -> None:
        plan = PrefetchPlan(self.routes.name(name), Priority.SEQUENTIAL, Kind.GUESSED)
        plan.free_bytes = 0
        self._plans.append(plan)

    def end_thinking(self) -> bool:
        """The model is done, its code runs: guesses that have not started are dropped. Whether it was the last."""
        if not self.think.end(self._fetcher.workers.now()):
            return False
        self._cancel(self.ledger.frames(Kind.GUESSED))
        self._plans = [plan for plan in self._plans if plan.kind is not Kind.GUESSED]
        return True

    def turn(self) -> None:
        """A new reply of the model begins: reads that earlier code announced and did not do are no longer expected."""
        self._plans = [plan for plan in self._plans if plan.kind is not Kind.KNOWN]
        if self.ledger.outstanding_bytes[Kind.KNOWN]:
            left = self.ledger.frames(Kind.KNOWN)
            self._cancel(left)
            self._give_up(left)
        self._used.clear()
        if self.follows_reads:
            self._warm_up()
            self._walk()

    def expect(self, plans: Iterable[PrefetchPlan], *, runs_now: bool = False) -> None:
        """Prefetch what code will read. `runs_now`: before the reads of all other code."""
        if self.prefetch == "off":
            return
        added = list(plans)
        if runs_now:
            self._used.clear()
        self._plans = added + self._plans if runs_now else self._plans + added
        self._walk()

    def look(self) -> None:
        """Request late predicted reads once more while no caller waits. Cheap."""
        hedging = self._fetcher.hedging
        if hedging is not None:
            with self._fetcher.lock:
                due = hedging.next_due()
            if due is not None and due <= self._fetcher.workers.now():
                self._fetcher.hedge()

    # -- what a reader does ----------------------------------------------------------------------------------------

    def read(self, read: Read, late: int) -> None:
        """Within a change: a caller has read data that was missing or prefetched. `late`: the count of late frames
        before that; if it has grown, the caller waited."""
        if not self.follows_reads:
            return
        for frame in range(read.first, read.last + 1):
            if self.ledger.settle(frame):  # fetched once more, after it was used and before the read had ended
                self._cache.get(frame)
        stale, streams = self.ledger.read()
        if stale:
            self._give_up(stale)
            self.streams.unused(streams)
        for ahead in self.streams.read(read, self.late != late, self._room):
            self._follow(ahead.start, ahead.stop, ahead.in_frames, ahead.stream)
        self._walk()

    def before_read(self, start: int, stop: int, frame: int) -> None:
        """A caller is about to wait for these characters of a frame. What it may read after them can be requested with
        it, unless this frame itself came in that way."""
        if self.follows_reads and (places := self.streams.halves(start)) and frame not in self._fetcher.scheduler:
            self._fetcher.act(partial(self._read_after, places, stop - start))

    def _read_after(self, places: Iterable[int], width: int) -> None:
        for place in places:
            first, last = max(place, 0), min(place + width, self.routes.characters)
            plan = PrefetchPlan(self.routes.whole(first, last), Priority.SEQUENTIAL, Kind.GUESSED)
            plan.free_bytes = 0
            self._plans.append(plan)
        self._walk()

    def end_scan(self) -> None:
        """A pass has ended or was abandoned: its prefetched data stays, the rest is not fetched."""
        if self._plans:
            self._fetcher.act(self._end_scan)

    def _end_scan(self) -> None:
        for plan in self._plans:
            if plan.is_scan:
                self._plans.remove(plan)
                return

    def hit(self, character: int, frame: int) -> None:
        """Within a change: a search has found something here, and a window around it is likely read next."""
        if self.hits.found(character):
            self._cache.hold(frame)
            self._passages.append((character - BEFORE, character + AFTER, frame))
            self._found[self._needle] = None

    def searched(self, needle: str) -> None:
        """A search for this has begun."""
        self._needle = needle
        if self._names:
            found = {name for name in list(self._names) if name in needle}
            self._names -= found
            self._names_left += NAMES * len(found)

    # -- what requests do ------------------------------------------------------------------------------------------

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
        self.late += text.late
        self.used_bytes += text.frame.bytes
        number = text.frame.number
        if self._plans or self.follows_code:
            self._used.add(number)
        if text.ahead:
            self._cache.get(number)
            if self.ledger.settle(number):
                self._walk()
        if number in self._hoped:
            self._hoped_bytes -= self._hoped.pop(number)
            self._walk()

    def forked(self) -> None:
        self.think.forget()
        for number in [number for number in self._under_way if number not in self._fetcher.scheduler]:
            self._arrive(number)
            self.ledger.settle(number)

    # -- walking ---------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Go on as far as budgets allow, the most certain first."""
        if not self._plans:
            return
        most = self._under_way_limit()
        wanted: dict[Priority, list[FetchItem]] = {}
        for plan in sorted(self._plans, key=lambda plan: plan.priority):
            # A loop under way does not hold up a single slice that comes after it.
            limit = 2 * most if plan.priority <= Priority.LITERAL_HINT else most
            if self._under_way_bytes > limit * 3 // 4 or self._waits_for_room(plan):
                continue
            try:
                self._walk_one(plan, limit, wanted.setdefault(plan.priority, []))
            except MonocontextError:  # the plan ends: a caller that reads there gets the error
                if plan in self._plans:
                    self._plans.remove(plan)
        for priority, items in wanted.items():
            if items:
                self._fetcher.scheduler.speculate(items, priority)

    def _walk_one(self, plan: PrefetchPlan, limit: int, wanted: list[FetchItem]) -> None:
        scheduler = self._fetcher.scheduler
        while True:
            if plan.missing:
                left = sum(key in scheduler for key in plan.missing)
                if left == len(plan.missing) or (left and not plan.some_will_do):
                    return
                plan.missing = ()
            step = plan.next = plan.next or next(plan.route, None)
            if step is None:
                self._plans.remove(plan)
                return
            if isinstance(step, Missing):
                missing = [item for item in step.items if item.key not in self._cache]
                wanted += [item for item in missing if item.key not in scheduler]
                plan.missing = tuple(item.key for item in missing)
                plan.some_will_do = step.some_will_do
                plan.next = None
                if missing:
                    return
            elif plan.free_bytes is not None and not self._may_go_on(plan, step):
                return
            elif not self._is_cached(step, plan):
                size = step.bytes + FRAME_BYTES
                if size <= self.ledger.share_bytes[plan.kind]:
                    if self._under_way_bytes + size > limit or not self._reserve(step, size, plan):
                        return
                    wanted.append(frame_item(step))
                plan.next = None
            else:
                plan.next = None

    def _may_go_on(self, plan: PrefetchPlan, frame: Frame) -> bool:
        """Whether a plan that may be abandoned is not too far ahead.

        All such plans together may have fetched, unused, no more than callers have used, plus the little with which
        each may begin.
        """
        number, size = frame.number, frame.bytes
        found = self._cache.peek(number)
        if number in self._hoped or number in self._used or (isinstance(found, FrameText) and found.used):
            return True
        assert plan.free_bytes is not None
        plan.free_bytes -= size
        if plan.free_bytes < 0 and self._hoped_bytes + size > self.used_bytes:
            plan.free_bytes += size
            return False
        self._hoped[number] = size
        self._hoped_bytes += size
        return True

    def _is_cached(self, frame: Frame, plan: PrefetchPlan) -> bool:
        number = frame.number
        if number in self.ledger.kinds or number in self._cache or number in self._fetcher.scheduler:
            return True
        return plan.skips_used and number in self._used

    def _reserve(self, frame: Frame, size_bytes: int, plan: PrefetchPlan) -> bool:
        """Expect a frame, if there is room for it."""
        is_guess = plan.kind is Kind.GUESSED and self.think.is_thinking
        if is_guess and size_bytes > self._allowance_bytes:
            return False
        if not self.ledger.reserve(frame.number, plan.kind, size_bytes, plan.stream, self._kept_bytes(plan)):
            return False
        self._under_way[frame.number] = size_bytes
        self._under_way_bytes += size_bytes
        if is_guess:
            self._allowance_bytes -= size_bytes
        return True

    def _waits_for_room(self, plan: PrefetchPlan) -> bool:
        """Whether the plan could now advance by one frame only, and by many a little later."""
        if plan.kind is Kind.GUESSED:
            return self._room_bytes(plan.kind) <= 0
        if not self._under_way:
            return False
        room = self._room_bytes(plan.kind) - self._kept_bytes(plan)
        return room < min(BATCH_BYTES, self.ledger.share_bytes[plan.kind] // 4)

    def _kept_bytes(self, plan: PrefetchPlan) -> int:
        """Where a text is larger than the cache, loops leave an eighth of their share to single slices after them."""
        share = self.ledger.share_bytes[plan.kind]
        is_loop = plan.kind is Kind.KNOWN and plan.priority > Priority.LITERAL_HINT
        return share // 8 if is_loop and share < self._cache.capacity_bytes else 0

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
        bytes_per_second = self._fetcher.link.bandwidth.bytes_per_second
        return min(max(LEAST_UNDER_WAY_BYTES, int(bytes_per_second / 2)), self._fetcher.window_bytes // 2)

    # -- single steps ----------------------------------------------------------------------------------------------

    def _warm_up(self) -> None:
        """The first and the last frame: 68 % of first blocks look at the head, many at the tail. Where the root has the
        tail, its frame may never be needed; after the head most go on."""
        if not self._is_warm and self._frames:
            self._is_warm = True
            numbers = (0,) if self._has_tail else (0, self._frames - 1)
            self._add(self.routes.frames(dict.fromkeys(numbers)), Priority.WARM_UP, Kind.GUESSED)

    def _follow(self, start: int, stop: int, in_frames: bool, stream: int) -> None:
        """Fetch the expected reads of a stream, all or nothing: a part would cost one more request."""
        route = self.routes.frames(range(start, stop)) if in_frames else self.routes.whole(start, stop)
        plan = PrefetchPlan(route, Priority.SEQUENTIAL, Kind.GUESSED, stream=stream)
        steps = list(route)
        missing = [step for step in steps if isinstance(step, Frame) and not self._is_cached(step, plan)]
        if any(isinstance(step, Missing) for step in steps):  # its index page comes first, in time for the next reads
            plan.route = iter([step for step in steps if isinstance(step, Missing)])
        elif sum(frame.bytes + FRAME_BYTES for frame in missing) > self._room_bytes(Kind.GUESSED):
            return
        else:
            plan.route = iter(missing)
            if missing:
                for frame in steps:
                    assert isinstance(frame, Frame)
                    self._hold(frame, plan)
        self._plans.append(plan)
        self._walk()

    def _hold(self, frame: Frame, plan: PrefetchPlan) -> None:
        """Keep this part of an expected read in memory, to save another request."""
        size = frame.bytes + FRAME_BYTES
        if frame.number in self.ledger or size > self._room_bytes(Kind.GUESSED):
            return
        if self._cache.expect(frame.number):
            self.ledger.expect(frame.number, Kind.GUESSED, size, plan.stream)

    def _add(self, route: Frames, priority: Priority, kind: Kind, stream: int | None = None) -> None:
        self._plans.append(PrefetchPlan(route, priority, kind, stream=stream))

    def _cancel(self, frames: Iterable[int]) -> None:
        """Drop those of these that are queued."""
        queued = [frame for frame in frames if frame in self._under_way]
        for key in self._fetcher.scheduler.cancel(queued) if queued else ():
            if isinstance(key, int):
                self._arrive(key)
                self.ledger.settle(key)

    def _give_up(self, frames: Iterable[int]) -> None:
        for frame in frames:
            self.ledger.settle(frame)
            self._cache.give_up_first(frame)

    def _arrive(self, frame: int) -> None:
        self._under_way_bytes -= self._under_way.pop(frame, 0)
