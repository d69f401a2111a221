"""The host's side of a worker, wherever it runs: cells out, requests in, results back.

The thread that calls `run` reads the channel while a cell runs. What can be answered at once it answers itself; what
may wait (a sub-call, storage) goes to a few threads. Between cells nothing is answered, so code that a cell left behind
in the worker spends nothing.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rlm import hooks
from rlm.errors import AnswerRefused, ChannelAbuse, LLMError, RunnerUnavailable
from rlm.excerpt import bounded_repr, cut
from rlm.runner import CellResult
from rlm.runners.channel import HEAD_BYTES, PROTOCOL, Channel, ChannelClosed, Message
from rlm.runners.indexed import IndexedServer, can_serve
from rlm.runners.values import incoming, is_data, packed, split_texts
from rlm.subcalls import SubCalls

MOST_CALLS = 64
"""Of a worker under way at once: twice what an honest one has."""
MOST_BYTES = 128 << 20
"""Of their messages together."""
START_SECONDS = 30.0
"""A machine may be busy; half a second is usual."""
_GRACE_SECONDS = 3.0
"""Beyond a cell's time, in which the worker interrupts it by itself and keeps its variables."""
_LOOK_SECONDS = 0.25
_SEND_SECONDS = 30.0
_SHOWN = 400
"""Characters of one variable, whatever the worker sends."""


class Worker(Protocol):
    """A process somewhere, at the other end of a channel."""

    channel: Channel

    def end(self, *, gone: bool = False) -> str:
        """End it, and say how it ended, in a few words. `gone`: its channel has closed by itself. Idempotent."""
        ...


class Place(Protocol):
    """Where workers can be started."""

    name: str

    def start(self) -> tuple[Worker, Mapping[str, Any]]:
        """A worker, and what it says of itself in its hello. Raises RunnerUnavailable."""
        ...


