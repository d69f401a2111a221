"""Threads that run jobs of all contexts, and for which the process does not wait at its end.

Threads of `concurrent.futures` are joined at the end: a request that a silent server delays for 17 s would delay the
end as long. They also take no work once the main thread has ended, when other threads of the program may still read.
Python 3.12 starts no thread at all from then on, and the caller does the job.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar, cast
from weakref import finalize, ref

from monocontext.engine.malloc import give_back_memory

LOOK_SECONDS = 0.25
"""A waiting caller looks again after this many seconds, notified or not: the notifying thread may have been
interrupted."""

_BEGIN_SECONDS = 1.0
"""A thread that has not begun after this many seconds counts as lost; if it begins after all, it ends as others do."""

_IDLE_SECONDS = 2.0
"""A thread ends after this many seconds without a job, so a burst of requests leaves few threads."""

_IDLE_TIMES = 3
"""After this many waits without a job, a thread counts jobs as lost that were announced and never arrived."""

A = TypeVar("A")
T = TypeVar("T")


class Outcome(Generic[T]):
    """The outcome of work in another thread.

    A `Future` waits with a `Condition`, which an exception in the waiting thread can leave locked; then the thread that
    delivers the outcome waits too, for ever.
    """

    def __init__(self) -> None:
        self._come = threading.Lock()  # released once the outcome has come
        self._come.acquire()
        self._is_there = False
        self._value: T | None = None
        self._error: BaseException | None = None

    def fill(self, work: Callable[[], T]) -> None:
        """Do the work, and keep its result or error. Never raises."""
        try:
            self._value = work()
        except BaseException as error:  # handed to the waiting caller
            self._error = error
        self._is_there = True
        self._come.release()

    def wait(self) -> None:
        """Wait until the work is done."""
        while not self._is_there:
            if self._come.acquire(timeout=LOOK_SECONDS):
                self._come.release()  # if an interrupt skips this, other waiting threads look again by themselves

    def result(self) -> T:
        """Wait for the outcome; return it, or raise its error. Any thread may ask, and more than once."""
        self.wait()
        if self._error is not None:
            raise self._error
        return cast(T, self._value)


class _Begun:
    """Replaces the `Event` by which a thread reports to `Thread.start` that it has begun, with a limit to the wait.

    An exception raised from outside in a thread of CPython 3.11, at the moment at which that thread starts another, is
    raised in the other, which then never reports that it has begun. `Thread.start` would wait for ever.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._come = threading.Lock()
        self._come.acquire()

    def set(self) -> None:
        """Report that this thread has begun. Called once."""
        self._is_set = True
        self._come.release()

    def is_set(self) -> bool:
        return self._is_set

    def wait(self) -> None:
        if not self._is_set:
            self._come.acquire(timeout=_BEGIN_SECONDS)

    def _at_fork_reinit(self) -> None:
        self._come = threading.Lock()
        self._come.acquire()


def _has_begun(thread: threading.Thread) -> bool:
    return bool(thread._started.is_set())  # type: ignore[attr-defined]


class DaemonThreads:
    """At most `most` threads, started on demand. A thread without a job for some seconds ends; all end when the pool is
    closed or garbage."""

    def __init__(self, most: int, name: str):
        self._most = most
        self._name = name
        self._shared = _Shared()
        # A queue that may be put to at any moment, as the collector does.
        self._ending = finalize(self, self._shared.jobs.put, None)
        self._ending.atexit = False

    def submit(self, job: Callable[[], None]) -> bool:
        """Run a job that never raises in a thread. Returns False if no thread can be started: then the caller runs the
        job. Must not be called after `close`."""
        shared = self._shared
        for thread in [thread for thread in shared.threads.copy() if not _has_begun(thread)]:  # others add and discard
            shared.threads.discard(thread)  # a start that was interrupted may have come to nothing
        with shared.lock:
            shared.unfinished += 1
            is_short = len(shared.threads) < min(shared.unfinished, self._most)
        if is_short and not self._start() and not shared.threads:
            with shared.lock:
                shared.unfinished -= 1
            return False
        shared.jobs.put(job)
        if not shared.threads:  # they ended between the count and here: this thread was held up for seconds
            self._start()
        return True

    def _start(self) -> bool:
        shared = self._shared
        name = f"{self._name}_{len(shared.threads) + 1}"
        while True:
            thread = threading.Thread(target=_work, args=(shared,), name=name, daemon=True)
            thread._started = _Begun()  # type: ignore[attr-defined]
            shared.threads.add(thread)
            try:
                thread.start()
            except RuntimeError:  # the system has no more threads
                shared.threads.discard(thread)
                return False
            if _has_begun(thread):
                return True
            shared.threads.discard(thread)

    def call(self, work: Callable[[], T]) -> Outcome[T]:
        """Run work in a thread, or here if no thread can be started, and return its outcome."""
        outcome: Outcome[T] = Outcome()
        if not self.submit(lambda: outcome.fill(work)):
            outcome.fill(work)
        return outcome

    def close(self) -> None:
        """Let the threads end once the waiting jobs are done. Idempotent."""
        self._ending()


