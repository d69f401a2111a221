"""Run cells on one thread, interrupt them when their time is up, and capture what they print.

While cells run, a router replaces `sys.stdout`: a thread that runs a cell writes to the buffer of its cell, any other
to the stream that was there before. What child processes write to descriptor 1 is not captured, nor what libraries
write in threads that a cell starts. `print` in such threads is, because the namespace has a `print` of its own.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TextIO

from rlm.context.excerpt import join_ends

_GRACE_SECONDS = 1.0  # a stopped cell gets this long to end; the exception is raised again if its code goes on
_RAISE_AGAIN_SECONDS = 0.25  # the interval at which an interrupt is raised again in code that caught it
_WAKE_SECONDS = 0.25  # waits in such slices let the main thread notice a Ctrl-C on Windows, or by `interrupt_main`


class _Job(NamedTuple):
    run: Callable[[], None]  # the work of a cell
    ended: threading.Event  # set when it has returned or raised


class CellTimeout(BaseException):
    """Raised inside a cell that ran out of time. It is not an `Exception`, since `except Exception` would catch it."""


class CellRunner(Protocol):
    """Runs the code of cells, one after another, and interrupts code that runs too long."""

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work`, wait until it ends, and interrupt it when its time is up. False if it goes on even then."""

    def stop_interrupts(self) -> None:
        """Interrupt nothing from here on. `work` calls this when the code of its cell has ended."""

    def close(self) -> None:
        """Release the thread that runs the cells."""


