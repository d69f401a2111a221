"""Workers that carry out the requests of a reader on a virtual clock: no threads, exact times."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from functools import partial
from itertools import count

from monocontext.engine.fetch.requests import FetchRequest
from monocontext.engine.fetch.workers import RequestSource


class VirtualClock:
    """Time that passes only when `advance` or `sleep` is called; no thread waits.

    Sleeps of several threads add up. To model waits that overlap, let one thread call `advance`.
    """

    def __init__(self, start_seconds: float = 0.0) -> None:
        self._now = start_seconds
        self._lock = threading.Lock()

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._now += seconds


class SimulatedWorkers:
    """Completes requests in the order in which their answers arrive, for `Monocontext.open(..., workers=...)`.

    `seconds(request)` is how long a request takes from its start; requests overlap. The clock moves when a caller
    waits.
    """

    def __init__(
        self, seconds: Callable[[FetchRequest], float], clock: VirtualClock | None = None, max_running: int = 64
    ):
        self.max_running = max_running
        self.clock = clock or VirtualClock()
        self._seconds = seconds
        self._sources: dict[RequestSource, None] = {}
        """The sources that may have requests to start."""
        self._arrivals: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def start(self, source: RequestSource, count: int) -> None:
        self._sources[source] = None

    def wait(self, request: FetchRequest) -> bool:
        while not request.is_done:
            self._begin()
            if not self._arrivals:
                raise AssertionError("a caller waits, but no request is in flight")
            self.step()
        return True

    def submit(self, request: FetchRequest, job: Callable[[], None]) -> None:
        """Let `job` carry out a request when its answer has arrived."""
        self._at(self.clock.now() + self._seconds(request), job)

    def _at(self, moment: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._arrivals, (moment, next(self._order), event))

    def _begin(self) -> None:
        """Start the requests that may start now."""
        while self._sources:
            source, _ = self._sources.popitem()
            while (request := source.next_request()) is not None:
                self.submit(request, partial(self._carry_out, source, request))

    def _carry_out(self, source: RequestSource, request: FetchRequest) -> None:
        source.carry_out(request)
        self._sources[source] = None

    def step(self) -> None:
        """Let the next request arrive."""
        self._begin()
        arrival, _, job = heapq.heappop(self._arrivals)
        self.clock.advance(max(0.0, arrival - self.clock.now()))
        job()
        self._begin()

    def pass_time(self, seconds: float) -> None:
        """Let time pass while no caller waits; requests complete whose answers arrive meanwhile."""
        until = self.clock.now() + seconds
        self._begin()
        while self._arrivals and self._arrivals[0][0] <= until:
            self.step()
        self.clock.advance(until - self.clock.now())

    def now(self) -> float:
        return self.clock.now()
