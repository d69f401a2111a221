"""Carry out requests in threads that all readers of the process share.

The process does not wait for these threads at its end, as it does for those of `concurrent.futures`: a silent server
would delay it. A benchmark or test may pass workers on a virtual clock instead.
"""

from __future__ import annotations

import _thread  # `threading.Thread.start` waits for the new thread: for ever, if an exception hits that at once
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from monocontext.engine.fetch.requests import Arrival, FetchRequest
from monocontext.errors import ContextClosed

_T = TypeVar("_T")

LOCK = threading.RLock()
"""Guards the state of all readers, and is held during a fork. There is one, and it is reentrant, since the garbage
collector may close an iterator of one reader while another changes its state: with a lock for each reader, two threads
could wait for each other.

On CPython 3.11 to 3.13 an interrupt comes either before `with LOCK` has the lock or inside its block, so the lock is
always released (tests/faults/test_interrupts.py).
"""

MAX_RUNNING = 64  # the most requests of one reader at once, enough for the 50 of one slice at 150 ms and 90 MB/s
MAX_THREADS = 256  # the most threads for all readers: enough for the requests of four of them at `MAX_RUNNING`
LOOK_SECONDS = 0.25  # a waiting caller checks again after this time: the thread that wakes it may be interrupted
_IDLE_SECONDS = 2.0  # a thread ends after this many seconds without a job, so that a burst leaves few threads
_BEGIN_SECONDS = 1.0  # a thread that has not begun after this many seconds counts as lost


class Call(threading.local):
    """The call that the current thread carries out."""

    raise_if_abandoned: Callable[[], None] = staticmethod(lambda: None)
    """Called before and while the thread waits for data. Raises an error if nobody waits for the call any longer."""


CALL = Call()


class RequestSource(Protocol):
    """A source of the requests that workers carry out."""

    def next_request(self) -> FetchRequest | None:
        """Take the next request that may start now."""
        ...

    def carry_out(self, request: FetchRequest) -> None:
        """Send a request that was taken, and deliver its values or its error."""
        ...


class Workers(Protocol):
    """Carries out the requests of sources, and lets callers wait for them."""

    max_running: int  # the most requests of one source at once

    def start(self, source: RequestSource, count: int) -> None:
        """Begin to carry out up to `count` requests of a source, and then others until none may start. Never waits."""
        ...

    def wait(self, request: FetchRequest) -> bool:
        """Wait for a request for a short time; returns whether it is done."""
        ...

    def now(self) -> float:
        """The time in seconds."""
        ...


class Threads:
    """A pool of threads, started on demand.

    A job stays in the queue until the thread that runs it counts as running, and a thread ends only while the queue is
    empty, both under the lock. So each job gets a thread, and none waits for a longer job while a thread may start.
    """

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._jobs: deque[Callable[[], None]] = deque()
        self._wake_ups: SimpleQueue[None] = SimpleQueue()  # one item for each job; idle threads wait for the next one
        self._alive: set[int] = set()  # the threads that have begun and not ended
        self._running = 0  # the number of threads that run a job
        self._starting: deque[float] = deque()  # for each thread that has not begun yet, when it was started

    def run(self, job: Callable[[], None]) -> None:
        """Run a job in a thread of the pool; if the system refuses to start its first thread, in the calling thread.
        Raises `ContextClosed` while the interpreter ends, when the `__del__` of a remaining object may call this."""
        if sys.is_finalizing():
            raise ContextClosed("the interpreter is ending, so no thread can read: finish all reads before it does")
        now = time.monotonic()
        with LOCK:
            self._jobs.append(job)
            while self._starting and self._starting[0] < now - _BEGIN_SECONDS:
                self._starting.popleft()
            threads = len(self._alive) + len(self._starting)
            needs_thread = len(self._jobs) > threads - self._running and threads < self._max_threads
            if needs_thread:
                self._starting.append(now)
        self._wake_ups.put(None)
        if needs_thread:
            try:
                _thread.start_new_thread(self._work, ())
            except RuntimeError:  # no more threads
                with LOCK:
                    if self._starting:
                        self._starting.pop()
                if not self._alive:
                    self._run_one()

    def _run_one(self) -> bool:
        """Run the next job. Returns whether there was one."""
        with LOCK:
            if not self._jobs:
                return False
            job = self._jobs.popleft()
            self._running += 1
        try:
            job()
        finally:
            with LOCK:
                self._running -= 1
        return True

    def _work(self) -> None:
        """Run jobs until none has come for a while."""
        thread = threading.get_ident()
        with LOCK:
            self._alive.add(thread)
            if self._starting:
                self._starting.popleft()
        try:
            while True:
                if self._run_one():
                    continue
                try:
                    self._wake_ups.get(timeout=_IDLE_SECONDS)
                except Empty:
                    with LOCK:
                        if not self._jobs:
                            self._alive.discard(thread)
                            return
        finally:
            with LOCK:
                self._alive.discard(thread)


class _Pools:
    """The threads that all readers of a process share."""

    def __init__(self) -> None:
        self.requests = Threads(MAX_THREADS)
        self.decoder = Threads(1)


_pools = _Pools()


def run_in_thread(job: Callable[[], None]) -> None:
    """Run a job, which never raises, in one of the threads that all readers share."""
    _pools.requests.run(job)


def run_in_decoder(work: Callable[[], _T]) -> _T:
    """Run work that allocates text in the only thread that does so. Returns its result or raises its error.

    Each thread has a heap of its own, where large texts leave gaps: a pass over 315 MB with a cache of 64 MiB takes 358
    MB of memory if many threads decode, 150 MB if one does.
    """
    arrival = Arrival()
    results, errors = list[_T](), list[BaseException]()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # the waiting thread raises it
            errors.append(error)
        arrival.arrive()

    _pools.decoder.run(run)
    while not arrival.wait(LOOK_SECONDS):
        pass
    if errors:
        raise errors[0]
    return results[0]


class ThreadWorkers:
    """Workers that carry out requests in threads of this process."""

    now = staticmethod(time.monotonic)

    def __init__(self, max_running: int = MAX_RUNNING) -> None:
        self.max_running = max_running

    def start(self, source: RequestSource, count: int) -> None:
        def carry_out() -> None:
            while (request := source.next_request()) is not None:
                source.carry_out(request)
                del request

        for _ in range(min(count, self.max_running)):
            run_in_thread(carry_out)

    def wait(self, request: FetchRequest) -> bool:
        return request.wait(LOOK_SECONDS)


DEFAULT_WORKERS = ThreadWorkers()  # the workers of all readers that are given no others


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks

    def _after_fork() -> None:
        global _pools
        _pools = _Pools()  # the child has none of the threads of its parent
        LOCK.release()

    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=_after_fork)
