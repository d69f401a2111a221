"""Run cells inside a confined worker, with the host's context and functions called over the channel."""

from __future__ import annotations

import builtins
import gc
import importlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NoReturn

from rlm.calls.waiting import WaitClock
from rlm.context import protocol
from rlm.errors import AnswerRefused, LLMError
from rlm.runners.cell_thread import CellTimeout
from rlm.runners.channel import HEAD_BYTES, PROTOCOL, ChannelClosed, Message
from rlm.runners.link import WorkerLink
from rlm.runners.local import LocalRunner
from rlm.runners.soundness import Interpreter
from rlm.runners.values import MOST_SURROGATES, count_lone_surrogates, encode_value, unpack

_SHIELDED_SECONDS = 0.02
_ASK_AGAIN_SECONDS = 1.0
_LOOK_SECONDS = 0.2
"""How often a running cell checks whether the host wants it to end."""


def prepare() -> None:
    """Import, before the confinement is complete, modules that look at files which are then out of reach."""
    import selectors
    import tempfile

    tempfile.tempdir = "/tmp"
    selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc,assignment] # `epoll` is refused


def main(link: WorkerLink, thread: MainThread, hello: dict[str, Any]) -> None:
    """Say hello, receive the context, and run cells on `thread` until the host goes."""
    os.environ.clear()
    try:
        link.send({"op": "hello", "protocol": PROTOCOL, "python": sys.version.split()[0], **hello})
        _silence_standard_streams()
        head, body = link.command()
        _serve(link, thread, head, body)
    except ChannelClosed:
        pass
    os._exit(0)  # threads of cells must not keep the process


def _serve(link: WorkerLink, thread: MainThread, start: dict[str, Any], body: memoryview) -> NoReturn:
    try:
        calls = RemoteCalls(link)
        runner = _make_runner(link, thread, calls, start, body)
    except Exception as exc:
        link.send({"op": "failed", "message": f"{type(exc).__name__}: {exc}"[:1000]})
        raise ChannelClosed from exc
    del body
    gc.freeze()
    interpreter = thread.interpreter = Interpreter()
    link.send({"op": "started"})
    while True:
        head, _ = link.command()
        if head["op"] == "variable":
            _reply_with_text(link, head["id"], lambda head=head: runner.variable(head["name"]))  # type: ignore[misc]
        else:
            _run_cell(link, runner, calls, interpreter, head)


def _run_cell(
    link: WorkerLink, runner: LocalRunner, calls: RemoteCalls, interpreter: Interpreter, head: dict[str, Any]
) -> None:
    calls.limit(head["seconds"])
    result = runner.run(head["code"])
    interpreter.repair()
    is_broken = interpreter.is_lost() or not runner.works()
    answer, refused = result.final_answer, ""
    if answer is not None and (why := _why_too_broken([answer.encode("utf-8", "surrogatepass")])):
        answer, refused = None, f"Answer refused: {why}\n"
    for shown in (str, _escape_surrogates):
        texts: list[bytes] = []
        fields = encode_value(
            {
                "stdout": shown(result.stdout),
                "stderr": shown(result.stderr + refused),
                "variables": [
                    [shown(name[:200]), shown(text)] for name, text in list(result.variables.items())[-1000:]
                ],
                "final_answer": answer,
                "claims": [shown(each) if isinstance(each, str) else each and list(each) for each in result.claims],
            },
            texts,
        )
        if count_lone_surrogates(texts) <= MOST_SURROGATES:
            break
    sizes = [len(text) for text in texts]
    link.send({"op": "done", "id": head["id"], "result": fields, "texts": sizes, "broken": is_broken}, texts)


def _reply_with_text(link: WorkerLink, number: int, make: Callable[[], str]) -> None:
    try:
        text = make().encode("utf-8", "surrogatepass")
        if why := _why_too_broken([text]):
            raise AnswerRefused(why)
    except AnswerRefused as exc:
        text = str(exc)[:10_000].encode("utf-8", "surrogatepass")
        link.send({"op": "refused", "id": number, "texts": [len(text)]}, [text])
    else:
        link.send({"op": "text", "id": number, "texts": [len(text)]}, [text])


def _why_too_broken(texts: list[bytes]) -> str:
    count = count_lone_surrogates(texts)
    if count <= MOST_SURROGATES:
        return ""
    return f"{count:,} lone surrogates cannot leave the sandbox at once: at most {MOST_SURROGATES:,}"


def _escape_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _make_runner(
    link: WorkerLink, thread: MainThread, calls: RemoteCalls, start: dict[str, Any], body: memoryview
) -> LocalRunner:
    entry = start.get("entry")
    context = unpack(body) if entry is None else _make_served_context(entry, link)
    calls.context = context
    functions = {name: calls.function(name, about) for name, about in start["functions"].items()}
    return LocalRunner(
        context,
        calls,
        cell_timeout=start["cell_timeout"],
        output_limit=start["output_limit"],
        thread=thread,
        functions=functions,
    )


