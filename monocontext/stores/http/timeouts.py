"""Learn timeouts for silent connections from the time to the first byte of earlier requests. Pure.

Stalled bodies make other readers wait 16 to 61 s. Giving up early costs one more request; waiting delays all that
depends on the response. So the timeout is short, and doubles for a request that meets silence again. A body that drips
is given up like a silent one: bytes that arrived stay, and the rest is requested elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

LEAST_SECONDS = 1.0
"""Four to ten times the p99 of first bytes on S3 (100-230 ms), and half of the two seconds to recover in."""
TIMES_P99 = 4.0
_SAMPLES = 256
_RECOUNT = 32
_CHANCE = 3
"""This many slow responses are more than chance. With 200 samples or fewer the p99 is one of the slowest two, and one
first byte of 1.2 s, which one GET in 500 has, would make the next stalled body last 5 s."""


class SilenceTimeout:
    """The seconds without a byte after which an exchange is given up. Threads may share it: a lost sample does no
    harm."""

    def __init__(self, longest_seconds: float) -> None:
        self._longest = longest_seconds
        self._samples: list[float] = []
        self._seen = 0
        self.seconds = min(LEAST_SECONDS, longest_seconds)
        """Timeout of a first attempt."""

    def for_attempt(self, silences: int) -> float:
        """Timeout of an attempt of a request that has met silence `silences` times."""
        return min(self._longest, self.seconds * 2.0**silences)

    def learn(self, first_byte_seconds: float) -> None:
        """Add the time to the first byte of one response."""
        samples = self._samples
        if len(samples) < _SAMPLES:
            samples.append(first_byte_seconds)
        else:
            samples[self._seen % _SAMPLES] = first_byte_seconds
        self._seen += 1
        if len(samples) < _CHANCE:
            return
        # A slow response counts at once: other waiting requests are about to be given up too early.
        if self._seen % _RECOUNT == 0 or first_byte_seconds * TIMES_P99 > self.seconds:
            p99 = sorted(samples)[min(len(samples) - _CHANCE, len(samples) * 99 // 100)]
            self.seconds = min(self._longest, max(LEAST_SECONDS, TIMES_P99 * p99))


class Stalled(TimeoutError):
    """No byte, or hardly any, came within the timeout; another connection may be faster."""


class Overdue(TimeoutError):
    """The whole call exceeded its deadline."""


class ExchangeTimer:
    """Times one exchange: how long to wait for the next byte, and when to give up.

    Throughput is measured over half of the timeout at a time. The first half is not judged: a new connection doubles
    its speed with each round trip, and begins with 14 KB.
    """

    def __init__(
        self,
        seconds: float,
        longest_seconds: float,
        until: float,
        clock: Callable[[], float],
        can_retry: Callable[[], bool],
        throughput: Throughput | None = None,
    ) -> None:
        self._seconds = seconds
        self._longest = longest_seconds
        self._until = until
        self._clock = clock
        self._can_retry = can_retry
        self._silent = 0.0
        self._throughput = throughput
        self._began: float | None = None
        self._count = 0
        self._counted_since = 0.0
        self._counted = 0

    def seconds(self) -> float:
        """Timeout for the next byte. Raises `Overdue`."""
        left = self._until - self._clock()
        if left <= 0:
            raise Overdue("the deadline passed")
        return min(self._seconds, left)

    def extend(self) -> float:
        """Timeout after a silence of `seconds()`. Raises `Stalled`, unless the retry budget is empty."""
        self._silent += self._seconds
        seconds = self.seconds()
        if self._silent >= self._longest or self._can_retry():
            raise Stalled(f"no byte for {self._silent:.1f} s")
        return seconds

    def add_bytes(self, count: int) -> None:
        """Count received bytes. Raises `Overdue`; `Stalled` where they come too slowly and the budget has a retry."""
        self._silent = 0.0
        now = self._clock()
        if now > self._until:  # a byte now and then is no silence
            raise Overdue("the deadline passed")
        if self._began is None:
            self._began = self._counted_since = now
        self._count += count
        self._counted += count
        seconds = now - self._counted_since
        if self._throughput is None or seconds * 2 < self._seconds:
            return
        is_first, counted = self._counted_since == self._began, self._counted
        self._throughput.learn(counted, seconds)
        self._counted_since, self._counted = now, 0
        if not is_first and counted < self._throughput.slowest * seconds and self._can_retry():
            raise Stalled(f"only {counted:,} bytes in {seconds:.1f} s")

    def finish(self) -> None:
        """Learn from a response that arrived whole."""
        if self._throughput is not None and self._began is not None and self._count >= LEAST_SAMPLE_BYTES:
            self._throughput.learn(self._count, self._clock() - self._began)


SLOWEST_BYTES_PER_SECOND = 256 << 10
"""A slower body is given up. S3 gives a connection some 90 MB/s; at this speed the largest request, of 8 MiB, would
still end in half of its deadline. Between the two, hedging covers late requests."""
SLOWEST_SHARE = 0.05
"""Share of the median of other connections below which a body is given up, where that is less: all bodies of a thin
line are slow."""
LEAST_SAMPLE_BYTES = 64 << 10
"""Smaller bodies arrive with their heads and do not measure throughput."""
_SPEEDS = 64
_LEAST_SPEEDS = 8


class Throughput:
    """Recent throughputs of bodies. Threads may share it: a lost sample does no harm."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_SPEEDS)

    def learn(self, count: int, seconds: float) -> None:
        """Add the sample of a body, or of a part of a slow one."""
        self._samples.append(count / max(seconds, 1e-6))

    @property
    def slowest(self) -> float:
        """Bytes a second below which a connection is given up."""
        samples = sorted(self._samples)
        if len(samples) < _LEAST_SPEEDS:
            return SLOWEST_BYTES_PER_SECOND
        return min(SLOWEST_BYTES_PER_SECOND, samples[len(samples) // 2] * SLOWEST_SHARE)
