"""Answer the requests of a worker while its cell runs: calls of functions, and reads of lazy texts.

A request that may wait (a model call, storage) runs on a thread of its own; any other is answered at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from rlm.errors import ChannelAbuse, LLMError
from rlm.runners.channel import MOST_HEAD_BYTES, Channel, ChannelClosed, Message
from rlm.runners.values import decode_from_worker, pack_for_worker, split_texts

if TYPE_CHECKING:
    from monocontext.engine.remote.server import ReaderServer

MOST_REQUESTS = 64  # the most requests of a worker at once; an honest one has at most 32
MOST_OPEN_BYTES = 128 << 20  # the most bytes of those requests together: two of the longest messages
SEND_SECONDS = 30.0  # a worker that does not read a message in this time is lost
_ERROR_CHARACTERS = 10_000  # the longest message of an error that goes to the worker


class WorkerRequests:
    """Answers the requests of one worker. For use by one thread of the host."""

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]], servers: Sequence[ReaderServer], known: Sequence[object]
    ) -> None:
        """`functions`: those that the worker may call. `servers`: one for each lazy text. `known`: values that the
        worker may send as their positions in this list."""
        self.functions = dict(functions)
        self._servers = servers
        self._known = known
        self._lock = threading.Lock()
        self._count = self._bytes = 0
        self._failure: BaseException | None = None

    def raise_failure(self) -> None:
        """Raise the exception that ended a request's thread, if any: ChannelAbuse, or what is not an `Exception`."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def handle(self, channel: Channel, message: Message) -> None:
        """Answer a request on `channel`, now or in a thread. Raises ChannelAbuse for anything but a valid request."""
        head, body = message
        number = head.get("id")
        if type(number) is not int or not 0 < number < 1 << 62:
            raise ChannelAbuse(f"the worker numbered a request {str(number)[:50]!r}, expected a positive integer")
        match head:
            case {"op": "read", "text": int(text)} if 0 <= text < len(self._servers):
                server = self._servers[text]
                answer = partial(_answer_read, channel, number, server, bytes(body))
                if _is_ready(server, body):
                    answer()
                    return
            case {"op": "call"}:
                answer = partial(_answer_call, channel, number, self._decode_call(head, body))
            case _:
                raise ChannelAbuse(f"the worker sent an unknown message: {str(head.get('op'))[:50]!r}")
        self._run_in_thread(answer, len(body))

    def _decode_call(self, head: dict[str, Any], body: memoryview) -> Callable[[], Any]:
        """The function that a worker calls, with its arguments. Raises ChannelAbuse."""
        value = decode_from_worker(head.get("given"), split_texts(head.get("texts"), body), self._known)
        name = head.get("name")
        match value:
            case [[*args], dict(options)] if isinstance(name, str) and name in self.functions:
                return partial(self.functions[name], *args, **options)
        raise ChannelAbuse(f"the worker sent a malformed call, or a call of an unknown function: {str(name)[:50]!r}")

    def _run_in_thread(self, answer: Callable[[], None], size: int) -> None:
        with self._lock:
            self._count += 1
            self._bytes += size
            if self._count > MOST_REQUESTS or self._bytes > MOST_OPEN_BYTES:
                limits = f"bytes in all: at most {MOST_REQUESTS} requests and {MOST_OPEN_BYTES:,} bytes are allowed"
                raise ChannelAbuse(f"the worker has {self._count} open requests of {self._bytes:,} {limits}")

        def run() -> None:
            try:
                answer()
            except BaseException as exc:  # `raise_failure` raises it in the thread that waits for the cell
                self._failure = exc
            finally:
                with self._lock:
                    self._count -= 1
                    self._bytes -= size

        # A daemon: a model call may take ten minutes, and the process must be able to end.
        threading.Thread(target=run, name="rlm-worker-call", daemon=True).start()


def _is_ready(server: ReaderServer, request: memoryview) -> bool:
    """Whether `server` can answer without waiting. Raises ChannelAbuse for a request that no honest worker sends."""
    if len(request) > MOST_HEAD_BYTES:  # it is parsed as JSON, like the head of a message
        raise ChannelAbuse(f"the worker sent a read request of {len(request):,} bytes: at most {MOST_HEAD_BYTES:,}")
    try:
        return server.is_ready(bytes(request))
    except server.bad_request as exc:
        raise ChannelAbuse(f"the worker sent a bad request: {exc}") from None


def _answer_read(channel: Channel, number: int, server: ReaderServer, request: bytes) -> None:
    try:
        head: dict[str, Any] = {}
        body = server.answer(request)
    except server.bad_request as exc:
        raise ChannelAbuse(f"the worker sent a bad request: {exc}") from None
    except Exception as exc:
        head, body = {"error": _encode_error(exc)}, b""
    _send(channel, number, head, body)


def _answer_call(channel: Channel, number: int, call: Callable[[], Any]) -> None:
    """Send the result of a function. Exceptions in a list, which a batch returns, go into the head of the message."""
    head: dict[str, Any] = {}
    try:
        value = call()
        if isinstance(value, list) and any(isinstance(item, Exception) for item in value):
            head["errors"] = [(i, _encode_error(item)) for i, item in enumerate(value) if isinstance(item, Exception)]
            value = [None if isinstance(item, Exception) else item for item in value]
        body = pack_for_worker(value)
    except Exception as exc:
        head, body = {"error": _encode_error(exc)}, b""
    _send(channel, number, head, body)


def _encode_error(exc: Exception) -> list[str]:
    """The class name of an exception (LLMError for its subclasses), and its message."""
    name = "LLMError" if isinstance(exc, LLMError) else type(exc).__name__
    message = exc.args[0] if type(exc) is KeyError and len(exc.args) == 1 else exc  # the str of a KeyError is a repr
    return [name, str(message)[:_ERROR_CHARACTERS]]


def _send(channel: Channel, number: int, head: dict[str, Any], body: bytes) -> None:
    with suppress(ChannelClosed):  # the worker is gone; the thread that waits for the cell notices it too
        channel.send({**head, "id": number}, [body], seconds=SEND_SECONDS)
