"""Run jobs in daemon threads, for which the process does not wait at its end.

Threads of `concurrent.futures` are joined first: a request that a silent server holds for 17 s would hold the process
as long. They also take no work once the main thread has ended, when other threads of the program may still read. From
then on, Python 3.12 starts no thread either; then the caller does the job.
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
"""A thread that has not begun by then is taken for lost; it ends as the others do should it begin after all."""

_IDLE_SECONDS = 2.0
"""A thread without a job for so long ends: a burst of requests leaves no crowd behind."""

_IDLE_TIMES = 3
"""After this many waits without a job, a thread considers the jobs that were counted and never arrived as lost."""

A = TypeVar("A")
T = TypeVar("T")


class Outcome(Generic[T]):
    """The outcome of work in another thread.

    A `Future` waits with a `Condition`, which an exception in the waiting thread can leave locked; then the thread that
    delivers the outcome waits too, for ever.
    """

    def __init__(self) -> None:
        self._come = threading.Lock()
        self._come.acquire()
        self._is_there = False
        self._value: T | None = None
        self._error: BaseException | None = None

    def fill(self, work: Callable[[], T]) -> None:
        """Do the work. Never raises."""
        try:
            self._value = work()
        except BaseException as error:  # handed to the waiting caller
            self._error = error
        self._is_there = True
        self._come.release()

    def wait(self) -> None:
        """Until it has come."""
        while not self._is_there:
            if self._come.acquire(timeout=LOOK_SECONDS):
                self._come.release()  # where this is not reached the others look again by themselves

    def result(self) -> T:
        """Wait for the outcome; return it, or raise its error. Any thread may ask, and more than once."""
        self.wait()
        if self._error is not None:
            raise self._error
        return cast(T, self._value)


class _Begun:
    """Says that a thread has begun. `Thread.start` waits for this, and would wait for ever.

    An exception raised from outside in a thread of CPython 3.11, at the moment at which that thread starts another, is
    raised in the other, which then never reports that it has begun. It may have an `ident` all the same. It is not an
    `Event`, for the reason given at `Outcome`.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._come = threading.Lock()
        self._come.acquire()

    def set(self) -> None:
        """In the thread that has begun, once."""
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
        job. Not after `close`."""
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

    def submit_all(self, jobs: Sequence[Callable[[], None]]) -> int:
        """Like `start`, for many jobs. Returns how many of them, from the first, run in threads."""
        return next((number for number, job in enumerate(jobs) if not self.submit(job)), len(jobs))

    def _start(self) -> bool:
        shared = self._shared
        name = f"{self._name}_{len(shared.threads) + 1}"
        while True:
            thread = threading.Thread(target=_work, args=(shared,), name=name, daemon=True)
            thread._started = _Begun()  # type: ignore[attr-defined]
            shared.threads.add(thread)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more
                shared.threads.discard(thread)
                return False
            if _has_begun(thread):
                return True
            shared.threads.discard(thread)

    def call(self, work: Callable[[], T]) -> Outcome[T]:
        """Like `start`, for work that returns or raises something, in any thread."""
        outcome: Outcome[T] = Outcome()
        if not self.submit(lambda: outcome.fill(work)):
            outcome.fill(work)
        return outcome

    def close(self) -> None:
        """Let the threads end once the waiting jobs are done. Idempotent."""
        self._ending()


def in_threads(work: Callable[[A], T], items: Iterable[A], most: int, name: str) -> list[T]:
    """The results of `work` for each item, in order, computed in at most `most` threads.

    The first error in that order is raised once the running items have ended; items that have not begun are left out.
    After an interrupt nothing is awaited.
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
    """The part that threads refer to: a reference to all of it would keep it alive."""

    __slots__ = ("jobs", "lock", "running", "threads", "unfinished")

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.lock = threading.Lock()
        """Nothing that is done under it can set off the collector, which may submit as well."""
        self.threads: set[threading.Thread] = set()
        """As many as there are unfinished jobs, up to the most, or more."""
        self.unfinished = 0
        """Jobs that were counted and are not done; too many where an interrupt came between the count and the queue."""
        self.running = 0
        """Jobs that threads are at."""


def _work(shared: _Shared) -> None:
    me, idle = threading.current_thread(), 0
    while True:
        try:
            job = shared.jobs.get(timeout=_IDLE_SECONDS)
        except Empty:
            idle += 1
            with shared.lock:
                if idle >= _IDLE_TIMES:
                    shared.unfinished = min(shared.unfinished, shared.running)
                is_lost = me not in shared.threads  # taken for that, since it began late
                if is_lost or shared.unfinished < len(shared.threads):
                    shared.threads.discard(me)
                    return
            continue
        if job is None:
            break
        idle = 0
        with shared.lock:
            shared.running += 1
        job()
        del job  # drop the job, so that this thread keeps nothing alive until the next one
        with shared.lock:
            shared.running -= 1
            shared.unfinished = max(shared.unfinished - 1, 0)
    shared.jobs.put(None)  # for the others


MAX_FETCHING = 256
"""Threads that fetch for all contexts together: as many connections as four of them have at most."""

LOCK = threading.RLock()
"""Guards the pools and every reader that they work for. There is one, since the collector may close an iterator of one
reader while another changes its state: with a lock each, two threads could wait for each other."""


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
