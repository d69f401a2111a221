"""Estimate how long a model thinks. Pure: times come from outside."""

from __future__ import annotations

from math import exp, log

from monocontext.records import dataclass

FIRST_SECONDS = 3.5
"""The median of a root call before any was seen: published medians run from 1.5 to 8.9 s."""
WEIGHT = 0.3
"""Weight of the newest sample: four calls make up three quarters of the estimate."""
_SECONDS = 0.5, 30.0
"""Estimates stay within: a scripted model answers at once, and one that reasons for minutes need not be waited for."""


@dataclass(slots=True, eq=False)
class ThinkTime:
    """Whether a model is at work now, and how long that takes. Calls may nest and overlap."""

    is_thinking: bool = False
    _log_seconds: float = log(FIRST_SECONDS)
    _depth: int = 0
    _began: float = 0.0

    @property
    def expected_seconds(self) -> float:
        """The whole of a call, as a mean of logarithms: one call of a minute does not make all expect minutes."""
        low, high = _SECONDS
        return min(max(exp(self._log_seconds), low), high)

    def begin(self, now: float) -> bool:
        """A call begins; whether it is the only one."""
        self._depth += 1
        self.is_thinking = True
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
        self.is_thinking = False
        seconds = max(now - self._began, 1e-3)
        self._log_seconds += WEIGHT * (log(seconds) - self._log_seconds)
        return True

    def forget(self) -> None:
        """In the child of a fork: the threads that held calls do not exist here, so nothing ends these calls."""
        self._depth, self.is_thinking = 0, False
