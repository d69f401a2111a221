"""Carry fetches out: by threads or by the caller here, on a virtual clock in `monocontext.testing`.

A reader holds `lock` while it touches its state, and leaves it while it waits.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from monocontext.engine.fetch.requests import RangeRequest
from monocontext.engine.fetch.threads import LOCK, LOOK_SECONDS, MemoryTrimmer, ThreadPools, shared_pools

MAX_THREADS = 64
"""Connections at once. At 150 ms a GET and 90 MB/s each, 64 of them carry 50 requests of one slice in a single wave."""

T = TypeVar("T")
Job = Callable[[], None]


class Workers(Protocol):
    """Carries jobs out, somewhere else, some time later."""

    lock: AbstractContextManager[Any]
    """Reentrant."""
    max_running: int
    runs_inline: bool
    """Whether a caller that waits for a single request carries it out itself, which saves waking a thread."""

    def submit(self, request: RangeRequest, job: Job) -> bool:
        """Run `job`, which never raises, to carry out `request`, without waiting for it.

        Returns False if no thread can: then a waiting caller does it. Called under `lock`.
        """
        ...

    def submit_all(self, jobs: Sequence[tuple[RangeRequest, Job]]) -> int:
        """Like `start`, for many at once. Returns how many of them, from the first, were started."""
        return next((number for number, each in enumerate(jobs) if not self.submit(*each)), len(jobs))

    def decode(self, work: Callable[[], T]) -> T:
        """Run `work`, the part of a job that needs the processor and memory, and return what it returns."""
        ...

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Inside `decode`: run pieces of work that allocate little, on all cores, and return their results."""
        ...

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        """Block until `ready()`, and return True; or return False at the time `until()`, if it gives one.

        Both are called first, at each `notify`, and now and then; times are on the clock `now`.
        """
        ...

    def notify(self) -> None:
        """Make all waiting callers look again."""
        ...

    def now(self) -> float:
        """Seconds on the clock that waits are measured by."""
        ...

    def close(self) -> None: ...


class _Notifier:
    """Wakes waiting callers. Each one has a lock of its own, which `notify` releases. An exception in a waiter leaves a
    lock behind that the next `notify` drops; one in the notifier is made up for by the waiter's next look."""

    def __init__(self) -> None:
        self._notifier: deque[threading.Lock] = deque()

    def wait(self, ready: Callable[[], bool], seconds_left: Callable[[], float | None]) -> bool:
        bell = None
        while True:
            if bell is None:
                bell = threading.Lock()
                bell.acquire()
                self._notifier.append(bell)
            if ready():
                return True
            left = seconds_left()
            if left is not None and left <= 0:
                return False
            if bell.acquire(timeout=LOOK_SECONDS if left is None else min(left, LOOK_SECONDS)):
                bell = None

    def notify(self) -> None:
        while self._notifier:
            with suppress(IndexError):  # another rings as well
                self._notifier.popleft().release()


class ThreadWorkers(Workers):
    """The shared threads of the process: acquired with the first job, again after a fork, and released by `close`."""

    runs_inline = True

    def __init__(self, max_running: int = MAX_THREADS):
        self.lock: AbstractContextManager[Any] = LOCK
        self.max_running = max_running
        self._notifier = _Notifier()
        self._thread_pools: ThreadPools | None = None
        self._freed: MemoryTrimmer | None = None

    def submit(self, request: RangeRequest, job: Job) -> bool:
        return self.submit_all([(request, job)]) == 1

    def submit_all(self, jobs: Sequence[tuple[RangeRequest, Job]]) -> int:
        works = [job for _, job in jobs]
        with LOCK:  # not between a close and its end: a job that is lost is waited for without end
            self._thread_pools = thread_pools = shared_pools(self._thread_pools)
            return thread_pools.fetching.submit_all(works)

    def decode(self, work: Callable[[], T]) -> T:
        with LOCK:
            self._thread_pools = thread_pools = shared_pools(self._thread_pools)
            decoding = thread_pools.decoding.call(work)
        return decoding.result()

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        with LOCK:
            self._thread_pools = thread_pools = shared_pools(self._thread_pools)
        return thread_pools.share(works)

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        def left() -> float | None:
            with self.lock:
                moment = until() if until else None
            return None if moment is None else moment - self.now()

        return self._notifier.wait(ready, left)

    def notify(self) -> None:
        self._notifier.notify()

    now = staticmethod(time.monotonic)

    def close(self) -> None:
        with LOCK:
            if self._thread_pools is not None:
                self._freed = self._thread_pools.freed
            self._thread_pools = None


class InlineWorkers(Workers):
    """No threads: the waiting caller carries out each request, one after another. For hosts that allow no thread
    between calls.

    Nothing overlaps within a call: a slice over 50 segments takes 50 round trips instead of one, and nothing is hedged.
    Several callers still read at the same time.
    """

    runs_inline = True

    def __init__(self, max_running: int = MAX_THREADS):
        self.lock: AbstractContextManager[Any] = threading.RLock()
        self.max_running = max_running
        self._notifier = _Notifier()
        with _forking:
            _living.add(self)

    def submit(self, request: RangeRequest, job: Job) -> bool:
        return False

    def decode(self, work: Callable[[], T]) -> T:
        return work()

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        return [work() for work in works]

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        return self._notifier.wait(ready, lambda: None)  # for another caller: all of one's own is done

    def notify(self) -> None:
        self._notifier.notify()

    now = staticmethod(time.monotonic)

    def close(self) -> None:
        """Nothing to give back."""


_living: WeakSet[InlineWorkers] = WeakSet()
_forking = threading.RLock()
_held: list[AbstractContextManager[Any]] = []


def _lock_all() -> None:
    """Before a fork: no other thread is in the middle of a change that the child would inherit, lock and all."""
    _forking.acquire()
    _held.extend([LOCK, *(workers.lock for workers in _living)])
    for lock in _held:
        lock.__enter__()


def _unlock_all() -> None:
    for lock in _held:
        lock.__exit__(None, None, None)
    _held.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_lock_all, after_in_parent=_unlock_all, after_in_child=_unlock_all)
