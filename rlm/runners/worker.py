"""Inside: the namespace that cells run in, and what of the host is in it by way of the channel."""

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from rlm import hooks
from rlm.errors import AnswerRefused, LLMError
from rlm.runners.cell_thread import CellTimeout
from rlm.runners.channel import HEAD_BYTES, MESSAGE_BYTES, PROTOCOL, ChannelClosed, Message
from rlm.runners.link import Link
from rlm.runners.local import LocalRunner
from rlm.runners.values import outgoing, unpacked

_SHIELDED_SECONDS = 0.02
_ASK_AGAIN_SECONDS = 1.0
_ANSWER_BYTES = MESSAGE_BYTES - (1 << 20)
"""Beside an answer there is what a cell printed."""


def prepare() -> None:
    """What is imported before the doors shut, since some modules look at what is then out of reach."""
    import tempfile

    tempfile.tempdir = "/tmp"


def main(read_fd: int, write_fd: int, hello: dict[str, Any]) -> None:
    """Say hello, receive the context, and run cells until the host goes."""
    os.environ.clear()
    link = Link(read_fd, write_fd)
    try:
        link.send({"op": "hello", "protocol": PROTOCOL, "python": sys.version.split()[0], **hello})
        _hush()
        head, body = link.command()
        _serve(link, head, body)
    except ChannelClosed:
        pass
    os._exit(0)  # threads of cells must not keep it


def _serve(link: Link, start: dict[str, Any], body: memoryview) -> NoReturn:
    try:
        calls = RemoteCalls(link)
        runner = _runner(link, calls, start, body)
    except Exception as exc:
        link.send({"op": "failed", "message": f"{type(exc).__name__}: {exc}"[:1000]})
        raise ChannelClosed from exc
    del body
    gc.freeze()
    link.send({"op": "started"})
    while True:
        head, _ = link.command()
        if head["op"] == "variable":
            _reply(link, head["id"], lambda head=head: runner.variable(head["name"]))  # type: ignore[misc]
        else:
            _run(link, runner, calls, head)


def _run(link: Link, runner: LocalRunner, calls: RemoteCalls, head: dict[str, Any]) -> None:
    calls.limit(head["seconds"])
    result = runner.run(head["code"])
    answer, refused = result.final_answer, ""
    if answer is not None and (why := _too_long(answer.encode("utf-8", "surrogatepass"))):
        answer, refused = None, f"Answer refused: {why}\n"
    texts: list[bytes] = []
    fields = outgoing(
        {
            "stdout": result.stdout,
            "stderr": result.stderr + refused,
            "variables": [[name[:200], shown] for name, shown in list(result.variables.items())[-1000:]],
            "final_answer": answer,
        },
        texts,
    )
    link.send({"op": "done", "id": head["id"], "result": fields, "texts": [len(text) for text in texts]}, texts)


def _reply(link: Link, number: int, make: Callable[[], str]) -> None:
    try:
        text = make().encode("utf-8", "surrogatepass")
        if why := _too_long(text):
            raise AnswerRefused(why)
    except AnswerRefused as exc:
        text = str(exc)[:10_000].encode("utf-8", "surrogatepass")
        link.send({"op": "refused", "id": number, "texts": [len(text)]}, [text])
    else:
        link.send({"op": "text", "id": number, "texts": [len(text)]}, [text])


def _too_long(answer: bytes) -> str:
    if len(answer) <= _ANSWER_BYTES:
        return ""
    return f"an answer of {len(answer):,} bytes is too long to leave the sandbox: at most {_ANSWER_BYTES:,}"


def _runner(link: Link, calls: RemoteCalls, start: dict[str, Any], body: memoryview) -> LocalRunner:
    entry = start.get("entry")
    context = unpacked(body) if entry is None else _made_by(entry, link)
    calls.context = context
    functions = {name: calls.function(name, about) for name, about in start["functions"].items()}
    return LocalRunner(
        context,
        calls,
        cell_timeout=start["cell_timeout"],
        output_limit=start["output_limit"],
        thread=MainThread(link),
        functions=functions,
    )


