"""Open a plain file, folder or object as a text, in its state at that moment.

The text of a small file or folder is kept in memory. A large file or an object is indexed in place; the text of a large
folder is stored. Index and stored text are in a cache folder of the user, and are used again while names, sizes and
times stay the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from monocontext.errors import InvalidText, InvalidUrl, MonocontextError, NotAContext, NotFound
from monocontext.format.deeprecurse import parse_manifest
from monocontext.format.manifest import ROOT_KEY, Manifest
from monocontext.options import StoreOptions
from monocontext.stores import open_store
from monocontext.stores.address import parse, split_object
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import Store
from monocontext.writing.decoding import HEAD_BYTES, is_binary, unexpected_utf_16
from monocontext.writing.folder import Folder
from monocontext.writing.index_in_place import index
from monocontext.writing.publish import publish

SMALL_BYTES = 8 << 20
"""Up to this size a text is read into memory each time, which is faster than to look for a stored one."""
_LARGE_BYTES = 64 << 20
"""Above this size a note announces the read, which takes a while."""
MOST_FOLDER_BYTES = 4 << 30
"""A folder above this size is refused: its text would be copied into the cache."""
MOST_OBJECT_BYTES = 1 << 30
"""An object in a store above this size is refused: it would be read as a whole."""
_OLD_SECONDS = 86_400
"""The stored text of an earlier state stays for so long: another process may be reading it."""

_ROOT = re.compile(r"/?generations/\d{20}\.json$")
"""The path of a root in a stored text."""


def warn(text: str) -> None:
    """Warn a caller of the library about the files that were left out."""
    warnings.warn(text, stacklevel=4)


class _PlainStore(MemoryStore):
    """The text of a small file or folder. Its URL is that of the file, so another process can open it again."""

    def __init__(self, place: str) -> None:
        name = f"plain-{uuid.uuid4().hex}"
        super().__init__(name)
        forget(name)  # the objects go with this store
        self.url = place


def open_plain(url: str | os.PathLike[str], options: StoreOptions | None = None) -> Store | None:
    """Return a store with a context of the text of a plain file, folder or object, or None if the URL names none.

    Each file of a folder has a header line. Hidden files and folders, binary files, and files that are not UTF-8 are
    left out with a warning. An object in another store is read as a whole, once for each version, and later
    fetched in ranges. Raises `NotFound` for a folder without files, `InvalidText` for bytes that are not UTF-8, and
    `MonocontextError` for a folder above 4 GiB or an object above 1 GiB.
    """
    path = _find_path(url)
    if path is not None:
        if path.is_file() and _is_root_name(path.as_posix()) and path.stat().st_size <= SMALL_BYTES:
            _refuse_root(str(url), path.read_bytes())
        store = _open_path(path)
        if _find_path(url) is None:  # an upload to this folder has begun since, and its objects are no files to read
            store.close()
            return None
        return store
    try:
        location, key = split_object(url)
        address = parse(url)
        if address.scheme in ("file", "memory"):
            return None
        with closing(open_store(location, **(options or {}))) as store:
            result = store.head(key)
            root = store.get(key).data if _is_root_name(key) and result.size_bytes <= SMALL_BYTES else b""
    except (NotFound, InvalidUrl):
        return None
    _refuse_root(str(url), root)
    if result.size_bytes > MOST_OBJECT_BYTES:
        raise MonocontextError(
            f"{url} is a plain object of {result.size_bytes / 1e9:.1f} GB, too large to open directly: "
            f"`monocontext index {url} PLACE` indexes it without a copy"
        )
    name = f"{(options or {}).get('endpoint') or ''} {url}"
    return _stored(name, repr((result.etag, result.size_bytes)), result.size_bytes, partial(_index, str(url), options))


def _find_path(url: str | os.PathLike[str]) -> Path | None:
    """The local file or folder that a URL names, or None if there is none, or if it is a stored text."""
    try:
        address = parse(url)
    except InvalidUrl:
        return None
    path = Path(address.path)
    if address.scheme != "file" or not (path.is_file() or path.is_dir()):
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
    raise NotFound(f"{url} is a part of a stored text, whose URL is {location}")


def _open_path(path: Path) -> Store:
    folder = Folder(path) if path.is_dir() else None
    files = sorted(_files(path, folder))
    texts = {name[: match.start()] for name, *_ in files if (match := _ROOT.search(name))}
    if folder:
        texts.update(folder.contexts)
    if texts:
        raise NotFound(f"{path} contains stored texts but is not one itself: open one, such as {path / min(texts)}")
    if not files:
        raise NotFound(f"{path} contains no file to read")
    size = sum(file[1] for file in files)
    if size <= SMALL_BYTES:
        store: Store = _PlainStore(path.as_uri())
        _publish(path, store)
        return store
    if path.is_file():
        return _stored(str(path), repr(files), size, partial(_index, str(path), None))
    if size > MOST_FOLDER_BYTES:
        raise MonocontextError(
            f"{path} contains {size / 1e9:.1f} GB of files, more than are read without an upload: "
            f"`monocontext upload {path} DIRECTORY` stores their text"
        )
    return _stored(str(path), repr(files), size, partial(_publish, path))


def _stored(name: str, state: str, size: int, write: Callable[[Store], object]) -> Store:
    """Open the store in the cache folder for the text `name` in this state. If there is none yet, `write` fills it."""
    key = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    target = _cache_folder() / f"{key}-{hashlib.sha256(state.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    if not target.is_dir():
        if size > _LARGE_BYTES:
            warn(f"reading {name} ({size / 1e6:,.0f} MB) once; `monocontext upload` stores it with search filters")
        started = target.with_name(f"{target.name}.{uuid.uuid4().hex}")
        try:
            started.mkdir()
            with closing(open_store(started)) as store:
                write(store)
            try:
                started.rename(target)
            except OSError:
                if not target.is_dir():  # else another process has stored the same
                    raise
        finally:
            shutil.rmtree(started, ignore_errors=True)
    os.utime(target)
    for old in target.parent.glob(f"{key}-*"):
        if old != target and time.time() - old.stat().st_mtime > _OLD_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    return open_store(target)


def _index(source: str, options: StoreOptions | None, store: Store) -> None:
    index(source, store, filters=False, note=warn, store_options=options)


def _publish(path: Path, store: Store) -> None:
    if path.is_dir():
        publish(path, store, filters=False, exclude=(".*",), note=warn)
        return
    try:
        publish(path, store, note=warn)
    except InvalidText as error:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        wide = unexpected_utf_16(head, "utf-8")
        if not wide and is_binary(head, "utf-8"):
            raise InvalidText(f"{path} is a binary file, not a text") from None
        what = "UTF-16" if wide else str(error).removeprefix(f"{path}: ").partition(":")[0]
        command = f"monocontext upload --encoding {wide or 'latin-1'} {shlex.quote(str(path))} FOLDER"
        raise InvalidText(f"{path} is {what}: `{command}` stores its text") from None


def _files(path: Path, folder: Folder | None) -> Iterator[tuple[str, int, int]]:
    """Yield name, size in bytes, and time of change in nanoseconds of each file to read."""
    for name in folder.files() if folder else [path.name]:
        if folder is None or not any(part.startswith(".") for part in name.split("/")):
            result = (path / name if folder else path).stat()
            if stat.S_ISREG(result.st_mode):
                yield name, result.st_size, result.st_mtime_ns


def _cache_folder() -> Path:
    """The user's private folder for indexes of plain files."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "monocontext" / "plain"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
