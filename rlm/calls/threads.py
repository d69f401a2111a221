"""Run jobs side by side on daemon threads.

A process that ends joins the threads of an executor: after Ctrl-C, a call of ten minutes would keep it alive.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

T = TypeVar("T")
_LOOK_SECONDS = 0.25
_BEGIN_SECONDS = 1.0
"""A thread that has not begun after this time is given up, and another is started."""


def run_side_by_side(jobs: Sequence[Callable[[], T]], most: int, name: str) -> list[T]:
    """The results of `jobs` in order, at most `most` of them at once.

    Raises the exception of the first failed job, once those before it have ended. Then, and when the wait is
    interrupted, no further job begins, and the running ones end by themselves.
    """
    left = deque(_Job(job) for job in jobs)
    all_jobs = list(left)

    def work() -> None:
        while True:
            try:
                job = left.popleft()
            except IndexError:
                return
            job.do()

    try:
        for number in range(min(most, len(jobs))):
            _start(work, f"{name}_{number}")
        return [job.result() for job in all_jobs]
    finally:
        left.clear()


class _Job(Generic[T]):
    """A job and its result.

    A `Future` will not do: an asynchronous exception in its `Condition` can leave the lock held, and then the thread
    with the result waits forever.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done = threading.Lock()
        self._done.acquire()
        self._value: T | None = None
        self._error: BaseException | None = None

    def do(self) -> None:
        """Run the job and keep its result or exception; never raises."""
        try:
            self._value = self._work()
        except BaseException as error:  # raised again by the caller that waits
            self._error = error
        self._done.release()

    def result(self) -> T:
        """The result, once; raises the error of the job."""
        while not self._done.acquire(timeout=_LOOK_SECONDS):
            pass
        if self._error is not None:
            raise self._error
        return cast(T, self._value)


class _Begun:
    """The event that `Thread.start` waits for, with a time limit.

    In CPython 3.11, an asynchronous exception in a thread that is starting another can hit the new thread, which then
    never sets its event. An `Event` will not do, since it waits by a `Condition`: see `_Job`.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._come = threading.Lock()
        self._come.acquire()

    def set(self) -> None:
        """Called once, by the new thread, when it has begun."""
        self._is_set = True
        self._come.release()

    def is_set(self) -> bool:
        return self._is_set

    def wait(self) -> None:
        if not self._is_set:
            self._come.acquire(timeout=_BEGIN_SECONDS)

    def _at_fork_reinit(self) -> None:
        self._come = threading.Lock()
        self._come.acquire()


def _start(work: Callable[[], None], name: str) -> None:
    has_begun = None
    while has_begun is None or not has_begun.is_set():  # a lost thread never says so, though it may have an `ident`
        has_begun = _Begun()
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread._started = has_begun  # type: ignore[attr-defined]
        thread.start()
