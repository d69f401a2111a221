"""Run calls side by side on daemon threads, and measure the wait for them, which a cell is not charged for.

An executor would not do: a process joins its threads when it ends, so a call of ten minutes would outlive Ctrl-C.
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
_WAIT_SECONDS = 0.25  # the longest single wait: an interrupt reaches the waiting thread only between two waits


def run_side_by_side(jobs: Sequence[Callable[[], _T]], at_once: int) -> list[_T]:
    """Run `jobs`, at most `at_once` (at least 1) at the same time. Returns their results in the order of `jobs`.

    Raises the exception of the first job that failed, once those before it have ended. Then, and when the wait is
    interrupted, no further job begins, and the running ones end by themselves. Jobs have threads of their own, so that
    the interrupt of a cell that has run out of time does not break off a job.
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
            except BaseException as error:  # the waiting caller raises it again
                outcome.set_exception(error)
            ended.put((number, outcome))

    # Not `Thread.start`, which waits for the new thread to begin. In CPython 3.11 an exception that is raised in the
    # starting thread from outside can hit the new one before it says that it has begun: the wait would never end.
    try:
        for _ in range(min(at_once, len(jobs))):
            start_new_thread(work, ())
        results: list[_T] = []
        for number in range(len(jobs)):
            while number not in outcomes:
                try:
                    done, outcome = ended.get(timeout=_WAIT_SECONDS)
                except Empty:
                    running = len(jobs) - len(remaining) - len(outcomes)
                    if remaining and running < at_once:  # a thread was lost at its start
                        start_new_thread(work, ())
                else:
                    outcomes[done] = outcome
            results.append(outcomes[number].result())
        return results
    finally:
        remaining.clear()


@dataclass(slots=True, eq=False)
class WaitClock:
    """Counts the seconds in which at least one call is in progress. Safe for use by many threads. Each call holds a
    lock of its own in a `with`, which releases it wherever an interrupt strikes, so the clock sees that it ended."""

    _lock: threading.RLock = field(default_factory=threading.RLock)
    _calls: list[threading.Lock] = field(default_factory=list)
    _seconds: float = 0.0  # the seconds up to `_counted_at`
    _counted_at: float = 0.0  # the `time.perf_counter()` of the last count

    @property
    def seconds(self) -> float:
        """The seconds so far, including calls in progress."""
        with self._lock:
            now = time.perf_counter()
            elapsed = now - self._counted_at if self._calls else 0.0
            self._calls = [call for call in self._calls if call.locked()]  # an interrupted one is free
            # These two are set last and in one statement: an interrupt between them would count the wait twice.
            self._seconds, self._counted_at = self._seconds + elapsed, now
            return self._seconds

    @contextmanager
    def running(self, held_lock: threading.Lock) -> Iterator[None]:
        """Count the time inside the block, as long as the caller holds `held_lock`. The caller must hold the lock: an
        interrupt can leave this generator suspended, and a lock that it held would never be released."""
        with self._lock:
            self._seconds, self._counted_at = self.seconds, time.perf_counter()
            self._calls.append(held_lock)
        try:
            yield
        finally:  # if an interrupt skips this, the free lock ends the count
            with self._lock:
                self._seconds, self._counted_at = self.seconds, time.perf_counter()
                self._calls.remove(held_lock)


@dataclass(frozen=True, slots=True)
class CellClock:
    """Tells how long a cell may still run. Waits for sub-calls do not count as its time, but the run's budget does."""

    limit_seconds: float  # of the cell's own time
    run_seconds_left: Callable[[], float]  # the seconds that the budget of the run leaves
    waited: WaitClock  # the waits for sub-calls
    waited_before: float  # the seconds of `waited` when the cell began
    started: float = field(default_factory=time.perf_counter)

    def seconds_left(self) -> float:
        """Seconds until the cell must end; negative after that. A spent budget leaves it 1 second, to give a draft."""
        elapsed = time.perf_counter() - self.started
        own_seconds = elapsed - (self.waited.seconds - self.waited_before)
        allowed_by_run = max(self.run_seconds_left(), 1 - elapsed)
        return min(self.limit_seconds - own_seconds, allowed_by_run)

    def allowed_seconds(self) -> float:
        """The seconds that a stopped cell was allowed, for messages: its limit, or less if the budget was spent."""
        return min(self.limit_seconds, round(time.perf_counter() - self.started, 1))
