"""Run cells inside the confined process; the context and functions of the host are reached over a link."""

from __future__ import annotations

import builtins
import gc
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from rlm.calls.waiting import WaitClock
from rlm.errors import LLMError
from rlm.runners.cell_thread import CellTimeout, Router
from rlm.runners.channel import MOST_HEAD_BYTES, PROTOCOL, ChannelClosed, Message
from rlm.runners.link import WorkerLink
from rlm.runners.local import LocalRunner
from rlm.runners.runner import CellResult
from rlm.runners.values import encode_for_host, put_texts_in, unpack_from_host

_MOST_VARIABLES = 1000  # the most variables that a result lists: the last ones, so that the message stays small
_SHIELDED_SECONDS = 0.02  # the wait before the next try to interrupt, while the link moves bytes
_INTERRUPT_AGAIN_SECONDS = 1.0  # the wait before the next interrupt, if the code caught the last one and went on
_POLL_SECONDS = 0.2  # the interval at which a running cell checks whether the host wants it to end
_IS_WASM = sys.platform == "emscripten"


def prepare() -> None:
    """Prepare modules for confinement: import those that read files, and choose `/tmp` and `poll`."""
    import selectors
    import tempfile

    tempfile.tempdir = "/tmp"
    selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc,assignment] # `epoll` is refused


def main(link: WorkerLink, thread: MainThread, hello: dict[str, Any]) -> NoReturn:
    """Say hello, receive the context, and run cells on `thread` until the host goes."""
    os.environ.clear()
    try:
        link.send({"op": "hello", "protocol": PROTOCOL, "python": sys.version.split()[0], **hello})
        _silence_standard_streams()
        start, body = link.command()
        _serve(link, thread, start, body)
    except ChannelClosed:
        pass
    os._exit(0)  # threads of cells must not keep the process


def _serve(link: WorkerLink, thread: MainThread, start: dict[str, Any], body: memoryview) -> NoReturn:
    """Make the runner that the host's first command describes, then run a cell for each further command."""
    try:
        calls = RemoteCalls(link)
        runner = _make_runner(link, thread, calls, start, body)
    except Exception as exc:
        link.send({"op": "failed", "message": f"{type(exc).__name__}: {exc}"[:1000]})
        raise ChannelClosed from exc
    del body
    gc.freeze()
    interpreter = thread.interpreter = InterpreterState()
    link.send({"op": "started"})
    while True:
        command, _ = link.command()
        calls.set_budget(command["seconds"])
        result = runner.run(command["code"])
        interpreter.repair()
        is_broken = interpreter.is_lost() or not runner.works()
        _send_result(link, command["id"], result, is_broken)


def _send_result(link: WorkerLink, number: int, result: CellResult, is_broken: bool) -> None:
    """Send the result of cell `number`. `is_broken`: the host should replace this worker."""
    texts: list[bytes] = []
    last_variables = list(result.variables.items())[-_MOST_VARIABLES:]
    fields = [
        result.stdout, result.stderr, result.final_answer, result.raised,
        [part for name, shown in last_variables for part in (name[:200], shown)], result.claims,
    ]  # fmt: skip
    tree, sizes = encode_for_host(fields, texts), [len(text) for text in texts]
    link.send({"op": "done", "id": number, "result": tree, "texts": sizes, "broken": is_broken}, texts)


def _make_runner(
    link: WorkerLink, thread: MainThread, calls: RemoteCalls, start: dict[str, Any], body: memoryview
) -> LocalRunner:
    texts, report = _open_texts(link, start["texts"]) if start["texts"] else ([], None)
    values: dict[str, object] = {}
    for name, size in start["values"]:
        values[name], body = put_texts_in(unpack_from_host(body[:size]), texts), body[size:]
    context = values.pop("context")
    calls.known = [context, *texts]
    functions = {name: calls.make_function(name, doc) for name, doc in start["functions"].items()}
    limits = {name: start[name] for name in ("cell_timeout", "output_limit")}
    return LocalRunner(context, calls, **limits, thread=thread, names=functions | values, after_cell=report)


def _open_texts(link: WorkerLink, count: int) -> tuple[list[object], Callable[[], None]]:
    """The lazy texts of the host, and the function that reports to it what was read of them."""
    from monocontext.engine.remote import ServedReader
    from monocontext.text import served_text

    readers = [ServedReader(partial(_read_text, link, number)) for number in range(count)]

    def report() -> None:
        for reader in readers:
            reader.report()

    return [served_text(reader) for reader in readers], report


def _read_text(link: WorkerLink, number: int, request: bytes) -> memoryview:
    """The host's answer to a request for one of its texts. Raises ValueError for one that is too long to send."""
    if len(request) > MOST_HEAD_BYTES:
        size = f"{len(request):,} bytes, at most {MOST_HEAD_BYTES:,}"
        raise ValueError(f"this search is too long ({size}): search for fewer or shorter patterns")
    return _call_host(link, {"op": "read", "text": number}, [request])[1]


def _call_host(link: WorkerLink, head: dict[str, Any], body: list[bytes]) -> Message:
    """The host's answer to a request. Raises its error."""
    answer = link.call(head, body)
    if "error" in answer[0]:
        raise _make_error(*answer[0]["error"])
    return answer


