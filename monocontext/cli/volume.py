"""`ls`, `put`, `get`, `rm`: plain objects below a prefix of any store, as files of a volume."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from monocontext.cli.options import Anonymous, AsJson, Endpoint, Profile, Region, options_of
from monocontext.errors import AlreadyExists, NotFound
from monocontext.store import ObjectInfo, Store
from monocontext.stores import open_store, split_object

Place = Annotated[str, typer.Argument(help="s3://bucket/prefix, or a directory.")]
Object = Annotated[str, typer.Argument(help="An object (s3://bucket/prefix/name), or a place when it ends in /.")]


@contextmanager
def _opened(
    url: str, endpoint: str | None, region: str | None, profile: str | None, anonymous: bool
) -> Iterator[Store]:
    store = open_store(url, **options_of(url, endpoint, region, profile, anonymous))
    try:
        yield store
    finally:
        store.close()


def ls(
    url: Place,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """List the objects below URL: size in bytes, time, name (1 LIST a thousand)."""
    any_found = False
    with _opened(url, endpoint, region, profile, anonymous) as store:
        for info in store.list():
            any_found = True
            print(_row(info, as_json))
        if not any_found:
            print(f"note: nothing below {store.url}", file=sys.stderr)


def put(
    sources: Annotated[
        list[str], typer.Argument(metavar="FILE... URL", help="Files, directories or - for stdin; URL.")
    ],
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    create: Annotated[bool, typer.Option("--create", help="Refuse where there is an object already.")] = False,
) -> None:
    """Store files below URL as they are. One FILE and a URL that does not end in / name the object itself."""
    *names, url = sources
    if not names:
        raise typer.BadParameter(f"one or more files and then a URL; only {url!r} was given")
    single = len(names) == 1 and not url.endswith("/") and not os.path.isdir(names[0])
    if (names != ["-"] and "-" in names) or (names == ["-"] and not single):
        raise typer.BadParameter("stdin takes the URL of one object")
    root, key = split_object(url) if single else (url, "")
    with _opened(root, endpoint, region, profile, anonymous) as store:
        for path, name in [(names[0], key)] if single else _named(names):
            data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
            try:
                store.put(name, data, if_absent=create)
            except AlreadyExists as error:
                raise AlreadyExists(f"{store.url}/{name} exists already") from error
            print(f"{store.url}/{name}: {len(data):,} bytes")


def _named(names: list[str]) -> Iterator[tuple[str, str]]:
    """Files, and the keys that they get: their own names, those of a directory with its name before."""
    for name in names:
        path = Path(name).expanduser()
        if not path.is_dir():
            yield str(path), path.name
            continue
        base = path.resolve()
        for file in sorted(base.rglob("*")):
            if file.is_file():
                yield str(file), f"{base.name}/{file.relative_to(base).as_posix()}"


def get(
    url: Object,
    target: Annotated[str, typer.Argument(help="File or directory to write; - for stdout.")] = "-",
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Fetch the object at URL, or with a / at its end all objects below it (1 GET each)."""
    if url.endswith("/"):
        if target == "-":
            raise typer.BadParameter("a place is fetched into a directory: name one")
        with _opened(url, endpoint, region, profile, anonymous) as store:
            _fetch_all(store, Path(target).expanduser(), force)
        return
    root, key = split_object(url)
    with _opened(root, endpoint, region, profile, anonymous) as store:
        data = store.get(key).data
    if target == "-":
        sys.stdout.buffer.write(data)
        return
    path = Path(target).expanduser()
    _write(path / key.rsplit("/", 1)[-1] if path.is_dir() else path, data, force)


def _fetch_all(store: Store, folder: Path, force: bool) -> None:
    base, any_found = folder.resolve(), False
    for info in store.list():
        any_found = True
        path = base / info.key
        # Keys hold no `..`, but a link in the directory could lead out of it.
        if not path.resolve().is_relative_to(base):
            raise PermissionError(f"{info.key} would be written outside {base}")
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, store.get(info.key).data, force)
    if not any_found:
        raise NotFound(f"nothing below {store.url}")


def _write(path: Path, data: bytes, force: bool) -> None:
    with path.open("wb" if force else "xb") as file:
        file.write(data)


def rm(
    url: Object,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="Everything below URL.")] = False,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
) -> None:
    """Remove the object at URL, or with -r everything below it."""
    if recursive:
        with _opened(url, endpoint, region, profile, anonymous) as store:
            keys = [info.key for info in store.list()]
            for key in keys:
                store.delete(key)
            print(f"{store.url}: removed {len(keys):,}")
        return
    root, key = split_object(url)
    with _opened(root, endpoint, region, profile, anonymous) as store:
        store.head(key)  # says so where there is none
        store.delete(key)


def _row(info: ObjectInfo, as_json: bool) -> str:
    when = datetime.fromtimestamp(info.modified_seconds, UTC).isoformat(timespec="seconds")
    if as_json:
        return json.dumps({"key": info.key, "bytes": info.size_bytes, "modified": when, "etag": info.etag})
    return f"{info.size_bytes:>14,}  {when}  {info.key}"


commands = (ls, put, get, rm)
