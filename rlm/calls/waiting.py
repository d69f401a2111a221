"""Wait for calls: run them side by side on daemon threads, and measure the wait, which a cell does not pay.

A process that ends joins the threads of an executor: after Ctrl-C, a call of ten minutes would keep it alive.
"""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

_T = TypeVar("_T")
_LOOK_SECONDS = 0.25  # a wait in slices of this length lets an exception reach the thread that waits


def run_side_by_side(jobs: Sequence[Callable[[], _T]], most: int) -> list[_T]:
    """The results of `jobs` in order, at most `most` of them at once.

    Raises the exception of the first failed job, once those before it have ended. Then, and when the wait is
    interrupted, no further job begins, and the running ones end by themselves: an exception that is raised in the
    thread of a cell, which has run out of time, never strikes a job.
    """
    remaining = deque(enumerate(jobs))
    ended: SimpleQueue[tuple[int, list[_T], BaseException | None]] = SimpleQueue()
    outcomes: dict[int, tuple[list[_T], BaseException | None]] = {}

    def work() -> None:
        while remaining:
            try:
                number, job = remaining.popleft()
            except IndexError:
                return
            try:
                ended.put((number, [job()], None))
            except BaseException as error:  # raised again by the caller that waits
                ended.put((number, [], error))

    # `Thread.start` waits for the new thread. In CPython 3.11 an exception for the thread that starts another can
    # strike the new one, which then never says that it has begun: that wait would have no end.
    try:
        for _ in range(min(most, len(jobs))):
            start_new_thread(work, ())
        results: list[_T] = []
        for number in range(len(jobs)):
            while number not in outcomes:
                try:
                    done, result, error = ended.get(timeout=_LOOK_SECONDS)
                except Empty:
                    running = len(jobs) - len(remaining) - len(outcomes)
                    if remaining and running < most:  # a thread was lost at its start
                        start_new_thread(work, ())
                else:
                    outcomes[done] = result, error
            result, failed = outcomes[number]
            if failed is not None:
                raise failed
            results += result
        return results
    finally:
        remaining.clear()


@dataclass(slots=True, eq=False)
class WaitClock:
    """Runs while any call does; overlapping calls count once. Safe for use by many threads.

    Each call holds a lock of its own, in a `with`: an interrupted call releases it, wherever the interrupt struck, and
    stops counting.
    """

    _lock: threading.RLock = field(default_factory=threading.RLock)
    _calls: list[threading.Lock] = field(default_factory=list)
    _counted: tuple[float, float] = 0.0, 0.0  # seconds so far, and the clock when they were counted

    @property
    def seconds(self) -> float:
        """The seconds so far, including calls in progress."""
        with self._lock:
            seconds, then = self._counted
            now = time.perf_counter()
            self._counted = seconds + (now - then if self._calls else 0.0), now
            if self._calls:
                self._calls = [call for call in self._calls if call.locked()]
            return self._counted[0]

    @contextmanager
    def running(self, held_lock: threading.Lock) -> Iterator[None]:
        """Count the time inside the block as a call, as long as the caller holds the lock `held_lock`.

        The caller must hold the lock itself: an interrupt can leave this generator suspended with a lock held.
        """
        with self._lock:
            self._counted = self.seconds, time.perf_counter()
            self._calls.append(held_lock)
        try:
            yield
        finally:  # if this is not reached, the free lock is not counted
            with self._lock:
                self._counted = self.seconds, time.perf_counter()
                self._calls.remove(held_lock)


class AwaitedCalls(Protocol):
    """The calls that a cell makes, and waits for."""

    waited: WaitClock

    @property
    def seconds_left(self) -> Callable[[], float]: ...


def cell_clock(limit_seconds: float, calls: AwaitedCalls) -> Callable[[], float]:
    """The function that gives the time until a cell that begins now must end.

    `limit_seconds`: without the time in which it waits for sub-calls. The budget leaves each cell a second, in which it
    may draft an answer.
    """
    started, waited_before = time.perf_counter(), calls.waited.seconds

    def seconds_left() -> float:
        elapsed = time.perf_counter() - started
        own = elapsed - (calls.waited.seconds - waited_before)
        return min(limit_seconds - own, max(calls.seconds_left(), 1 - elapsed))

    return seconds_left
