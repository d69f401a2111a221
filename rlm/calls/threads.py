"""Run jobs side by side on daemon threads.

A process that ends joins the threads of an executor: after Ctrl-C, a call of ten minutes would keep it alive.
"""

from __future__ import annotations

from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")
_LOOK_SECONDS = 0.25
"""A wait in slices of this length lets an exception reach the thread that waits."""


def run_side_by_side(jobs: Sequence[Callable[[], T]], most: int) -> list[T]:
    """The results of `jobs` in order, at most `most` of them at once.

    Raises the exception of the first failed job, once those before it have ended. Then, and when the wait is
    interrupted, no further job begins, and the running ones end by themselves: an exception that is raised in the
    thread of a cell, which has run out of time, never strikes a job.
    """
    remaining = deque(enumerate(jobs))
    ended: SimpleQueue[tuple[int, list[T], BaseException | None]] = SimpleQueue()
    outcomes: dict[int, tuple[list[T], BaseException | None]] = {}

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
        results: list[T] = []
        for number in range(len(jobs)):
            while number not in outcomes:
                try:
                    done, result, error = ended.get(timeout=_LOOK_SECONDS)
                except Empty:
                    if (
                        remaining and len(jobs) - len(remaining) - len(outcomes) < most
                    ):  # a thread was lost at its start
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
