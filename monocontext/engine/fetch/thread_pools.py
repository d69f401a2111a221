"""Threads that all contexts of a process share: many that fetch, one that allocates text, helpers that decode.

The threads are made on first use, and end when no context uses the pools any more: after the last close. Freed memory
is then given back to the system, and again once the closed contexts are forgotten: a thousand of them hold 20 MB.

One thread makes room, because the C library gives each thread that allocates a heap of its own, and frames that leave
the cache free room in one heap only: a pass over 1 GB and 1000 slices, with a cache of 64 MiB, took 278 MiB of memory
with every thread decoding into room of its own, 213 with two decoders and the caller, and takes 142 so. Helpers fill
that room, on as many cores as there are.
"""

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
"""Threads that fetch for all contexts together: as many connections as four of them have at most."""

LOCK = threading.RLock()
"""Guards the pools and every reader that they work for. There is one, since the collector may close an iterator of one
reader while another changes its state: with a lock each, two threads could wait for each other."""

T = TypeVar("T")


class MemoryTrimmer:
    """Gives memory back to the system once every closed context that holds it is forgotten."""

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
        self.freed = MemoryTrimmer()
        finalize(self, give_back_memory).atexit = False

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Inside the decoding thread: carry out pieces of work, on all cores."""
        if not self._helpers or len(works) < 2:
            return [work() for work in works]
        left = deque(range(len(works)))
        done: list[T | None] = [None] * len(works)

        def take() -> None:
            while (number := _pop(left)) is not None:
                try:
                    done[number] = works[number]()
                except BaseException:
                    left.clear()
                    raise

        with LOCK:
            others = [self._helping.call(take) for _ in range(min(self._helpers, len(works) - 1))]
        take()
        for other in others:
            other.result()
        return cast(list[T], done)


_current: Callable[[], ThreadPools | None] = lambda: None  # noqa: E731


def shared_pools(mine: ThreadPools | None = None) -> ThreadPools:
    """The pools of this process; `mine` if they still are. They last as long as a reference to them. Needs `LOCK`."""
    global _current
    for thread_pools in (mine, _current()):
        if (
            thread_pools is not None and thread_pools.pid == os.getpid()
        ):  # threads do not come along to the child of a fork
            return thread_pools
    made = ThreadPools()
    _current = ref(made)
    return made


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pop(numbers: deque[int]) -> int | None:
    try:
        return numbers.popleft()
    except IndexError:  # another took the last one
        return None
