"""The host's side of a worker, wherever it runs: send cells, answer requests, receive results.

The thread that calls `run` reads the channel while a cell runs. It answers at once where no wait is needed; requests
that may wait (a sub-call, storage) run on threads. Between cells it answers nothing, so code that a cell left behind in
the worker spends nothing.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypedDict

from rlm.calls.subcalls import SubCalls
from rlm.context import protocol
from rlm.context.excerpt import bounded_repr, shorten
from rlm.errors import AnswerRefused, ChannelAbuse, LLMError, RunnerUnavailable
from rlm.models.log import INFO, log
from rlm.runners.capture import NOTES_CHARACTERS, SLACK
from rlm.runners.channel import HEAD_BYTES, PROTOCOL, Channel, ChannelClosed, Message
from rlm.runners.claims import check_claims
from rlm.runners.indexed import IndexedServer, can_serve
from rlm.runners.runner import CellResult
from rlm.runners.values import decode_value, is_data, pack, split_texts

MOST_CALLS = 64
"""The most concurrent requests of a worker: twice those of an honest one."""
MOST_BYTES = 128 << 20
"""The bytes of those requests together."""
START_SECONDS = 120.0
"""A machine may be busy; half a second is usual, and three in the runner `wasm`."""
_GRACE_SECONDS = 3.0
"""Time beyond a cell's limit, in which the worker interrupts it by itself and keeps its variables."""
_LOOK_SECONDS = 0.25
_SEND_SECONDS = 30.0
_SHOWN = 400
"""The most characters of one variable, whatever the worker sends."""


class Worker(Protocol):
    """A process somewhere, at the other end of a channel."""

    channel: Channel

    def end(self, *, gone: bool = False) -> str:
        """End it, and say how it ended, in a few words. `gone`: its channel has closed by itself. Idempotent."""
        ...


class Place(Protocol):
    """Starts workers."""

    name: str

    def start(self, modules: Sequence[str]) -> tuple[Worker, Mapping[str, Any]]:
        """A worker and the contents of its hello; it will import `modules`. Raises RunnerUnavailable."""
        ...


class SharedOptions(TypedDict, total=False):
    """Options of every runner with a worker."""

    cell_timeout: float | None
    output_limit: int
    functions: Mapping[str, Callable[..., Any]] | None


