"""Open a plain file, folder or object as a text, in its state at that moment. Nothing is written.

The text of a small file or of a folder is kept in memory; a large file or an object is indexed.
"""

from __future__ import annotations

import os
import re
import shlex
import uuid
import warnings
from contextlib import closing
from functools import partial
from pathlib import Path

from monocontext.errors import InvalidUrl, MonocontextError, NotAContext, NotFound
from monocontext.format.deeprecurse import parse_manifest
from monocontext.format.manifest import ROOT_KEY, Manifest
from monocontext.options import StoreOptions
from monocontext.stores import open_store
from monocontext.stores.address import parse, split_object
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import Store
from monocontext.writing.decoding import HEAD_BYTES, HIDDEN, NotText, WrongEncoding, is_binary, wide_encoding
from monocontext.writing.folder import CONTEXT, Folder
from monocontext.writing.index_in_place import index
from monocontext.writing.publish import publish

SMALL_BYTES = 8 << 20  # the largest file whose text is kept in memory
MOST_PLAIN_BYTES = 512 << 20  # a larger folder, or object in a store, is refused: each opening reads all of it

_warn = partial(warnings.warn, stacklevel=4)  # warns the caller of the library about files that were left out
_ROOT = re.compile(r"/?generations/\d{20}\.json$")  # the path of a root in a stored text


def open_plain(url: str | os.PathLike[str], options: StoreOptions | None = None) -> Store | None:
    """A store in which a plain file, folder or object is a context; None if the URL names none of these. Hidden
    files, and files that are not text, are left out of a folder with a warning. Raises `NotFound` for a folder without
    files, `InvalidText`, and `MonocontextError` for a folder or an object above 512 MiB."""
    path = _find_path(url)
    if path is not None:
        if path.is_file() and _is_root_name(path.as_posix()) and path.stat().st_size <= SMALL_BYTES:
            _refuse_root(str(url), path.read_bytes())
        store = _read_path(path)
        # an upload to this folder may have begun since, and its objects are not files to read
        return store if _find_path(url) is not None else None
    try:
        location, key = split_object(url)
        if parse(url).scheme in ("file", "memory"):
            return None
        with closing(open_store(location, **(options or {}))) as source:
            size = source.head(key).size_bytes
            root = source.get(key).data if _is_root_name(key) and size <= SMALL_BYTES else b""
    except (NotFound, InvalidUrl):
        return None
    _refuse_root(str(url), root)
    _refuse_large(str(url), size, f"`monocontext index {shlex.quote(str(url))} FOLDER` indexes it without a copy")
    store = _memory(str(url))
    index(str(url), store, filters=False, note=_warn, store_options=options)
    return store


def _find_path(url: str | os.PathLike[str]) -> Path | None:
    """The local file or folder that a URL names, or None if there is none, or if it is a stored text."""
    try:
        address = parse(url)
    except InvalidUrl:
        return None
    path = Path(address.path)
    is_found = os.path.isfile(path) or os.path.isdir(path)  # False also for a name that is too long
    if address.scheme != "file" or not is_found:
        return None
    if (path / "generations").is_dir() or any((path / "segments").glob("*.seg")):  # also an unfinished one
        return None
    try:
        parse_manifest((path / ROOT_KEY).read_bytes(), str(path))
    except (NotAContext, OSError):
        return path  # without a manifest.json, or with one of another program
    return None


def _is_root_name(key: str) -> bool:
    """Whether an object of this name may be the root of a stored text."""
    return key.rpartition("/")[2] == ROOT_KEY or _ROOT.search(key) is not None


def _refuse_root(url: str, data: bytes) -> None:
    """Raise `NotFound` if `data` is the root of a stored text: a search in the root would not search that text."""
    try:
        Manifest.from_bytes(data, url)
    except MonocontextError:  # a file of another program
        return
    location = re.sub(rf"/({ROOT_KEY}|generations/\d+\.json)$", "", url)
    raise NotFound(f"{url} is part of a stored text: open {location}")


def _refuse_large(name: str, size_bytes: int, remedy: str) -> None:
    if size_bytes > MOST_PLAIN_BYTES:
        raise MonocontextError(f"{name} has {size_bytes / 1e9:.1f} GB, too much to read without an upload: {remedy}")


def _memory(url: str) -> MemoryStore:
    """An empty store in memory with the URL of the source, which another process can open instead."""
    name = f"plain-{uuid.uuid4().hex}"
    store = MemoryStore(name)
    forget(name)
    store.url = url
    return store


def _read_path(path: Path) -> Store:
    """A store in which a local file or folder is a context."""
    store = _memory(path.as_uri())
    if path.is_dir():
        _check_folder(path)
        publish(path, store, filters=False, exclude=HIDDEN, note=_warn)
    elif path.stat().st_size > SMALL_BYTES:
        index(path, store, filters=False, note=_warn)
    else:
        _publish_file(path, store)
    return store


def _check_folder(path: Path) -> None:
    """Raise an error for a folder that contains stored texts, no file, or too much text."""
    folder = Folder(path)
    names = [name for name in folder.files() if "/." not in f"/{name}"]
    texts = {name[: match.start()] for name in names if (match := _ROOT.search(name))}
    texts |= {name for name, reason in folder.left_out.items() if reason == CONTEXT}
    if texts:
        raise NotFound(f"{path} contains stored texts but is not one itself: open one, such as {path / min(texts)}")
    if not names:
        raise NotFound(f"{path} contains no file to read")
    size = sum((path / name).stat().st_size for name in names)
    _refuse_large(str(path), size, f"`monocontext upload {shlex.quote(str(path))} DIRECTORY` stores it")


def _publish_file(path: Path, store: Store) -> None:
    """Store the text of a small file. Raises `NotText` with the command that stores a text in another encoding."""
    try:
        publish(path, store, note=_warn)
    except WrongEncoding as error:
        head = path.read_bytes()[:HEAD_BYTES]
        wide = wide_encoding(head, "utf-8")
        if not wide and is_binary(head, "utf-8"):
            raise NotText(str(path), "a binary file", "convert it to text first") from None
        command = f"monocontext upload --encoding {wide or 'latin-1'} {shlex.quote(str(path))} FOLDER"
        raise NotText(str(path), error.reason, f"`{command}` stores its text") from None
