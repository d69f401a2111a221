"""Call the functions of the host from a worker: model calls and custom tools."""

from __future__ import annotations

import builtins
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rlm.calls.waiting import WaitClock
from rlm.errors import LLMError
from rlm.runners.channel import Message
from rlm.runners.link import WorkerLink
from rlm.runners.values import encode_for_host, unpack_from_host


def call_host(link: WorkerLink, head: dict[str, Any], body: list[bytes]) -> Message:
    """The host's answer to a request. Raises the error that the request caused there (see `_make_error`)."""
    answer = link.call(head, body)
    if "error" in answer.head:
        raise _make_error(*answer.head["error"])
    return answer


def _make_error(name: str, text: str) -> Exception:
    """The error that a call raised on the host: LLMError, the builtin exception `name`, or else a RuntimeError."""
    if name == "LLMError":
        return LLMError(text)
    error_type = getattr(builtins, name, None)
    if isinstance(error_type, type) and issubclass(error_type, Exception):
        with suppress(TypeError):  # its constructor takes more than a message
            return error_type(text)
    return RuntimeError(f"{name}: {text}")


class RemoteCalls:
    """The host's `SubCalls`, called over the link."""

    def __init__(self, link: WorkerLink) -> None:
        self._link = link
        self.known: list[object] = []  # the context and texts, which the host has too: a call sends their numbers
        self._run_ends_at = math.inf
        self.waited = WaitClock()
        self.functions: dict[str, Callable[..., Any]] = {}  # the host names them at the start

    def make_function(self, name: str, doc: str) -> Callable[..., Any]:
        """A function that calls the host's function of this name, and returns its result or raises its error."""

        def remote(*args: Any, **options: Any) -> Any:
            texts: list[bytes] = []
            arguments = encode_for_host([list(args), options], texts, known=self.known)
            head = {"op": "call", "name": name, "given": arguments, "texts": [len(text) for text in texts]}
            call_lock = threading.Lock()
            with call_lock, self.waited.running(call_lock):
                answer = call_host(self._link, head, texts)
            value = unpack_from_host(answer.body)
            for offset, error in answer.head.get("errors", []):  # of a batch that returns its exceptions
                value[offset] = _make_error(*error)
            return value

        remote.__name__ = remote.__qualname__ = name
        remote.__doc__ = doc
        return remote

    def set_budget(self, seconds: float | None) -> None:
        """Set the seconds that the budget of the run leaves from now on; None for no limit."""
        self._run_ends_at = math.inf if seconds is None else time.monotonic() + seconds

    def seconds_left(self) -> float:
        """The seconds that the budget of the run leaves; infinite without a limit."""
        return self._run_ends_at - time.monotonic()

    def drain(self) -> tuple[()]:
        """The records of sub-calls: none, since the host keeps them."""
        return ()
