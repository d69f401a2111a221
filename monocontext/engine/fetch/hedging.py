"""Decide when to ask for the same bytes a second time. Pure: times come in, fetches to ask for again come out.

Of 50 requests that one slice waits for, the slowest decides: with 1 % of slow answers two slices of five meet one. A
request that has taken longer than nearly all of its size is asked for once more, the first answer counts, and the other
is dropped when it comes (Dean and Barroso, "The Tail at Scale", CACM 2013). Simulated for 50 requests of a store with a
median of 150 ms: the slowest takes 427 ms on average, 293 when asked again at the p95, 349 at the default.

Invariants:
- a request is hedged once at most, while somebody waits for it or the code that is being written will read it, and
  never as a guess;
- hedges are at most `share` of the answers, and `BURST` on top: when everything is slow, asking twice makes it worse;
- nothing is hedged before its size class, or a larger one, has the rule's `least_samples`, nor while the store refuses
  what comes to it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from monocontext.engine.fetch.listener import Listener
from monocontext.engine.fetch.scheduler import Fetch, Priority
from monocontext.records import dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.congestion import Pressure
    from monocontext.stores.protocol import Blob

Hedge = Literal["p99", "p95"]

SAMPLES = 1024
"""Answers that are remembered of each size class: ten beyond the p99, so that it does not jump; after a minute of
ordinary use they are all new."""
BURST = 4.0
NEAR_SECONDS = 0.001
"""A store whose median is under this is memory, a disk or a server next door: there a late answer is this machine's own
doing, and asking twice adds to it. The fastest remote one, S3 Express, has 2.2 ms."""
_SMALLEST_CLASS_BITS = 16
"""64 KiB: below it the body takes under 1 ms, at 90 MB/s, and size does not matter."""


@dataclass(frozen=True, slots=True)
class HedgingRule:
    """When a request is late, and how many of them may be asked for again."""

    percentile: int
    times_median: float
    """Late is beyond the percentile and beyond so many medians."""
    share: float
    """Hedges per answer."""
    least_samples: int
    """Answers from which on lateness is known."""


RULES: dict[Hedge, HedgingRule] = {
    # Where the p99 lies near the median, asking again at the p99 buys little: three medians keep it to what is far out.
    # Of few answers the p99 is the slowest, and four give a median: the first search of a text is hedged already.
    "p99": HedgingRule(99, 3.0, 0.02, 4),
    # Twice the gain for five times the requests; the bucket has a fifth to spare, since the percentile is an estimate.
    # It has no other guard, and the first slice of 50 has 20 answers by the time its slowest request matters.
    "p95": HedgingRule(95, 0.0, 0.06, 20),
}


class Latencies:
    """How long the last requests of one size class took, in order of size: any percentile in O(1), an entry in 2 us."""

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
        """The smallest sample that `percent` of them do not exceed; there must be one."""
        return self._sorted[min(len(self._sorted) - 1, len(self._sorted) * percent // 100)]


class _SizeClass:
    """Requests of about the same size: their latencies, and those under way in the order in which they were sent."""

    __slots__ = ("latencies", "under_way")

    def __init__(self) -> None:
        self.latencies = Latencies()
        self.under_way: OrderedDict[Fetch, float] = OrderedDict()


class Hedging(Listener):
    """Watches the requests of one reader. Its owner holds the lock, and does what `overdue` says."""

    def __init__(self, hedge: Hedge, pressure: Pressure) -> None:
        self._rule = RULES[hedge]
        self._pressure = pressure
        self.reset_state()

    def reset_state(self) -> None:
        self._classes: dict[int, _SizeClass] = {}
        self._tokens = BURST

    def sent(self, fetches: Iterable[Fetch], now: float, is_first: bool) -> None:
        """The clock starts with the first attempt; requests that a caller carries out are not watched."""
        for fetch in fetches:
            if fetch.attempts < 2 and fetch.claimed_by is None:
                self._class_of(fetch.request.stored_bytes).under_way[fetch] = now

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        """The answer has arrived; its data may still have to be decoded."""
        if seconds is not None and not blob.local:
            self._tokens = min(BURST, self._tokens + self._rule.share)  # where nothing is answered nothing is added
            self._class_of(fetch.request.stored_bytes).latencies.add(seconds)
            self._forget(fetch)

    def landed(self, fetch: Fetch, now: float, is_last: bool) -> None:
        self._forget(fetch)

    def _forget(self, fetch: Fetch) -> None:
        """This one is not to be asked for again."""
        self._class_of(fetch.request.stored_bytes).under_way.pop(fetch, None)

    def trigger(self, stored_bytes: int) -> float | None:
        """Seconds after which a request of this size is late; None where it would not be hedged."""
        return self._trigger(_class_number(stored_bytes))

    def next_due(self) -> float | None:
        """The moment at which to look at `overdue` again, on the clock of `sent`; None: not before something happens.

        Cheap, as whoever waits asks each time something arrives: one look per size class.
        """
        moments = []
        if self._tokens >= 1:
            for number, group in self._classes.items():
                trigger = self._trigger(number) if group.under_way else None
                if trigger is not None:
                    sent = next((sent for fetch, sent in group.under_way.items() if _is_certain(fetch)), None)
                    if sent is not None:
                        moments.append(sent + trigger)
        return min(moments, default=None)

    def overdue(self, now: float) -> list[Fetch]:
        """The requests to ask for once more, now. They are paid for."""
        late: list[Fetch] = []
        for number, group in self._classes.items():
            trigger = self._trigger(number) if group.under_way else None
            if trigger is None:
                continue
            for fetch, sent in group.under_way.items():
                if sent + trigger > now or self._tokens < 1:
                    break
                if _is_certain(fetch):
                    self._tokens -= 1
                    late.append(fetch)
        for fetch in late:
            self._forget(fetch)
        return late

    def _class_of(self, stored_bytes: int) -> _SizeClass:
        number = _class_number(stored_bytes)
        if number not in self._classes:
            self._classes[number] = _SizeClass()
        return self._classes[number]

    def _trigger(self, number: int) -> float | None:
        """With few answers in a class, the next larger one decides: what is late among larger bodies is late here too.
        The rows of a first search are 16 small requests, of which the slowest decides."""
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
    """Sizes up to 64 KiB, then by factors of four."""
    return max(stored_bytes.bit_length() - _SMALLEST_CLASS_BITS + 1, 0) // 2


def _is_certain(fetch: Fetch) -> bool:
    """Somebody waits for it, or code that is being written says that it will be read."""
    return fetch.waiters > 0 and fetch.priority <= Priority.COMPUTED_HINT
