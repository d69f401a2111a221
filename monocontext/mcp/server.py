"""The server: tools and resources bound to the MCP SDK, of its 1.x or of its 2.x."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import quote, unquote

from monocontext.errors import InvalidParameters, MonocontextError
from monocontext.mcp.replies import slice_reply
from monocontext.mcp.served import MEMORY, Served
from monocontext.mcp.tools import Tools

SCHEME = "monocontext"
_WRITES = frozenset({"memory", "upload_context", "chat_rlm_query"})

INSTRUCTIONS = (
    "Texts far larger than a prompt, read in place. Begin with context_list and context_info, find places with "
    "context_search, read them with context_slice. A reply that was cut ends in a line that states the next range."
)


def make_server(
    served: Served,
    *,
    name: str = "monocontext",
    more: Callable[[Tools], dict[str, Callable[..., str]]] | None = None,
    uploads: bool = True,
    host: str = "127.0.0.1",
) -> Any:
    """A server of the SDK, `FastMCP` or `MCPServer`: `run()` serves stdio, `http.listen` HTTP.

    - `more`: further tools by name
    - `uploads`: offer `upload_context`, which reads session files of this machine
    - `host`: that it will be reached at, for the SDK's check of where requests say that they go

    Raises `MonocontextError` where the SDK is not installed.
    """
    kind, annotations, is_first = _sdk()
    refusal, missing = _refusals(is_first)
    where = {"host": host, "stateless_http": True} if is_first else {}
    server = kind(name=name, instructions=INSTRUCTIONS, log_level="WARNING", **where)
    tools = Tools(served)
    for tool, work in {**tools._offered(uploads=uploads), **(more(tools) if more else {})}.items():
        server.tool(
            name=tool,
            description=inspect.getdoc(work),
            annotations=annotations(readOnlyHint=tool not in _WRITES),
            structured_output=False,
        )(_in_thread(work, refusal))
    _add_resources(server, served, missing)
    return server


def _sdk() -> tuple[Any, Any, bool]:
    try:
        from mcp.types import ToolAnnotations

        try:
            from mcp.server.mcpserver import MCPServer
        except ModuleNotFoundError:
            from mcp.server.fastmcp import FastMCP

            return FastMCP, ToolAnnotations, True
    except ModuleNotFoundError:
        raise MonocontextError("the MCP SDK is missing: pip install 'monocontext[mcp]'") from None
    return MCPServer, ToolAnnotations, False


def _refusals(is_first: bool) -> tuple[type[Exception], type[Exception]]:
    """What a tool and a resource raise so that the caller reads why; 2.x says nothing of any other exception."""
    exceptions: Any = import_module("mcp.server.fastmcp.exceptions" if is_first else "mcp.server.mcpserver.exceptions")
    return exceptions.ToolError, exceptions.ResourceError


def _in_thread(work: Callable[..., str], refusal: type[Exception]) -> Callable[..., Any]:
    """A tool that leaves the loop to others while it reads; what its caller can mend is the tool's answer."""
    import anyio.to_thread

    @functools.wraps(work)
    async def run(*args: Any, **options: Any) -> str:
        with _told(refusal):
            return await anyio.to_thread.run_sync(functools.partial(work, *args, **options))

    return run


@contextmanager
def _told(refusal: type[Exception]) -> Iterator[None]:
    try:
        yield
    except (MonocontextError, InvalidParameters, OSError, ValueError) as error:
        raise refusal(" ".join(str(error).split())) from None


def _add_resources(server: Any, served: Served, refusal: type[Exception]) -> None:
    """Each context by its name, and any range of it."""
    names = [*served.contexts, *([MEMORY] if served.memory is not None else [])]
    for each in names:
        server.resource(
            f"{SCHEME}://{quote(each, safe='')}",
            name=each,
            description=f"How the text {each} begins; where it goes on is said in its last line.",
            mime_type="text/plain",
        )(_in_thread(_reader(served, each), refusal))

    def part(context: str, start: str, stop: str) -> str:
        text = served.context(unquote(context))
        if not (start.isdecimal() and stop.isdecimal()):
            raise InvalidParameters(f"a range is START/STOP in characters, not {start}/{stop}")
        first, last, _ = slice(int(start), int(stop)).indices(len(text))
        return slice_reply(text, first, last)

    server.resource(
        SCHEME + "://{context}/{start}/{stop}",
        name="part",
        description="Characters START to STOP of a text; its name percent-encoded.",
        mime_type="text/plain",
    )(_in_thread(part, refusal))


def _reader(served: Served, name: str) -> Callable[[], str]:
    def head() -> str:
        text = served.context(name)
        return slice_reply(text, 0, len(text))

    return head
