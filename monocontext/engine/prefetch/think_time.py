"""Estimate how long a model thinks. Times, in seconds, come in as arguments."""

from __future__ import annotations

from math import exp, log

from monocontext.records import dataclass

FIRST_SECONDS = 3.5
"""The first estimate, the median of a root call: published medians run from 1.5 to 8.9 s."""
WEIGHT = 0.3
"""Weight of the newest sample: four calls make up three quarters of the estimate."""
_SECONDS = 0.5, 30.0
"""The least and the largest estimate: a scripted model answers at once, and nothing is prefetched for minutes."""


@dataclass(slots=True, eq=False)
class ThinkTime:
    """The calls of a model that are under way, and the time that one takes. Calls may nest and overlap."""

    is_thinking: bool = False
    _log_seconds: float = log(FIRST_SECONDS)
    _depth: int = 0
    _began: float = 0.0

    @property
    def expected_seconds(self) -> float:
        """The expected duration of a call: the mean of logarithms, so one call of a minute has little weight."""
        low, high = _SECONDS
        return min(max(exp(self._log_seconds), low), high)

    def begin(self, now: float) -> bool:
        """Record the beginning of a call. Returns whether it is the only one under way."""
        self._depth += 1
        self.is_thinking = True
        if self._depth == 1:
            self._began = now
        return self._depth == 1

    def end(self, now: float) -> bool:
        """Record the end of a call. Returns whether no other is under way."""
        if not self._depth:  # it began before `forget`
            return False
        self._depth -= 1
        if self._depth:
            return False
        self.is_thinking = False
        seconds = max(now - self._began, 1e-3)
        self._log_seconds += WEIGHT * (log(seconds) - self._log_seconds)
        return True

    def forget(self) -> None:
        """Drop all calls. In the child of a fork, the threads that would end them do not exist."""
        self._depth, self.is_thinking = 0, False
