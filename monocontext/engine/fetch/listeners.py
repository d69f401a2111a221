"""Listeners to the requests of a fetcher: they count answers, measure the link to the store, and hedge late requests.

Link: Data that transfers no slower than a request is answered is requested in one wave: a search that looks at
filters first needs three round trips, for rows, for a frame, and for the text around a match in the next frame.

Hedging: When one slice waits for 50 requests, the slowest decides: if 1 % of answers are slow, two slices of five
meet one. A request that takes longer than nearly all others of its size is sent again; the first answer counts, and
the other is dropped (Dean and Barroso, "The Tail at Scale", CACM 2013). Simulated for 50 requests to a store with a
median of 150 ms: the slowest takes 427 ms on average, 293 ms when repeated at the p95, 349 ms with the default.

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
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from monocontext.engine.fetch.scheduler import Fetch, Priority
from monocontext.records import dataclass, field

if TYPE_CHECKING:
    from monocontext.engine.fetch.congestion import Pressure
    from monocontext.engine.frame import FrameText
    from monocontext.engine.stats import Stats
    from monocontext.stores.protocol import Blob


class Listener:
    """Follows the requests of one fetcher. A subclass overrides the events that it needs.

    The fetcher calls each method within a change, so under its lock; none waits or raises. An attempt is one GET of a
    fetch, which may have two.
    """

    def sent(self, fetches: Sequence[Fetch], now: float, is_first: bool) -> None:
        """Take note that attempts were sent. `is_first`: no other was running."""

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        """Take note of an answer of the store, `seconds` after it was requested; None for a second read after
        damage."""

    def ended(self, fetch: Fetch, now: float, is_last: bool) -> None:
        """Take note that an attempt has succeeded or failed, or that a fetch was dropped which no caller wants.
        `is_last`: no other is running."""

    def used(self, text: FrameText) -> None:
        """Take note of the first use of a frame since it was fetched."""

    def forked(self) -> None:
        """Drop the speculative requests of the parent, in the child of a fork."""

    def reset_state(self) -> None:
        """Drop all requests: a change was interrupted, or the reader is closed."""


class Listeners:
    """The methods to call at each event: those that a listener overrides."""

    def __init__(self, *listeners: Listener) -> None:
        self.sent: list[Callable[[Sequence[Fetch], float, bool], None]] = []
        self.answered: list[Callable[[Fetch, Blob, float | None], None]] = []
        self.ended: list[Callable[[Fetch, float, bool], None]] = []
        self.used: list[Callable[[FrameText], None]] = []
        self.forked: list[Callable[[], None]] = []
        self.reset_state: list[Callable[[], None]] = []
        for listener in listeners:
            self.add(listener)

    def add(self, listener: Listener) -> None:
        for event, methods in vars(self).items():
            if getattr(type(listener), event) is not getattr(Listener, event):
                methods.append(getattr(listener, event))

    def clear(self) -> None:
        for methods in vars(self).values():
            methods.clear()


@dataclass(slots=True, eq=False)
class Counting(Listener):
    """Counts answers and their bytes."""

    _stats: Stats

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        stats, size = self._stats, len(blob.data)
        if blob.in_root:
            return  # counted with the root
        if blob.local:
            stats.disk_hits += 1
            stats.disk_bytes += size
            return
        for counted in (stats, stats.prefetch) if fetch.sent_ahead else (stats,):
            counted.gets += 1
            counted.bytes_fetched += size
        if fetch.request.object.startswith("filters/"):
            stats.search.filter_gets += 1
            stats.search.filter_bytes += size


# -- the link ----------------------------------------------------------------------------------------------------------

NEAR_SECONDS = 0.001
"""A store that answers faster is memory, a disk or a server next door: there a round trip costs nothing, a late answer
is this machine's own doing, and asking twice adds to it. The fastest remote store, S3 Express, takes 2.2 ms."""
FIRST_BYTES_PER_SECOND = 100e6
"""The assumed rate before a transfer was measured: a laptop's or a container's link."""
FIRST_WAVE_BYTES = 8 << 20
"""One wave carries at least this much before any transfer was measured: a text of 20 to 40 MB.

These are eight concurrent requests, of 12 ms each at the 90 MB/s of a connection. At 100 MB/s they take 80 ms, a third
of the time to read the text as one object, and as long as three round trips from another zone. Each later look at the
text saves these.
"""
_SMALL_BYTES = 64 << 10
"""Answers up to this size measure round trips: the body takes under 1 ms at 90 MB/s."""
_TRANSFER_BYTES = 2 << 20
"""The least bytes of a busy spell that measure the link; fewer measure round trips."""
_MEAN_BYTES = 4 << 20
"""The least bytes of a busy spell that count in the mean rate."""
_WEIGHT = 0.3
"""Weight of the newest measurement in the mean rate."""


