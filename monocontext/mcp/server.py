"""Make an MCP server: bind the tools and resources to the SDK, in version 1.x or 2.x."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from typing import Any, get_args
from urllib.parse import quote, unquote

from monocontext import __version__
from monocontext.errors import InvalidParameters, MonocontextError, ToolRefusal
from monocontext.mcp import stdio
from monocontext.mcp.catalog import MEMORY, Served
from monocontext.mcp.outputs import Text
from monocontext.mcp.tools import Tools
from monocontext.options import nearest
from monocontext.text_tools.arguments import check_arguments
from monocontext.text_tools.outputs import Reply
from monocontext.text_tools.replies import fit_error, slice_reply

SCHEME = "monocontext"
_NEAR_NAME = 100
"""Characters of a name for which a near one is looked for."""
_WRITES = frozenset({"memory", "upload_context", "chat_rlm_query"})
_TITLES = {
    "context_list": "List texts",
    "context_info": "Describe a text",
    "context_slice": "Read a part of a text",
    "context_search": "Search a text",
    "context_documents": "List the documents of a text",
    "context_outline": "Outline a text",
    "session_list": "List sessions",
    "session_read": "Read a session",
    "memory": "Shared memory",
    "upload_context": "Upload a session",
    "ask": "Ask a model about a text",
    "chat_rlm_query": "Ask a model about a text",
}

INSTRUCTIONS = (
    "Texts far larger than a prompt, read in place. Begin with context_list and context_info, find places with "
    "context_search (with words=true where you do not know the exact ones), and read them with context_slice. A reply "
    "that was cut ends in a line that states the next range."
)


def make_server(
    served: Served,
    *,
    name: str = "monocontext",
    more: Callable[[Tools], Mapping[str, Callable[..., str]]] | None = None,
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
    tools = Tools(served)
    works: dict[str, Callable[..., str]] = {**tools._tools_by_name(uploads=uploads), **(more(tools) if more else {})}
    server = _server_class(kind, works, refusal, is_first)(
        name=name, instructions=INSTRUCTIONS, log_level="WARNING", **where
    )
    if is_first:
        server._mcp_server.version = version  # the constructor takes no version, and clients would read the SDK's
        logging.getLogger("mcp.server.lowlevel.server").setLevel(logging.ERROR)  # it warns of each unknown tool
    for tool, work in works.items():
        title = _TITLES.get(tool, tool)
        server.tool(
            name=tool,
            title=title,
            description=inspect.getdoc(work),
            annotations=annotations(title=title, readOnlyHint=tool not in _WRITES),
            structured_output=False,
        )(work)
    _add_resources(server, served, missing)
    return server


def _server_class(
    kind: Any, works: Mapping[str, Callable[..., str]], refusal: type[Exception], is_first: bool
) -> Callable[..., Any]:
    """The SDK's server, which checks arguments and makes replies in this project's way.

    The SDK ignores unknown arguments, quotes an unknown name whole, and writes errors of many lines.
    """
    import anyio.to_thread
    from mcp import types
    from pydantic import TypeAdapter

    schemas = {name: TypeAdapter(_output_type(work)).json_schema() for name, work in works.items()}

    def run(name: str, arguments: dict[str, Any]) -> str:
        if name not in works:
            raise ToolRefusal(f"Unknown tool: {name}{nearest(name, works) if len(name) <= _NEAR_NAME else ''}")
        return works[name](**check_arguments(name, works[name], arguments))

    class Server(kind):  # type: ignore[misc]
        async def call_tool(self, name: str, arguments: dict[str, Any], *_: Any) -> Any:
            with _raise_refusal(refusal):
                reply = await anyio.to_thread.run_sync(run, name, arguments)
            fields = asdict(reply.data if isinstance(reply, Reply) else Text(reply))
            content = [types.TextContent(type="text", text=str(reply))]
            return (content, fields) if is_first else types.CallToolResult(content=content, structured_content=fields)

        async def list_tools(self) -> Any:
            listed = await super().list_tools()
            for each in listed:
                (each.inputSchema if is_first else each.input_schema)["additionalProperties"] = False
                setattr(each, "outputSchema" if is_first else "output_schema", schemas[each.name])
            return listed

        async def run_stdio_async(self) -> None:
            await stdio.serve(self._mcp_server if is_first else self._lowlevel_server, _parser(is_first))

    return Server


def _output_type(work: Callable[..., str]) -> Any:
    """The fields of a tool's replies: `D` of `Reply[D]`, else `Text`."""
    return next(iter(get_args(inspect.signature(work).return_annotation)), Text)


def _parser(is_first: bool) -> Callable[[str], Any]:
    """How the SDK reads a message of JSON-RPC."""
    if is_first:
        parse: Callable[[str], Any] = import_module("mcp.types").JSONRPCMessage.model_validate_json
        return parse
    return functools.partial(import_module("mcp_types").jsonrpc_message_adapter.validate_json, by_name=False)


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
    """A resource that is read in a thread, so that the event loop is free; errors of the caller are its answer."""
    import anyio.to_thread

    @functools.wraps(work)
    async def run(*args: Any, **options: Any) -> str:
        with _raise_refusal(refusal):
            return str(await anyio.to_thread.run_sync(functools.partial(work, *args, **options)))

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
