"""Serve MCP over stdin and stdout until the client leaves.

The SDK alone ignores a line that is no message, or that has half a surrogate pair, which models do write: the client
would wait for ever. And when stdin ends, the SDK would wait for threads that still read or search.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any, Self

import anyio
from anyio.to_thread import run_sync
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from monocontext.text_tools.arguments import HALF_A_PAIR, is_unicode

GRACE_SECONDS = 0.5  # the time for calls under way to end after stdin has ended


def serve(server: Server[Any]) -> None:
    """Serve until stdin ends or the user presses Ctrl-C, then end this process."""
    try:
        anyio.run(_relay, server)
    except* (KeyboardInterrupt, BrokenPipeError):
        pass
    os._exit(0)  # a thread that reads stdin or a text cannot be ended


async def _relay(server: Server[Any]) -> None:
    lines: Any = _Lines()  # an `AsyncFile` as far as the SDK looks
    async with stdio_server(stdin=lines) as (reading, writing):
        lines.replies = _Replies(writing)
        await server.run(reading, lines.replies, server.create_initialization_options())


class _Lines:
    """Yields the lines of stdin that hold messages, and answers the others itself, with errors."""

    replies: _Replies  # set by `_relay` once the SDK has opened the stream to the client

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(0), "rb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)  # processes that tools start must not read what the client sends
        os.close(nothing)

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await run_sync(self._file.readline, abandon_on_cancel=True):
            refusal = refusal_of(line)
            if refusal is not None or is_request(line):
                self.replies.due += 1
            if refusal is None:
                yield line.decode(errors="replace")
            else:
                await self.replies.send(SessionMessage(refusal))
        # The SDK ends calls that are under way when the lines end, as they do after `echo REQUEST |`.
        with anyio.move_on_after(GRACE_SECONDS):
            while self.replies.due > 0:
                await anyio.sleep(0.01)


class _Replies:
    """The stream of messages to the client. Counts the replies that are not sent yet."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.due = 0  # the number of replies that are not sent yet

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)
        if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self.due -= 1

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def is_request(line: bytes) -> bool:
    """Whether a line that `refusal_of` accepts is a request, which gets a reply."""
    return bool(line.strip()) and {"id", "method"} <= json.loads(line.decode(errors="replace")).keys()


def refusal_of(line: bytes) -> types.JSONRPCError | None:
    """The error reply to a line that the SDK would drop or change; None for any other line."""
    if not line.strip():
        return None
    try:
        message = json.loads(line.decode(errors="surrogateescape"))
    except (ValueError, RecursionError) as error:
        return _refuse(None, types.PARSE_ERROR, f"not JSON: {error}")
    if not isinstance(message, dict):
        return _refuse(None, types.INVALID_REQUEST, "a message must be a JSON object")
    is_notification = "method" in message and "id" not in message
    is_reply = not message.keys().isdisjoint({"result", "error"})
    if is_notification or is_reply:
        return None  # neither gets a reply
    identity = message.get("id")
    if type(identity) is not int and not (isinstance(identity, str) and is_unicode(identity)):
        return _refuse(None, types.INVALID_REQUEST, "the id of a request must be a string or an integer")
    if not is_unicode(json.dumps(message, ensure_ascii=False)):
        is_utf8 = line.decode(errors="replace").encode() == line
        why = f"the request holds {HALF_A_PAIR}" if is_utf8 else "the request is not UTF-8"
        return _refuse(identity, types.INVALID_REQUEST, why)
    try:
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _refuse(identity, types.INVALID_REQUEST, "not a message of JSON-RPC 2.0")
    return None


def _refuse(identity: int | str | None, code: int, why: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=identity, error=types.ErrorData(code=code, message=why))
