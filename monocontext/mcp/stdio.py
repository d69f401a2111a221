"""Serve MCP over stdin and stdout until the client leaves.

The SDK alone would not answer a request with half a surrogate pair, which models write: its client would wait for ever.
And it would wait for threads that read or search when stdin ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from monocontext.text_tools import search_process
from monocontext.text_tools.arguments import HALF_A_PAIR


def serve(server: Server[Any]) -> None:
    """Serve until stdin ends or the user presses Ctrl-C, then end this process."""
    try:
        anyio.run(_relay, server)
    except* (KeyboardInterrupt, BrokenPipeError):
        pass
    search_process.end_all()
    os._exit(0)  # a thread that reads stdin or a text cannot be ended


async def _relay(server: Server[Any]) -> None:
    lines = _Lines()
    async with stdio_server(stdin=lines) as (reading, writing):
        lines.answer = writing.send
        await server.run(reading, writing, server.create_initialization_options())


class _Lines:
    """The lines of stdin that hold text. Requests with half a surrogate pair are answered here."""

    answer: Callable[[SessionMessage], Awaitable[None]]

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(0), "rb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)  # processes that tools start must not read what the client sends
        os.close(nothing)

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await run_sync(self._file.readline, abandon_on_cancel=True):
            refusal = refusal_of(line)
            if refusal is None:
                yield line.decode(errors="replace")
            else:
                await self.answer(SessionMessage(refusal))


def refusal_of(line: bytes) -> types.JSONRPCError | None:
    """The error reply to a request that holds half a surrogate pair; None for any other line."""
    try:
        request = json.loads(line.decode(errors="surrogatepass"))
        json.dumps(request, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        error = types.ErrorData(code=types.INVALID_REQUEST, message=f"the request holds {HALF_A_PAIR}")
        identity = request.get("id") if isinstance(request, dict) else None
        is_known = type(identity) is int or (isinstance(identity, str) and identity.isprintable())
        return types.JSONRPCError(jsonrpc="2.0", id=identity if is_known else None, error=error)
    except (ValueError, RecursionError):
        return None
    return None
