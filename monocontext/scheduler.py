"""What to fetch next: events in, actions out. Pure: no I/O, no threads, no clock; its owner holds the lock.

Invariants:
- single flight: at any time a key is in at most one fetch that is queued or running;
- a fetch starts only if fewer run than `pressure` allows and its bytes fit the budget, reserved before it starts; one
  fetch is always let through, so that a text with frames larger than the budget can still be read;
- order of start: priority, then order of arrival. A caller that wants what is queued at a lower priority raises it, so
  demand never waits behind speculation;
- a fetch that nobody waits for any more is dropped if it has not started;
- speculation has half of the connections and half of the budget, so demand finds the other half free of it; what demand
  adopts counts as demand from then on, and is speculation again where demand goes before it has started;
- what is queued as speculation is divided when demand wants a part of it: demand waits for what it wants, not for more;
- a fetch may have a second attempt, whose connection and bytes count as well. Its keys are its own until one attempt
  brings them or none is left.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from enum import IntEnum
from itertools import count
from typing import Any

from monocontext.plan import FAN_OUT, PART_BYTES, Need, Request, coalesce
from monocontext.pressure import Pressure
from monocontext.stats import PrefetchStats


class Priority(IntEnum):
    """Lower goes first."""

    DEMAND = 0
    LITERAL_HINT = 1
    COMPUTED_HINT = 2
    SEQUENTIAL = 3
    WARM_UP = 4


_AGAIN = -1
"""Second attempts go before everything else: somebody has waited for long."""


class Fetch:
    """One request on its way. `values` and `error` are filled by whoever carries it out."""

    __slots__ = (
        "ahead",
        "attempts",
        "error",
        "in_share",
        "priority",
        "request",
        "sent_ahead",
        "started",
        "values",
        "waiters",
    )

    def __init__(self, request: Request, priority: Priority):
        self.request = request
        self.priority = priority
        self.waiters = 0
        """Callers, and speculation as one more."""
        self.ahead: Priority | None = None
        """What it is worth to speculation, while that wants it."""
        self.in_share = False
        """Whether it runs in the share of speculation."""
        self.sent_ahead = False
        """Whether nobody waited for it when it was sent."""
        self.started = False
        self.attempts = 0
        """Under way now; 1, or 2 where it is hedged. The slower one may outlive the fetch."""
        self.values: dict[Hashable, Any] | None = None
        self.error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self.values is not None or self.error is not None

    @property
    def speculative(self) -> bool:
        """Nobody but speculation wants it."""
        return self.ahead is not None and self.waiters == 1


class Scheduler:
    """Queue, reservations and single flight of one reader."""

    def __init__(self, max_running: int, budget_bytes: int, stats: PrefetchStats | None = None):
        self.pressure = Pressure(max_running)
        """Of the store, which may want fewer at once."""
        self._budget_bytes = budget_bytes
        self._most_bytes = max(budget_bytes // FAN_OUT, PART_BYTES)  # so that a small budget still has many under way
        self._by_key: dict[Hashable, Fetch] = {}
        self._queue: list[tuple[int, int, Fetch]] = []
        self._order = count()
        self._stats = stats or PrefetchStats()
        self.running = 0
        self.reserved_bytes = 0
        self.ahead_running = 0
        """Of these, in the share of speculation."""
        self.ahead_bytes = 0

    def __contains__(self, key: Hashable) -> bool:
        """Whether it is queued or running."""
        return key in self._by_key

    def want(self, needs: Iterable[Need], priority: Priority) -> dict[Hashable, Fetch]:
        """Join or create the fetches for some needs; `release` those that are not awaited to their end."""
        found: dict[Hashable, Fetch] = {}
        missing = []
        for need in needs:
            fetch = self._by_key.get(need.key)
            if fetch is None or (priority == Priority.DEMAND and self._divide(fetch, need)):
                missing.append(need)
            else:
                found[need.key] = fetch
        joined = {id(fetch): fetch for fetch in found.values()}
        for fetch in joined.values():
            if fetch.speculative and fetch.started and priority == Priority.DEMAND:
                self._stats.adopted += 1
            fetch.waiters += 1
            if priority < fetch.priority:
                fetch.priority = priority
                if priority == Priority.DEMAND:
                    self._leave_share(fetch)
                if not fetch.started:
                    self._push(fetch, priority)  # the old entry is skipped when it comes up
        for request in coalesce(missing, self._most_bytes, self.pressure.limit):
            fetch = Fetch(request, priority)
            fetch.waiters = 1
            for need in request.needs:
                self._by_key[need.key] = found[need.key] = fetch
            self._push(fetch, priority)
        return found

    def speculate(self, needs: Iterable[Need], priority: Priority) -> None:
        """Fetch what may be wanted later, and is not under way; `cancel` what is not expected any more."""
        fresh = [need for need in needs if need.key not in self._by_key]
        for fetch in {id(fetch): fetch for fetch in self.want(fresh, priority).values()}.values():
            fetch.ahead = priority

    def cancel(self, keys: Iterable[Hashable]) -> list[Hashable]:
        """Speculation no longer expects these, so what of it is queued, and nobody else wants, is dropped.

        A request is dropped when none of its keys is expected; the keys of what is dropped are returned.
        """
        gone = set(keys)
        dropped: list[Hashable] = []
        for fetch in {id(fetch): fetch for key in gone if (fetch := self._by_key.get(key))}.values():
            mine = [need.key for need in fetch.request.needs]
            if fetch.speculative and not fetch.started and gone.issuperset(mine):
                fetch.ahead = None
                fetch.waiters = 0
                self._forget(fetch)
                self._stats.cancelled += 1
                dropped += mine
        return dropped

    def demote(self, keys: Iterable[Hashable], priority: Priority) -> None:
        """What is queued of this speculation is worth less now."""
        for fetch in {id(fetch): fetch for key in keys if (fetch := self._by_key.get(key))}.values():
            if fetch.speculative and not fetch.started and fetch.priority < priority:
                fetch.ahead = fetch.priority = priority
                self._push(fetch, priority)

    def start(self) -> list[Fetch]:
        """The fetches that may start now, or start `again`; their bytes are reserved."""
        started = []
        while self._queue and self.running < self.pressure.limit:
            priority, _, fetch = self._queue[0]
            if priority == _AGAIN:
                is_stale = fetch.done or fetch.waiters == 0
            else:
                is_stale = fetch.started or fetch.waiters == 0 or priority != fetch.priority
            if is_stale:
                heapq.heappop(self._queue)
                continue
            size = fetch.request.memory_bytes
            if self.running and self.reserved_bytes + size > self._budget_bytes:
                break
            if priority > Priority.DEMAND and not self._has_share(size):
                break  # all that follows is speculation too
            heapq.heappop(self._queue)
            self._count(fetch)
            started.append(fetch)
        return started

    def again(self, fetch: Fetch) -> None:
        """Let a fetch that is under way have a second attempt, as soon as a connection and the budget allow."""
        self._push(fetch, _AGAIN)

    def finish(self, fetch: Fetch) -> None:
        """An attempt has ended, well or badly: its bytes are free. Its keys may be fetched again, unless the fetch is
        not done and another attempt is under way."""
        self._leave_share(fetch)
        fetch.attempts -= 1
        self.running -= 1
        self.reserved_bytes -= fetch.request.memory_bytes
        if fetch.done or not fetch.attempts:
            self._forget(fetch)

    def restart(self) -> list[Fetch]:
        """In the child of a fork: what is under way, to be carried out anew, by one attempt each; not speculation."""
        begun = list({id(fetch): fetch for fetch in self._by_key.values() if fetch.started}.values())
        self.running = self.reserved_bytes = self.ahead_running = self.ahead_bytes = 0
        under_way = [fetch for fetch in begun if not fetch.speculative]
        for fetch in begun:
            fetch.attempts, fetch.in_share = 0, False
            if fetch.speculative:
                self._forget(fetch)
        for fetch in under_way:
            self._count(fetch)
        return under_way

    def release(self, fetches: Iterable[Fetch]) -> None:
        """Somebody no longer waits for these; what nobody waits for and has not started is dropped."""
        for fetch in {id(fetch): fetch for fetch in fetches}.values():
            fetch.waiters -= 1
            if fetch.started:
                continue
            if fetch.waiters == 0:
                self._forget(fetch)
            elif fetch.speculative and fetch.ahead is not None and fetch.priority < fetch.ahead:
                fetch.priority = fetch.ahead
                self._push(fetch, fetch.priority)

    def unwanted(self) -> list[Fetch]:
        """What is under way and has nobody left who waits for it, nor speculation: its owner may end it."""
        begun = {id(fetch): fetch for fetch in self._by_key.values() if fetch.started and not fetch.waiters}
        return list(begun.values())

    def drop_queued(self) -> list[Fetch]:
        """Forget all that has not started; its owner tells whoever waits for it."""
        dropped = {id(fetch): fetch for _, _, fetch in self._queue if not fetch.started and fetch.waiters}
        self._queue.clear()
        for fetch in dropped.values():
            self._forget(fetch)
        return list(dropped.values())

    def _divide(self, fetch: Fetch, need: Need) -> bool:
        """Take what demand wants out of a request that is queued as speculation; the rest stays queued."""
        if fetch.started or not fetch.speculative or len(fetch.request.needs) == 1:
            return False
        assert fetch.ahead is not None
        fetch.waiters = 0
        self._forget(fetch)
        self.speculate([other for other in fetch.request.needs if other.key != need.key], fetch.ahead)
        return True

    def _has_share(self, size_bytes: int) -> bool:
        """Whether speculation may have one more connection, and so many bytes."""
        if self.pressure.is_throttled:
            return not self.running  # what nobody waits for is the first to be left
        if not self.ahead_running:
            return True
        fits = self.ahead_bytes + size_bytes <= self._budget_bytes // 2
        return fits and self.ahead_running < self.pressure.limit // 2

    def _leave_share(self, fetch: Fetch) -> None:
        if fetch.in_share:
            fetch.in_share = False
            self.ahead_running -= 1
            self.ahead_bytes -= fetch.request.memory_bytes

    def _count(self, fetch: Fetch) -> None:
        if not fetch.started and fetch.priority > Priority.DEMAND:
            fetch.in_share = fetch.sent_ahead = True
            self.ahead_running += 1
            self.ahead_bytes += fetch.request.memory_bytes
        fetch.started = True
        fetch.attempts += 1
        self.running += 1
        self.reserved_bytes += fetch.request.memory_bytes

    def _push(self, fetch: Fetch, priority: int) -> None:
        heapq.heappush(self._queue, (priority, next(self._order), fetch))

    def _forget(self, fetch: Fetch) -> None:
        for need in fetch.request.needs:
            if self._by_key.get(need.key) is fetch:
                del self._by_key[need.key]

    def __repr__(self) -> str:
        queued = len({id(f) for _, _, f in self._queue if not f.started and f.waiters})
        reserved = f"{self.reserved_bytes:,}/{self._budget_bytes:,} bytes reserved"
        ahead = f" ({self.ahead_running} ahead)" if self.ahead_running else ""
        throttled = f", throttled to {self.pressure.limit} of {self.pressure.maximum}"
        said = throttled if self.pressure.is_throttled else ""
        return f"<Scheduler {self.running} running{ahead}, {queued} queued, {reserved}{said}>"