def in_threads(work: Callable[[A], T], items: Iterable[A], most: int, name: str) -> list[T]:
    """The results of `work` for each item, in order, computed in at most `most` threads.

    Raises the first error in that order, once the running items have ended; items that have not begun are left out. An
    interrupt is raised at once.
    """
    threads, is_over = DaemonThreads(most, name), False
    outcomes: list[Outcome[T]] = []

    def do(item: A) -> T:
        if is_over:
            raise InterruptedError  # never seen by a caller
        return work(item)

    try:
        outcomes += [threads.call(partial(do, item)) for item in items]
        return [outcome.result() for outcome in outcomes]
    except Exception:
        is_over = True
        for outcome in outcomes:
            outcome.wait()
        raise
    finally:
        is_over = True
        threads.close()


class _Shared:
    """The state that threads refer to: a reference to the whole pool would keep it alive."""

    __slots__ = ("jobs", "lock", "running", "threads", "unfinished")

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        """Jobs to run; None ends all threads."""
        self.lock = threading.Lock()
        """Guards the counts. Code under it makes no object that could start a garbage collection, since that may
        submit."""
        self.threads: set[threading.Thread] = set()
        """At least as many as there are unfinished jobs, up to the most."""
        self.unfinished = 0
        """Jobs that are queued or running; too many after an interrupt between the count and the queue."""
        self.running = 0


def _work(shared: _Shared) -> None:
    """Run jobs until the pool ends, or until there are more threads than jobs for a while."""
    me, idle = threading.current_thread(), 0
    while True:
        try:
            job = shared.jobs.get(timeout=_IDLE_SECONDS)
        except Empty:
            idle += 1
            with shared.lock:
                if idle >= _IDLE_TIMES:
                    shared.unfinished = min(shared.unfinished, shared.running)
                counts_as_lost = me not in shared.threads
                if counts_as_lost or shared.unfinished < len(shared.threads):
                    shared.threads.discard(me)
                    return
            continue
        if job is None:
            break
        idle = 0
        with shared.lock:
            shared.running += 1
        job()
        del job  # so this thread keeps nothing alive until its next job
        with shared.lock:
            shared.running -= 1
            shared.unfinished = max(shared.unfinished - 1, 0)
    shared.jobs.put(None)  # for the other threads


# -- the threads of this process ---------------------------------------------------------------------------------------

MAX_FETCHING = 256
"""The most threads that fetch for all contexts together: as many connections as four of them have at most."""

LOCK = threading.RLock()
"""Guards the pools and every reader that they work for. There is one, since the collector may close an iterator of one
reader while another changes its state: with a lock each, two threads could wait for each other."""


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
        remaining = deque(range(len(works)))
        results: list[T | None] = [None] * len(works)

        def take() -> None:
            while (number := _pop(remaining)) is not None:
                try:
                    results[number] = works[number]()
                except BaseException:
                    remaining.clear()
                    raise

        with LOCK:
            others = [self._helping.call(take) for _ in range(min(self._helpers, len(works) - 1))]
        take()
        for other in others:
            other.result()
        return cast(list[T], results)


_current: Callable[[], ThreadPools | None] = lambda: None  # noqa: E731
"""Returns the pools that were made last, while anything refers to them."""


def shared_pools() -> ThreadPools:
    """The pools of this process. They last as long as a reference to them. Call it under `LOCK`."""
    global _current
    pools = _current()
    if pools is None or pools.pid != os.getpid():  # the child of a fork has no threads of its parent
        pools = ThreadPools()
        _current = ref(pools)
    return pools


class PoolsReference:
    """A reference to the shared pools: acquired at its first use, again after a fork, and released by `close`."""

    def __init__(self) -> None:
        self._pools: ThreadPools | None = None
        self._trimmer: MemoryTrimmer | None = None

    def get(self) -> ThreadPools:
        """The pools. Call it under `LOCK`."""
        if self._pools is None or self._pools.pid != os.getpid():  # the child of a fork has no threads of its parent
            self._pools = shared_pools()
        return self._pools

    def close(self) -> None:
        """Release the pools, and give memory back to the system once this object is garbage. Idempotent."""
        with LOCK:
            if self._pools is not None:
                self._trimmer = self._pools.trimmer
            self._pools = None


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pop(numbers: deque[int]) -> int | None:
    try:
        return numbers.popleft()
    except IndexError:  # another thread took the last one
        return None
