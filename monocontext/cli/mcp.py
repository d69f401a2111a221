"""The command `mcp`: serve contexts, sessions and a memory as tools of the Model Context Protocol."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import click

from monocontext.cli.options import S3, Allow, checked_options
from monocontext.cli.parameters import Argument, Option, OptionGroup
from monocontext.errors import MonocontextError, install_line
from monocontext.mcp.catalog import Served
from monocontext.memory.memory import Memory
from monocontext.options import StoreOptions
from monocontext.sessions.archive import Sessions
from monocontext.text_tools.keep import KeepTool

_RESERVED = ("kept", "memory", "sessions")  # names of texts that the server has besides the contexts
TOKEN_VARIABLE = "MONOCONTEXT_MCP_TOKEN"
_HOST, _PORT = "127.0.0.1", 8378

Contexts = Annotated[list[str] | None, Argument(metavar="[NAME=]URL...", help="Contexts, or folders of contexts.")]
SessionsUrl = Annotated[str | None, Option("--sessions", metavar="URL", help="Also serve this archive of sessions.")]
MemoryUrl = Annotated[str | None, Option("--memory", metavar="URL", help="Also serve this memory.")]
KeepUrl = Annotated[str | None, Option("--keep", metavar="URL", help="Let agents store large texts at this URL.")]
HasShell = Annotated[bool, Option("--shell", help="Also offer a shell over the texts.")]


def listen_options(
    http: Annotated[bool, Option(help="Serve streamable HTTP instead of stdio.")] = False,
    host: Annotated[str, Option(help="Address to listen on, with --http.")] = _HOST,
    port: Annotated[int, Option(type=click.IntRange(0, 65535), help="Port, with --http; 0 takes a free one.")] = _PORT,
    token: Annotated[str | None, Option(help=f"Bearer token; by default {TOKEN_VARIABLE}, or else a new one.")] = None,
) -> dict[str, Any]:
    """The keywords of `serve` for the transport. Raises `click.UsageError` for an option of HTTP without --http."""
    if not http and (token or (host, port) != (_HOST, _PORT)):
        raise click.UsageError("--host, --port and --token are for a server over HTTP: add --http, or leave them out")
    return {"http": http, "host": host, "port": port, "token": token}


ListenOptions = Annotated[dict[str, Any], OptionGroup(listen_options)]


def mcp(
    listen: ListenOptions,
    s3: S3,
    contexts: Contexts = None,
    sessions: SessionsUrl = None,
    memory: MemoryUrl = None,
    keep: KeepUrl = None,
    shell: HasShell = False,
    allow: Allow = None,
) -> None:
    """Serve texts to programs that speak the Model Context Protocol."""
    with serving(
        contexts or [], s3, sessions=sessions, memory=memory, keep=keep, allow=allow or [], shell=shell
    ) as served:
        serve(served, **listen)


@contextmanager
def serving(
    contexts: list[str],
    s3: StoreOptions,
    *,
    sessions: str | None = None,
    memory: str | None = None,
    keep: str | None = None,
    allow: Sequence[str] = (),
    shell: bool = False,
) -> Iterator[Served]:
    """Open the contexts, sessions and memories of a command line, and close them at the end of the block."""
    context_urls = parse_contexts(contexts)
    urls = [url for url in (*context_urls.values(), sessions, memory, keep) if url]
    for url in context_urls.values():
        checked_options(url, s3, *urls)  # raises for a URL that no command can open
    if not urls and sessions is None:  # a plugin may pass an empty URL of sessions, and serves none then
        raise click.BadParameter("nothing to serve: name a context, --sessions, --memory or --keep")
    if shell and importlib.util.find_spec("bashkit") is None:
        raise MonocontextError(f"the shell is missing: {install_line('shell')}")

    with ExitStack() as stack:
        archive = (
            stack.enter_context(Sessions.open(sessions, **checked_options(sessions, s3, *urls))) if sessions else None
        )
        shared = stack.enter_context(Memory.open(memory, **checked_options(memory, s3, *urls))) if memory else None
        kept = stack.enter_context(Memory.open(keep, **checked_options(keep, s3, *urls))) if keep else None
        served = Served(
            context_urls, sessions=archive, memory=shared, kept=KeepTool(kept) if kept else None, shell=shell,
            allow=allow, store_options=s3,
        )  # fmt: skip
        stack.callback(served.close)
        yield served


def serve(served: Served, *, http: bool, host: str, port: int, token: str | None, **options: Any) -> None:
    """Serve over stdio until the client disconnects, or over HTTP, with the URL on stderr, until Ctrl-C.

    `options`: further keywords of `make_server`. Raises `MonocontextError` if the MCP SDK is missing.
    """
    try:
        from monocontext.mcp import stdio
        from monocontext.mcp.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise MonocontextError(f"the MCP SDK is missing: {install_line('mcp')}") from None
    from monocontext.mcp import http as over_http

    server = make_server(served, uploads=not http, **options)
    if not http:
        stdio.serve(server)
        return
    if token is None:
        token = os.environ.get(TOKEN_VARIABLE) or None
    bearer_token = over_http.choose_token(token)
    listener, url = over_http.listen(host, port)
    with listener:
        print(f"MCP at {url}", file=sys.stderr)
        if token is None:
            print(f"Authorization: Bearer {bearer_token}", file=sys.stderr)
        sys.stderr.flush()
        try:
            over_http.serve(server, listener, host, bearer_token)
        except KeyboardInterrupt:
            pass  # Ctrl-C is how a user stops the server


def parse_contexts(contexts: list[str]) -> dict[str, str]:
    """The URLs of arguments [NAME=]URL by name, which is else the last part of the URL. Raises `click.BadParameter`."""
    urls: dict[str, str] = {}
    for context in contexts:
        name, equals, url = context.partition("=")
        if not equals or "/" in name or ":" in name:
            name, url = context.rstrip("/").rpartition("/")[2], context
        if not url:
            raise click.BadParameter(f"{context!r} has no URL: write NAME=URL")
        faults = {"is empty": not name, "is reserved": name in _RESERVED, "is used twice": name in urls}
        for fault, applies in faults.items():
            if applies:
                raise click.BadParameter(f"the name {name!r} of {context!r} {fault}: write NAME={url}")
        urls[name] = url
    return urls
