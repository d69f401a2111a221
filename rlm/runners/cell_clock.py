"""Measure the time of a cell, and the time that its limit and the run's budget leave it."""

from __future__ import annotations

import time

from rlm.runners.runner import ModelCalls


class CellClock:
    """The time of one cell, which begins now."""

    def __init__(self, limit_seconds: float, calls: ModelCalls) -> None:
        """`limit_seconds`: the time of the cell, without the time in which it waits for sub-calls."""
        self._limit_seconds = limit_seconds
        self._calls = calls
        self._waited_before = calls.waited_seconds
        self._started = time.perf_counter()

    def elapsed_seconds(self) -> float:
        """The time so far, sub-calls included."""
        return time.perf_counter() - self._started

    def seconds_left(self) -> float:
        """The time until the cell must end. The budget leaves each cell a second, in which it may draft an answer."""
        elapsed = self.elapsed_seconds()
        waited = self._calls.waited_seconds - self._waited_before
        return min(self._limit_seconds - elapsed + waited, max(self._calls.seconds_left(), 1 - elapsed))
