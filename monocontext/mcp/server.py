"""Make an MCP server of the tools and resources, with version 2 of the SDK."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, get_args
from urllib.parse import quote, unquote

import anyio.to_thread
from mcp import types
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from monocontext import __version__
from monocontext.errors import InvalidParameters, MonocontextError, NotFound, ToolRefusal
from monocontext.mcp.catalog import MEMORY, Served
from monocontext.mcp.progress import Progress, begin_call
from monocontext.mcp.tools import Tools
from monocontext.options import suggestion
from monocontext.text_tools.arguments import check_arguments
from monocontext.text_tools.outputs import Text, ToolReply
from monocontext.text_tools.replies import fit_error, slice_reply

SCHEME = "monocontext"
PROGRESS_SECONDS = 2.0  # between two reports on a call that runs, by which clients see that it is alive
_MOST_TYPO = 100  # characters of an unknown name for which a similar one is suggested
_WRITES = frozenset({"memory", "keep", "upload_context", "chat_rlm_query"})  # tools that change something

INSTRUCTIONS = (
    "Texts far larger than a prompt, read in place. Begin with context_list and context_info, find places with "
    "context_search (with words=true where you do not know the exact ones), and read them with context_slice. A reply "
    "that was cut ends in a line that states the next range."
)
_REFUSALS = (MonocontextError, InvalidParameters, OSError, ValueError)
"""Errors whose message the caller gets. Others are internal errors without one."""


def make_server(
    served: Served,
    *,
    name: str = "monocontext",
    more_tools: Mapping[str, Callable[..., Any]] | None = None,
    uploads: bool = True,
    version: str = __version__,
) -> Server[Any]:
    """A server of the SDK, for `stdio.serve` and `http.serve`.

    - `name`, `version`: shown to clients
    - `more_tools`: functions by the name of the tool. Cancelling a call cancels the task of an `async` function
    - `uploads`: offer `upload_context`, which reads session files of this machine
    """
    text_tools = Tools(served).by_name(uploads=uploads) if served.has_texts or not more_tools else {}
    handlers = _Handlers(served, {**text_tools, **(more_tools or {})})
    return Server(
        name,
        version=version,
        instructions=INSTRUCTIONS if text_tools else None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


class _Handlers:
    """Answers requests for the tools and resources of a server: a method for each kind of request."""

    def __init__(self, served: Served, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._served, self._functions = served, functions
        self._tools = [_describe(tool, function) for tool, function in functions.items()]
        self._resources = [
            types.Resource(
                uri=f"{SCHEME}://{quote(text, safe='')}",
                name=text,
                description=f"The beginning of the text {text}; its last line says how to read on.",
                mime_type="text/plain",
            )
            for text in [*served.contexts, *([MEMORY] if served.memory is not None else [])]
        ]

    async def list_tools(self, *_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def call_tool(self, context: Any, request: types.CallToolRequestParams) -> types.CallToolResult:
        reports = asyncio.create_task(_report_progress(context, begin_call()))
        try:
            reply = await _call(self._functions, request.name, request.arguments or {})
        except _REFUSALS as error:
            content = types.TextContent(type="text", text=fit_error(str(error)))
            return types.CallToolResult(content=[content], is_error=True)
        finally:
            reports.cancel()
        fields = asdict(reply.data if isinstance(reply, ToolReply) else Text(reply))
        content = types.TextContent(type="text", text=str(reply))
        return types.CallToolResult(content=[content], structured_content=fields)

    async def list_resources(self, *_: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=self._resources)

    async def list_templates(self, *_: Any) -> types.ListResourceTemplatesResult:
        part = types.ResourceTemplate(
            uri_template=SCHEME + "://{context}/{start}/{stop}",
            name="part",
            description="Characters START to STOP of a text; its name percent-encoded.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[part])

    async def read_resource(self, _: Any, request: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            text = await anyio.to_thread.run_sync(_read_resource, self._served, request.uri, abandon_on_cancel=True)
        except _REFUSALS as error:
            raise MCPError(code=types.INVALID_PARAMS, message=fit_error(str(error))) from None
        content = types.TextResourceContents(uri=request.uri, text=text, mime_type="text/plain")
        return types.ReadResourceResult(contents=[content])


def _describe(name: str, function: Callable[..., Any]) -> types.Tool:
    """The description of a tool, with the schemas of its arguments and of the fields of its replies."""
    (reply_type,) = get_args(inspect.signature(function).return_annotation) or (Text,)  # `Slice` of `ToolReply[Slice]`
    adapter: Any = TypeAdapter  # typed for classes, and takes functions too
    title = name.replace("_", " ").capitalize()
    return types.Tool(
        name=name,
        title=title,
        description=inspect.getdoc(function),
        input_schema=adapter(function).json_schema(),
        output_schema=adapter(reply_type).json_schema(),
        annotations=types.ToolAnnotations(title=title, read_only_hint=name not in _WRITES),
    )


async def _call(functions: Mapping[str, Callable[..., Any]], name: str, arguments: dict[str, Any]) -> str:
    """Call a tool. A function that is not `async` runs in a thread, which goes on if the call is cancelled."""
    function = functions.get(name)
    if function is None:
        raise ToolRefusal(f"Unknown tool: {name}{suggestion(name, functions) if len(name) <= _MOST_TYPO else ''}")
    call = partial(function, **check_arguments(name, function, arguments))
    is_async = inspect.iscoroutinefunction(function)
    reply: str = await (call() if is_async else anyio.to_thread.run_sync(call, abandon_on_cancel=True))
    return reply


async def _report_progress(context: Any, progress: Progress) -> None:
    """Report every `PROGRESS_SECONDS` for how many seconds a call has run, and what it is doing."""
    for count in itertools.count(1):
        await asyncio.sleep(PROGRESS_SECONDS)
        await context.session.report_progress(count * PROGRESS_SECONDS, message=progress.message)


def _read_resource(served: Served, uri: str) -> str:
    """The beginning of a text for `monocontext://NAME`, a part of it for `monocontext://NAME/START/STOP`."""
    scheme, _, rest = uri.partition("://")
    name, *ends = rest.split("/")
    if scheme != SCHEME or len(ends) not in (0, 2):
        raise NotFound(f"no resource {uri}: expected {SCHEME}://NAME or {SCHEME}://NAME/START/STOP")
    text = served.context(unquote(name))
    if not all(end.isdecimal() for end in ends):
        raise InvalidParameters(f"a range must be START/STOP in characters, not {'/'.join(ends)!r}")
    start, stop, _ = slice(*map(int, ends or ("0", str(len(text))))).indices(len(text))
    return slice_reply(text, start, stop)
