"""`memory ...`: keys and values that agents share."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from monocontext.cli.options import Anonymous, AsJson, Endpoint, Profile, Region, options_of
from monocontext.errors import NotFound

if TYPE_CHECKING:
    from monocontext.memory import Entry, Memory

Url = Annotated[str, typer.Argument(help="Where the memory lies: s3://bucket/prefix, or a directory.")]
Key = Annotated[str, typer.Argument(help="The key, any text.")]
Prefix = Annotated[str, typer.Argument(help="Only keys that begin so.")]
Ttl = Annotated[float | None, typer.Option("--ttl", metavar="SECONDS", help="How long it lives; else for good.")]
Match = Annotated[str | None, typer.Option("--if-match", metavar="ETAG", help="Only over (or only) this version.")]

TOKEN_VARIABLE = "MONOCONTEXT_MEMORY_TOKEN"

app = typer.Typer(help="Keys and values in a store, shared by agents.", no_args_is_help=True, rich_markup_mode=None)


@contextmanager
def _opened(
    url: str, endpoint: str | None, region: str | None, profile: str | None, anonymous: bool
) -> Iterator[Memory]:
    from monocontext.memory import Memory

    with Memory.open(url, **options_of(url, endpoint, region, profile, anonymous)) as memory:
        yield memory


def put(
    url: Url,
    key: Key,
    value: Annotated[str, typer.Argument(help="The value, or - for stdin.")],
    ttl: Ttl = None,
    create: Annotated[bool, typer.Option("--create", help="Only where there is no such key.")] = False,
    if_match: Match = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Store VALUE under KEY."""
    if create and if_match is not None:
        raise typer.BadParameter("--create or --if-match, not both")
    if value == "-":
        value = _stdin()
    with _opened(url, endpoint, region, profile, anonymous) as memory:
        etag = memory.put(key, value, ttl, create=create, if_match=if_match)
    if as_json:
        print(json.dumps({"key": key, "etag": etag}))


def get(
    url: Url,
    key: Key,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Print the value of KEY as it is; with --json all that is known of it."""
    with _opened(url, endpoint, region, profile, anonymous) as memory:
        entry = memory.entry(key)
    if as_json:
        print(json.dumps(_facts(entry)))
    else:
        sys.stdout.buffer.write((entry.value or "").encode())


def list_(
    url: Url,
    prefix: Prefix = "",
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Print the keys, one a line (those with line ends or the like as JSON strings)."""
    with _opened(url, endpoint, region, profile, anonymous) as memory:
        for entry in memory.entries(prefix):
            print(json.dumps(_facts(entry)) if as_json else _shown(entry.key))


def search(
    url: Url,
    pattern: Annotated[str, typer.Argument(help="A regular expression.")],
    prefix: Prefix = "",
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Letters match in either case.")] = False,
    fixed: Annotated[bool, typer.Option("--fixed-strings", "-F", help="PATTERN is a text.")] = False,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Print the lines of values that match, as KEY:NUMBER:LINE; exit 1 where none does."""
    any_found = False
    with _opened(url, endpoint, region, profile, anonymous) as memory:
        try:
            hits = memory.search(pattern, prefix, ignore_case=ignore_case, fixed=fixed)
        except (re.error, OverflowError, RecursionError) as error:
            raise typer.BadParameter(f"not a regular expression: {error}") from None
        for hit in hits:
            any_found = True
            print(json.dumps(asdict(hit)) if as_json else f"{_shown(hit.key)}:{hit.line_number}:{hit.line}")
    if not any_found:
        raise typer.Exit(1)


def delete(
    url: Url,
    key: Key,
    if_match: Match = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
) -> None:
    """Remove KEY."""
    with _opened(url, endpoint, region, profile, anonymous) as memory:
        if not memory.delete(key, if_match=if_match):
            raise NotFound(f"no key {key!r} in {memory.url}")


def clear(
    url: Url,
    prefix: Prefix = "",
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Remove every key, or those that begin with PREFIX."""
    with _opened(url, endpoint, region, profile, anonymous) as memory:
        count = memory.clear(prefix)
        print(json.dumps({"removed": count}) if as_json else f"{memory.url}: removed {count:,}")


def purge(
    url: Url,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Remove the objects of entries that have expired."""
    with _opened(url, endpoint, region, profile, anonymous) as memory:
        count = memory.purge()
        print(json.dumps({"removed": count}) if as_json else f"{memory.url}: removed {count:,} expired")


def exec_(
    url: Url,
    command: Annotated[str, typer.Argument(help='A command of the protocol, such as "P key value 60"; - for stdin.')],
    key: Annotated[str | None, typer.Option(help="The key, instead of in the command.")] = None,
    value: Annotated[str | None, typer.Option(help="The value, with --key.")] = None,
    ttl: Annotated[str | None, typer.Option(metavar="SECONDS", help="Lifetime, with P.")] = None,
    if_absent: Annotated[bool, typer.Option("--if-absent", help="With P: only where there is no such key.")] = False,
    if_match: Annotated[str | None, typer.Option(metavar="ETAG", help="With P: only over this version.")] = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
) -> None:
    """Carry out one command of the memory protocol and print its reply as JSON; exit 1 where it failed."""
    from monocontext.memory import MemoryTool

    text = _stdin() if command == "-" else command
    given: dict[str, Any] = {"key": key, "value": value, "ttl": ttl, "if_absent": if_absent, "if_match": if_match}
    parameters = {"command": text} | {name: each for name, each in given.items() if each is not None}
    with _opened(url, endpoint, region, profile, anonymous) as memory:
        reply = MemoryTool(memory).execute(parameters)
    print(json.dumps(reply, ensure_ascii=False))
    if not reply["success"]:
        raise typer.Exit(1)


def serve(
    url: Url,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8377,
    token: Annotated[str | None, typer.Option(help=f"Bearer token; else {TOKEN_VARIABLE}, else a new one.")] = None,
    no_token: Annotated[bool, typer.Option("--no-token", help="Ask for none; on this machine only.")] = False,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
) -> None:
    """Serve the memory tool over HTTP to agents that speak CloudLLM's tool protocol."""
    from monocontext.memory.server import MemoryServer

    given = "" if no_token else token or os.environ.get(TOKEN_VARIABLE) or None
    with (
        _opened(url, endpoint, region, profile, anonymous) as memory,
        MemoryServer(memory, host, port, token=given) as server,
    ):
        print(f"memory {memory.url} at {server.url}", file=sys.stderr)
        if given is None:
            print(f"Authorization: Bearer {server.token}", file=sys.stderr)
        sys.stderr.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass  # the way to end it


def _stdin() -> str:
    data = sys.stdin.buffer.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"stdin is not UTF-8 at byte {error.start}") from None


def _shown(key: str) -> str:
    return key if key.isprintable() else json.dumps(key)


def _facts(entry: Entry) -> dict[str, Any]:
    expires = entry.expires_utc
    return {
        "key": entry.key,
        **({} if entry.value is None else {"value": entry.value}),
        "value_bytes": entry.value_bytes,
        "added_utc": entry.added_utc.isoformat(),
        "ttl_seconds": entry.ttl_seconds,
        "expires_at": expires.isoformat() if expires else None,
        "etag": entry.etag,
        "metadata": dict(entry.metadata),
    }


commands: dict[str, Callable[..., None]] = {
    **{"put": put, "get": get, "list": list_, "search": search, "delete": delete},
    **{"clear": clear, "purge": purge, "exec": exec_, "serve": serve},
}
