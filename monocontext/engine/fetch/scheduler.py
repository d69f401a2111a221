"""Plan ranged requests for the stored items that callers want, and decide which one starts next.

Nearby ranges in one object become one request, and long ranges are split into parts that arrive in parallel. Two
ranges a little apart are cheaper as one: a request costs as much as the transfer of about 100 KB.

Events go in, actions come out; the owner holds the lock, does the I/O and runs the threads.

Invariants:

- single flight: at any time a key is in at most one fetch that is queued or running
- a fetch starts only if fewer run than `pressure` allows and its bytes fit the budget, which is reserved before it
  starts. One fetch is always allowed, so a text with frames larger than the budget can still be read
- fetches start by priority, then in order of arrival. A caller that wants a fetch queued at a lower priority raises it,
  so demand never waits for speculation
- a fetch without waiters is dropped if it has not started
- speculation has half of the connections and half of the budget; the other half is free for demand. A fetch that demand
  adopts counts as demand, and as speculation again if demand leaves before it has started
- a queued speculative fetch is divided when demand wants a part of it, so demand waits for nothing else
- a fetch that no thread carries out is left to the callers that want it. Each call holds a token, a lock in a `with`,
  which is free once the call has ended in any way. A fetch that an ended call was carrying out is left to the other
  callers; a fetch that no living call wants is withdrawn
- a fetch is active while it is queued, left to callers, or running. One that is neither done nor active will never be
  done: its waiting callers ask again
- a fetch may have a second attempt, whose connection and bytes count as well. The fetch keeps its keys until one
  attempt delivers them or none is left
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from enum import IntEnum
from itertools import count
from threading import Lock
from typing import Any

from monocontext.engine.fetch.congestion import Pressure
from monocontext.engine.stats import PrefetchStats
from monocontext.records import NamedTuple, dataclass

# -- requests ----------------------------------------------------------------------------------------------------------

GAP_BYTES = 128 << 10
"""Read over a gap of up to this size rather than send two requests.

A parallel request costs no round trip, so the gap saves only the request itself: 0.11 ms of the client's CPU, as much
as it takes to receive 800 KiB. The bytes in the gap delay the data after them by 1.5 ms at 90 MB/s, a twentieth of the
30 ms that a request takes near the store.
"""
WIDER = (1, 2, 4, 8)
"""Factors by which gaps grow while more requests are needed than may run at once: each one less saves a round trip.

Simulated for a third of 2,000 frames with round trips of 150 ms: 1.3 s with gaps of 128 KiB, 0.8 with 256 and 0.5 with
1 MiB, for 1.2, 1.8 and 2.8 times the bytes. Where one wave carries everything, wider gaps gain nothing
(docs/decisions/006).
"""
FILTER_GAP_BYTES = 4 << 10
"""The gap for blocks of a filter: they are small and far apart, and a whole filter is a fifth of the text."""
PART_BYTES = 1 << 20
MAX_PART_BYTES = 8 << 20
"""8 MiB take ~90 ms at the 90 MB/s of one connection, three times the first-byte latency near the store."""
FAN_OUT = 16
"""Requests into which a large read is split."""


class FetchItem(NamedTuple):
    """A stored byte range that a caller wants: a frame, an index page, a block of a filter."""

    key: Hashable
    """Name in the cache. A frame: its number; an index page: -1 - its number; a block: its object and number."""
    object: str
    offset: int
    stored_bytes: int
    bytes: int
    """Size in memory once it is decoded."""
    decode: Callable[[memoryview], Any]
    """Decodes the stored bytes into the value for the caller and the cache; raises `DamagedData`."""
    etag: str | None = None
    """The recorded version of the object, if any."""
    gap_bytes: int = GAP_BYTES
    is_raw: bool = False
    """Whether `decode` returns a whole body unchanged, and so allocates nothing."""
    begin: Callable[[memoryview], Callable[[], Any]] | None = None
    """`decode` of a large item in two steps: the first allocates, the second fills and may run in any thread."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The items that a walk (see `frame_table`) needs before it goes on: index pages, blocks of filters."""

    items: tuple[FetchItem, ...]
    some_will_do: bool = False
    """Whether some of them may be enough: the walk looks again whenever one has come."""


