"""The commands `ls`, `put`, `get` and `rm`: list, store, fetch and remove plain objects, also those of volumes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Annotated

import click

from monocontext.cli.options import S3, AsJson, open_store_at
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import print_line, print_note, print_record, write_bytes
from monocontext.cli.upkeep import remove_documents
from monocontext.cli.writing import FollowLinks
from monocontext.errors import AlreadyExists, InvalidUrl, NotFound
from monocontext.format.manifest import ROOT_KEY
from monocontext.options import StoreOptions
from monocontext.stores import split_object
from monocontext.stores.protocol import ObjectInfo, Store, describe_left_out, list_usable
from monocontext.stores.regular_file import open_file
from monocontext.stores.volumes import Volumes, is_volume_name, volumes_url
from monocontext.writing.folder import Folder
from monocontext.writing.folder import describe_left_out as describe_files

_NAME_ERRNOS = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.EINVAL, errno.EILSEQ)
"""Errors of a file system for a key that cannot be a path in it; EEXIST if a file is where a folder must be."""

PrefixName = Annotated[str, Argument(help="s3://bucket/prefix, a directory, or the name of a volume.")]
ObjectName = Annotated[str, Argument(help="An object, s3://bucket/name or VOLUME/name; with / at its end, all below.")]


def _url_of(word: str, s3: StoreOptions) -> str:
    """The URL that an argument names. `NAME/rest` is below the volume NAME; a URL or a path is returned as it is.

    Raises `NotFound` for a word without / that is neither a file nor a volume, `InvalidUrl` for one that is both.
    """
    name, slash, rest = word.partition("/")
    if "://" in word or not is_volume_name(name) or (slash and os.path.lexists(name)):
        return word
    is_file = os.path.lexists(name)
    root = volumes_url()
    with open_store_at(root, s3) as store:
        is_volume = Volumes(store).exists(name)
    if is_volume and is_file:
        raise InvalidUrl(f"{name!r} is both a volume and a file: write ./{name}, or {root.rstrip('/')}/{name}/")
    if is_volume:
        return f"{root.rstrip('/')}/{name}/{rest}"
    if is_file or slash:
        return word
    raise NotFound(
        f"no file {name!r}, and no volume of that name in {root}: `monocontext volume create {name}` creates one"
    )


def ls(url: PrefixName, s3: S3, as_json: AsJson = False) -> None:
    """List the objects below URL: size in bytes, time, name (1 LIST for each 1,000 objects).

    A text below URL is one row, whose name ends in / and whose size is that of its objects.
    """
    left_out = list[str]()
    with open_store_at(_url_of(url, s3), s3) as store:
        infos = list(list_usable(store, left_out))
        for info in _with_texts(infos):
            modified = datetime.fromtimestamp(info.modified_seconds, UTC).isoformat(timespec="seconds")
            row = {"key": info.key, "bytes": info.size_bytes, "modified": modified, "etag": info.etag}
            print_record(as_json, row, f"{info.size_bytes:>14,}  {modified}  {info.key}")
        _note_left_out(store, left_out)
        if not infos:
            print_note(f"nothing below {store.url}")


def _with_texts(infos: list[ObjectInfo]) -> Iterator[ObjectInfo]:
    """Yield the objects. Those of a text in a folder become one row, with their total size and newest time."""
    texts = {info.key.removesuffix(ROOT_KEY) for info in infos if info.key.endswith(f"/{ROOT_KEY}")}
    parts: dict[str, list[ObjectInfo]] = {}
    for info in infos:
        folders = accumulate(f"{name}/" for name in info.key.split("/")[:-1])  # `a/` and `a/b/` for `a/b/c`
        text = next((folder for folder in folders if folder in texts), None)
        if text:
            parts.setdefault(text, []).append(info)
        else:
            yield info
    for text, objects in parts.items():
        newest = max(info.modified_seconds for info in objects)
        yield ObjectInfo(text, sum(info.size_bytes for info in objects), "", newest)


def _note_left_out(store: Store, left_out: list[str], *, markers: bool = False) -> bool:
    """Print a note about objects whose keys no command accepts. Returns whether there are any."""
    description = describe_left_out(left_out, markers=markers)
    if description:
        print_note(f"{store.url}: {description}")
    return bool(description)


def print_removed(store: Store, url: str, count: int, left_out: list[str]) -> None:
    """Print the number of removed objects. Exits with 1 if objects remain whose keys no command accepts."""
    print_line(f"{url}: removed {count:,}")
    if _note_left_out(store, left_out, markers=True):
        raise click.exceptions.Exit(1)


def put(
    sources: Annotated[list[str], Argument(metavar="FILE... URL", help="Files, folders or - (stdin); then the URL.")],
    s3: S3,
    create: Annotated[bool, Option(help="Fail if the object exists.")] = False,
    follow_links: FollowLinks = False,
) -> None:
    """Store files below URL as they are. With a single FILE and no / at the end of URL, URL names the object."""
    *names, url = sources
    if not names:
        raise click.BadParameter(f"expected one or more files and then a URL, got only {url!r}")
    url = _url_of(url, s3)
    single = len(names) == 1 and not url.endswith("/") and not Path(names[0]).expanduser().is_dir()
    if (names != ["-"] and "-" in names) or (names == ["-"] and not single):
        raise click.BadParameter("stdin (-) must be the only source, and URL must name one object (no / at its end)")
    root, key = split_object(url) if single else (url, "")
    with open_store_at(root, s3) as store:
        for name, data in _read_files(names, key, follow_links=follow_links):
            try:
                store.put(name, data, if_absent=create)
            except AlreadyExists as error:
                raise AlreadyExists(f"{store.url}/{name} already exists: leave out --create to replace it") from error
            print_line(f"{store.url}/{name}: {len(data):,} bytes")


def _read_files(names: list[str], key: str, *, follow_links: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the key and the content of each file. `key`: the key of stdin or of a single file; empty to use names."""
    for name in names:
        path = Path(name).expanduser()
        if name == "-":
            yield key, sys.stdin.buffer.read()
            continue
        if not path.is_dir():
            with open_file(path) as opened:
                yield key or path.name, opened.read()
            continue
        folder = Folder(path, follow_links=follow_links)
        for file in folder.files():
            with folder.open(file) as opened:
                yield f"{os.path.basename(folder.path)}/{file}", opened.read()
        if folder.left_out:
            print_note(f"{path}: {describe_files(folder.left_out)}")


