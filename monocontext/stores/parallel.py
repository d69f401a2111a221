"""Call a function on many items at once, in threads or any `concurrent.futures.Executor` (processes, Dask)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
R = TypeVar("R")

AHEAD = 8
"""How many parts are submitted ahead of the result that is awaited. Their inputs and results wait in memory."""


def in_order(
    executor: Executor, work: Callable[[_T], R], parts: Iterable[_T], ahead: int = AHEAD
) -> Generator[R, None, None]:
    """Yield `work(part)` for each part, in order, while up to `ahead` parts are submitted.

    `work` and the parts must be picklable if the executor uses other processes. An error in a part ends the iteration.
    Then, and when the iterator is closed, parts that have not started are cancelled.
    """
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, not {executor!r}")
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


def at_once(work: Callable[[_T], R], items: Iterable[_T], most_threads: int) -> list[R]:
    """Call `work` on each item, in at most `most_threads` threads, and return the results in order. A single item takes
    no thread. Raises the first error in that order, and skips the items that have not begun."""
    parts = list(items)
    if len(parts) < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(min(most_threads, len(parts)), thread_name_prefix="monocontext-at-once") as threads:
        return list(threads.map(work, parts))