class RemoteRunner:
    """One namespace in a worker. A worker that dies is replaced by another, without the variables of the first.

    Raises ChannelAbuse when the worker breaks the protocol.
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
        self._custom = dict(functions or {})
        self._functions: dict[str, Callable[..., Any]] = {
            "llm_query": subcalls.llm_query,
            "llm_query_batched": subcalls.llm_query_batched,
            **self._custom,
        }
        self._context = context
        self._context_repr = bounded_repr(context)
        self._server = protocol.make_server(context)
        if self._server is None and not is_data(context) and can_serve(context):
            self._server = IndexedServer(context)
        self._data = None if self._server else _pack_context(context, place.name)
        self._lock = threading.Lock()
        self._under_way = self._under_way_bytes = 0
        self._failure: BaseException | None = None
        self._variables: Mapping[str, str] = {}
        self._pending_note = ""
        """A note for the stderr of the next cell: on the worker that ended after the last one."""
        self._cells = 0
        self._worker: Worker | None = None
        self.confinement = "none"
        """The way of confining, as the worker reports it before any code runs."""
        try:
            self._start_worker()
        except BaseException:
            self.close()
            raise

    def run(self, code: str) -> CellResult:
        """Run one cell; stderr reports the loss of a worker."""
        if self._worker is None:
            self._start_worker()  # not in the time of the cell
        started = time.perf_counter()
        waited = self._subcalls.waited_seconds
        self._cells += 1

        run_left: Callable[[], float] = getattr(self._subcalls, "seconds_left", lambda: math.inf)

        def seconds_left() -> float:
            own = self._cell_timeout - (time.perf_counter() - started) + (self._subcalls.waited_seconds - waited)
            return _GRACE_SECONDS + min(own, max(run_left(), started + 1 - time.perf_counter()))

        try:
            left = run_left()
            seconds = None if math.isinf(left) else left
            self._send({"op": "cell", "id": self._cells, "code": code, "seconds": seconds})
            message = self._await_reply(self._cells, seconds_left)
            if message is None:
                result = self._report_loss(
                    f"CellTimeout: the cell ran longer than {self._cell_timeout:g} s, inside a call that nothing "
                    "interrupts, and was ended with its process."
                )
                self._end()
            else:
                result = self._result(message)
                if message[0].get("broken"):
                    loss = self._report_loss(
                        "InterpreterBroken: the cell damaged the Python that it ran in (its modules, say), and its "
                        "process was ended."
                    )
                    result = replace(result, stderr=result.stderr + loss.stderr, variables=loss.variables)
                    self._end()
        except ChannelClosed:
            result = self._report_loss(f"WorkerDied: the process that ran the cell is gone ({self._end(gone=True)}).")
        except BaseException as exc:
            if not (isinstance(exc, KeyboardInterrupt) and self._interrupt()):
                self._pending_note = self._report_loss("The cell before was broken off with its process.").stderr
                self._end()
            raise
        note, self._pending_note = self._pending_note, ""
        return CellResult(
            stdout=result.stdout,
            stderr=note + result.stderr,
            variables=result.variables,
            calls=self._subcalls.drain(),
            final_answer=result.final_answer,
            execution_seconds=time.perf_counter() - started,
            claims=result.claims,
        )

    def variable(self, name: str) -> str:
        """The text of a variable, for an answer. Raises AnswerRefused."""
        if self._worker is None:
            raise AnswerRefused(f"there is no variable {name!r}: the process that held the variables is gone")
        self._cells += 1
        deadline = time.monotonic() + min(self._cell_timeout, START_SECONDS)
        try:
            self._send({"op": "variable", "id": self._cells, "name": name})
            message = self._await_reply(self._cells, lambda: deadline - time.monotonic())
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
            raise ChannelAbuse("the worker sent a reply to another command")
        if head["op"] == "refused":
            raise AnswerRefused(texts[0])
        return texts[0]

    def close(self) -> None:
        """End the worker and free its context. Idempotent."""
        self._end()
        if self._server:
            self._server.close()

    # -- the worker ------------------------------------------------------------------------------------------------

    def _start_worker(self) -> None:
        self._worker, hello = self._place.start(getattr(self._server, "modules", ()))
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
            "functions": {name: str(call.__doc__ or "")[:2000] for name, call in self._custom.items()},
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

    def _interrupt(self) -> bool:
        """End the running cell and keep its variables, as a Ctrl-C asks; False when it does not end soon."""
        deadline = time.monotonic() + _GRACE_SECONDS
        self._subcalls.abandon()
        try:
            self._send({"op": "interrupt"})
            message = self._await_reply(self._cells, lambda: deadline - time.monotonic())
            if message is not None:
                self._result(message)
        except (ChannelClosed, ChannelAbuse):
            return False
        except BaseException:  # a second Ctrl-C
            self._end()
            raise
        self._subcalls.drain()
        return message is not None

    def _end(self, *, gone: bool = False) -> str:
        worker, self._worker = self._worker, None
        self._subcalls.abandon()
        return worker.end(gone=gone) if worker else "ended"

    def _report_loss(self, why: str) -> CellResult:
        log(INFO, "%s; a new worker takes its place, without the variables", why.partition(":")[0].partition(".")[0])
        names = [name for name in self._variables if name != "context"]
        lost = f"The variables are lost: {', '.join(names)[:1000]}." if names else "There were no variables to lose."
        self._variables = {"context": self._context_repr}
        stderr = f"{why} {lost} `context` and the functions are there again in a new process.\n"
        return CellResult(stderr=stderr, variables=self._variables)

    # -- the channel -----------------------------------------------------------------------------------------------

    def _send(self, head: dict[str, Any]) -> None:
        assert self._worker is not None
        self._worker.channel.send(head, seconds=_SEND_SECONDS)

    def _await_reply(self, number: int, seconds_left: Callable[[], float]) -> Message | None:
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
                raise ChannelAbuse("the worker sent a reply to another command")
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
                work = lambda: self._answer(  # noqa: E731
                    channel, number, lambda: ({}, server.answer(request)), server.bad_request
                )
                try:
                    ready = server.ready(request)
                except server.bad_request as exc:
                    raise ChannelAbuse(f"the worker sent a bad request: {exc}") from None
                if ready:
                    work()
                    return
            case "call":
                given = decode_value(head.get("given"), split_texts(head.get("texts"), body), self._context)
                match given:
                    case [[*args], dict(options)] if (
                        isinstance(name := head.get("name"), str) and name in self._functions
                    ):
                        call = self._functions[name]
                        work = lambda: self._answer(channel, number, lambda: _call_function(call, args, options))  # noqa: E731
                    case _:
                        raise ChannelAbuse(f"the worker calls an unknown function: {str(head.get('name'))[:50]!r}")
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

        # A daemon: a call of a model may take ten minutes, and the process must be able to end.
        threading.Thread(target=done, name="rlm-worker-call", daemon=True).start()

    def _answer(
        self,
        channel: Channel,
        number: int,
        make: Callable[[], tuple[dict[str, Any], bytes]],
        bad_request: type[Exception] | tuple[()] = (),
    ) -> None:
        """Send the result of `make`, or its error. Raises ChannelAbuse for a `bad_request`."""
        try:
            head, body = make()
        except bad_request as exc:
            raise ChannelAbuse(f"the worker sent a bad request: {exc}") from None
        except Exception as exc:
            name = "LLMError" if isinstance(exc, LLMError) else type(exc).__name__
            head, body = {"error": [name, str(exc)[:10_000]]}, b""
        try:
            channel.send({**head, "id": number}, [body], seconds=_SEND_SECONDS)
        except ChannelClosed:
            pass  # the worker is gone; the thread that runs the cell sees it too

    def _result(self, message: Message) -> CellResult:
        """The result of a cell as the worker reports it, shortened to our limits. Raises ChannelAbuse."""
        head, body = message
        fields = decode_value(head.get("result"), split_texts(head.get("texts"), body))
        match fields:
            case {
                "stdout": str(out),
                "stderr": str(err),
                "variables": [*pairs],
                "final_answer": answer,
                "claims": said,
            } if answer is None or isinstance(answer, str):
                pass
            case _:
                raise ChannelAbuse("the worker sent a malformed result")
        try:
            claims = check_claims(said)
        except ValueError:
            raise ChannelAbuse("the worker sent malformed claims") from None
        variables: dict[str, str] = {}
        for pair in pairs:
            match pair:
                case [str(name), str(shown)]:
                    variables[name[:200]] = shown[:_SHOWN]
                case _:
                    raise ChannelAbuse("the worker sent a malformed variable")
        self._variables = variables
        room = self._output_limit + 2 * SLACK + NOTES_CHARACTERS  # the runner's own notes are not cut again
        return CellResult(shorten(out, room), shorten(err, room), variables, (), answer, claims=claims)


def receive_hello(worker: Worker) -> Mapping[str, Any] | None:
    """The first message of a worker; None if none arrives in time. A Ctrl-C meanwhile ends the worker."""
    try:
        message = worker.channel.receive(START_SECONDS)
    except (ChannelClosed, ChannelAbuse):
        return None
    except BaseException:
        worker.end()
        raise
    return message[0] if message and message[0].get("op") == "hello" else None


def packages_of(context: object) -> tuple[str, ...]:
    """`rlm`, and the package that makes the worker's context."""
    serving = getattr(type(context), "serve", None)
    home = type(context).__module__.partition(".")[0] if callable(serving) else "rlm"
    return ("rlm", home) if home != "rlm" else ("rlm",)


def _call_function(call: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    value = call(*args, **options)
    head: dict[str, Any] = {}
    if isinstance(value, list):
        failed = [
            (at, [type(item).__name__, str(item)]) for at, item in enumerate(value) if isinstance(item, Exception)
        ]
        if failed:
            head["errors"] = [(at, ["LLMError" if isinstance(value[at], LLMError) else error[0], error[1]])
                              for at, error in failed]  # fmt: skip
            value = [None if isinstance(item, Exception) else item for item in value]
    return head, pack(value)


def _pack_context(context: object, runner: str) -> bytes:
    if is_data(context):
        try:
            return pack(context)
        except TypeError as exc:
            reason = str(exc)
    else:
        reason = f"a {type(context).__name__} is neither plain data nor a sequence, and has no serve()"
    raise RunnerUnavailable(
        f"runner {runner!r} cannot take this context across: {reason}; give a str, a list, a dict or a Monocontext, or "
        'use runner="local" (--runner local)'
    )
