"""Share one set of threads among all contexts of a process: many that fetch, one that decodes, helpers for it."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar, cast
from weakref import finalize, ref

from monocontext.engine.fetch.threads import DaemonThreads
from monocontext.engine.malloc import give_back_memory

MAX_FETCHING = 256
"""The most threads that fetch for all contexts together: as many connections as four of them have at most."""

LOCK = threading.RLock()
"""Guards the pools and every reader that they work for. There is one, since the collector may close an iterator of one
reader while another changes its state: with a lock each, two threads could wait for each other."""

T = TypeVar("T")


class MemoryTrimmer:
    """Gives memory back to the system once every closed context with a reference to it is garbage."""

    def __init__(self) -> None:
        finalize(self, give_back_memory).atexit = False


class ThreadPools:
    """The threads. Call its methods under `LOCK`, except `share`."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._helpers = cores() - 1
        self.fetching = DaemonThreads(MAX_FETCHING, "monocontext")
        self.decoding = DaemonThreads(1, "monocontext-decode")
        self._helping = DaemonThreads(self._helpers, "monocontext-help")
        self.trimmer = MemoryTrimmer()
        finalize(self, give_back_memory).atexit = False

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """The results of pieces of work, done on all cores. Call it in the decoding thread."""
        if not self._helpers or len(works) < 2:
            return [work() for work in works]
        left = deque(range(len(works)))
        results: list[T | None] = [None] * len(works)

        def take() -> None:
            while (number := _pop(left)) is not None:
                try:
                    results[number] = works[number]()
                except BaseException:
                    left.clear()
                    raise

        with LOCK:
            others = [self._helping.call(take) for _ in range(min(self._helpers, len(works) - 1))]
        take()
        for other in others:
            other.result()
        return cast(list[T], results)


_current: Callable[[], ThreadPools | None] = lambda: None  # noqa: E731
"""Returns the pools that were made last, while anything refers to them."""


def shared_pools(own: ThreadPools | None = None) -> ThreadPools:
    """The pools of this process; `own` unless a fork came in between. They last as long as a reference to them. Call it
    under `LOCK`."""
    global _current
    for pools in (own, _current()):
        if pools is not None and pools.pid == os.getpid():  # the child of a fork has no threads of its parent
            return pools
    made = ThreadPools()
    _current = ref(made)
    return made


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pop(numbers: deque[int]) -> int | None:
    try:
        return numbers.popleft()
    except IndexError:  # another thread took the last one
        return None
