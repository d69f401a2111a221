"""Serve MCP over stdin and stdout: each request gets a reply, and the process ends soon after its client.

The SDK alone would drop a line that it cannot parse, and its client would wait for ever. And it would wait for threads
that search when stdin ends.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from monocontext.text_tools import search_process
from monocontext.text_tools.arguments import HALF_A_PAIR, is_text
from monocontext.text_tools.replies import fit_error

GRACE_SECONDS = 1.0
"""The time for running calls to finish when stdin ends."""
_NOT_JSON, _NO_REQUEST = -32700, -32600


async def serve(lowlevel: Any, parse: Callable[[str], Any]) -> None:
    """Serve a low-level server of the SDK until stdin ends; ends the process if calls run longer than `GRACE_SECONDS`.

    `parse`: the SDK's function that parses a message.
    """
    from mcp.server.stdio import stdio_server

    lines = _Lines(_take(0, os.open(os.devnull, os.O_RDONLY)), _take(1, os.dup(2)), parse)
    try:
        async with stdio_server(stdin=lines, stdout=lines) as (reading, writing):
            await lowlevel.run(reading, writing, lowlevel.create_initialization_options())
    finally:
        _end_soon()  # after an interrupt a thread still reads


def _take(standard: int, instead: int) -> int:
    """A private descriptor for stdin or stdout. The standard one becomes `instead`, so that prints of other code do not
    reach the client."""
    own = os.dup(standard)
    os.dup2(instead, standard)
    os.close(instead)
    return own


class _Lines:
    """A text file as far as the SDK uses one: an iterator of lines, `write` and `flush`."""

    def __init__(self, reading: int, writing: int, parse: Callable[[str], Any]) -> None:
        self._reading = os.fdopen(reading, "rb")
        self._writing = writing
        self._parse = parse
        self._lock = threading.Lock()

    async def __aiter__(self) -> AsyncIterator[str]:
        from anyio.to_thread import run_sync

        while line := await run_sync(self._reading.readline, abandon_on_cancel=True):
            if not line.strip():
                continue
            text = line.decode(errors="surrogateescape")
            why = refusal_of(text, self._parse)
            if why is None:
                yield text
            elif why:
                await self.write(why + "\n")
        _end_soon()

    async def write(self, text: str) -> None:
        from anyio.to_thread import run_sync

        await run_sync(self._write, text.encode())

    def _write(self, line: bytes) -> None:
        remaining = memoryview(line)
        try:
            with self._lock:
                while remaining:
                    remaining = remaining[os.write(self._writing, remaining) :]
        except BrokenPipeError:
            _end_soon()  # the client is gone

    async def flush(self) -> None:
        """Do nothing: each write is complete."""


def refusal_of(line: str, parse: Callable[[str], Any]) -> str | None:
    """The error reply to a line that `parse` refuses. Empty if no reply is due, None for a valid line."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _error_reply(None, _NOT_JSON, f"not JSON: {error}")
    if not isinstance(message, dict):
        return _error_reply(None, _NO_REQUEST, "a message is one JSON object")
    is_request, identity = "method" in message and "id" in message, message.get("id")
    if type(identity) not in (int, str) or not is_text(str(identity)):
        identity = None
    if is_request and identity is None:
        return _error_reply(None, _NO_REQUEST, "the id of a request is a string or an integer")
    if not is_text(line):
        code, why = _NOT_JSON, "the line is not UTF-8"
    else:
        try:
            parse(line)
            return None
        except (ValueError, RecursionError):
            code, why = _NO_REQUEST, "not a message of JSON-RPC 2.0"
        if not is_text(json.dumps(message, ensure_ascii=False)):
            code, why = _NOT_JSON, f"the request holds {HALF_A_PAIR}"
    is_answer_due = is_request or not {"method", "result", "error"} & message.keys()
    return _error_reply(identity, code, why) if is_answer_due else ""


def _error_reply(identity: int | str | None, code: int, why: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": fit_error(why)}})


def _end_soon() -> None:
    """End the process after `GRACE_SECONDS`, if it has not ended by then: a thread that searches cannot be ended."""

    def end() -> None:
        search_process.end_all()
        os._exit(0)

    clock = threading.Timer(GRACE_SECONDS, end)
    clock.daemon = True
    clock.start()
