"""How long a model thinks, how fast bytes come, and so how many can be had meanwhile. Pure: times come from outside."""

from __future__ import annotations

from math import exp, log

FIRST_SECONDS = 3.5
"""The median of a root call before any was seen: published medians run from 1.5 to 8.9 s."""
FIRST_BYTES_PER_SECOND = 100e6
"""Before any transfer was measured: a laptop's or a container's link."""
_WEIGHT = 0.3
"""Of the newest sample: four calls make up three quarters of the estimate."""
_SECONDS = 0.5, 30.0
"""Estimates stay within: a scripted model answers at once, and one that reasons for minutes need not be waited for."""
_TRANSFER_BYTES = 4 << 20
"""A spell with fewer bytes measures round trips, not the link."""


class ThinkTime:
    """Whether a model is at work now, and how long that takes. Calls may nest and overlap."""

    def __init__(self) -> None:
        self._log_seconds = log(FIRST_SECONDS)
        self._depth = 0
        self._began = 0.0

    @property
    def is_thinking(self) -> bool:
        return self._depth > 0

    @property
    def expected_seconds(self) -> float:
        """The whole of a call, as a mean of logarithms: one call of a minute does not make all expect minutes."""
        low, high = _SECONDS
        return min(max(exp(self._log_seconds), low), high)

    def left_seconds(self, now: float) -> float:
        """What is left of the call under way, if it takes as long as others did; 0.0 without one."""
        return max(0.0, self._began + self.expected_seconds - now) if self._depth else 0.0

    def begin(self, now: float) -> bool:
        """A call begins; whether it is the only one."""
        self._depth += 1
        if self._depth == 1:
            self._began = now
        return self._depth == 1

    def end(self, now: float) -> bool:
        """A call has ended; whether it was the last under way."""
        if not self._depth:  # it began before `forget`
            return False
        self._depth -= 1
        if self._depth:
            return False
        seconds = max(now - self._began, 1e-3)
        self._log_seconds += _WEIGHT * (log(seconds) - self._log_seconds)
        return True

    def forget(self) -> None:
        """In the child of a fork: whoever held calls of other threads is not here to end them."""
        self._depth = 0


class Bandwidth:
    """Bytes a second while requests are under way."""

    def __init__(self) -> None:
        self.bytes_per_second = FIRST_BYTES_PER_SECOND
        self._measured = False
        self._since: float | None = None
        self._bytes = 0

    def begin(self, now: float) -> None:
        """A request is sent while none is under way."""
        self._since, self._bytes = now, 0

    def arrived(self, size_bytes: int, now: float, idle: bool) -> None:
        """Bytes have come; `idle`: nothing else is under way."""
        self._bytes += size_bytes
        if self._since is None or not (idle or self._bytes >= 16 * _TRANSFER_BYTES):
            return
        seconds = now - self._since
        if self._bytes >= _TRANSFER_BYTES and seconds > 0:
            rate = self._bytes / seconds
            weight = _WEIGHT if self._measured else 1.0
            self.bytes_per_second += weight * (rate - self.bytes_per_second)
            self._measured = True
        self._since, self._bytes = (None if idle else now), 0
