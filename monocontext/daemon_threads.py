"""Threads that carry jobs out, and that nobody waits for when the process ends.

Those of `concurrent.futures` are joined first: a request that a silent server keeps for 17 s would keep the process as
long. And they take no work once the main thread has ended, when other threads of the program may still read. Python
3.12 starts no thread then either: where there is none, the caller does the job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar
from weakref import finalize

T = TypeVar("T")


class DaemonThreads:
    """At most so many threads, started as jobs call for them. They end when this is closed or forgotten."""

    def __init__(self, most: int, name: str):
        self._most = most
        self._name = name
        self._shared = _Shared()
        self._threads = 0
        # A queue that may be put to at any moment, as the collector does.
        self._ending = finalize(self, self._shared.jobs.put, None)
        self._ending.atexit = False

    def submit(self, job: Callable[[], None]) -> bool:
        """Have a job carried out that never raises; False where there is no thread and none can be had, and the job is
        the caller's. Not after `close`."""
        shared = self._shared
        with shared.lock:
            shared.unfinished += 1
            is_short = self._threads < min(shared.unfinished, self._most)
            self._threads += is_short
            name = f"{self._name}_{self._threads}"
        if is_short:
            try:
                threading.Thread(target=_work, args=(shared,), name=name, daemon=True).start()
            except RuntimeError:  # the system gives no more
                with shared.lock:
                    self._threads -= 1
                    if not self._threads:
                        shared.unfinished -= 1
                        return False
        shared.jobs.put(job)
        return True

    def call(self, work: Callable[[], T]) -> Future[T]:
        """The same for what returns or raises something, in whatever thread."""
        done: Future[T] = Future()

        def job() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # handed to whoever waits
                done.set_exception(error)

        if not self.submit(job):
            job()
        return done

    def close(self) -> None:
        """Let the threads end after what is waiting is done. Idempotent."""
        self._ending()


class _Shared:
    """What threads hold of it: holding all, they would keep it alive."""

    __slots__ = ("jobs", "lock", "unfinished")

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.lock = threading.Lock()
        self.unfinished = 0


def _work(shared: _Shared) -> None:
    while (job := shared.jobs.get()) is not None:
        job()
        del job  # what it holds is not this thread's to keep until the next one comes
        with shared.lock:
            shared.unfinished -= 1
    shared.jobs.put(None)  # for the others
