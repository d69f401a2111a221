"""How long silence is ordinary: learned from the time to the first byte of the requests before. Pure.

A body that stalls is what makes today's readers wait 16 to 61 s. Giving up early costs one more request, waiting costs
everything that depends on the answer; so patience is short, and doubles for a request that meets silence again. What
drips is given up like what is silent: bytes that arrived stay, and the rest is asked for elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

from monocontext.transport.pace import LEAST_SAMPLE_BYTES, Pace

LEAST_SECONDS = 1.0
"""Ten times the slowest of a hundred first bytes on S3 (p99 100-230 ms), and half of the two seconds to recover in."""
TIMES_P99 = 4.0
_SAMPLES = 256
_RECOUNT = 32
_CHANCE = 3
"""So many slow answers are more than chance. Of 200 or fewer the slowest in a hundred would be one of the slowest two,
and one first byte of 1.2 s, which one GET in 500 has, would make the next stalled body last 5 s."""


class Patience:
    """Seconds without a byte after which an exchange is given up. Threads may share it: a lost sample does no harm."""

    def __init__(self, longest_seconds: float) -> None:
        self._longest = longest_seconds
        self._samples: list[float] = []
        self._seen = 0
        self.seconds = min(LEAST_SECONDS, longest_seconds)
        """For a first attempt."""

    def after(self, silences: int) -> float:
        """For an attempt of a request that has met silence so many times."""
        return min(self._longest, self.seconds * 2.0**silences)

    def learn(self, first_byte_seconds: float) -> None:
        """Enter the time to the first byte of one answer."""
        samples = self._samples
        if len(samples) < _SAMPLES:
            samples.append(first_byte_seconds)
        else:
            samples[self._seen % _SAMPLES] = first_byte_seconds
        self._seen += 1
        if len(samples) < _CHANCE:
            return
        # A slow answer counts at once: those that wait beside it are about to be given up too early.
        if self._seen % _RECOUNT == 0 or first_byte_seconds * TIMES_P99 > self.seconds:
            p99 = sorted(samples)[min(len(samples) - _CHANCE, len(samples) * 99 // 100)]
            self.seconds = min(self._longest, max(LEAST_SECONDS, TIMES_P99 * p99))


class Stalled(TimeoutError):
    """Nothing, or hardly anything, came for as long as patience lasts; another connection may be luckier."""


class Overdue(TimeoutError):
    """The whole call has taken all the time that it may."""


class Wait:
    """The silences of one exchange: how long to wait for the next byte, and when to stop waiting.

    Bytes are counted over half of the patience at a time. The first half is not judged: a new connection doubles its
    pace with each round trip, and begins with 14 KB.
    """

    def __init__(
        self,
        seconds: float,
        longest_seconds: float,
        until: float,
        clock: Callable[[], float],
        can_retry: Callable[[], bool],
        pace: Pace | None = None,
    ) -> None:
        self._seconds = seconds
        self._longest = longest_seconds
        self._until = until
        self._clock = clock
        self._can_retry = can_retry
        self._silent = 0.0
        self._pace = pace
        self._began: float | None = None
        self._count = 0
        self._counted_since = 0.0
        self._counted = 0

    def seconds(self) -> float:
        """For the next byte. Raises `Overdue`."""
        left = self._until - self._clock()
        if left <= 0:
            raise Overdue("the deadline passed")
        return min(self._seconds, left)

    def on(self) -> float:
        """After a silence of `seconds()`: how long to go on. Raises `Stalled`, unless a retry could not be paid for."""
        self._silent += self._seconds
        seconds = self.seconds()
        if self._silent >= self._longest or self._can_retry():
            raise Stalled(f"no byte for {self._silent:.1f} s")
        return seconds

    def heard(self, count: int) -> None:
        """So many bytes came. Raises `Overdue`; `Stalled` where they come too slowly and a retry can be paid for."""
        self._silent = 0.0
        now = self._clock()
        if now > self._until:  # a byte now and then is no silence
            raise Overdue("the deadline passed")
        if self._began is None:
            self._began = self._counted_since = now
        self._count += count
        self._counted += count
        seconds = now - self._counted_since
        if self._pace is None or seconds * 2 < self._seconds:
            return
        is_first, counted = self._counted_since == self._began, self._counted
        self._pace.learn(counted, seconds)
        self._counted_since, self._counted = now, 0
        if not is_first and counted < self._pace.slowest * seconds and self._can_retry():
            raise Stalled(f"only {counted:,} bytes in {seconds:.1f} s")

    def ended(self) -> None:
        """The answer is here whole."""
        if self._pace is not None and self._began is not None and self._count >= LEAST_SAMPLE_BYTES:
            self._pace.learn(self._count, self._clock() - self._began)
