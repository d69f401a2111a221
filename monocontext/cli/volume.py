"""`ls`, `put`, `get`, `rm`: plain objects in any store, and in volumes by name; `volume list`, `create`, `rm`."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import click

from monocontext.cli.help import CommandGroup
from monocontext.cli.options import S3, AsJson, options_of
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import note, say, say_row
from monocontext.cli.settings import from_file
from monocontext.cli.writing import FollowLinks, remove_documents
from monocontext.errors import AlreadyExists, InvalidUrl, NotFound
from monocontext.stores import open_store, split_object
from monocontext.stores.address import parse
from monocontext.stores.protocol import ObjectInfo, Store, list_telling, name_left_out
from monocontext.stores.regular_file import open_file
from monocontext.stores.volumes import Volumes, is_volume_name, volumes_url

_NO_NAME = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.EILSEQ)
"""Errors of a file system for a key that it cannot hold as a path."""

Place = Annotated[str, Argument(help="s3://bucket/prefix, a directory, or the name of a volume.")]
Object = Annotated[
    str, Argument(help="An object (s3://bucket/prefix/name, VOLUME/name), or a place when it ends in /.")
]
VolumeName = Annotated[str, Argument(metavar="NAME", help="The name of a volume.")]


@contextmanager
def _open_store(url: str, s3: S3) -> Iterator[Store]:
    with closing(open_store(url, **options_of(url, s3))) as store:
        yield store


def _volumes() -> str:
    """The place of volumes, from the environment or the file of settings."""
    return volumes_url(from_file("volumes.url"))


def _place(word: str, s3: S3) -> str:
    """Resolve a word: a URL or a path as it is, else a volume, whose URL ends in /.

    A word without a / that names no file here is a volume, or `NotFound`; `NAME/below` is one where there is such.
    """
    name, slash, below = word.partition("/")
    if "://" in word or not is_volume_name(name) or (slash and os.path.lexists(name)):
        return word
    is_file = os.path.lexists(name)
    root = _volumes()
    with _open_store(root, s3) as store:
        is_volume = Volumes(store).exists(name)
    if is_volume and is_file:
        raise InvalidUrl(f"{name!r} is a volume and a file here: write ./{name}, or {root.rstrip('/')}/{name}/")
    if not is_volume and (is_file or slash):
        return word
    if not is_volume:
        raise NotFound(f"no volume {name!r} in {root} (`monocontext volume create {name}`), and no file here")
    return f"{root.rstrip('/')}/{name}/{below}"


def ls(
    url: Place,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """List the objects below URL: size in bytes, time, name (1 LIST a thousand)."""
    any_found, left_out = False, list[str]()
    with _open_store(_place(url, s3), s3) as store:
        for info in list_telling(store, left_out):
            any_found = True
            say_row(_row(info, as_json))
        _note_left_out(store, left_out)
        if not any_found:
            note(f"nothing below {store.url}")


def _note_left_out(store: Store, left_out: list[str], *, markers: bool = False) -> bool:
    """Name on stderr the objects whose keys no command takes; whether there are any."""
    named = name_left_out(left_out, markers=markers)
    if named:
        note(f"{store.url}: {named}")
    return bool(named)


def put(
    sources: Annotated[list[str], Argument(metavar="FILE... URL", help="Files, directories or - for stdin; URL.")],
    *,
    s3: S3,
    create: Annotated[bool, Option("--create", help="Refuse where there is an object already.")] = False,
    follow_links: FollowLinks = False,
) -> None:
    """Store files below URL as they are. One FILE and a URL that does not end in / name the object itself."""
    *names, url = sources
    if not names:
        raise click.BadParameter(f"one or more files and then a URL; only {url!r} was given")
    url = _place(url, s3)
    single = len(names) == 1 and not url.endswith("/") and not Path(names[0]).expanduser().is_dir()
    if (names != ["-"] and "-" in names) or (names == ["-"] and not single):
        raise click.BadParameter("stdin takes the URL of one object")
    root, key = split_object(url) if single else (url, "")
    with _open_store(root, s3) as store:
        for name, data in [(key, _read_file(names[0]))] if single else _read_files(names, follow_links):
            try:
                store.put(name, data, if_absent=create)
            except AlreadyExists as error:
                raise AlreadyExists(f"{store.url}/{name} exists already") from error
            say(f"{store.url}/{name}: {len(data):,} bytes")


def _read_file(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    with open_file(Path(name).expanduser()) as file:
        return file.read()


def _read_files(names: list[str], follow_links: bool) -> Iterator[tuple[str, bytes]]:
    """Yield key and content of files; in a directory its name comes before the relative path."""
    for name in names:
        path = Path(name).expanduser()
        if not path.is_dir():
            yield path.name, _read_file(name)
            continue
        from monocontext.writing.folder import Folder, describe_left_out

        folder = Folder(path, follow_links=follow_links)
        for file in folder.files():
            with folder.open(file) as opened:
                yield f"{os.path.basename(folder.path)}/{file}", opened.read()
        if folder.left_out:
            note(f"{path}: {describe_left_out(folder.left_out)}")


def get(
    url: Object,
    target: Annotated[str, Argument(help="File or directory to write; - for stdout.")] = "-",
    *,
    s3: S3,
    force: Annotated[bool, Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Fetch the object at URL, or with a / at its end all objects below it (1 GET each)."""
    url = _place(url, s3)
    if url.endswith("/"):
        if target == "-":
            raise click.BadParameter("a place is fetched into a directory: name one")
        with _open_store(url, s3) as store:
            _fetch_all(store, Path(target).expanduser(), force)
        return
    root, key = split_object(url)
    with _open_store(root, s3) as store:
        data = store.get(key).data
    if target == "-":
        sys.stdout.buffer.write(data)
        return
    path = Path(target).expanduser()
    if path.is_dir():
        base = path.resolve()
        path = base / key.rsplit("/", 1)[-1]
        _check_inside(path, base)
    _write(path, data, force)


