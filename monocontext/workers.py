"""Who carries fetches out: threads or the caller here, a simulated crew on a virtual clock in `monocontext.testing`.

A reader holds `condition` while it touches its state, and leaves it while it waits.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from monocontext.daemon_threads import DaemonThreads
from monocontext.plan import Request

MAX_THREADS = 64
"""Connections at once. At 150 ms a GET and 90 MB/s each, 64 of them carry 50 requests of one slice in a single wave."""


T = TypeVar("T")


class Workers(Protocol):
    """Carries jobs out, somewhere else, some time later."""

    lock: AbstractContextManager[Any]
    """The lock of `condition`: entering it directly saves a third of a cached read's time."""
    condition: threading.Condition
    max_running: int

    def submit(self, request: Request, job: Callable[[], None]) -> None:
        """Run `job`, which carries out `request`, without waiting for it."""
        ...

    def run(self, request: Request, job: Callable[[], None]) -> None:
        """Run `job` where the caller would only wait for it."""
        ...

    def decode(self, work: Callable[[], T]) -> T:
        """Run `work`, the part of a job that needs the processor and memory, and return what it returns."""
        ...

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        """Block until `ready()`, and return True; or return False at the moment `until()`, if it gives one.

        Both are asked under `condition`, at first and whenever something has happened; moments are on the clock `now`.
        """
        ...

    def now(self) -> float:
        """Seconds on the clock that waits are measured by."""
        ...

    def close(self) -> None: ...


class ThreadWorkers:
    """A pool of threads that fetch and one thread that decodes, made on first use and anew after a fork.

    One, because the C library gives each thread that allocates a heap of its own, and frames that leave the cache free
    room in one heap only: a pass over 1 GB and 1000 slices, with a cache of 64 MiB, took 278 MiB of memory with every
    thread decoding, 213 with two decoders and the caller, and take 142 so. It decodes 1 GB of text a second.
    """

    def __init__(self, max_running: int = MAX_THREADS):
        lock = threading.RLock()
        self.lock: AbstractContextManager[Any] = lock
        self.condition = threading.Condition(lock)
        self.max_running = max_running
        self._made: tuple[DaemonThreads, DaemonThreads] | None = None
        self._one_by_one = _OneByOne()
        self._pid = os.getpid()
        with _forking:
            _living.add(self)

    def submit(self, request: Request, job: Callable[[], None]) -> None:
        with self.condition:  # not between a close and its end: a job that is lost is waited for without end
            is_taken = self._pools()[0].submit(job)
        if not is_taken:
            self._one_by_one.run(job)

    def run(self, request: Request, job: Callable[[], None]) -> None:
        job()

    def decode(self, work: Callable[[], T]) -> T:
        with self.condition:
            decoding = self._pools()[1].call(work)
        return decoding.result()

    def _pools(self) -> tuple[DaemonThreads, DaemonThreads]:
        if self._made is None or self._pid != os.getpid():
            fetchers = DaemonThreads(self.max_running, "monocontext")
            self._made = fetchers, DaemonThreads(1, "monocontext-decode")
            self._pid = os.getpid()
        return self._made

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        with self.condition:
            while not ready():
                moment = until() if until else None
                left = None if moment is None else moment - self.now()
                if left is not None and left <= 0:
                    return False
                self.condition.wait(left)
            return True

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        with self.condition:
            if self._made is not None and self._pid == os.getpid():
                for pool in self._made:
                    pool.close()
            self._made = None


class InlineWorkers:
    """No thread at all: each request is carried out where it is sent, by the caller, one after another.

    For hosts that allow no thread between calls. It costs what the waits of one call overlap elsewhere: a slice over 50
    segments takes 50 round trips instead of one, and nothing is hedged. Several callers do read at the same time.
    """

    def __init__(self, max_running: int = MAX_THREADS):
        lock = threading.RLock()
        self.lock: AbstractContextManager[Any] = lock
        self.condition = threading.Condition(lock)
        self.max_running = max_running
        self._one_by_one = _OneByOne()
        with _forking:
            _living.add(self)

    def submit(self, request: Request, job: Callable[[], None]) -> None:
        self._one_by_one.run(job)

    def run(self, request: Request, job: Callable[[], None]) -> None:
        self.submit(request, job)

    def decode(self, work: Callable[[], T]) -> T:
        return work()

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        with self.condition:  # for another caller: all of one's own is done
            return self.condition.wait_for(ready)

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """Nothing to give back."""


class _OneByOne:
    """Carries jobs out in the caller's thread. One that ends starts the next: in a loop, not on the stack, which a scan
    would exhaust."""

    def __init__(self) -> None:
        self._own = threading.local()

    def run(self, job: Callable[[], None]) -> None:
        waiting: deque[Callable[[], None]] | None = getattr(self._own, "waiting", None)
        if waiting is not None:
            waiting.append(job)
            return
        self._own.waiting = waiting = deque([job])
        try:
            while waiting:
                waiting.popleft()()
        finally:
            self._own.waiting = None


_living: WeakSet[ThreadWorkers | InlineWorkers] = WeakSet()
_forking = threading.RLock()
_held: list[ThreadWorkers | InlineWorkers] = []


def _hold_all() -> None:
    """Before a fork: no other thread is in the middle of a change that the child would inherit, lock and all."""
    _forking.acquire()
    _held.extend(_living)
    for workers in _held:
        workers.condition.acquire()


def _let_go() -> None:
    for workers in _held:
        workers.condition.release()
    _held.clear()
    _forking.release()


os.register_at_fork(before=_hold_all, after_in_parent=_let_go, after_in_child=_let_go)
