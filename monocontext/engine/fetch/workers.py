"""Run the jobs of a reader: in threads, or in the caller's own thread.

`monocontext.testing` has workers on a virtual clock, `monocontext.aio` workers on an event loop. A reader holds `lock`
while it touches its state, and leaves it while it waits.
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

from monocontext.engine.fetch.scheduler import RangeRequest
from monocontext.engine.fetch.threads import LOCK, LOOK_SECONDS, PoolsReference

MAX_THREADS = 64
"""The most connections of one reader: at 150 ms a GET and 90 MB/s each, 64 carry 50 requests of one slice at once."""

T = TypeVar("T")
Job = Callable[[], None]


class Workers(Protocol):
    """Runs jobs, and lets callers wait for them."""

    lock: AbstractContextManager[Any]
    """Guards the state of the reader. Reentrant."""
    max_running: int
    """The most jobs at once."""
    runs_inline: bool
    """Whether a caller that waits for a single request carries it out itself, which saves waking a thread."""

    def submit(self, request: RangeRequest, job: Job) -> bool:
        """Run `job`, which never raises, to carry out `request`, without waiting for it.

        Returns False if no thread can: then a waiting caller does it. Called under `lock`.
        """
        ...

    def decode(self, work: Callable[[], T]) -> T:
        """Run `work`, the part of a job that takes processor time and memory, and return its result."""
        ...

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Inside `decode`: run pieces of work that allocate little, on all cores, and return their results."""
        ...

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        """Block until `ready()`, and return True; or return False at the time `until()`, unless that is None.

        Both are called at once, at each `notify`, and at intervals; times are on the clock `now`.
        """
        ...

    def notify(self) -> None:
        """Make all waiting callers look again."""
        ...

    def now(self) -> float:
        """The time in seconds, on the clock of `wait`."""
        ...

    def close(self) -> None: ...


class _Notifier:
    """Wakes waiting callers. Each one has its own lock, which `notify` releases. An exception in a waiter leaves a
    lock that the next `notify` drops; after one in the notifier, the waiter looks again by itself."""

    def __init__(self) -> None:
        self._bells: deque[threading.Lock] = deque()

    def wait(self, ready: Callable[[], bool], seconds_left: Callable[[], float | None]) -> bool:
        bell = None
        while True:
            if bell is None:
                bell = threading.Lock()
                bell.acquire()
                self._bells.append(bell)
            if ready():
                return True
            remaining = seconds_left()
            if remaining is not None and remaining <= 0:
                return False
            if bell.acquire(timeout=LOOK_SECONDS if remaining is None else min(remaining, LOOK_SECONDS)):
                bell = None

    def notify(self) -> None:
        while self._bells:
            with suppress(IndexError):  # another thread notifies as well
                self._bells.popleft().release()


class ThreadWorkers(Workers):
    """The shared threads of the process: acquired with the first job, again after a fork, and released by `close`."""

    runs_inline = True

    def __init__(self, max_running: int = MAX_THREADS):
        self.lock: AbstractContextManager[Any] = LOCK
        self.max_running = max_running
        self._notifier = _Notifier()
        self._pools = PoolsReference()

    def submit(self, request: RangeRequest, job: Job) -> bool:
        with LOCK:  # so no `close` comes in between: a caller would wait for ever for a lost job
            return self._pools.get().fetching.submit(job)

    def decode(self, work: Callable[[], T]) -> T:
        with LOCK:
            decoding = self._pools.get().decoding.call(work)
        return decoding.result()

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        with LOCK:
            pools = self._pools.get()
        return pools.share(works)

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
        self._pools.close()


class InlineWorkers(Workers):
    """Runs no job: the waiting caller carries out its requests, one after another. For hosts that allow no thread
    between calls.

    Nothing overlaps within a call: a slice over 50 segments takes 50 round trips instead of one, and nothing is hedged.
    Several callers still read at the same time.
    """

    max_running = MAX_THREADS
    runs_inline = True

    def __init__(self) -> None:
        self.lock: AbstractContextManager[Any] = threading.RLock()
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
        return self._notifier.wait(ready, lambda: None)  # only for another caller: its own requests are done

    def notify(self) -> None:
        self._notifier.notify()

    now = staticmethod(time.monotonic)

    def close(self) -> None:
        """Do nothing: there are no threads to give back."""


_living: WeakSet[InlineWorkers] = WeakSet()
_forking = threading.RLock()
_held: list[AbstractContextManager[Any]] = []


def _lock_all() -> None:
    """Before a fork, take all locks: the child must not inherit a change that another thread has half done."""
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