def _make_error(name: str, text: str) -> Exception:
    """The error of a call on the host: LLMError, or a builtin of that name, else a RuntimeError."""
    if name == "LLMError":
        return LLMError(text)
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        with suppress(TypeError):  # it takes more than a message
            return kind(text)
    return RuntimeError(f"{name}: {text}")


class RemoteCalls:
    """The host's `SubCalls`, called over the link."""

    def __init__(self, link: WorkerLink) -> None:
        self._link = link
        self.known: list[object] = []  # what the host has too, the context and its texts: a call sends only the number
        self._run_ends_at = math.inf
        self.waited = WaitClock()
        self.functions: dict[str, Callable[..., Any]] = {}  # the host names them at the start

    def make_function(self, name: str, doc: str) -> Callable[..., Any]:
        """A function that calls the host's function of this name."""

        def remote(*args: Any, **options: Any) -> Any:
            return self.call(name, *args, **options)

        remote.__name__ = remote.__qualname__ = name
        remote.__doc__ = doc
        return remote

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        """The result of the host's function of this name. Raises its error."""
        texts: list[bytes] = []
        argument = encode_for_host([list(args), options], texts, known=self.known)
        sizes = [len(text) for text in texts]
        with (call_lock := threading.Lock()), self.waited.running(call_lock):
            head, body = _call_host(self._link, {"op": "call", "name": name, "given": argument, "texts": sizes}, texts)
        value = unpack_from_host(body)
        for offset, error in head.get("errors", []):
            value[offset] = _make_error(*error)
        return value

    def set_budget(self, seconds: float | None) -> None:
        """`seconds`: what the budget of the run leaves from now on; None for no limit."""
        self._run_ends_at = math.inf if seconds is None else time.monotonic() + seconds

    def seconds_left(self) -> float:
        return self._run_ends_at - time.monotonic()

    def drain(self) -> tuple[()]:
        return ()  # the host keeps the records


class MainThread:
    """Runs cells in the main thread, where a signal also interrupts `time.sleep`, a wait and a slow pattern."""

    def __init__(self, link: WorkerLink) -> None:
        self._link = link
        self._seconds_left: Callable[[], float] = lambda: 0.0
        self._is_running = False
        self.interpreter: InterpreterState | None = None  # repaired when a cell's code has ended: the rest needs it

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work`, and interrupt it repeatedly once its time is up (see `CellRunner`). True: it has ended."""
        self._seconds_left = seconds_left
        self._is_running = True
        self._link.begin_cell()
        signal.signal(signal.SIGALRM, self._on_timer)
        self._set_timer(min(max(seconds_left(), 0.001), _POLL_SECONDS))
        try:
            work()
        except CellTimeout:
            pass  # it came between the cell's last line and here
        finally:
            self.stop_interrupts()
        return True

    def stop_interrupts(self) -> None:
        """Interrupt nothing from here on, since the cell's code has ended."""
        self._is_running = False
        self._set_timer(0)
        if self.interpreter:
            self.interpreter.repair()

    def close(self) -> None:
        """Do nothing: the thread is the main thread of the process."""

    def _set_timer(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _on_timer(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the cell if its time is up or the host asks for it; else set the timer again."""
        if not self._is_running:
            return
        if self._link.shielded:
            self._set_timer(_SHIELDED_SECONDS)
        elif not self._link.interrupted() and (seconds := self._seconds_left()) > 0:
            self._set_timer(min(max(seconds, _SHIELDED_SECONDS), _POLL_SECONDS))
        else:
            self._set_timer(_INTERRUPT_AGAIN_SECONDS)
            raise CellTimeout


class InterpreterState:
    """The state of a worker's interpreter before the first cell."""

    def __init__(self) -> None:
        self._builtins: dict[str, Any] = dict(vars(builtins))
        self._modules = frozenset(name for name, module in sys.modules.items() if module is not None)
        lists: list[list[Any]] = [sys.path, sys.meta_path, sys.path_hooks]
        self._lists = [(paths, tuple(paths)) for paths in lists]
        self._recursion_limit = sys.getrecursionlimit()
        self._streams = {"stdout": sys.stdout, "stderr": sys.stderr}

    def repair(self) -> None:
        """Restore builtins, module search paths, the recursion limit and streams; end tracing."""
        if sys.getrecursionlimit() < self._recursion_limit:
            sys.setrecursionlimit(self._recursion_limit)
        vars(builtins).update(self._builtins)
        for paths, before in self._lists:
            paths.extend([item for item in before if item not in paths])
        sys.settrace(None)
        sys.setprofile(None)
        gc.enable()
        for name, stream in self._streams.items():
            if not isinstance(getattr(sys, name, None), Router):
                setattr(sys, name, stream)
        if not _IS_WASM:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

    def is_lost(self) -> bool:
        """Whether a module is blocked, over a quarter of the modules are gone, or no file can be opened."""
        blocked = any(name in sys.modules and sys.modules[name] is None for name in self._modules)
        gone = sum(name not in sys.modules for name in self._modules)
        if blocked or gone > len(self._modules) // 4:
            return True
        try:
            for fd in () if _IS_WASM else os.pipe():
                os.close(fd)
        except OSError:
            return True
        return False


def _silence_standard_streams() -> None:
    """Point the descriptors 0, 1 and 2 at /dev/null."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)