def wave_bytes(round_trip_seconds: float | None, bytes_per_second: float | None) -> int:
    """The stored bytes that one wave of requests carries; None for a quantity that was not measured yet."""
    if round_trip_seconds is None or round_trip_seconds < NEAR_SECONDS:
        return 0
    if bytes_per_second is None:
        return max(int(round_trip_seconds * FIRST_BYTES_PER_SECOND), FIRST_WAVE_BYTES)
    return int(round_trip_seconds * bytes_per_second)


@dataclass(slots=True, eq=False)
class Bandwidth:
    """The mean rate of a link while it is busy, round trips included."""

    bytes_per_second: float = FIRST_BYTES_PER_SECOND
    _measured: bool = False
    _since: float | None = None
    _bytes: int = 0

    def begin(self, now: float | None) -> None:
        """Start a measurement, at the time at which a request was sent while none was running; None: stop it."""
        self._since, self._bytes = now, 0

    def arrived(self, size_bytes: int, now: float, idle: bool) -> None:
        """Count bytes that have arrived. `idle`: no other request is under way."""
        self._bytes += size_bytes
        if self._since is None or not (idle or self._bytes >= 16 * _MEAN_BYTES):
            return
        seconds = now - self._since
        if self._bytes >= _MEAN_BYTES and seconds > 0:
            weight = _WEIGHT if self._measured else 1.0
            self.bytes_per_second += weight * (self._bytes / seconds - self.bytes_per_second)
            self._measured = True
        self.begin(None if idle else now)


@dataclass(slots=True, eq=False)
class Link(Listener):
    """The measured link from one reader to its store. A spell is the time from a first request to an idle link."""

    round_trip_seconds: float | None = None
    """The time of the quickest small answer; 0 for a near store; None before one was measured."""
    bytes_per_second: float | None = None
    """The rate of the last long spell without its first round trip; None before there was one."""
    bandwidth: Bandwidth = field(default_factory=Bandwidth)
    _since: float = 0.0
    _spell_bytes: int = 0
    _spell_rate: float = 0.0
    _sent: dict[Fetch, float] = field(default_factory=dict)

    @property
    def is_far(self) -> bool:
        """Whether round trips take time that is worth saving."""
        return wave_bytes(self.round_trip_seconds, None) > 0

    def carries(self, stored_bytes: int) -> bool:
        """Whether one wave of requests transfers this many bytes about as fast as a small answer arrives."""
        return stored_bytes <= wave_bytes(self.round_trip_seconds, self.bytes_per_second)

    def reset_state(self) -> None:
        """End the spell. Its measurements are kept."""
        self._since = 0.0
        self._spell_bytes = 0
        self._spell_rate = 0.0
        self._sent.clear()
        self.bandwidth.begin(None)

    def sent(self, fetches: Sequence[Fetch], now: float, is_first: bool) -> None:
        if is_first:
            self.reset_state()
            self._since = now
            self.bandwidth.begin(now)
        for fetch in fetches:
            self._sent.setdefault(fetch, now)

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        sent = self._sent.pop(fetch, None)
        if blob.local or seconds is None:
            return
        size_bytes = len(blob.data)
        if size_bytes <= _SMALL_BYTES and (self.round_trip_seconds is None or seconds < self.round_trip_seconds):
            self.round_trip_seconds = seconds
        self._spell_bytes += size_bytes
        if sent is None or self._spell_bytes < _TRANSFER_BYTES:
            return
        transfer_seconds = sent + seconds - self._since - (self.round_trip_seconds or 0.0)
        # Of concurrent answers, the first counts in full; what has arrived of the others does not count.
        self._spell_rate = max(self._spell_rate, self._spell_bytes / max(transfer_seconds, 1e-3))
        self.bytes_per_second = self._spell_rate

    def ended(self, fetch: Fetch, now: float, is_last: bool) -> None:
        self._sent.pop(fetch, None)
        if fetch.forgotten and fetch.values is not None:  # otherwise another attempt is running, or this one failed
            self.bandwidth.arrived(fetch.request.stored_bytes, now, is_last)


# -- hedging -----------------------------------------------------------------------------------------------------------

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
