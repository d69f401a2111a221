"""Make an MCP server: bind the tools and resources to the SDK, in version 1.x or 2.x."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import quote, unquote

from monocontext import __version__
from monocontext.errors import InvalidParameters, MonocontextError
from monocontext.mcp.catalog import MEMORY, Served
from monocontext.mcp.replies import fit_error, slice_reply
from monocontext.mcp.tools import Tools

SCHEME = "monocontext"
_WRITES = frozenset({"memory", "upload_context", "chat_rlm_query"})

INSTRUCTIONS = (
    "Texts far larger than a prompt, read in place. Begin with context_list and context_info, find places with "
    "context_search (with words=true where you do not know the exact ones), and read them with context_slice. A reply "
    "that was cut ends in a line that states the next range."
)


def make_server(
    served: Served,
    *,
    name: str = "monocontext",
    more: Callable[[Tools], dict[str, Callable[..., str]]] | None = None,
    uploads: bool = True,
    host: str = "127.0.0.1",
    version: str = __version__,
) -> Any:
    """A server of the SDK, `FastMCP` or `MCPServer`: `run()` serves stdio, `http.listen` HTTP.

    - `name`, `version`: as the server tells clients
    - `more`: further tools by name
    - `uploads`: offer `upload_context`, which reads session files of this machine
    - `host`: the host name of the server, against which the SDK checks the `Host` of requests

    Raises `MonocontextError` where the SDK is not installed.
    """
    kind, annotations, is_first = _sdk()
    refusal, missing = _refusal_types(is_first)
    where = {"host": host, "stateless_http": True} if is_first else {"version": version}
    server = kind(name=name, instructions=INSTRUCTIONS, log_level="WARNING", **where)
    if is_first:
        server._mcp_server.version = version  # the constructor takes none, and else clients read the SDK's
    tools = Tools(served)
    for tool, work in {**tools._tools_by_name(uploads=uploads), **(more(tools) if more else {})}.items():
        server.tool(
            name=tool,
            description=inspect.getdoc(work),
            annotations=annotations(readOnlyHint=tool not in _WRITES),
            structured_output=False,
        )(_run_in_thread(work, refusal))
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


def _refusal_types(is_first: bool) -> tuple[type[Exception], type[Exception]]:
    """The exceptions of tools and of resources whose message reaches the caller; 2.x hides any other."""
    exceptions: Any = import_module("mcp.server.fastmcp.exceptions" if is_first else "mcp.server.mcpserver.exceptions")
    return exceptions.ToolError, exceptions.ResourceError


def _run_in_thread(work: Callable[..., str], refusal: type[Exception]) -> Callable[..., Any]:
    """A tool that runs in a thread, so that the event loop is free; errors of the caller are its answer."""
    import anyio.to_thread

    @functools.wraps(work)
    async def run(*args: Any, **options: Any) -> str:
        with _raise_refusal(refusal):
            return await anyio.to_thread.run_sync(functools.partial(work, *args, **options))

    return run


@contextmanager
def _raise_refusal(refusal: type[Exception]) -> Iterator[None]:
    try:
        yield
    except (MonocontextError, InvalidParameters, OSError, ValueError) as error:
        raise refusal(fit_error(str(error))) from None


def _add_resources(server: Any, served: Served, refusal: type[Exception]) -> None:
    """Each context by its name, and any range of it."""
    names = [*served.contexts, *([MEMORY] if served.memory is not None else [])]
    for each in names:
        server.resource(
            f"{SCHEME}://{quote(each, safe='')}",
            name=each,
            description=f"How the text {each} begins; its last line says how to read on.",
            mime_type="text/plain",
        )(_run_in_thread(_read_head(served, each), refusal))

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
    )(_run_in_thread(part, refusal))


def _read_head(served: Served, name: str) -> Callable[[], str]:
    def head() -> str:
        text = served.context(name)
        return slice_reply(text, 0, len(text))

    return head
