"""Run cells in a worker, wherever it runs: start it, send it cells, and replace one that is lost.

The thread that calls `run` reads the channel while a cell runs. Between cells it answers nothing, so threads that a
cell started spend nothing.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypedDict

from rlm.calls.subcalls import SubCalls
from rlm.calls.waiting import CellClock
from rlm.context.excerpt import bounded_repr, shorten
from rlm.errors import ChannelAbuse, RunnerUnavailable
from rlm.models.log import INFO, log
from rlm.runners.cell_thread import NOTES_CHARACTERS, SLACK
from rlm.runners.channel import PROTOCOL, Channel, ChannelClosed, Message
from rlm.runners.claims import check_claims
from rlm.runners.piped_process import START_SECONDS, Worker
from rlm.runners.runner import AFTER_CLOSE, CellResult
from rlm.runners.values import decode_from_worker, pack_for_worker, split_texts, take_texts_out
from rlm.runners.worker_requests import SEND_SECONDS, WorkerRequests

_GRACE_SECONDS = 3.0  # time beyond a cell's limit, in which the worker interrupts it by itself and keeps its variables
_POLL_SECONDS = 0.25  # the interval at which a wait for the worker looks at the time limits
_VARIABLE_CHARACTERS = 400  # the most characters of one variable, whatever the worker sends


class SharedOptions(TypedDict, total=False):
    """Options of every runner with a worker."""

    cell_timeout: float | None  # seconds of a cell's own time; None for no limit
    output_limit: int  # characters of the output of a cell
    names: Mapping[str, object] | None  # more names: functions of this process, lazy texts, plain data (copied)


class RemoteRunner(ABC):
    """Runs cells in one namespace of a worker. A worker that dies is replaced by a new one, without the variables. The
    methods raise ChannelAbuse when a worker breaks the protocol."""

    name: str  # the name of the runner, for messages

    def __init__(
        self, context: object, subcalls: SubCalls, *, cell_timeout: float | None = 120.0, output_limit: int = 20_000,
        names: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """Starts a worker, so subclasses must call this last. The keywords are those of `SharedOptions`. Raises
        RunnerUnavailable if no worker starts, or if it cannot be given `context` or one of `names`."""
        self._subcalls = subcalls
        self._cell_timeout = math.inf if cell_timeout is None else cell_timeout
        self._output_limit = output_limit
        all_names = {**subcalls.functions, **(names or {})}
        self._functions: dict[str, Any] = {name: value for name, value in all_names.items() if callable(value)}
        values = {name: value for name, value in all_names.items() if not callable(value)} | {"context": context}
        texts: list[Any] = []
        self._packed = {name: self._pack(name, value, texts) for name, value in values.items()}
        self._context_repr = bounded_repr(context)
        self._servers = [text.serve() for text in texts]
        self._requests = WorkerRequests(self._functions, self._servers, [context, *texts])
        self._variables: Mapping[str, str] = {}
        self._pending_note = ""  # for the stderr of the next cell: that the worker was lost with the last one
        self._cell_id = 0  # of the last cell, from 1
        self._worker: Worker | None = None
        self._is_closed = False
        self.confinement = "none"  # how the worker is confined, as it reports before any code runs
        try:
            self._start_worker()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def launch(self) -> tuple[Worker, Mapping[str, Any]]:
        """Start a worker. Returns the worker and the fields of its first message. Raises RunnerUnavailable."""

    def run(self, code: str) -> CellResult:
        """Run one cell. If its worker is lost, stderr says so, and the next cell runs in a new one."""
        if self._is_closed:
            return AFTER_CLOSE
        if self._worker is None:
            self._start_worker()  # before the time of the cell begins
        waited = self._subcalls.waited
        clock = CellClock(self._cell_timeout, self._subcalls.seconds_left, waited, waited.seconds)
        try:
            result = self._run_cell(code, clock)
        except ChannelClosed:
            result = self._report_loss("WorkerDied", f"the process that ran the cell ended ({self._end(hung_up=True)})")
        except BaseException as exc:
            if not (isinstance(exc, KeyboardInterrupt) and self._interrupt()):
                loss = self._report_loss(type(exc).__name__, "the previous cell and its process were ended")
                self._pending_note = loss.stderr
                self._end()
            raise
        note, self._pending_note = self._pending_note, ""
        seconds = time.perf_counter() - clock.started
        return replace(result, stderr=note + result.stderr, calls=self._subcalls.drain(), execution_seconds=seconds)

    def _run_cell(self, code: str, clock: CellClock) -> CellResult:
        """The result of a cell, or a report that its worker had to be ended."""
        seconds = self._subcalls.seconds_left()
        self._cell_id += 1
        limit = None if math.isinf(seconds) else seconds
        self._send({"op": "cell", "id": self._cell_id, "code": code, "seconds": limit})
        message = self._await_reply(lambda: _GRACE_SECONDS + clock.seconds_left())
        if message is None:
            self._end()
            why = f"the cell ran longer than {clock.allowed_seconds():g} s inside a call that cannot be interrupted"
            return self._report_loss("CellTimeout", f"{why}, so its process was ended")
        result = self._read_result(message)
        if not message.head.get("broken"):
            return result
        self._end()
        why = "the cell damaged its Python interpreter (for example its modules), so its process was ended"
        loss = self._report_loss("InterpreterBroken", why)
        raised = result.final_answer is None
        return replace(result, stderr=result.stderr + loss.stderr, variables=loss.variables, raised=raised)

    def close(self) -> None:
        """End the worker and free its context. Idempotent."""
        self._is_closed = True
        self._end()

    def _pack(self, name: str, value: object, texts: list[Any]) -> bytes:
        """`value` as bytes for the worker; its lazy texts are added to `texts`. Raises RunnerUnavailable."""
        try:
            return pack_for_worker(take_texts_out(value, texts))
        except TypeError:
            raise RunnerUnavailable(
                f"runner {self.name!r} cannot pass {name!r} to its worker: this {type(value).__name__} is not "
                "plain data throughout, or is nested too deeply; pass str, numbers, lists, dicts or a Monocontext, or "
                'use runner="local" (--runner local)'
            ) from None

    def _start_worker(self) -> None:
        """Start a worker, and give it the context and the names. Raises RunnerUnavailable."""
        worker, hello = self.launch()
        self._worker = worker
        if hello.get("protocol") != PROTOCOL:
            self._end()
            raise RunnerUnavailable(
                f"runner {self.name!r}: the worker speaks protocol {str(hello.get('protocol'))[:20]}, this process "
                f"{PROTOCOL}: install the same version of monocontext-rlm on both sides"
            )
        confinement = str(hello.get("confinement", "none"))[:50]
        self.confinement = self.name if confinement == "container" else confinement
        start = {
            "op": "start", "texts": len(self._servers), "output_limit": self._output_limit,
            "cell_timeout": None if math.isinf(self._cell_timeout) else self._cell_timeout,
            "functions": {name: str(call.__doc__ or "")[:2000] for name, call in self._functions.items()},
            "values": [[name, len(data)] for name, data in self._packed.items()],
        }  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        with suppress(ChannelClosed):
            worker.channel.send(start, [*self._packed.values()], seconds=START_SECONDS)
            if self._await_start(worker.channel, deadline):
                return
        how_ended = self._end(hung_up=True)
        raise RunnerUnavailable(f"runner {self.name!r}: the worker did not start: {worker.complaint or how_ended}")

    def _await_start(self, channel: Channel, deadline: float) -> bool:
        """Answer the worker's requests until it has started; False at the deadline. Raises RunnerUnavailable."""
        while (seconds := deadline - time.monotonic()) > 0 and (message := channel.receive(seconds)):
            op = message.head.get("op")
            if op == "started":
                return True
            if op == "failed":
                self._end()
                raise RunnerUnavailable(f"runner {self.name!r}: {str(message.head.get('message'))[:500]}")
            self._requests.handle(channel, message)
        return False

    def _interrupt(self) -> bool:
        """Interrupt the running cell for a Ctrl-C. Returns whether it ended in time, with its variables kept."""
        if self._worker is None:
            return False  # it was being ended already
        deadline = time.monotonic() + _GRACE_SECONDS
        self._subcalls.abandon()
        try:
            self._send({"op": "interrupt"})
            message = self._await_reply(lambda: deadline - time.monotonic())
            if message is not None:
                self._read_result(message)
        except (ChannelClosed, ChannelAbuse):
            return False
        except BaseException:  # a second Ctrl-C
            self._end()
            raise
        self._subcalls.drain()
        return message is not None

    def _end(self, *, hung_up: bool = False) -> str:
        """End the worker. Returns how it ended, in a few words. `hung_up`: whether it closed the channel."""
        worker, self._worker = self._worker, None
        self._subcalls.abandon()
        return worker.end(hung_up=hung_up) if worker else "ended"

    def _report_loss(self, error: str, why: str) -> CellResult:
        """The result of a cell whose worker is lost, with the names of its variables. `error`: what the model sees."""
        log(INFO, "%s; a new worker takes its place, without the variables", error)  # and nothing of the cell
        names = ", ".join(name for name in self._variables if name != "context")
        lost = f"The variables are lost: {shorten(names, 1_000)}." if names else "There were no variables to lose."
        self._variables = {"context": self._context_repr}
        stderr = f"{error}: {why}. {lost} `context` and the functions are available again in a new process.\n"
        return CellResult(stderr=stderr, variables=self._variables, raised=True)

    def _send(self, head: dict[str, Any]) -> None:
        assert self._worker is not None
        self._worker.channel.send(head, seconds=SEND_SECONDS)

    def _await_reply(self, seconds_left: Callable[[], float]) -> Message | None:
        """Answer the worker's requests until the result of the last cell comes; None if the time is up first."""
        assert self._worker is not None
        channel = self._worker.channel
        while (seconds := seconds_left()) > 0:
            message = channel.receive(min(seconds, _POLL_SECONDS))
            self._requests.raise_failure()
            if message is None:
                continue
            if message.head.get("op") != "done":
                self._requests.handle(channel, message)
            elif message.head.get("id") == self._cell_id:
                return message
            else:
                number = str(message.head.get("id"))[:20]
                raise ChannelAbuse(f"the worker sent the result of cell {number} instead of cell {self._cell_id}")
        return None

    def _read_result(self, message: Message) -> CellResult:
        """The result of a cell as the worker reports it, cut to the limits of this runner. Raises ChannelAbuse."""
        head, body = message
        match decode_from_worker(head.get("result"), split_texts(head.get("texts"), body)):
            case [str(out), str(err), (None | str()) as answer, bool(raised), dict(shown), cited]:
                pass
            case _:
                raise ChannelAbuse("the worker sent a result that is not a list of six fields of the right types")
        try:
            claims = check_claims(cited)
        except ValueError as exc:
            raise ChannelAbuse(f"the worker sent malformed claims: {exc}") from None
        if not all(isinstance(text, str) for text in shown.values()):
            raise ChannelAbuse("the worker sent a variable whose value is not text")
        variables = {name[:200]: text[:_VARIABLE_CHARACTERS] for name, text in shown.items()}
        self._variables = variables
        room = self._output_limit + 2 * SLACK + NOTES_CHARACTERS  # the runner's own notes are not cut again
        return CellResult(
            shorten(out, room), shorten(err, room), variables, final_answer=answer, raised=raised, claims=claims
        )
