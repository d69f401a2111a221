"""End an exchange that is silent or too slow, judged by timeouts and speeds learnt from earlier exchanges. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

SHORTEST_TIMEOUT_SECONDS = 1.0  # four to ten times the p99 of first bytes on S3
TIMEOUT_PER_P99 = 4.0  # the timeout is this many times the p99 of recent first bytes
_FIRST_BYTES = 256  # the number of recent times to the first byte that are remembered
_RECOUNT = 32  # the p99 is computed again after this many of them
_OUTLIERS = 3  # the p99 is at most the third slowest, since one or two slow responses may be chance
SLOWEST_BYTES_PER_SECOND = 256 << 10
"""The speed below which a body counts as too slow. At this speed the largest request, 8 MiB, takes half a deadline."""
SLOWEST_SHARE = 0.05  # on a slow line, a body is too slow only below this share of the median speed
LEAST_MEASURED_BYTES = 64 << 10  # smaller bodies mostly arrive with their heads, so they say nothing about the speed
_SPEEDS, _LEAST_SPEEDS = 64, 8  # the number of recent speeds that are remembered, and the fewest that have a median


class Pace:
    """Learns from earlier exchanges how long a server may be silent before an exchange fails (from the times to the
    first byte), and which speed is too slow (from the speeds of bodies). Threads share it without a lock."""

    def __init__(self, longest_timeout_seconds: float) -> None:
        self._longest_timeout_seconds = longest_timeout_seconds
        self.timeout_seconds = min(SHORTEST_TIMEOUT_SECONDS, longest_timeout_seconds)
        """The timeout of a first attempt."""
        self._first_bytes_seconds: deque[float] = deque(maxlen=_FIRST_BYTES)
        self._count = 0  # of all first bytes; a race of threads miscounts by one, which does no harm
        self._speeds: deque[float] = deque(maxlen=_SPEEDS)  # in bytes per second

    def timeout_after(self, silences: int) -> float:
        """The timeout, in seconds, for an attempt after `silences` timeouts of the same request."""
        return min(self._longest_timeout_seconds, self.timeout_seconds * 2.0**silences)

    def add_first_byte(self, seconds: float) -> None:
        """Learn from the time to the first byte of a response."""
        self._first_bytes_seconds.append(seconds)
        self._count += 1
        if self._count < _OUTLIERS:
            return
        # A slow response counts at once, or other requests in flight would fail too early.
        if self._count % _RECOUNT == 0 or seconds * TIMEOUT_PER_P99 > self.timeout_seconds:
            ordered = sorted(self._first_bytes_seconds)
            p99 = ordered[min(len(ordered) - _OUTLIERS, len(ordered) * 99 // 100)]
            learnt = max(SHORTEST_TIMEOUT_SECONDS, TIMEOUT_PER_P99 * p99)
            self.timeout_seconds = min(self._longest_timeout_seconds, learnt)

    def add_speed(self, received_bytes: int, seconds: float) -> None:
        """Learn from the speed of a body, or of a part of one."""
        self._speeds.append(received_bytes / max(seconds, 1e-6))

    @property
    def slowest_bytes_per_second(self) -> float:
        """The speed below which the receipt of a body fails."""
        speeds = sorted(self._speeds)
        if len(speeds) < _LEAST_SPEEDS:
            return SLOWEST_BYTES_PER_SECOND
        return min(SLOWEST_BYTES_PER_SECOND, speeds[len(speeds) // 2] * SLOWEST_SHARE)


class Stalled(TimeoutError):
    """Too few bytes, or none, arrived within the timeout. Another connection may be faster."""


class Overdue(TimeoutError):
    """A call with all its retries exceeded its deadline."""


class ExchangeTimer:
    """The timer of one exchange: it limits the wait for the next byte, and ends an exchange that is too slow.

    The speed is measured over periods of half of the timeout. The first period cannot fail, since a new connection
    starts with 14 KB in flight and doubles that with each round trip.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        longest_silence_seconds: float,
        deadline: float,
        clock: Callable[[], float],
        can_retry: Callable[[], bool],
        pace: Pace | None = None,
    ) -> None:
        """`deadline` is a time of `clock`. `can_retry` says whether an exchange that fails now would be sent again: if
        not, it may be silent for `longest_silence_seconds`. Without a `pace` no speed is too slow."""
        self._timeout_seconds, self._longest_silence_seconds = timeout_seconds, longest_silence_seconds
        self._deadline, self._clock, self._can_retry, self._pace = deadline, clock, can_retry, pace
        self._silence_seconds = 0.0
        self._body_began: float | None = None  # the time of the first byte
        self._period_began = 0.0
        self._received_bytes = self._period_bytes = 0

    def next_timeout(self) -> float:
        """The timeout for the next byte, in seconds. Raises `Overdue` after the deadline."""
        remaining_seconds = self._deadline - self._clock()
        if remaining_seconds <= 0:
            raise Overdue("the request was not complete within its time limit")
        return min(self._timeout_seconds, remaining_seconds)

    def add_silence(self) -> float:
        """Record that a timeout passed without a byte, and return the next timeout, in seconds.

        Raises `Stalled` if a retry is possible or the server was silent for too long, `Overdue` after the deadline.
        """
        self._silence_seconds += self._timeout_seconds
        timeout_seconds = self.next_timeout()
        if self._silence_seconds >= self._longest_silence_seconds or self._can_retry():
            raise Stalled(f"the server sent no byte for {self._silence_seconds:.1f} s")
        return timeout_seconds

    def add_bytes(self, count: int) -> None:
        """Count received bytes. Raises `Overdue` after the deadline, and `Stalled` if a retry may be faster."""
        self._silence_seconds = 0.0
        now = self._clock()
        if now > self._deadline:  # tested here too: single bytes can prevent a silence
            raise Overdue("the request was not complete within its time limit")
        if self._body_began is None:
            self._body_began = self._period_began = now
        self._received_bytes += count
        self._period_bytes += count
        seconds = now - self._period_began
        if self._pace is None or seconds * 2 < self._timeout_seconds:
            return
        is_first_period, received_bytes = self._period_began == self._body_began, self._period_bytes
        self._pace.add_speed(received_bytes, seconds)
        self._period_began, self._period_bytes = now, 0
        is_slow = received_bytes < self._pace.slowest_bytes_per_second * seconds
        if not is_first_period and is_slow and self._can_retry():
            raise Stalled(f"the server sent only {received_bytes:,} bytes in {seconds:.1f} s")

    def finish(self) -> None:
        """Learn the speed of a response that arrived whole."""
        if self._pace is not None and self._body_began is not None and self._received_bytes >= LEAST_MEASURED_BYTES:
            self._pace.add_speed(self._received_bytes, self._clock() - self._body_began)
