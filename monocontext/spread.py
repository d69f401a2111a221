"""Work on parts of a text, done by any `concurrent.futures.Executor`: threads, processes, a cluster such as Dask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 8
"""Parts handed out at once. Their results, and for a writer their text, are in memory until they are taken."""


def in_order(
    executor: Executor, work: Callable[[T], R], parts: Iterable[T], ahead: int = AHEAD
) -> Generator[R, None, None]:
    """`work(part)` for each part, in order, up to `ahead` of them under way.

    `work` and parts are pickled where the executor's workers are other processes. An error in one ends the iteration;
    what has not begun by then, or when the iterator is abandoned, is cancelled.
    """
    pending: deque[Future[R]] = deque()
    try:
        for part in parts:
            pending.append(executor.submit(work, part))
            if len(pending) >= ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()