def _made_by(entry: str, link: Link) -> Any:
    """The context that a function of another package makes of a way to ask the host."""
    module, _, name = entry.partition(":")
    make = getattr(importlib.import_module(module), name)

    def ask(request: bytes) -> memoryview:
        if len(request) > HEAD_BYTES:
            raise ValueError(f"a question of {len(request):,} bytes to the context: at most {HEAD_BYTES:,}")
        return _answered(link.call({"op": "context"}, [request]))

    return make(ask)


def _answered(message: Message) -> memoryview:
    head, body = message
    if "error" in head:
        raise _error(*head["error"])
    return body


def _error(name: str, text: str) -> Exception:
    """What a call on the host raised: ours, or a builtin of that name."""
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
    """Stands in for the host's `SubCalls`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.context: object = None
        """Crosses by name."""
        self._lock = threading.Lock()
        self._run_ends_at = math.inf
        self._open = 0
        self._opened_at = 0.0
        self._waited_seconds = 0.0

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
        is_text = isinstance(prompts, str) or hooks.passes_for_str(prompts)  # which the host refuses
        asked = prompts if is_text else list(prompts)
        answers: list[str | LLMError] = self.call("llm_query_batched", asked, model, return_exceptions)
        return answers

    def function(self, name: str, about: str) -> Callable[..., Any]:
        """A function of the host by its name."""

        def remote(*args: Any, **options: Any) -> Any:
            return self.call(name, *args, **options)

        remote.__name__ = remote.__qualname__ = name
        remote.__doc__ = about
        return remote

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        texts: list[bytes] = []
        given = outgoing([list(args), options], texts, context=self.context)
        with self._waiting():
            sizes = [len(text) for text in texts]
            head, body = self._link.call({"op": "call", "name": name, "given": given, "texts": sizes}, texts)
        if "error" in head:
            raise _error(*head["error"])
        value = unpacked(body)
        for at, error in head.get("errors", []):
            value[at] = _error(*error)
        return value

    def limit(self, seconds: float | None) -> None:
        """What the budget of the run leaves, as the host says at the beginning of a cell."""
        self._run_ends_at = math.inf if seconds is None else time.monotonic() + seconds

    def seconds_left(self) -> float:
        return self._run_ends_at - time.monotonic()

    @property
    def waited_seconds(self) -> float:
        """Time so far during which at least one call was under way."""
        with self._lock:
            return self._waited_seconds + (time.perf_counter() - self._opened_at if self._open else 0.0)

    def drain(self) -> tuple[()]:
        """The host keeps the books."""
        return ()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        with self._lock:
            if not self._open:
                self._opened_at = time.perf_counter()
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1
                if not self._open:
                    self._waited_seconds += time.perf_counter() - self._opened_at


class MainThread:
    """Runs cells in the main thread, where a signal interrupts what another thread could not: `time.sleep`, a wait for
    the host, a pattern that backtracks."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._left: Callable[[], float] = lambda: 0.0
        self._armed = False

    def run(self, work: Callable[[], None], seconds_left: Callable[[], float]) -> bool:
        """Run `work`; past its time it is interrupted, and asked again now and then. Always returns True, if at all."""
        self._left = seconds_left
        self._armed = True
        signal.signal(signal.SIGALRM, self._ring)
        if (seconds := seconds_left()) < 1e9:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
        try:
            work()
        except CellTimeout:
            pass  # it came between the cell's last line and here
        finally:
            self.calm()
        return True

    def calm(self) -> None:
        """The cell's code has ended: nothing is interrupted any more."""
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def close(self) -> None:
        """Nothing to end."""

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if not self._armed:
            return
        if self._link.shielded:
            signal.setitimer(signal.ITIMER_REAL, _SHIELDED_SECONDS)
        elif (seconds := self._left()) > 0:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, _SHIELDED_SECONDS))
        else:
            signal.setitimer(signal.ITIMER_REAL, _ASK_AGAIN_SECONDS)
            raise CellTimeout


def _hush() -> None:
    """Nobody reads the descriptors 0, 1 and 2 from here on."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)