def get(
    url: ObjectName,
    s3: S3,
    target: Annotated[str, Argument(help="File or directory to write; - is stdout.")] = "-",
    force: Annotated[bool, Option(help="Overwrite existing files.")] = False,
) -> None:
    """Fetch the object at URL, or all objects below a URL that ends in / (1 GET each)."""
    url = _url_of(url, s3)
    if url.endswith("/"):
        if target == "-":
            raise click.BadParameter("a URL that ends in / fetches everything below it: give a directory as TARGET")
        with open_store_at(url, s3) as store:
            _fetch_all(store, Path(target).expanduser(), force=force)
        return
    root, key = split_object(url)
    with open_store_at(root, s3) as store, _explain_folders(url, s3, "a / at its end fetches everything in it"):
        data = store.get(key).data
    if target == "-":
        write_bytes(data)
        return
    path = Path(target).expanduser()
    if path.is_dir():
        base = path.resolve()
        path = base / key.rsplit("/", 1)[-1]
        _check_inside(path, base)
    _write(path, data, force=force)


def _fetch_all(store: Store, folder: Path, *, force: bool) -> None:
    """Fetch all objects of a store into a folder. Exits with 1 if a key cannot be a file name in it."""
    base, left_out = folder.resolve(), list[str]()
    infos = list(list_usable(store, left_out))
    fetched = [_fetch_one(store, info.key, base, force=force) for info in infos]
    _note_left_out(store, left_out)
    if not infos and not left_out:
        raise NotFound(f"no object below {store.url}: `monocontext ls` lists what is there")
    failed = fetched.count(False)
    if failed:
        print_note(f"{store.url}: {failed:,} not fetched")
        raise click.exceptions.Exit(1)


def _fetch_one(store: Store, key: str, base: Path, *, force: bool) -> bool:
    """Fetch an object into a folder. Prints a note and returns False if its key cannot be a file name there."""
    path = base / key
    try:
        _check_inside(path, base)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, store.get(key).data, force=force)
    except OSError as error:
        if error.errno not in _NAME_ERRNOS:
            raise
        print_note(f"{key[:100]!r} cannot be a file name in {base}: {error.strerror}")
        return False
    return True


def _check_inside(path: Path, base: Path) -> None:
    """Raise `PermissionError` for a file outside `base`. Keys contain no `..`, but a link in `base` could lead out."""
    if not path.resolve().is_relative_to(base):
        raise PermissionError(f"{path} leads outside {base} through a link, so it was not written: remove the link")


def _write(path: Path, data: bytes, *, force: bool) -> None:
    try:
        with path.open("wb" if force else "xb") as file:
            file.write(data)
    except FileExistsError:
        raise AlreadyExists(f"{path} already exists: --force overwrites it") from None


def rm(
    url: ObjectName,
    s3: S3,
    recursive: Annotated[bool, Option("--recursive", "-r", help="Remove everything below URL.")] = False,
    document: Annotated[list[str] | None, Option(metavar="GLOB", help="Only these documents; repeatable.")] = None,
    forget: Annotated[bool, Option(help="Erase these, all removed before, and all earlier versions.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="With --document: do not ask before removing all.")] = False,
) -> None:
    """Remove the object at URL; with -r everything below it; with --document documents of a context."""
    if document or forget:
        if recursive:
            raise click.UsageError("-r cannot be combined with --document or --forget: leave one out")
        remove_documents(url, document or [], s3, yes=yes, forget=forget)
        return
    if yes:
        raise click.UsageError("--yes is for --document; nothing else asks for confirmation: leave --yes out")
    url = _url_of(url, s3)
    if recursive:
        with open_store_at(url, s3) as store:
            left_out = list[str]()
            keys = [info.key for info in list_usable(store, left_out)]
            for key in keys:
                store.delete(key)
            print_removed(store, store.url, len(keys), left_out)
        return
    root, key = split_object(url)
    with open_store_at(root, s3) as store, _explain_folders(url, s3, "-r removes everything in it"):
        store.head(key)
        store.delete(key)


@contextmanager
def _explain_folders(url: str, s3: StoreOptions, hint: str) -> Iterator[None]:
    """Turn `NotFound` into `InvalidUrl` if the URL names a folder or a text. `hint`: how to act on all of it."""
    try:
        yield
    except NotFound as error:
        with open_store_at(url, s3) as store:
            if next(store.list(), None) is None:
                raise
            kind = "text" if next(store.list(ROOT_KEY), None) else "folder"
        raise InvalidUrl(f"{url} is a {kind}: {hint}") from error