class RangeRequest:
    """One ranged GET and the items that it covers. Immutable."""

    __slots__ = ("is_in_place", "items", "memory_bytes", "object", "start", "stop", "stored_bytes")

    def __init__(self, object: str, start: int, stop: int, items: tuple[FetchItem, ...]):
        self.object = object
        self.start = start
        self.stop = stop
        self.items = items
        self.stored_bytes = stop - start
        self.is_in_place = len(items) == 1 and items[0].is_raw
        """Whether the body is one raw frame: it is checked and kept where it was received."""
        decoded_bytes = 0 if self.is_in_place else sum([item.bytes for item in items])
        self.memory_bytes = self.stored_bytes + decoded_bytes
        """An upper bound of the memory of a running request: the body and its decoded values."""


def part_bytes(total_bytes: int) -> int:
    """The size of each request when `total_bytes` are wanted at once.

    It is a sixteenth of the whole, at least 1 MiB and at most 8 MiB: small reads are spread over connections, large
    ones do not become a storm of requests.
    """
    return min(max(total_bytes // FAN_OUT, PART_BYTES), MAX_PART_BYTES)


def coalesce(
    items: Iterable[FetchItem], most_bytes: int = MAX_PART_BYTES, at_once: int | None = None
) -> list[RangeRequest]:
    """Requests that cover the items, each item whole in one request, in the order in which `items` first names them.

    At most 2 * ceil(total / part_bytes(total)) requests for adjacent items (items are not cut, so a part may be half
    full), plus one for each object and each gap above the items' `gap_bytes`. No request is larger than `most_bytes`
    unless a single item is. If that makes more than `at_once` requests, gaps of up to eight times the size are read
    over.
    """
    wanted = list(items)
    rank = {id(item): i for i, item in enumerate(wanted)}
    ordered = sorted(wanted, key=lambda item: (item.object, item.offset))
    limit = min(part_bytes(sum(item.stored_bytes for item in ordered)), most_bytes)
    groups: list[list[FetchItem]] = []
    for factor in WIDER:
        groups = _group(ordered, limit, factor)
        if at_once is None or len(groups) <= at_once:
            break
    groups.sort(key=lambda group: min(rank[id(item)] for item in group))
    return [
        RangeRequest(group[0].object, group[0].offset, max(_stop(item) for item in group), tuple(group))
        for group in groups
    ]


def _group(ordered: Iterable[FetchItem], most_bytes: int, gap_factor: int) -> list[list[FetchItem]]:
    """The items, in order of their offsets, as one list for each request."""
    groups: list[list[FetchItem]] = []
    for item in ordered:
        group = groups[-1] if groups else None
        if (
            group
            and group[-1].object == item.object
            and item.offset - _stop(group[-1]) <= item.gap_bytes * gap_factor
            and _stop(item) - group[0].offset <= most_bytes
        ):
            group.append(item)
        else:
            groups.append([item])
    return groups


def _stop(item: FetchItem) -> int:
    return item.offset + item.stored_bytes


# -- their schedule ----------------------------------------------------------------------------------------------------


class Priority(IntEnum):
    """The order in which fetches start: the lowest first."""

    DEMAND = 0
    LITERAL_HINT = 1
    COMPUTED_HINT = 2
    SEQUENTIAL = 3
    WARM_UP = 4


_SECOND_ATTEMPT = -1
"""The priority of second attempts, which start first: a caller has waited for long."""

Token = Lock
"""The lease of one call, held while the call lasts."""


class Fetch:
    """One request in progress. The thread that carries it out sets `values` or `error`."""

    __slots__ = (
        "ahead",
        "attempts",
        "claimed_by",
        "done",
        "error",
        "forgotten",
        "home",
        "in_share",
        "priority",
        "request",
        "sent_ahead",
        "started",
        "values",
        "waiters",
        "wanted_by",
    )

    def __init__(self, request: RangeRequest, priority: Priority, home: Scheduler):
        self.home = home
        """The scheduler that started it; a reader that resets its state gets a new one."""
        self.forgotten = False
        """Whether it is no longer active."""
        self.request = request
        self.priority = priority
        self.waiters = 0
        """The number of callers that want it, and one more if speculation does."""
        self.ahead: Priority | None = None
        """Its priority for speculation; None if speculation does not want it."""
        self.in_share = False
        """Whether it counts as speculation."""
        self.sent_ahead = False
        """Whether it had no waiters when it was sent."""
        self.started = False
        self.attempts = 0
        """The number that are running: 1, or 2 where it is hedged. The slower one may outlive the fetch."""
        self.done = False
        """Whether it has `values` or an `error`."""
        self.values: dict[Hashable, Any] | None = None
        self.error: BaseException | None = None
        self.claimed_by: Token | None = None
        """The token of the call that carries it out itself."""
        self.wanted_by: list[Token] = []
        """The tokens of the calls that may carry it out, if it is left to callers."""

    @property
    def speculative(self) -> bool:
        """Whether only speculation wants it."""
        return self.ahead is not None and self.waiters == 1


class Scheduler:
    """Queue, reservations and single flight of one reader. Its owner holds the lock."""

    def __init__(
        self, max_running: int, budget_bytes: int, stats: PrefetchStats | None = None, pressure: Pressure | None = None
    ):
        self.pressure = pressure or Pressure(max_running)
        """The limit of concurrent requests, lowered while the store throttles."""
        self._budget_bytes = budget_bytes
        self._most_bytes = max(budget_bytes // FAN_OUT, PART_BYTES)  # a small budget still has many under way
        self._by_key: dict[Hashable, Fetch] = {}
        self.queue: list[tuple[int, int, Fetch]] = []
        """A heap of the fetches that may start, by priority and arrival; some entries may be obsolete."""
        self.left: dict[Fetch, None] = {}
        """The fetches that are left to callers."""
        self._order = count()
        self._stats = stats or PrefetchStats()
        self.running = 0
        self.reserved_bytes = 0
        self.ahead_running = 0
        """The number of running requests that count as speculation."""
        self.ahead_bytes = 0

    def __contains__(self, key: Hashable) -> bool:
        """Whether a fetch of this key is active."""
        return key in self._by_key

    def want(self, items: Iterable[FetchItem], priority: Priority, token: Token | None = None) -> dict[Hashable, Fetch]:
        """Join or create the fetches for some items, and return them by key.

        A caller that does not await one to the end must `release` it. The call that holds the token carries out those
        that are left to callers.
        """
        results: dict[Hashable, Fetch] = {}
        missing = []
        for item in items:
            fetch = self._by_key.get(item.key)
            if fetch is None or (priority == Priority.DEMAND and self._split_off(fetch, item)):
                missing.append(item)
            else:
                results[item.key] = fetch
        for fetch in dict.fromkeys(results.values()):
            if fetch.speculative and fetch.started and priority == Priority.DEMAND:
                self._stats.adopted += 1
            fetch.waiters += 1
            if priority < fetch.priority:
                fetch.priority = priority
                if priority == Priority.DEMAND:
                    self._leave_share(fetch)
                if not fetch.started:
                    self._push(fetch, priority)  # `start` skips the old entry
        for request in coalesce(missing, self._most_bytes, self.pressure.limit):
            fetch = Fetch(request, priority, self)
            fetch.waiters = 1
            for item in request.items:
                self._by_key[item.key] = results[item.key] = fetch
            self._push(fetch, priority)
        if token:
            for fetch in dict.fromkeys(results.values()):
                fetch.wanted_by.append(token)
        return results

    def speculate(self, items: Iterable[FetchItem], priority: Priority) -> None:
        """Fetch items that may be wanted later and are not in progress; `cancel` those that are no longer expected."""
        fresh = [item for item in items if item.key not in self._by_key]
        for fetch in self.want(fresh, priority).values():
            fetch.ahead = priority

    def cancel(self, keys: Iterable[Hashable]) -> list[Hashable]:
        """Drop queued requests that only speculation wants, if it expects none of their keys any longer.

        `keys` are no longer expected. Returns the keys of dropped requests.
        """
        unexpected = set(keys)
        dropped: list[Hashable] = []
        for fetch in dict.fromkeys(fetch for key in unexpected if (fetch := self._by_key.get(key))):
            own = [item.key for item in fetch.request.items]
            if fetch.speculative and not fetch.started and unexpected.issuperset(own):
                fetch.ahead = None
                fetch.waiters = 0
                self._forget(fetch)
                self._stats.cancelled += 1
                dropped += own
        return dropped

    def start(self) -> list[Fetch]:
        """Start the first and second attempts that may start now: reserve their bytes, and return their fetches."""
        started = []
        while self.queue and self.running < self.pressure.limit:
            priority, _, fetch = self.queue[0]
            if priority == _SECOND_ATTEMPT:
                is_stale = fetch.done or fetch.waiters == 0
            else:
                is_stale = fetch.started or fetch.waiters == 0 or priority != fetch.priority
            if is_stale:
                heapq.heappop(self.queue)
                continue
            size = fetch.request.memory_bytes
            if self.running and self.reserved_bytes + size > self._budget_bytes:
                break
            if priority > Priority.DEMAND and not self._has_share(size):
                break  # every later entry is speculation too
            heapq.heappop(self.queue)
            self._reserve(fetch)
            started.append(fetch)
        return started

    def repeat(self, fetch: Fetch) -> None:
        """Queue a second attempt of a running fetch. It starts once a connection and the budget allow."""
        self._push(fetch, _SECOND_ATTEMPT)

    def finish(self, fetch: Fetch) -> None:
        """Free the bytes of an attempt that has succeeded or failed. Its keys may be fetched again, unless the fetch is
        not done and another attempt is running."""
        self._free(fetch)
        if fetch.done or not fetch.attempts:
            self._forget(fetch)

    def leave(self, fetch: Fetch) -> None:
        """Leave a started attempt to callers, since no thread carries it out."""
        self._free(fetch)
        if not fetch.attempts:
            fetch.started = False
            self.left[fetch] = None

    def run_in_caller(self, fetch: Fetch, token: Token) -> None:
        """Let the call that holds the token carry out an attempt that has just started."""
        fetch.claimed_by = token
        self.left[fetch] = None

    def may_claim(self, fetch: Fetch) -> bool:
        """Whether a caller may carry out a fetch now, since it is left to callers and no other call carries it out."""
        if fetch not in self.left or (fetch.claimed_by is not None and fetch.claimed_by.locked()):
            return False
        if fetch.claimed_by is not None or not self.running:
            return True  # its bytes are reserved already
        size = fetch.request.memory_bytes
        return self.running < self.pressure.limit and self.reserved_bytes + size <= self._budget_bytes

    def claim(self, fetch: Fetch, token: Token) -> None:
        """Let the call that holds the token carry out a fetch that was left to callers."""
        if fetch.claimed_by is None:
            self._reserve(fetch)
        fetch.claimed_by = token

    def unclaim(self, fetch: Fetch) -> None:
        """Leave a fetch to the other callers, since the call that carried it out was interrupted."""
        if fetch.home is self and fetch.claimed_by is not None:
            self._free(fetch)
            fetch.started, fetch.claimed_by = False, None

    def withdraw_abandoned(self) -> list[Fetch]:
        """Withdraw the fetches that were left to calls which have ended without carrying them out; return them."""
        withdrawn = []
        for fetch in list(self.left):
            if fetch.claimed_by is not None and not fetch.claimed_by.locked():
                self.unclaim(fetch)
            fetch.wanted_by = [token for token in fetch.wanted_by if token.locked()]
            if not fetch.started and not fetch.wanted_by:
                self._forget(fetch)
                withdrawn.append(fetch)
        return withdrawn

    def emptied(self) -> Scheduler:
        """A scheduler with the same limits and no fetch; callers that wait for earlier fetches ask it again."""
        return Scheduler(self.pressure.maximum, self._budget_bytes, self._stats, self.pressure)

    def restart_after_fork(self) -> list[Fetch]:
        """In the child of a fork: drop running speculation, and return the other running fetches, to be sent again."""
        running = [fetch for fetch in dict.fromkeys(self._by_key.values()) if fetch.started]
        self.running = self.reserved_bytes = self.ahead_running = self.ahead_bytes = 0
        wanted = [fetch for fetch in running if not fetch.speculative and fetch not in self.left]
        for fetch in running:
            fetch.attempts, fetch.in_share = 0, False
            if fetch.speculative:
                self._forget(fetch)
        for fetch in self.left:  # tokens of other threads are held for ever here
            fetch.started, fetch.claimed_by, fetch.wanted_by = False, None, []
        for fetch in wanted:
            self._reserve(fetch)
        return wanted

    def release(self, fetches: Iterable[Fetch]) -> None:
        """Stop waiting for these fetches; those without waiters that have not started are dropped."""
        for fetch in dict.fromkeys(fetches):
            if fetch.home is not self:
                continue
            fetch.waiters -= 1
            if fetch.started:
                continue
            if fetch.waiters == 0:
                self._forget(fetch)
            elif fetch.speculative and fetch.ahead is not None and fetch.priority < fetch.ahead:
                fetch.priority = fetch.ahead
                self._push(fetch, fetch.priority)

    def unwanted(self) -> list[Fetch]:
        """The running fetches that neither a caller nor speculation wants."""
        return [fetch for fetch in dict.fromkeys(self._by_key.values()) if fetch.started and not fetch.waiters]

    def drop_queued(self) -> list[Fetch]:
        """Drop all fetches that have not started, and return those with waiting callers."""
        queued = dict.fromkeys([*(fetch for _, _, fetch in self.queue), *self.left])
        dropped = [fetch for fetch in queued if not fetch.started and fetch.waiters]
        self.queue.clear()
        for fetch in dropped:
            self._forget(fetch)
        return dropped

    def _split_off(self, fetch: Fetch, item: FetchItem) -> bool:
        """Take an item that demand wants out of a queued speculative request of several; the others stay queued.
        Returns whether that was possible."""
        if fetch.started or not fetch.speculative or len(fetch.request.items) == 1:
            return False
        assert fetch.ahead is not None
        fetch.waiters = 0
        self._forget(fetch)
        self.speculate([other for other in fetch.request.items if other.key != item.key], fetch.ahead)
        return True

    def _has_share(self, size_bytes: int) -> bool:
        """Whether speculation may use one more connection and this many bytes."""
        if self.pressure.is_throttled:
            return not self.running  # the few requests that the store takes are for demand
        if not self.ahead_running:
            return True
        fits = self.ahead_bytes + size_bytes <= self._budget_bytes // 2
        return fits and self.ahead_running < self.pressure.limit // 2

    def _leave_share(self, fetch: Fetch) -> None:
        if fetch.in_share:
            fetch.in_share = False
            self.ahead_running -= 1
            self.ahead_bytes -= fetch.request.memory_bytes

    def _reserve(self, fetch: Fetch) -> None:
        if not fetch.started and fetch.priority > Priority.DEMAND:
            fetch.in_share = fetch.sent_ahead = True
            self.ahead_running += 1
            self.ahead_bytes += fetch.request.memory_bytes
        fetch.started = True
        fetch.attempts += 1
        self.running += 1
        self.reserved_bytes += fetch.request.memory_bytes

    def _free(self, fetch: Fetch) -> None:
        self._leave_share(fetch)
        fetch.attempts -= 1
        self.running -= 1
        self.reserved_bytes -= fetch.request.memory_bytes

    def _push(self, fetch: Fetch, priority: int) -> None:
        heapq.heappush(self.queue, (priority, next(self._order), fetch))

    def _forget(self, fetch: Fetch) -> None:
        fetch.forgotten = True
        self.left.pop(fetch, None)
        for item in fetch.request.items:
            if self._by_key.get(item.key) is fetch:
                del self._by_key[item.key]

    def __repr__(self) -> str:
        queued = len({fetch for _, _, fetch in self.queue if not fetch.started and fetch.waiters})
        reserved = f"{self.reserved_bytes:,}/{self._budget_bytes:,} bytes reserved"
        ahead = f" ({self.ahead_running} ahead)" if self.ahead_running else ""
        pressure = self.pressure
        throttled = f", throttled to {pressure.limit} of {pressure.maximum}" if pressure.is_throttled else ""
        return f"<Scheduler {self.running} running{ahead}, {queued} queued, {reserved}{throttled}>"
