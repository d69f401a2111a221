"""Decide when a late request is sent a second time.

When one slice waits for 50 requests, the slowest decides: if 1 % of answers are slow, two slices of five meet one. A
request that takes longer than nearly all others of its size is sent again; the first answer counts, and the other is
dropped (Dean and Barroso, "The Tail at Scale", CACM 2013). Simulated for 50 requests to a store with a median of 150
ms: the slowest takes 427 ms on average, 293 ms when repeated at the p95, 349 ms with the default.

Invariants:

- a request is hedged at most once, while a caller waits for it or the code being written will read it, and never as a
  guess
- hedges are at most `share` of the answers, plus `BURST`: when everything is slow, second requests make it worse
- nothing is hedged before its size class, or a larger one, has the rule's `least_samples`, or while the store refuses
  requests
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from monocontext.engine.fetch.link import NEAR_SECONDS
from monocontext.engine.fetch.listeners import Listener
from monocontext.engine.fetch.scheduler import Fetch, Priority
from monocontext.records import dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.congestion import Pressure
    from monocontext.stores.protocol import Blob

Hedge = Literal["p99", "p95"]

SAMPLES = 1024
"""The answers that are remembered of each size class: ten are beyond the p99, so it is steady; after a minute of
ordinary use all are new."""
BURST = 4.0
"""The most hedges that may be saved up."""
_SMALLEST_CLASS_BITS = 16
"""64 KiB: below it the body takes under 1 ms, at 90 MB/s, and size does not matter."""


@dataclass(frozen=True, slots=True)
class HedgingRule:
    """The time after which a request is late, and the share of requests that may be sent again."""

    percentile: int
    times_median: float
    """A request is late beyond the percentile and beyond this many medians."""
    share: float
    """Hedges per answer."""
    least_samples: int
    """The number of answers of a size class that define what is late."""


RULES: dict[Hedge, HedgingRule] = {
    # If the p99 is near the median, a second request at the p99 gains little: three medians keep it to real outliers.
    # Of few answers the p99 is the slowest, and four give a median: the first search of a text is hedged already.
    "p99": HedgingRule(99, 3.0, 0.02, 4),
    # Twice the gain for five times the requests; the bucket has a fifth to spare, since the percentile is an estimate.
    # It has no other guard, and the first slice of 50 has 20 answers by the time its slowest request matters.
    "p95": HedgingRule(95, 0.0, 0.06, 20),
}


class Latencies:
    """The durations of the last requests of one size class, sorted: any percentile in O(1), an entry in 2 us."""

    __slots__ = ("_by_age", "_sorted")

    def __init__(self) -> None:
        self._by_age: deque[float] = deque()
        self._sorted: list[float] = []

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, seconds: float) -> None:
        if len(self._by_age) == SAMPLES:
            del self._sorted[bisect_left(self._sorted, self._by_age.popleft())]
        self._by_age.append(seconds)
        insort(self._sorted, seconds)

    def percentile(self, percent: int) -> float:
        """The smallest sample, in seconds, that `percent` of them do not exceed; there must be one."""
        return self._sorted[min(len(self._sorted) - 1, len(self._sorted) * percent // 100)]


class _SizeClass:
    """Requests of about the same size: their latencies, and when each running one was sent, oldest first."""

    __slots__ = ("latencies", "under_way")

    def __init__(self) -> None:
        self.latencies = Latencies()
        self.under_way: OrderedDict[Fetch, float] = OrderedDict()


class Hedging(Listener):
    """Watches the requests of one reader. Its owner holds the lock and repeats the requests that `overdue` returns."""

    def __init__(self, hedge: Hedge, pressure: Pressure) -> None:
        self._rule = RULES[hedge]
        self._pressure = pressure
        self.reset_state()

    def reset_state(self) -> None:
        self._classes: dict[int, _SizeClass] = {}
        self._tokens = BURST
        """Hedges that may be sent now."""

    def sent(self, fetches: Iterable[Fetch], now: float, is_first: bool) -> None:
        """Watch first attempts, except those that a caller carries out in its own thread."""
        for fetch in fetches:
            if fetch.attempts < 2 and fetch.claimed_by is None:
                self._class_of(fetch).under_way[fetch] = now

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        if seconds is not None and not blob.local:
            self._tokens = min(BURST, self._tokens + self._rule.share)
            self._class_of(fetch).latencies.add(seconds)
            self._ignore(fetch)

    def ended(self, fetch: Fetch, now: float, is_last: bool) -> None:
        self._ignore(fetch)

    def _ignore(self, fetch: Fetch) -> None:
        """Never send this request a second time."""
        self._class_of(fetch).under_way.pop(fetch, None)

    def late_after(self, stored_bytes: int) -> float | None:
        """The seconds after which a request of this size is late; None if it would not be hedged."""
        return self._late_after(_class_number(stored_bytes))

    def next_due(self) -> float | None:
        """The time at which to call `overdue` again, on the clock of `sent`; None: not before the next event.

        Cheap, since each waiting caller asks at every event: one comparison for each size class.
        """
        if self._tokens < 1:
            return None
        times = []
        for number, group in self._classes.items():
            sent = next((sent for fetch, sent in group.under_way.items() if _is_needed(fetch)), None)
            if sent is not None and (limit := self._late_after(number)) is not None:
                times.append(sent + limit)
        return min(times, default=None)

    def overdue(self, now: float) -> list[Fetch]:
        """The requests to send a second time now; they count as hedged from here on."""
        late: list[Fetch] = []
        for number, group in self._classes.items():
            limit = self._late_after(number) if group.under_way else None
            if limit is None:
                continue
            for fetch, sent in group.under_way.items():
                if sent + limit > now or self._tokens < 1:
                    break
                if _is_needed(fetch):
                    self._tokens -= 1
                    late.append(fetch)
        for fetch in late:
            self._ignore(fetch)
        return late

    def _class_of(self, fetch: Fetch) -> _SizeClass:
        return self._classes.setdefault(_class_number(fetch.request.stored_bytes), _SizeClass())

    def _late_after(self, number: int) -> float | None:
        """`late_after` for a size class. If it has few answers, the next larger one decides: a time that is late
        for larger bodies is late here too. The filter rows of a first search are 16 small requests, of which the
        slowest decides.
        """
        rule = self._rule
        if self._pressure.is_throttled:
            return None
        known = [n for n, group in self._classes.items() if n >= number and len(group.latencies) >= rule.least_samples]
        if not known:
            return None
        latencies = self._classes[min(known)].latencies
        median = latencies.percentile(50)
        if median < NEAR_SECONDS:
            return None
        return max(latencies.percentile(rule.percentile), rule.times_median * median)


def _class_number(stored_bytes: int) -> int:
    """The number of a size class: sizes up to 64 KiB are one, then each factor of four."""
    return max(stored_bytes.bit_length() - _SMALLEST_CLASS_BITS + 1, 0) // 2


def _is_needed(fetch: Fetch) -> bool:
    """Whether a caller waits for it, or code that is being written will read it."""
    return fetch.waiters > 0 and fetch.priority <= Priority.COMPUTED_HINT
