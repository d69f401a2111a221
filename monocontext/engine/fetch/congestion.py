"""Limit the number of concurrent requests by the answers of the store. Times come in as arguments.

S3 answers 503 SlowDown when a prefix gets more requests than its partitions carry (5,500 GETs a second each), and takes
minutes to split them. A client that does not slow down gets more of these answers than data, and so does a client that
stops and then starts at full speed. The rule of TCP settles near the available rate (AIMD: Chiu and Jain, 1989).

Invariants:

- the limit is between 1 and the maximum; it starts there and returns there
- a wave of refusals halves it once: a request sent before the last decrease says nothing about the lower limit
"""

from __future__ import annotations

DECREASE = 0.5
"""The factor of the limit after a refusal."""
GROWTH_PER_SECOND = 1.0
"""The limit also grows by this much a second, if the answers raise it less: a reader that asks for a frame now and then
is back at its maximum after half a minute instead of 1,500 answers."""


class Pressure:
    """The limit of one scheduler. Its owner holds the lock."""

    __slots__ = ("_decreased", "_exact", "_grown", "is_throttled", "limit", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        """The most requests at once when nothing is refused."""
        self.limit = maximum
        """The most requests that may run now."""
        self.is_throttled = False
        """Whether a recent refusal still limits speculative requests."""
        self._exact = float(maximum)
        self._decreased = float("-inf")
        self._grown = float("-inf")

    def refused(self, sent: float, now: float, running: int) -> bool:
        """Record that the store refused a request of the time `sent`, because `running` requests were too many.

        The limit falls to half of `running`, or of the limit if that is lower. Returns whether it fell.
        """
        if sent < self._decreased:
            return False
        self._decreased = self._grown = now
        self._set(max(1.0, min(self._exact, float(running)) * DECREASE))
        return True

    def answered(self, now: float) -> None:
        """Record an answer without a refusal: the limit grows by one for each `limit` answers."""
        if self.is_throttled:
            seconds = max(0.0, now - self._grown)
            self._set(min(self.maximum, self._exact + max(1 / self._exact, seconds * GROWTH_PER_SECOND)))
        self._grown = now

    def _set(self, limit: float) -> None:
        self.is_throttled = True  # in case an exception interrupts this
        self._exact = limit
        self.limit = int(limit)
        self.is_throttled = limit < self.maximum

    def __repr__(self) -> str:
        return f"<Pressure {self.limit}/{self.maximum} requests at once>"
