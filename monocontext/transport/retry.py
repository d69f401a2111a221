"""When to ask again: one budget for all requests, and pauses that grow. Pure: random numbers and time come in."""

from __future__ import annotations

from collections.abc import Callable

SHARE = 0.1
"""Of the requests that succeed, so many may be asked twice: an outage cannot multiply the load that caused it."""
FLOOR = 64
"""Retries that need no success before them: one wave of connections may break all at once, when a server restarts."""
REFILL_PER_SECOND = 1.0
"""So that a process which has seen nothing but failures still finds out that they are over."""
_SHORTEST_SECONDS = 0.05
_LONGEST_SECONDS = 5.0


class Budget:
    """Tokens, one for each retry. Threads may share it without a lock: a race miscounts by a token, and no more."""

    def __init__(self, clock: Callable[[], float], tokens: float = FLOOR) -> None:
        self._most = self._tokens = tokens
        self._clock = clock
        self._at = clock()

    def __repr__(self) -> str:
        return f"<Budget {self._tokens:.1f}/{self._most:g} retries>"

    def take(self) -> bool:
        """Pay for one retry, if there is something to pay with."""
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

    def succeeded(self) -> None:
        """Enter one success."""
        if self._tokens < self._most:
            self._tokens = min(self._most, self._tokens + SHARE)


def next_pause(last_seconds: float, uniform: Callable[[float, float], float]) -> float:
    """Seconds to wait before the next attempt, given the last wait (0 for none): decorrelated jitter, 50 ms to 5 s."""
    longest = max(last_seconds, _SHORTEST_SECONDS) * 3
    return min(_LONGEST_SECONDS, uniform(_SHORTEST_SECONDS, longest))
