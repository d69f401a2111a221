"""Workers that carry out the requests of a reader on a virtual clock: no threads, exact times."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, TypeVar

from monocontext.engine.fetch.scheduler import RangeRequest
from monocontext.engine.fetch.workers import Job, Workers

T = TypeVar("T")


class VirtualClock:
    """Time that passes only when `advance` or `sleep` is called; no thread waits.

    Sleeps of several threads add up. To model waits that overlap, let one thread call `advance`.
    """

    def __init__(self, start_seconds: float = 0.0) -> None:
        self._now = start_seconds
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<VirtualClock {self._now:.6f} s>"

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises `ValueError` for a negative number of seconds."""
        if seconds < 0:
            raise ValueError(f"seconds must not be negative, found {seconds}")
        with self._lock:
            self._now += seconds


class SimulatedWorkers(Workers):
    """Completes requests in the order in which their answers arrive, for `Monocontext.open(..., workers=...)`.

    `seconds(request)` is how long a request takes from its start; requests overlap. The clock moves when a caller
    waits.
    """

    runs_inline = False
    """A caller's own request goes through `submit` too, so that it takes time."""

    def __init__(
        self, seconds: Callable[[RangeRequest], float], clock: VirtualClock | None = None, max_running: int = 64
    ):
        self.lock: AbstractContextManager[Any] = threading.RLock()
        self.max_running = max_running
        self.clock = clock or VirtualClock()
        self._seconds = seconds
        self._arrivals: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def submit(self, request: RangeRequest, job: Job) -> bool:
        arrival = self.clock.now() + self._seconds(request)
        heapq.heappush(self._arrivals, (arrival, next(self._order), job))
        return True

    def notify(self) -> None:
        """Do nothing: a waiting caller checks after each arrival."""

    def decode(self, work: Callable[[], T]) -> T:
        return work()

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        return [work() for work in works]

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        while not ready():
            if not self._arrivals:
                raise AssertionError("a caller waits, but no request is in flight")
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
        """Let time pass while no caller waits; requests complete whose answers arrive meanwhile."""
        until = self.clock.now() + seconds
        while self._arrivals and self._arrivals[0][0] <= until:
            self.step()
        self.clock.advance(until - self.clock.now())

    def now(self) -> float:
        return self.clock.now()

    def close(self) -> None:
        self._arrivals.clear()
