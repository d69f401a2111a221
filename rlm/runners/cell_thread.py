"""The thread that cells run on, and the way to stop it."""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

# A stopped cell gets this long to unwind; it is asked again now and then, for code that catches everything.
_GRACE_SECONDS = 1.0
_ASK_AGAIN_SECONDS = 0.25

# Waiting in slices lets the main thread notice Ctrl-C where the wait itself would not (Windows, `interrupt_main`).
_WAKE_SECONDS = 0.25


class CellTimeout(BaseException):
    """Raised inside a cell that ran out of time. No `Exception`, so that `except Exception` lets it pass."""


class CellRunner(Protocol):
    """Where the code of cells runs, one after another, and what stops it."""

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work` and wait for it. Past its time it is interrupted; False when it did not end even then."""
        ...

    def calm(self) -> None:
        """Called by the work itself: from here on nothing need be interrupted."""
        ...

    def close(self) -> None: ...


class _Job:
    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.done = threading.Event()


class CellThread:
    """One daemon thread for all cells of a runner, so that what is bound to a thread (sqlite3) survives the cell.

    The caller only waits, which keeps it free to watch the clock and to receive Ctrl-C.
    """

    def __init__(self) -> None:
        self._start()

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work` and wait for it. Past its time it is interrupted; False when it did not end even then.

        `seconds_left` is asked again whenever it has passed. An exception in the caller's own thread, which is what
        Ctrl-C is, interrupts the work too and is raised here.
        """
        job = _Job(work)
        self._jobs.put(job)
        try:
            while (seconds := seconds_left()) > 0:
                if job.done.wait(min(max(seconds, 0.02), _WAKE_SECONDS)):
                    return True
            return self._stop(job)
        except BaseException:
            self._raise_inside(CellTimeout)
            self._replace()
            raise

    def calm(self) -> None:
        """The cell's code has ended; what comes late is caught where the thread waits for its next work."""

    def close(self) -> None:
        """Let the thread end, once it is free."""
        self._jobs.put(None)

    def _stop(self, job: _Job) -> bool:
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline:
            self._raise_inside(CellTimeout)
            if job.done.wait(_ASK_AGAIN_SECONDS):
                self._raise_inside(None)
                return True
        # Left behind: the exception is still pending, and ends the thread's work when its C call returns.
        self._replace()
        return False

    def _replace(self) -> None:
        self.close()
        self._start()

    def _start(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="rlm-cells", daemon=True)
        self._thread.start()

    def _raise_inside(self, exception: type[BaseException] | None) -> None:
        """Raise in the thread at its next bytecode; None takes back what has not been raised yet."""
        thread = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(exception) if exception else None)


def _serve(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while True:
        with suppress(CellTimeout):  # one that arrives after the last line of its cell
            job = jobs.get()
            if job is None:
                return
            try:
                job.work()
            finally:
                job.done.set()
