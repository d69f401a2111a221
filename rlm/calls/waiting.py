"""Wait for calls: run them side by side on daemon threads, and measure the wait, which a cell does not pay.

A process that ends joins the threads of an executor: after Ctrl-C, a call of ten minutes would keep it alive.
"""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TypeVar

_T = TypeVar("_T")
_WAIT_SECONDS = 0.25  # the longest single wait: between two, an exception reaches the thread that waits


def run_side_by_side(jobs: Sequence[Callable[[], _T]], most: int) -> list[_T]:
    """Run `jobs`, at most `most` of them at the same time. Returns their results in the order of `jobs`.

    Raises the exception of the first failed job, once those before it have ended. Then, and when the wait is
    interrupted, no further job begins, and the running ones end by themselves: an exception that is raised in the
    thread of a cell, which has run out of time, never strikes a job.
    """
    remaining = deque(enumerate(jobs))
    ended: SimpleQueue[tuple[int, Future[_T]]] = SimpleQueue()
    outcomes: dict[int, Future[_T]] = {}

    def work() -> None:
        while remaining:
            try:
                number, job = remaining.popleft()
            except IndexError:
                return
            outcome = Future[_T]()
            try:
                outcome.set_result(job())
            except BaseException as error:  # raised again by the caller that waits
                outcome.set_exception(error)
            ended.put((number, outcome))

    # `Thread.start` waits for the new thread. In CPython 3.11 an exception for the thread that starts another can
    # strike the new one, which then never says that it has begun: that wait would have no end.
    try:
        for _ in range(min(most, len(jobs))):
            start_new_thread(work, ())
        results: list[_T] = []
        for number in range(len(jobs)):
            while number not in outcomes:
                try:
                    done, outcome = ended.get(timeout=_WAIT_SECONDS)
                except Empty:
                    running = len(jobs) - len(remaining) - len(outcomes)
                    if remaining and running < most:  # a thread was lost at its start
                        start_new_thread(work, ())
                else:
                    outcomes[done] = outcome
            results.append(outcomes[number].result())
        return results
    finally:
        remaining.clear()


@dataclass(slots=True, eq=False)
class WaitClock:
    """Runs while any call does; overlapping calls count once. Safe for use by many threads. Each call holds a lock of
    its own, in a `with`: an interrupted call releases it, wherever the interrupt struck, and stops counting."""

    _lock: threading.RLock = field(default_factory=threading.RLock)
    _calls: list[threading.Lock] = field(default_factory=list)
    _seconds: float = 0.0  # as they were counted last
    _counted_at: float = 0.0  # `time.perf_counter()` then

    @property
    def seconds(self) -> float:
        """The seconds so far, including calls in progress."""
        with self._lock:
            now = time.perf_counter()
            elapsed = now - self._counted_at if self._calls else 0.0
            self._calls = [call for call in self._calls if call.locked()]  # an interrupted one is free
            # The sum and its clock last, without a call between them: an interrupt there would count the wait twice.
            self._seconds, self._counted_at = self._seconds + elapsed, now
            return self._seconds

    @contextmanager
    def running(self, held_lock: threading.Lock) -> Iterator[None]:
        """Count the time inside the block as a call, as long as the caller holds the lock `held_lock`. The caller must
        hold the lock itself: an interrupt can leave this generator suspended with a lock held."""
        with self._lock:
            self._seconds, self._counted_at = self.seconds, time.perf_counter()
            self._calls.append(held_lock)
        try:
            yield
        finally:  # if this is not reached, the free lock is not counted
            with self._lock:
                self._seconds, self._counted_at = self.seconds, time.perf_counter()
                self._calls.remove(held_lock)


@dataclass(frozen=True, slots=True)
class CellClock:
    """Tells how long a cell may still run: without the time in which it waits for sub-calls, and within the budget."""

    limit_seconds: float
    run_seconds_left: Callable[[], float]  # what the budget of the run leaves
    waited: WaitClock  # the waits for sub-calls
    waited_before: float  # seconds of them when the cell began
    started: float = field(default_factory=time.perf_counter)

    def seconds_left(self) -> float:
        """Seconds until the cell must end, or negative. A spent budget leaves it one in all, to draft an answer."""
        elapsed = time.perf_counter() - self.started
        own = elapsed - (self.waited.seconds - self.waited_before)
        return min(self.limit_seconds - own, max(self.run_seconds_left(), 1 - elapsed))

    def allowed_seconds(self) -> float:
        """What a stopped cell was allowed, for messages: its limit, or its time so far if the run's budget was less."""
        return min(self.limit_seconds, round(time.perf_counter() - self.started, 1))
