"""Jobs done side by side, by threads that nobody waits for when the process ends.

Those of an executor are joined first: after Ctrl-C a call of a model that takes ten minutes would keep the process.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def side_by_side(jobs: Sequence[Callable[[], T]], most: int, name: str) -> list[T]:
    """What jobs return, in their order, `most` under way at once.

    Raises what the first of them raises, once those before it have ended; then, and when the wait is interrupted, no
    further one is begun, and those under way end by themselves.
    """
    results: list[Future[T]] = [Future() for _ in jobs]
    left = deque(zip(jobs, results, strict=True))

    def work() -> None:
        while True:
            try:
                job, result = left.popleft()
            except IndexError:
                return
            try:
                result.set_result(job())
            except BaseException as exc:  # handed to whoever waits
                result.set_exception(exc)

    try:
        for number in range(min(most, len(jobs))):
            threading.Thread(target=work, name=f"{name}_{number}", daemon=True).start()
        return [result.result() for result in results]
    finally:
        left.clear()
