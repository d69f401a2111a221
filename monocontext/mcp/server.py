"""Make an MCP server of the tools and resources, with version 1.x or 2.x of the SDK."""

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
from monocontext.errors import InvalidParameters, MonocontextError, ToolRefusal, install_line
from monocontext.mcp import stdio
from monocontext.mcp.catalog import MEMORY, Served
from monocontext.mcp.outputs import Text
from monocontext.mcp.tools import Tools
from monocontext.options import nearest
from monocontext.text_tools.arguments import check_arguments
from monocontext.text_tools.outputs import Reply
from monocontext.text_tools.replies import fit_error, slice_reply

SCHEME = "monocontext"
_MOST_TYPO = 100
"""Characters. For a longer unknown name no similar one is suggested."""
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
    """A server of the SDK, `FastMCP` or `MCPServer`: `run()` serves stdio, `HttpListener.serve` HTTP.

    - `name`, `version`: shown to clients
    - `more`: further tools by name
    - `uploads`: offer `upload_context`, which reads session files of this machine
    - `host`: the host name of the server; the SDK compares the `Host` of requests with it

    Raises `MonocontextError` if the SDK is not installed.
    """
    base, annotations, is_v1 = _sdk()
    tool_error, resource_error = _error_types(is_v1)
    options = {"host": host, "stateless_http": True} if is_v1 else {"version": version}
    tools = Tools(served)
    functions: dict[str, Callable[..., str]] = {
        **tools._tools_by_name(uploads=uploads),
        **(more(tools) if more else {}),
    }
    server_class = _server_class(base, functions, tool_error, is_v1)
    server = server_class(name=name, instructions=INSTRUCTIONS, log_level="WARNING", **options)
    if is_v1:
        server._mcp_server.version = version  # the constructor takes none, and clients would get the SDK's
        logging.getLogger("mcp.server.lowlevel.server").setLevel(logging.ERROR)  # it warns of each unknown tool
    for tool, function in functions.items():
        title = _TITLES.get(tool, tool)
        server.tool(
            name=tool,
            title=title,
            description=inspect.getdoc(function),
            annotations=annotations(title=title, readOnlyHint=tool not in _WRITES),
            structured_output=False,
        )(function)
    _add_resources(server, served, resource_error)
    return server


def _server_class(
    base: Any, functions: Mapping[str, Callable[..., str]], tool_error: type[Exception], is_v1: bool
) -> Callable[..., Any]:
    """A subclass of the SDK's server that checks arguments and makes replies itself.

    The SDK ignores unknown arguments, quotes an unknown name whole, and writes errors of many lines.
    """
    import anyio.to_thread
    from mcp import types
    from pydantic import TypeAdapter

    schemas = {name: TypeAdapter(_output_type(function)).json_schema() for name, function in functions.items()}

    def run(name: str, arguments: dict[str, Any]) -> str:
        if name not in functions:
            raise ToolRefusal(f"Unknown tool: {name}{nearest(name, functions) if len(name) <= _MOST_TYPO else ''}")
        return functions[name](**check_arguments(name, functions[name], arguments))

    class Server(base):  # type: ignore[misc]
        async def call_tool(self, name: str, arguments: dict[str, Any], *_: Any) -> Any:
            with _raise_as(tool_error):
                reply = await anyio.to_thread.run_sync(run, name, arguments)
            fields = asdict(reply.data if isinstance(reply, Reply) else Text(reply))
            content = [types.TextContent(type="text", text=str(reply))]
            return (content, fields) if is_v1 else types.CallToolResult(content=content, structured_content=fields)

        async def list_tools(self) -> Any:
            listed = await super().list_tools()
            for item in listed:
                (item.inputSchema if is_v1 else item.input_schema)["additionalProperties"] = False
                setattr(item, "outputSchema" if is_v1 else "output_schema", schemas[item.name])
            return listed

        async def run_stdio_async(self) -> None:
            await stdio.serve(self._mcp_server if is_v1 else self._lowlevel_server, _parser(is_v1))

    return Server


def _output_type(function: Callable[..., str]) -> Any:
    """The class with the fields of a tool's replies: `D` of `Reply[D]`, else `Text`."""
    return next(iter(get_args(inspect.signature(function).return_annotation)), Text)


def _parser(is_v1: bool) -> Callable[[str], Any]:
    """The SDK's function that parses a message of JSON-RPC."""
    if is_v1:
        parse: Callable[[str], Any] = import_module("mcp.types").JSONRPCMessage.model_validate_json
        return parse
    return functools.partial(import_module("mcp_types").jsonrpc_message_adapter.validate_json, by_name=False)


def _sdk() -> tuple[Any, Any, bool]:
    """The SDK's classes for servers and annotations, and whether it is of version 1."""
    try:
        from mcp.types import ToolAnnotations

        try:
            from mcp.server.mcpserver import MCPServer
        except ModuleNotFoundError:
            from mcp.server.fastmcp import FastMCP

            return FastMCP, ToolAnnotations, True
    except ModuleNotFoundError:
        raise MonocontextError(f"the MCP SDK is missing: {install_line('mcp')}") from None
    return MCPServer, ToolAnnotations, False


def _error_types(is_v1: bool) -> tuple[type[Exception], type[Exception]]:
    """The SDK's errors for tools and for resources. Version 2 hides the message of any other error from the caller."""
    exceptions: Any = import_module("mcp.server.fastmcp.exceptions" if is_v1 else "mcp.server.mcpserver.exceptions")
    return exceptions.ToolError, exceptions.ResourceError


def _in_thread(read: Callable[..., str], resource_error: type[Exception]) -> Callable[..., Any]:
    """The function of a resource, run in a thread to keep the event loop free."""
    import anyio.to_thread

    @functools.wraps(read)
    async def run(*args: Any, **options: Any) -> str:
        with _raise_as(resource_error):
            return str(await anyio.to_thread.run_sync(functools.partial(read, *args, **options)))

    return run


@contextmanager
def _raise_as(error_type: type[Exception]) -> Iterator[None]:
    """Raise our errors as this error of the SDK, with the message cut to the size of a reply."""
    try:
        yield
    except (MonocontextError, InvalidParameters, OSError, ValueError) as error:
        raise error_type(fit_error(str(error))) from None


def _add_resources(server: Any, served: Served, resource_error: type[Exception]) -> None:
    """Offer each context as a resource by its name, and any range of it."""
    for name in [*served.contexts, *([MEMORY] if served.memory is not None else [])]:
        server.resource(
            f"{SCHEME}://{quote(name, safe='')}",
            name=name,
            description=f"The beginning of the text {name}; its last line says how to read on.",
            mime_type="text/plain",
        )(_in_thread(_read_head(served, name), resource_error))

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
    )(_in_thread(part, resource_error))


def _read_head(served: Served, name: str) -> Callable[[], str]:
    def head() -> str:
        text = served.context(name)
        return slice_reply(text, 0, len(text))

    return head
