"""Decide when to retry: one budget for all requests, growing pauses. Pure: random numbers and time are arguments."""

from __future__ import annotations

from collections.abc import Callable

SHARE = 0.1
"""Retries that each success adds: an outage cannot multiply the load that caused it."""
FLOOR = 64
"""Retries without a success before them: when a server restarts, all connections may break at once."""
REFILL_PER_SECOND = 1.0
"""Retries that each second adds, so that a process that saw only failures finds out that they are over."""
_SHORTEST_SECONDS = 0.05
_LONGEST_SECONDS = 5.0


class RetryBudget:
    """Tokens, one for each retry. Threads may share it without a lock: a race miscounts by a token, and no more."""

    def __init__(self, clock: Callable[[], float], tokens: float = FLOOR) -> None:
        self._most = self._tokens = tokens
        self._clock = clock
        self._at = clock()

    def __repr__(self) -> str:
        return f"<Budget {self._tokens:.1f}/{self._most:g} retries>"

    def take(self) -> bool:
        """Pay for one retry; whether there was a token for it."""
        payable = self.can_pay()
        if payable:
            self._tokens -= 1
        return payable

    def can_pay(self) -> bool:
        """Whether `take` would succeed now."""
        now = self._clock()
        self._tokens = min(self._most, self._tokens + (now - self._at) * REFILL_PER_SECOND)
        self._at = now
        return self._tokens >= 1

    def add_success(self) -> None:
        """Add the share of one success."""
        if self._tokens < self._most:
            self._tokens = min(self._most, self._tokens + SHARE)


def next_pause(last_seconds: float, uniform: Callable[[float, float], float]) -> float:
    """Seconds to wait before the next attempt, given the last wait (0 for none): decorrelated jitter, 50 ms to 5 s."""
    longest = max(last_seconds, _SHORTEST_SECONDS) * 3
    return min(_LONGEST_SECONDS, uniform(_SHORTEST_SECONDS, longest))
