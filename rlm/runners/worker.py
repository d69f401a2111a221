"""Run cells inside the confined process. Their context and functions stay on the host, which a link reaches."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from rlm.runners.cell_thread import CellTimeout
from rlm.runners.channel import MOST_HEAD_BYTES, PROTOCOL, ChannelClosed
from rlm.runners.interpreter_state import InterpreterState
from rlm.runners.link import WorkerLink
from rlm.runners.local import LocalRunner
from rlm.runners.remote_calls import RemoteCalls, call_host
from rlm.runners.runner import CellResult
from rlm.runners.values import encode_for_host, put_texts_in, unpack_from_host

_MOST_VARIABLES = 1000  # the most variables that a result lists: the last ones, so that the message stays small
_SHIELDED_SECONDS = 0.02  # the wait before the next try to interrupt, while the link moves bytes
_INTERRUPT_AGAIN_SECONDS = 1.0  # the wait before the next interrupt, if the code caught the last one and went on
_POLL_SECONDS = 0.2  # the interval at which a running cell checks whether the host wants it to end


def prepare() -> None:
    """Import modules while their files can be read, and set the defaults /tmp and `poll`, which a sandbox allows."""
    import selectors
    import tempfile

    tempfile.tempdir = "/tmp"  # else it would try folders that are not there
    selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc,assignment] # `epoll` is refused


def main(thread: MainThread, *, confinement: str) -> NoReturn:
    """Say hello with `confinement`, receive the context, and run cells on `thread` until the host goes."""
    os.environ.clear()
    try:
        thread.link.send({"op": "hello", "protocol": PROTOCOL, "confinement": confinement})
        _silence_standard_streams()
        start, body = thread.link.next_command()
        _serve(thread, start, body)
    except ChannelClosed:
        pass
    os._exit(0)  # threads of cells must not keep the process


def _serve(thread: MainThread, start: dict[str, Any], body: memoryview) -> NoReturn:
    """Make the runner that the host's first command describes, then run a cell for each further command."""
    calls = RemoteCalls(thread.link)
    try:
        runner = _make_runner(thread, calls, start, body)
    except Exception as exc:
        thread.link.send({"op": "failed", "message": f"{type(exc).__name__}: {exc}"[:1000]})
        raise ChannelClosed from exc
    del body
    gc.freeze()
    interpreter = thread.interpreter = InterpreterState()
    thread.link.send({"op": "started"})
    while True:
        command, _ = thread.link.next_command()
        calls.set_budget(command["seconds"])
        result = runner.run(command["code"])
        interpreter.repair()  # also from what the reprs of the variables did
        is_broken = interpreter.is_broken() or not runner.works()
        _send_result(thread.link, command["id"], result, is_broken)


def _send_result(link: WorkerLink, number: int, result: CellResult, is_broken: bool) -> None:
    """Send the result of cell `number`. `is_broken`: the host should replace this worker."""
    texts: list[bytes] = []
    variables = {name[:200]: text for name, text in list(result.variables.items())[-_MOST_VARIABLES:]}
    fields = [result.stdout, result.stderr, result.final_answer, result.raised, variables, result.claims]
    tree = encode_for_host(fields, texts)
    sizes = [len(text) for text in texts]
    link.send({"op": "done", "id": number, "result": tree, "texts": sizes, "broken": is_broken}, texts)


def _make_runner(thread: MainThread, calls: RemoteCalls, start: dict[str, Any], body: memoryview) -> LocalRunner:
    """The runner that the command `start` describes. `body`: the values of its names, one after another."""
    texts, report = _open_texts(thread.link, start["texts"]) if start["texts"] else ([], None)
    values: dict[str, object] = {}
    for name, size in start["values"]:
        values[name], body = put_texts_in(unpack_from_host(body[:size]), texts), body[size:]
    context = values.pop("context")
    calls.known = [context, *texts]
    functions = {name: calls.make_function(name, doc) for name, doc in start["functions"].items()}
    limits = {name: start[name] for name in ("cell_timeout", "output_limit")}
    return LocalRunner(context, calls, **limits, thread=thread, names=functions | values, after_cell=report)


def _open_texts(link: WorkerLink, count: int) -> tuple[list[object], Callable[[], None]]:
    """The lazy texts of the host, and a function that reports to the host what was read of them."""
    from monocontext.engine.remote import ServedReader  # only lazy texts need it
    from monocontext.text import served_text

    readers = [ServedReader(partial(_read_text, link, number)) for number in range(count)]

    def report() -> None:
        for reader in readers:
            reader.report()

    return [served_text(reader) for reader in readers], report


def _read_text(link: WorkerLink, number: int, request: bytes) -> memoryview:
    """The host's answer to a request to its text `number`. Raises ValueError for a request that is too long to send."""
    if len(request) > MOST_HEAD_BYTES:
        size = f"{len(request):,} bytes, at most {MOST_HEAD_BYTES:,}"
        raise ValueError(f"this search is too long ({size}): search for fewer or shorter patterns")
    return call_host(link, {"op": "read", "text": number}, [request]).body


class MainThread:
    """Runs cells in the main thread, where a signal also interrupts `time.sleep`, a wait and a slow pattern."""

    def __init__(self, link: WorkerLink) -> None:
        self.link = link
        self._seconds_left: Callable[[], float] = lambda: 0.0
        self._is_running = False
        self.interpreter: InterpreterState | None = None  # set before the first cell; repaired when a cell's code ends

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work`, and interrupt it repeatedly once its time is up (see `CellRunner`). Always returns True."""
        self._seconds_left = seconds_left
        self._is_running = True
        self.link.is_interrupt_wanted = False  # a request that came too late for the cell before
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
        """Interrupt nothing from here on: the cell's code has ended."""
        self._is_running = False
        self._set_timer(0)
        if self.interpreter:
            self.interpreter.repair()

    def close(self) -> None:
        """Do nothing: the thread is the main thread of the process."""

    def _set_timer(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _on_timer(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the cell if its time is up or the host asks for it; else, or while shielded, try again later."""
        if not self._is_running:
            return
        if self.link.is_shielded:
            self._set_timer(_SHIELDED_SECONDS)
        elif not self.link.poll_interrupt() and (seconds := self._seconds_left()) > 0:
            self._set_timer(min(max(seconds, _SHIELDED_SECONDS), _POLL_SECONDS))
        else:
            self._set_timer(_INTERRUPT_AGAIN_SECONDS)
            raise CellTimeout


def _silence_standard_streams() -> None:
    """Point the descriptors 0, 1 and 2 at /dev/null."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)
