"""A reader's workers on a virtual clock: the same engine, no threads, exact times."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, TypeVar

from monocontext.plan import Request
from monocontext.testing.clock import VirtualClock

T = TypeVar("T")


class SimulatedWorkers:
    """Carries requests out one by one, each at the moment at which it would have arrived.

    `seconds(request)` says how long a request takes once it has started; requests overlap. Hand it to
    `Monocontext.open(..., workers=...)`; the clock moves when a caller waits.
    """

    def __init__(self, seconds: Callable[[Request], float], clock: VirtualClock | None = None, max_running: int = 64):
        lock = threading.RLock()
        self.lock: AbstractContextManager[Any] = lock
        self.condition = threading.Condition(lock)
        self.max_running = max_running
        self.clock = clock or VirtualClock()
        self._seconds = seconds
        self._arrivals: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def submit(self, request: Request, job: Callable[[], None]) -> None:
        arrival = self.clock.now() + self._seconds(request)
        heapq.heappush(self._arrivals, (arrival, next(self._order), job))

    def run(self, request: Request, job: Callable[[], None]) -> None:
        self.submit(request, job)  # the caller waits for it at once, and meets it there

    def decode(self, work: Callable[[], T]) -> T:
        return work()

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        while not ready():
            if not self._arrivals:
                raise AssertionError("a caller waits and nothing is under way")
            moment = until() if until else None
            if moment is not None and moment < self._arrivals[0][0]:
                self.clock.advance(max(0.0, moment - self.clock.now()))
                return False
            self.step()
        return True

    def step(self) -> None:
        """Let the next request arrive."""
        arrival, _, job = heapq.heappop(self._arrivals)
        self.clock.advance(max(0.0, arrival - self.clock.now()))
        job()

    def pass_time(self, seconds: float) -> None:
        """Let time go by while nobody waits: what arrives in it, arrives."""
        until = self.clock.now() + seconds
        while self._arrivals and self._arrivals[0][0] <= until:
            self.step()
        self.clock.advance(until - self.clock.now())

    def now(self) -> float:
        return self.clock.now()

    def close(self) -> None:
        self._arrivals.clear()
