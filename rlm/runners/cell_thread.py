"""Run cells on one thread, and interrupt them when their time is up."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

_GRACE_SECONDS = 1.0
"""A stopped cell gets this long to end. The exception is raised repeatedly, for code that catches everything."""
_RAISE_AGAIN_SECONDS = 0.25  # the interval at which an interrupt is raised again in code that caught it
_WAKE_SECONDS = 0.25
"""A wait in slices of this length lets the main thread notice a Ctrl-C on Windows, or by `interrupt_main`."""

_Job = tuple[Callable[[], None], threading.Event]
"""The work of a cell, and whether it has ended."""


class CellTimeout(BaseException):
    """Raised inside a cell that ran out of time. It is no `Exception`, since `except Exception` would catch it."""


class CellRunner(Protocol):
    """Runs the code of cells, one after another, and stops it."""

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work` and wait for it. Interrupt it past its time; False when it did not end even then."""
        ...

    def stop_interrupts(self) -> None:
        """Interrupt nothing from here on. The work calls this when its code has ended."""
        ...

    def close(self) -> None: ...


class CellThread:
    """One daemon thread for all cells of a runner, so that objects bound to a thread (sqlite3) survive the cell.

    The caller only waits, so it can watch the clock and receive Ctrl-C.
    """

    def __init__(self) -> None:
        self._start()

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """An exception in the caller's own thread (Ctrl-C) interrupts the work too and is raised here."""
        done = threading.Event()
        self._jobs.put((work, done))
        try:
            while (seconds := seconds_left()) > 0:
                if done.wait(min(max(seconds, 0.02), _WAKE_SECONDS)):
                    return True
            return self._stop(done)
        except BaseException:
            try:
                self._stop(done)
            except BaseException:  # a second Ctrl-C
                self._replace()
                raise
            raise

    def stop_interrupts(self) -> None:
        """Do nothing: the thread catches a late interrupt while it waits for its next work."""

    def close(self) -> None:
        """Let the thread end, once it is free."""
        self._jobs.put(None)

    def _stop(self, done: threading.Event) -> bool:
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline:
            _raise_in(self._thread.ident, CellTimeout)
            if done.wait(_RAISE_AGAIN_SECONDS):
                _raise_in(self._thread.ident, None)
                _clear_async_flag()
                return True
        # The exception is still pending, and ends the thread's work when its C call returns.
        self._replace()
        _clear_async_flag()
        return False

    def _replace(self) -> None:
        self.close()
        self._start()

    def _start(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="rlm-cells", daemon=True)
        self._thread.start()


def _raise_in(thread: int | None, exception: type[BaseException] | None) -> None:
    """Raise an exception in a thread at its next bytecode; None withdraws one that is still pending."""
    import ctypes  # not in the runner `wasm`, which has one thread

    raised = ctypes.py_object(exception) if exception else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread or 0), raised)


def _clear_async_flag() -> None:
    """Let CPython see that no exception is pending, by raising one in this thread and catching it.

    Only a delivered exception clears the interpreter's flag. While it is set, every thread looks for an exception at
    every step, and on CPython 3.11 a traced call (debugger, coverage) never ends.
    """
    with suppress(CellTimeout):
        _raise_in(threading.get_ident(), CellTimeout)
        for _ in range(1_000):  # each step gives CPython a chance to raise it here
            pass


def _serve(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while True:
        with suppress(CellTimeout):  # one that arrives after the last line of its cell
            job = jobs.get()
            if job is None:
                return
            try:
                job[0]()
            finally:
                job[1].set()
