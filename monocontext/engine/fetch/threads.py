"""Do work for many items in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


def in_threads(work: Callable[[A], T], items: Iterable[A], most: int, name: str) -> list[T]:
    """The results of `work` for each item, in order, computed in at most `most` threads.

    Raises the first error in that order, once the running items have ended; items that have not begun are left out.
    """
    with ThreadPoolExecutor(most, name) as threads:
        futures = [threads.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