class RemoteRunner:
    """One namespace in a worker. A worker that dies is replaced by another, without the variables of the first.

    Raises ChannelAbuse when the worker sends what no worker sends.
    """

    def __init__(
        self,
        place: Place,
        context: object,
        subcalls: SubCalls,
        *,
        cell_timeout: float | None = 120.0,
        output_limit: int = 20_000,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._place = place
        self._subcalls = subcalls
        self._cell_timeout = math.inf if cell_timeout is None else cell_timeout
        self._output_limit = output_limit
        self._more = dict(functions or {})
        self._functions: dict[str, Callable[..., Any]] = {
            "llm_query": subcalls.llm_query,
            "llm_query_batched": subcalls.llm_query_batched,
            **self._more,
        }
        self._context = context
        self._shown_context = bounded_repr(context)
        self._server = hooks.server(context)
        if self._server is None and not is_data(context) and can_serve(context):
            self._server = IndexedServer(context)
        self._data = None if self._server else _as_data(context, place.name)
        self._lock = threading.Lock()
        self._under_way = self._under_way_bytes = 0
        self._failure: BaseException | None = None
        self._variables: Mapping[str, str] = {}
        self._cells = 0
        self._worker: Worker | None = None
        self.confinement = "none"
        """The way in which the worker is kept in, as it says itself before any code runs."""
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def run(self, code: str) -> CellResult:
        """Run one cell; what was lost with a worker is told on stderr."""
        started = time.perf_counter()
        waited = self._subcalls.waited_seconds
        if self._worker is None:
            self._begin()
        self._cells += 1

        run_left: Callable[[], float] = getattr(self._subcalls, "seconds_left", lambda: math.inf)

        def seconds_left() -> float:
            own = self._cell_timeout - (time.perf_counter() - started) + (self._subcalls.waited_seconds - waited)
            return _GRACE_SECONDS + min(own, max(run_left(), started + 1 - time.perf_counter()))

        try:
            left = run_left()
            seconds = None if math.isinf(left) else left
            self._send({"op": "cell", "id": self._cells, "code": code, "seconds": seconds})
            message = self._pump(self._cells, seconds_left)
            if message is None:
                result = self._lost(f"CellTimeout: the cell ran longer than {self._cell_timeout:g} s, inside a call "
                                    "that nothing interrupts, and was ended with its process.")  # fmt: skip
                self._end()
            else:
                result = self._result(message)
        except ChannelClosed:
            result = self._lost(f"WorkerDied: the process that ran the cell is gone ({self._end(gone=True)}).")
        except BaseException:
            self._end()
            raise
        return CellResult(
            stdout=result.stdout,
            stderr=result.stderr,
            variables=result.variables,
            calls=self._subcalls.drain(),
            final_answer=result.final_answer,
            execution_seconds=time.perf_counter() - started,
        )

    def variable(self, name: str) -> str:
        """The text of a variable, for an answer. Raises AnswerRefused."""
        if self._worker is None:
            raise AnswerRefused(f"there is no variable {name!r}: the process that held the variables is gone")
        self._cells += 1
        deadline = time.monotonic() + min(self._cell_timeout, START_SECONDS)
        try:
            self._send({"op": "variable", "id": self._cells, "name": name})
            message = self._pump(self._cells, lambda: deadline - time.monotonic())
        except ChannelClosed:
            message = None
        except BaseException:
            self._end()
            raise
        if message is None:
            self._end()
            raise AnswerRefused(f"the variable {name!r} was lost with the process that held it")
        head, body = message
        texts = split_texts(head.get("texts"), body)
        if head["op"] not in ("text", "refused") or len(texts) != 1:
            self._end()
            raise ChannelAbuse("the worker answered what was not asked")
        if head["op"] == "refused":
            raise AnswerRefused(texts[0])
        return texts[0]

    def close(self) -> None:
        """End the worker and free what is held. Idempotent."""
        self._end()
        if self._server:
            self._server.close()

    # -- the worker ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._worker, hello = self._place.start()
        if hello.get("protocol") != PROTOCOL:
            self._end()
            raise RunnerUnavailable(
                f"runner {self._place.name!r}: the worker speaks protocol {str(hello.get('protocol'))[:20]}, this is "
                f"{PROTOCOL}: give both sides the same version of monocontext-rlm"
            )
        self.confinement = str(hello.get("confinement", "none"))[:50]
        start = {
            "op": "start",
            "cell_timeout": None if math.isinf(self._cell_timeout) else self._cell_timeout,
            "output_limit": self._output_limit,
            "functions": {name: str(call.__doc__ or "")[:2000] for name, call in self._more.items()},
            "entry": self._server.entry if self._server else None,
        }
        deadline = time.monotonic() + START_SECONDS
        try:
            self._worker.channel.send(start, [self._data] if self._data else [], seconds=START_SECONDS)
            while (seconds := deadline - time.monotonic()) > 0:
                message = self._worker.channel.receive(seconds)
                if message is None:
                    break
                op = message[0].get("op")
                if op == "started":
                    return
                if op == "failed":
                    self._end()
                    raise RunnerUnavailable(f"runner {self._place.name!r}: {str(message[0].get('message'))[:500]}")
                self._handle(message)
        except ChannelClosed:
            pass
        raise RunnerUnavailable(f"runner {self._place.name!r}: the worker did not start ({self._end(gone=True)})")

    def _end(self, *, gone: bool = False) -> str:
        worker, self._worker = self._worker, None
        self._subcalls.abandon()
        return worker.end(gone=gone) if worker else "ended"

    def _lost(self, why: str) -> CellResult:
        names = [name for name in self._variables if name != "context"]
        lost = f"The variables are lost: {', '.join(names)[:1000]}." if names else "There were no variables to lose."
        self._variables = {"context": self._shown_context}
        stderr = f"{why} {lost} `context` and the functions are there again in a new process.\n"
        return CellResult(stderr=stderr, variables=self._variables)

    # -- the channel -----------------------------------------------------------------------------------------------

    def _send(self, head: dict[str, Any]) -> None:
        assert self._worker is not None
        self._worker.channel.send(head, seconds=_SEND_SECONDS)

    def _pump(self, number: int, seconds_left: Callable[[], float]) -> Message | None:
        """Answer the worker until the reply to a command comes; None when its time is up."""
        assert self._worker is not None
        channel = self._worker.channel
        while (seconds := seconds_left()) > 0:
            message = channel.receive(min(seconds, _LOOK_SECONDS))
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if message is None:
                continue
            op = message[0].get("op")
            if op in ("done", "text", "refused"):
                if message[0].get("id") == number:
                    return message
                raise ChannelAbuse("the worker answered what was not asked")
            self._handle(message)
        return None

    def _handle(self, message: Message) -> None:
        """Answer a request of the worker, now or in a thread. Raises ChannelAbuse."""
        assert self._worker is not None
        channel, (head, body) = self._worker.channel, message
        number = head.get("id")
        if type(number) is not int or not 0 < number < 1 << 62:
            raise ChannelAbuse("the worker sent a request without a number")
        work: Callable[[], None]
        match head.get("op"):
            case "context" if self._server:
                if len(body) > HEAD_BYTES:  # it is JSON to read, as heads are
                    raise ChannelAbuse(f"the worker asks the text with {len(body):,} bytes: at most {HEAD_BYTES:,}")
                request, server = bytes(body), self._server
                work = lambda: self._answer(channel, number, lambda: ({}, server.answer(request)))  # noqa: E731
                try:
                    ready = server.ready(request)
                except ValueError as exc:
                    raise ChannelAbuse(f"the worker asked for what there is not: {exc}") from None
                if ready:
                    work()
                    return
            case "call":
                given = incoming(head.get("given"), split_texts(head.get("texts"), body), self._context)
                match given:
                    case [[*args], dict(options)] if (
                        isinstance(name := head.get("name"), str) and name in self._functions
                    ):
                        call = self._functions[name]
                        work = lambda: self._answer(channel, number, lambda: _called(call, args, options))  # noqa: E731
                    case _:
                        raise ChannelAbuse(f"the worker calls what there is not: {str(head.get('name'))[:50]!r}")
            case op:
                raise ChannelAbuse(f"the worker sent an unknown message: {str(op)[:50]!r}")
        with self._lock:
            self._under_way += 1
            self._under_way_bytes += len(body)
            if self._under_way > MOST_CALLS or self._under_way_bytes > MOST_BYTES:
                raise ChannelAbuse(
                    f"the worker has more than {MOST_CALLS} requests, or {MOST_BYTES:,} bytes, under way"
                )
        self._submit(work, len(body))

    def _submit(self, work: Callable[[], None], size: int) -> None:
        def done() -> None:
            try:
                work()
            except BaseException as exc:  # raised again by the thread that runs the cell
                self._failure = exc
            finally:
                with self._lock:
                    self._under_way -= 1
                    self._under_way_bytes -= size

        # Nobody waits for it when the process ends: a call of a model may take ten minutes.
        threading.Thread(target=done, name="rlm-worker-call", daemon=True).start()

    def _answer(self, channel: Channel, number: int, make: Callable[[], tuple[dict[str, Any], bytes]]) -> None:
        try:
            head, body = make()
        except LLMError as exc:
            head, body = {"error": ["LLMError", str(exc)[:10_000]]}, b""
        except ValueError as exc:
            if type(exc).__name__ == "BadRequest":
                raise ChannelAbuse(f"the worker asked for what there is not: {exc}") from None
            head, body = {"error": [type(exc).__name__, str(exc)[:10_000]]}, b""
        except Exception as exc:
            head, body = {"error": [type(exc).__name__, str(exc)[:10_000]]}, b""
        try:
            channel.send({**head, "id": number}, [body], seconds=_SEND_SECONDS)
        except ChannelClosed:
            pass  # the worker is gone, and who runs the cell sees it too

    def _result(self, message: Message) -> CellResult:
        """What a worker says of a cell, brought to the lengths that it should have had. Raises ChannelAbuse."""
        head, body = message
        told = incoming(head.get("result"), split_texts(head.get("texts"), body))
        match told:
            case {"stdout": str(out), "stderr": str(err), "variables": [*pairs], "final_answer": answer} if (
                answer is None or isinstance(answer, str)
            ):
                pass
            case _:
                raise ChannelAbuse("the worker sent a result that is none")
        variables: dict[str, str] = {}
        for pair in pairs:
            match pair:
                case [str(name), str(shown)]:
                    variables[name[:200]] = shown[:_SHOWN]
                case _:
                    raise ChannelAbuse("the worker sent a variable that is none")
        self._variables = variables
        room = self._output_limit + 200  # the note about what was cut, and what the runner adds
        return CellResult(cut(out, room), cut(err, room), variables, (), answer)


def hello_of(channel: Channel) -> Mapping[str, Any] | None:
    """The first message of a worker; None when it does not come."""
    try:
        message = channel.receive(START_SECONDS)
    except (ChannelClosed, ChannelAbuse):
        return None
    return message[0] if message and message[0].get("op") == "hello" else None


def _called(call: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    value = call(*args, **options)
    head: dict[str, Any] = {}
    if isinstance(value, list):
        failed = [
            (at, [type(item).__name__, str(item)]) for at, item in enumerate(value) if isinstance(item, Exception)
        ]
        if failed:
            head["errors"] = [(at, ["LLMError" if isinstance(value[at], LLMError) else told[0], told[1]])
                              for at, told in failed]  # fmt: skip
            value = [None if isinstance(item, Exception) else item for item in value]
    return head, packed(value)


def _as_data(context: object, runner: str) -> bytes:
    if is_data(context):
        try:
            return packed(context)
        except TypeError as exc:
            reason = str(exc)
    else:
        reason = f"a {type(context).__name__} is neither plain data nor a sequence, and has no serve()"
    raise RunnerUnavailable(
        f"runner {runner!r} cannot take this context across: {reason}; give a str, a list, a dict or a Monocontext, or "
        f"use --runner local"
    )
