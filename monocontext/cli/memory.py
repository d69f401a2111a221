"""The commands `memory ...`: store, read and search keys and values that agents share."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import click

from monocontext.cli.help import CommandGroup
from monocontext.cli.options import S3, AsJson, checked_options, repeat
from monocontext.cli.parameters import INTERVAL, Argument, Option
from monocontext.cli.printing import print_error, print_record, write_text
from monocontext.errors import MonocontextError, NotFound
from monocontext.memory import Entry, Memory, MemoryTool
from monocontext.options import StoreOptions

Url = Annotated[str, Argument(help="The memory: s3://bucket/prefix, or a directory.")]
Key = Annotated[str, Argument(help="The key, any text.")]
PrefixAndUrl = Annotated[list[str], Argument(metavar="[PREFIX] URL", help="Beginning of keys; then the memory's URL.")]
Ttl = Annotated[float | None, Option("--ttl", metavar="SECONDS", help="Lifetime in seconds; by default unlimited.")]
Match = Annotated[str | None, Option("--if-match", metavar="ETAG", help="Only if the entry still has this etag.")]

_SCHEMES = ("s3://", "file://", "memory://")
_PATHS = ("/", "./", "../", "~")


@contextmanager
def _open_memory(url: str, s3: StoreOptions, *, before_url: str = "", create: bool = False) -> Iterator[Memory]:
    """Open the memory at a URL. A directory must exist, unless `create`.

    `before_url`: the argument before the URL, to refuse a command line with the two in the wrong order.
    """
    may_exist = _may_exist(url)
    is_swapped = _looks_like_url(before_url) and not may_exist and not url.startswith(_PATHS)
    if is_swapped or _is_memory(before_url):
        raise MonocontextError(
            f"the URL comes last: {before_url[:80]!r} looks like a URL; write a new directory as ./NAME, and a key "
            'that looks like a URL as JSON: memory exec \'{"command": ..., "key": ...}\' URL'
        )
    if not may_exist and not create:
        raise NotFound(f"no directory {url!r} for a memory: give a URL, or add --create to `put` or `exec`")
    with Memory.open(url, **checked_options(url, s3)) as memory:
        yield memory


def _may_exist(url: str) -> bool:
    """Whether a memory may be at a URL: False only for a path that is not a directory."""
    return "://" in url or os.path.isdir(os.path.expanduser(url))


def _is_memory(word: str) -> bool:
    """Whether a word is a URL of a store, or the path of a memory."""
    return word.startswith(_SCHEMES) or (word != "" and os.path.isdir(os.path.expanduser(f"{word}/entries")))


def _looks_like_url(word: str) -> bool:
    """Whether a word looks like a URL or a path, rather than a key or a pattern."""
    return word.startswith(_PATHS) or _may_exist(word)


def put(
    key: Key,
    value: Annotated[str, Argument(help="The value, or - to read stdin.")],
    url: Url,
    s3: S3,
    ttl: Ttl = None,
    create: Annotated[bool, Option(help="Fail if the key exists; create the directory URL if it does not.")] = False,
    if_match: Match = None,
    as_json: AsJson = False,
) -> None:
    """Store VALUE under KEY."""
    if create and if_match is not None:
        raise click.BadParameter("--create and --if-match cannot be combined: leave one out")
    if value == "-":
        value = _read_stdin()
    with _open_memory(url, s3, before_url=key, create=create) as memory:
        etag = memory.put(key, value, ttl, create=create, if_match=if_match)
    if as_json:
        print(json.dumps({"key": key, "etag": etag}))


def get(key: Key, url: Url, s3: S3, as_json: AsJson = False) -> None:
    """Print the value of KEY, without a newline after it. With --json also print its metadata."""
    with _open_memory(url, s3, before_url=key) as memory:
        entry = memory.entry(key)
    if as_json:
        print(json.dumps(_entry_row(entry)))
    else:
        write_text(entry.value or "")


def list_(arguments: PrefixAndUrl, s3: S3, as_json: AsJson = False) -> None:
    """Print the keys, one per line. A key with control characters is printed as a JSON string."""
    prefix, url = _split_prefix(arguments)
    with _open_memory(url, s3, before_url=prefix) as memory:
        for entry in memory.entries(prefix):
            print_record(as_json, _entry_row(entry), _printable(entry.key))


def search(
    pattern: Annotated[str, Argument(help="A regular expression.")],
    arguments: PrefixAndUrl,
    s3: S3,
    ignore_case: Annotated[bool, Option("--ignore-case", "-i", help="Letters match in either case.")] = False,
    fixed: Annotated[bool, Option("--fixed-strings", "-F", help="PATTERN is plain text.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the matching lines of values as KEY:NUMBER:LINE. Exits with 1 if no line matches."""
    prefix, url = _split_prefix(arguments)
    # The pattern is before the URL if there is no prefix, or if the two words after it are swapped.
    before_url = prefix if _may_exist(url) or _looks_like_url(prefix) else pattern
    with _open_memory(url, s3, before_url=before_url) as memory:
        try:
            hits = memory.search(pattern, prefix, ignore_case=ignore_case, fixed=fixed)
        except (re.error, OverflowError, RecursionError) as error:
            raise click.BadParameter(f"not a regular expression: {error} (-F searches for it as plain text)") from None
        has_hit = False
        for hit in hits:
            has_hit = True
            row = json.dumps(asdict(hit)) if as_json else f"{_printable(hit.key)}:{hit.line_number}:{hit.line}"
            write_text(row + "\n")
    if not has_hit:
        raise click.exceptions.Exit(1)