class CellThread:
    """One daemon thread for all cells of a runner, so that objects bound to a thread (sqlite3) survive the cell. The
    first cell starts it. The caller only waits, so it can watch the clock and receive Ctrl-C."""

    _thread: threading.Thread
    _jobs: queue.SimpleQueue[_Job | None] | None = None  # of the thread; None while there is none

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work` as `CellRunner.run` says. Ctrl-C in the caller's thread interrupts it too, and is raised here."""
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="rlm-cells", daemon=True)
            self._thread.start()
        ended = threading.Event()
        self._jobs.put(_Job(work, ended))
        try:
            while (seconds := seconds_left()) > 0:
                if ended.wait(min(max(seconds, 0.02), _WAKE_SECONDS)):
                    return True
            return self._stop(ended)
        except BaseException:
            try:
                self._stop(ended)
            except BaseException:  # a second Ctrl-C
                self.close()
                raise
            raise

    def stop_interrupts(self) -> None:
        """Do nothing: the thread catches a late interrupt while it waits for its next job."""

    def close(self) -> None:
        """Let the thread end once it is idle. A later cell starts a new one."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None

    def _stop(self, ended: threading.Event) -> bool:
        """Interrupt the running cell for a second, repeatedly. False if it goes on: the next cell gets a new thread."""
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline:
            _raise_in(self._thread.ident, CellTimeout)
            if ended.wait(_RAISE_AGAIN_SECONDS):
                _clear_async_flag(self._thread.ident)
                return True
        self.close()  # the exception is still pending, and ends the thread's work when its C call returns
        _clear_async_flag()
        return False


def _raise_in(thread: int | None, exception: type[BaseException], *, instead_of: int | None = None) -> None:
    """Raise an exception in a thread at its next bytecode. `instead_of`: a thread whose pending one is withdrawn."""
    import ctypes  # not in the runner `wasm`, which has one thread

    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raised = ctypes.py_object(exception)
    if instead_of is not None:
        set_exception(ctypes.c_ulong(instead_of), None)
    set_exception(ctypes.c_ulong(thread or 0), raised)


def _clear_async_flag(withdraw_from: int | None = None) -> None:
    """Clear CPython's flag for a pending exception, by raising one in this thread and catching it: only a delivered
    exception clears it. While it is set, every thread looks for an exception at every step, and on CPython 3.11 no
    traced call (debugger, coverage) can begin, so nothing may be called between withdrawing one and raising the next.
    `withdraw_from`: the thread whose pending exception is withdrawn."""
    with suppress(CellTimeout):
        _raise_in(threading.get_ident(), CellTimeout, instead_of=withdraw_from)
        for _ in range(1_000):  # each step gives CPython a chance to raise it here
            pass


def _serve(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while True:
        with suppress(CellTimeout):  # one that arrives after the last line of its cell
            job = jobs.get()
            if job is None:
                return
            try:
                job.run()
            finally:
                job.ended.set()


# -- output -----------------------------------------------------------------------------------------------------------

SLACK = 200  # an output is not cut for so few characters above its limit: the note on a cut takes about as many
NOTES_CHARACTERS = 2_000  # the most characters of notes that a runner adds to the output of a cell, beyond the limit

_captured = threading.local()  # `stdout` and `stderr`: the buffers of the cell that this thread runs
_routing_lock = threading.Lock()
_running_cells = 0  # the number of `route_streams` blocks; the last one to end puts the streams back
_replaced: dict[str, TextIO] = {}  # the streams that the last routers replaced, by name


class Buffer:
    """A text stream that keeps only its first and last `limit` characters, and counts all characters."""

    encoding = "utf-8"

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head: list[str] = []
        self._tail: list[str] = []
        self._head_room = limit
        self._tail_characters = 0
        self._lock = threading.Lock()
        self.total = 0  # characters written so far

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._lock:
            self.total += len(text)
            head, rest = text[: self._head_room], text[self._head_room :]
            if head:
                self._head.append(head)
                self._head_room -= len(head)
            if rest:
                self._tail.append(self._last(rest))
                self._tail_characters += len(self._tail[-1])
                if self._tail_characters > 2 * self._limit:
                    self._tail = [self._last("".join(self._tail))]
                    self._tail_characters = len(self._tail[0])
        return len(text)

    def _last(self, text: str) -> str:
        return text[max(0, len(text) - self._limit) :]

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: writes arrive at once."""

    def isatty(self) -> bool:
        return False

    def text(self, limit: int | None = None) -> str:
        """The text so far, without its middle if it exceeds `limit` (by default, and at most, the buffer's)."""
        limit = self._limit if limit is None else max(0, min(limit, self._limit))
        with self._lock:
            head, tail = "".join(self._head), "".join(self._tail)
            if self.total <= min(limit + SLACK, 2 * self._limit):
                return head + tail
            text = head + tail
            return join_ends(head[: limit - limit // 2], text[len(text) - limit // 2 :], self.total - limit)


@dataclass(eq=False)
class Router:
    """Stands in for `sys.stdout` or `sys.stderr` while cells run. Threads without a cell keep writing to `before`."""

    _name: str
    before: TextIO

    def _target(self) -> Any:
        return getattr(_captured, self._name, None) or self.before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)


@contextmanager
def route_streams() -> Iterator[None]:
    """Replace `sys.stdout` and `sys.stderr` with routers in a `with` block, on the thread that waits for the cell."""
    global _running_cells
    with _routing_lock:
        _running_cells += 1
        for name in ("stdout", "stderr"):
            if not isinstance(stream := getattr(sys, name), Router):
                _replaced[name] = stream
                setattr(sys, name, Router(name, stream))
    try:
        yield
    finally:
        with _routing_lock:
            _running_cells -= 1
            for name in ("stdout", "stderr"):
                if not _running_cells and isinstance(stream := getattr(sys, name), Router):
                    setattr(sys, name, stream.before)


@contextmanager
def capture_thread(out: Buffer, err: Buffer) -> Iterator[None]:
    """Let the routers send the output of this thread to these buffers in a `with` block."""
    _captured.stdout, _captured.stderr = out, err
    try:
        yield
    finally:
        _captured.stdout = _captured.stderr = None


def redirection() -> Any:
    """The stream that a cell put in place of `sys.stdout`, as `redirect_stdout` does; None if there is none."""
    stream = sys.stdout
    return None if isinstance(stream, Router) or stream is _replaced.get("stdout") else stream