def _make_served_context(entry: str, link: WorkerLink) -> Any:
    """The context that the function `entry`, `module:name`, makes; it asks the host over the link."""
    module, _, name = entry.partition(":")
    make = getattr(importlib.import_module(module), name)

    def ask(request: bytes) -> memoryview:
        if len(request) > HEAD_BYTES:
            raise ValueError(f"a question of {len(request):,} bytes to the context: at most {HEAD_BYTES:,}")
        return _read_answer(link.call({"op": "context"}, [request]))

    return make(ask)


def _read_answer(message: Message) -> memoryview:
    head, body = message
    if "error" in head:
        raise _make_error(*head["error"])
    return body


def _make_error(name: str, text: str) -> Exception:
    """The error of a call on the host: LLMError, or a builtin of that name, else a RuntimeError."""
    if name == "LLMError":
        return LLMError(text)
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(text)
        except TypeError:  # one that takes more than a message
            pass
    return RuntimeError(f"{name}: {text}")


class RemoteCalls:
    """Stands in a worker for the host's `SubCalls`."""

    def __init__(self, link: WorkerLink) -> None:
        self._link = link
        self.context: object = None
        """Crosses by name."""
        self._run_ends_at = math.inf
        self._waited = WaitClock()

    def llm_query(self, prompt: str, model: str | None = None) -> str:
        """Ask a language model; it sees only this prompt. Raises LLMError when the call fails."""
        return str(self.call("llm_query", prompt, model))

    def llm_query_batched(
        self, prompts: Iterable[str], model: str | None = None, return_exceptions: bool = False
    ) -> list[str | LLMError]:
        """Ask many prompts at once; answers come in the order of the prompts.

        When calls fail, LLMError is raised after all have ended; with `return_exceptions=True` each failed place holds
        its LLMError instead.
        """
        is_text = isinstance(prompts, str) or protocol.passes_for_str(prompts)  # which the host refuses
        given = prompts if is_text else list(prompts)
        answers: list[str | LLMError] = self.call("llm_query_batched", given, model, return_exceptions)
        return answers

    def function(self, name: str, about: str) -> Callable[..., Any]:
        """A function that calls the host's function of this name."""

        def remote(*args: Any, **options: Any) -> Any:
            return self.call(name, *args, **options)

        remote.__name__ = remote.__qualname__ = name
        remote.__doc__ = about
        return remote

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        texts: list[bytes] = []
        given = encode_value([list(args), options], texts, context=self.context)
        if why := _why_too_broken(texts):
            raise ValueError(why)
        with (mine := threading.Lock()), self._waited.running(mine):
            sizes = [len(text) for text in texts]
            head, body = self._link.call({"op": "call", "name": name, "given": given, "texts": sizes}, texts)
        if "error" in head:
            raise _make_error(*head["error"])
        value = unpack(body)
        for at, error in head.get("errors", []):
            value[at] = _make_error(*error)
        return value

    def limit(self, seconds: float | None) -> None:
        """Set the seconds that the budget of the run leaves, as the host says when a cell begins."""
        self._run_ends_at = math.inf if seconds is None else time.monotonic() + seconds

    def seconds_left(self) -> float:
        return self._run_ends_at - time.monotonic()

    @property
    def waited_seconds(self) -> float:
        """Time so far during which at least one call was under way."""
        return self._waited.seconds

    def drain(self) -> tuple[()]:
        """Nothing: the host keeps the records."""
        return ()


class MainThread:
    """Runs cells in the main thread, where a signal interrupts more than another thread could: `time.sleep`, a wait for
    the host, a pattern that backtracks."""

    def __init__(self, link: WorkerLink) -> None:
        self._link = link
        self._left: Callable[[], float] = lambda: 0.0
        self._armed = False
        self.interpreter: Interpreter | None = None
        """Repaired as soon as the code of a cell has ended, since the rest needs it."""

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work`; past its time interrupt it, again and again. Returns True."""
        self._left = seconds_left
        self._armed = True
        self._link.begin_cell()
        signal.signal(signal.SIGALRM, self._ring)
        self._set_timer(min(max(seconds_left(), 0.001), _LOOK_SECONDS))
        try:
            work()
        except CellTimeout:
            pass  # it came between the cell's last line and here
        finally:
            self.stop_interrupts()
        return True

    def stop_interrupts(self) -> None:
        """The cell's code has ended: interrupt nothing from here on."""
        self._armed = False
        self._set_timer(0)
        if self.interpreter:
            self.interpreter.repair()

    def close(self) -> None:
        """Nothing to end."""

    def _set_timer(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if not self._armed:
            return
        if self._link.shielded:
            self._set_timer(_SHIELDED_SECONDS)
        elif not self._link.interrupted() and (seconds := self._left()) > 0:
            self._set_timer(min(max(seconds, _SHIELDED_SECONDS), _LOOK_SECONDS))
        else:
            self._set_timer(_ASK_AGAIN_SECONDS)
            raise CellTimeout


def _silence_standard_streams() -> None:
    """Point the descriptors 0, 1 and 2 at /dev/null."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)