def _fetch_all(store: Store, folder: Path, force: bool) -> None:
    base, any_found, failed, left_out = folder.resolve(), False, 0, list[str]()
    for info in list_telling(store, left_out):
        any_found = True
        path = base / info.key
        try:
            _check_inside(path, base)
            path.parent.mkdir(parents=True, exist_ok=True)
            data = store.get(info.key).data
            _write(path, data, force)
        except OSError as error:
            parent_is_file = error.errno == errno.EEXIST and error.filename != str(path)
            if error.errno not in _NO_NAME and not parent_is_file:
                raise
            failed += 1
            note(f"{info.key[:100]!r} is not a file name in {base}: {error.strerror}")
    _note_left_out(store, left_out)
    if not any_found:
        raise NotFound(f"nothing below {store.url}")
    if failed:
        note(f"{store.url}: {failed:,} not fetched")
        raise click.exceptions.Exit(1)


def _check_inside(path: Path, base: Path) -> None:
    """Raise `PermissionError` for a file that would lie outside a real directory. Keys contain no `..`, but a link in
    the directory could lead out of it."""
    if not path.resolve().is_relative_to(base):
        raise PermissionError(f"{path} is a link: its file would be written outside {base}")


def _write(path: Path, data: bytes, force: bool) -> None:
    with path.open("wb" if force else "xb") as file:
        file.write(data)


def rm(
    url: Object,
    recursive: Annotated[bool, Option("--recursive", "-r", help="Everything below URL.")] = False,
    document: Annotated[
        list[str] | None, Option(metavar="GLOB", help="Documents of the context at URL instead; may be repeated.")
    ] = None,
    forget: Annotated[
        bool, Option("--forget", help="With --document: leave the text in no object; earlier versions go.")
    ] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="With --document: also where these are all.")] = False,
    *,
    s3: S3,
) -> None:
    """Remove the object at URL, with -r everything below it, or with --document documents of a context."""
    if document:
        if recursive:
            raise click.UsageError("-r and --document exclude each other")
        remove_documents(url, document, yes, forget, s3)
        return
    url = _place(url, s3)
    if recursive:
        with _open_store(url, s3) as store:
            left_out = list[str]()
            keys = [info.key for info in list_telling(store, left_out)]
            for key in keys:
                store.delete(key)
            say(f"{store.url}: removed {len(keys):,}")
            if _note_left_out(store, left_out, markers=True):
                raise click.exceptions.Exit(1)
        return
    root, key = split_object(url)
    with _open_store(root, s3) as store:
        if parse(url).scheme == "file" and Path(parse(url).path).is_dir():
            raise InvalidUrl(f"{url} is a folder: -r removes everything in it")
        store.head(key)  # raises `NotFound` if there is none
        store.delete(key)


def _row(info: ObjectInfo, as_json: bool) -> str:
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(info.modified_seconds, UTC).isoformat(timespec="seconds")
    if as_json:
        return json.dumps({"key": info.key, "bytes": info.size_bytes, "modified": when, "etag": info.etag})
    return f"{info.size_bytes:>14,}  {when}  {info.key}"


def list_volumes(*, s3: S3, as_json: AsJson = False) -> None:
    """List the volumes by name."""
    with _open_store(_volumes(), s3) as store:
        for name in Volumes(store).names():
            say_row(json.dumps({"name": name}) if as_json else name)


def create(name: VolumeName, *, s3: S3) -> None:
    """Make an empty volume. One that is there already is refused."""
    with _open_store(_volumes(), s3) as store:
        volumes = Volumes(store)
        if volumes.exists(name):
            raise AlreadyExists(f"there is a volume {name!r} already in {store.url}")
        volumes.create(name)
        say(f"{store.url.rstrip('/')}/{name}: created")


def remove(name: VolumeName, *, s3: S3) -> None:
    """Remove a volume with all its files."""
    with _open_store(_volumes(), s3) as store:
        volumes = Volumes(store)
        if not volumes.exists(name):
            raise NotFound(f"no volume {name!r} in {store.url}")
        left_out = list[str]()
        say(f"{store.url.rstrip('/')}/{name}: removed {volumes.remove(name, left_out):,}")
        if _note_left_out(store, left_out, markers=True):
            raise click.exceptions.Exit(1)


app = CommandGroup(
    "Volumes: places for files below MONOCONTEXT_VOLUMES, by the names that an Interpreter takes.",
    {"list": list_volumes, "create": create, "rm": remove},
)
