"""Limit how many requests run at once by what the store answers. Pure: moments come in.

S3 answers 503 SlowDown where a prefix gets more requests than its partitions carry (5,500 GETs a second each), and
takes minutes to split them. Whoever goes on as before gets more of these answers than texts; so does whoever stops and
then starts all at once. What TCP does against the same settles near what can be had (AIMD: Chiu and Jain, 1989).

Invariants:
- the limit is between 1 and the maximum; it starts there and comes back;
- a wave of refusals halves it once: a request that was sent before the last decrease tells nothing of what it did.
"""

from __future__ import annotations

DECREASE = 0.5
GROWTH_PER_SECOND = 1.0
"""Where fewer answers come than would raise the limit by one in a second, the second does: a reader that asks for a
frame now and then is back at its maximum, and hedges again, after half a minute instead of 1,500 answers."""


class Pressure:
    """The limit of one scheduler. Its owner holds the lock."""

    __slots__ = ("_decreased", "_exact", "_grown", "is_throttled", "limit", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        """Requests at once when nothing is refused."""
        self.limit = maximum
        """Requests that may run now."""
        self.is_throttled = False
        """Whether a recent refusal still limits speculative requests."""
        self._exact = float(maximum)
        self._decreased = float("-inf")
        self._grown = float("-inf")

    def refused(self, sent: float, now: float, running: int) -> bool:
        """The store refused a request, sent at `sent`, for there being too many, while so many ran.

        Returns whether the limit fell: to half of what ran, if that was less than was allowed.
        """
        if sent < self._decreased:
            return False
        self._decreased = self._grown = now
        self._set(max(1.0, min(self._exact, float(running)) * DECREASE))
        return True

    def answered(self, now: float) -> None:
        """A request was answered at once: the limit grows by one for as many answers as it allows at a time."""
        if self.is_throttled:
            seconds = max(0.0, now - self._grown)
            self._set(min(self.maximum, self._exact + max(1 / self._exact, seconds * GROWTH_PER_SECOND)))
        self._grown = now

    def _set(self, limit: float) -> None:
        self.is_throttled = True  # until this has come to its end, should an exception cut it short
        self._exact = limit
        self.limit = int(limit)
        self.is_throttled = limit < self.maximum

    def __repr__(self) -> str:
        return f"<Pressure {self.limit}/{self.maximum} requests at once>"