def delete(key: Key, url: Url, s3: S3, if_match: Match = None) -> None:
    """Remove KEY."""
    with _open_memory(url, s3, before_url=key) as memory:
        if not memory.delete(key, if_match=if_match):
            raise NotFound(f"no key {key!r} in {memory.url}: `memory list` prints all keys")


def clear(arguments: PrefixAndUrl, s3: S3, as_json: AsJson = False) -> None:
    """Remove every key, or those that begin with PREFIX."""
    prefix, url = _split_prefix(arguments)
    with _open_memory(url, s3, before_url=prefix) as memory:
        count = memory.clear(prefix)
        print_record(as_json, {"removed": count}, f"{memory.url}: removed {count:,}")


def purge(
    url: Url,
    s3: S3,
    watch: Annotated[bool, Option(help="Repeat until Ctrl-C.")] = False,
    interval: Annotated[float, Option(type=INTERVAL, help="Seconds between two rounds of --watch.")] = 300.0,
    as_json: AsJson = False,
) -> None:
    """Remove the objects of expired entries."""
    with _open_memory(url, s3) as memory:
        for _ in repeat(watch, interval):
            try:
                count = memory.purge()
            except (MonocontextError, OSError) as error:
                if not watch:
                    raise
                print_error("monocontext", error)
            else:
                print_record(as_json, {"removed": count}, f"{memory.url}: removed {count:,} expired")
                sys.stdout.flush()


def exec_(
    command: Annotated[
        str, Argument(help='A command such as "P key value 60", or JSON as {"command": "G", "key": "k"}; - is stdin.')
    ],
    url: Url,
    s3: S3,
    create: Annotated[bool, Option(help="Make the directory URL if it does not exist.")] = False,
) -> None:
    """Run one command of the memory protocol and print its reply as JSON. Exits with 1 if the command failed."""
    text = (_read_stdin() if command == "-" else command).lstrip()
    is_json = text.startswith("{")
    try:
        call = json.loads(text) if is_json else {"command": text}
    except ValueError as error:
        raise click.BadParameter(f'not valid JSON: {error}; an example is {{"command": "G", "key": "k"}}') from None
    with _open_memory(url, s3, before_url="" if is_json or " " in command else command, create=create) as memory:
        reply = MemoryTool(memory).execute(call)
    print(json.dumps(reply, ensure_ascii=sys.stdout.isatty()))
    if not reply["success"]:
        raise click.exceptions.Exit(1)


def _split_prefix(arguments: list[str]) -> tuple[str, str]:
    """The prefix and the URL in the arguments [PREFIX] URL. A missing prefix is empty. Raises `click.BadParameter`."""
    if len(arguments) > 2:
        raise click.BadParameter(f"expected [PREFIX] URL, got {len(arguments)} arguments: quote a PREFIX with spaces")
    return "" if len(arguments) == 1 else arguments[0], arguments[-1]


def _read_stdin() -> str:
    data = sys.stdin.buffer.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise click.BadParameter(
            f"stdin is not UTF-8 at byte {error.start}: values are text, so encode bytes first, for example as base64"
        ) from None


def _printable(key: str) -> str:
    return key if key.isprintable() else json.dumps(key)


def _entry_row(entry: Entry) -> dict[str, Any]:
    expires = entry.expires_utc
    value = {} if entry.value is None else {"value": entry.value}
    return {
        "key": entry.key, **value, "value_bytes": entry.value_bytes, "added_utc": entry.added_utc.isoformat(),
        "ttl_seconds": entry.ttl_seconds, "expires_at": expires.isoformat() if expires else None,
        "etag": entry.etag, "metadata": dict(entry.metadata),
    }  # fmt: skip


app = CommandGroup(
    "Store, read and search keys and values that agents share.",
    {"put": put, "get": get, "list": list_, "search": search, "delete": delete, "clear": clear, "purge": purge,
     "exec": exec_},
)  # fmt: skip
