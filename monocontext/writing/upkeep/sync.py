"""Bring the documents of a context in step with files or objects: read and store only what is new or has changed.

A file counts as unchanged where its size and time are those that the document's metadata record (`file`), as in rsync,
an object where its size and ETag are. Others are read, and stored if the text differs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol, Unpack

from monocontext.engine.fetch.threads import in_threads
from monocontext.engine.open import ContextHandle
from monocontext.errors import NotFound
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.folding import opened
from monocontext.format.generations import read_newest
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import dataclass
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.stores.regular_file import open_file
from monocontext.writing.documents import documents
from monocontext.writing.folder import Folder
from monocontext.writing.inputs import (
    HEAD_BYTES,
    InputOptions,
    ReadingOptions,
    displayable,
    file_names,
    is_binary,
    is_selected,
    is_text,
    read_stream,
)
from monocontext.writing.publish import Place, append, open_store_at, publish
from monocontext.writing.upkeep.edit import edit
from monocontext.writing.upkeep.edited_documents import load_documents
from monocontext.writing.upkeep.edited_text import Change

_REQUESTS = 8
_THREADS = "monocontext-sync"
_CACHE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Synced:
    """The names of documents by their change, in the order of the sources."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: int
    """Documents whose text stays; `touched` of them have a new time."""
    touched: int
    root: Manifest | None
    """The newest root afterwards; None with `dry_run` where no context was."""


@validate_options(ReadingOptions)
def sync(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    url: Place,
    *,
    delete: bool = False,
    dry_run: bool = False,
    ignored: bool = False,
    store_options: StoreOptions | None = None,
    **reading: Unpack[ReadingOptions],
) -> Synced:
    """Make the context at `url` hold the files of `sources`: paths of files and folders, and URLs of places in a store,
    all of whose objects are taken. Each is a document.

    Documents have the names that `publish` gives to files, or the keys of objects, and no header lines; where no
    context is one is made. `delete`: documents without a file go; refused where no file is left. `dry_run`: change
    nothing, and tell what would. In a folder with a git repository files that git ignores are left out, unless
    `ignored`. `reading`: as for `publish`.

    Reads each file that is new, or whose size or time differ from those recorded, and for the latter the text of its
    document. Changed texts are held in memory, new ones are not. Replaced and deleted documents are one generation, new
    ones behind them another. Costs as for `replace` and `append`. Raises `NotFound` for a missing path, `InvalidText`
    for what is not text.
    """
    options = InputOptions(**reading)
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    with ExitStack() as stack:
        files = {file.name: file for file in _sources(given, options, ignored, store_options, stack)}
        store = stack.enter_context(open_store_at(url, store_options))
        base = read_newest(store)
        there = _Stored(store, base and opened(base, lambda ref: store.get(ref.key).data), store_options)
        stack.callback(there.close)
        if delete and there.numbers and not files:
            raise NotFound(f"the sources hold no file: `delete` would remove all {len(there.numbers):,} documents")
        new = [file for file in files.values() if there.facts(file.name) is None]
        known = (file for file in files.values() if there.facts(file.name) is not None)
        unsure = [file for file in known if there.file_facts(file.name) != file.facts["file"]]
        changes, changed, touched, binary = _compare(there, unsure, options)
        gone = [name for name in there.numbers if name not in files or name in binary] if delete else []
        changes |= {name.encode(): Change(None) for name in gone}
        added: list[str] = []
        root = base
        if dry_run:
            added = [file.name for file in new if file.is_text(options)]
        else:
            inputs = documents(_inputs(new, options, added))
            if base is None:
                root = publish(inputs, store)
            else:
                if changes:
                    root = edit(store, lambda names: _numbered(changes, names), (), store_options)
                root = append(inputs, store) if new else root
        unchanged = len(files) - len(new) - len(changed) - len(binary)
        return Synced(tuple(added), tuple(changed), tuple(gone), unchanged, touched, root)


def _compare(
    there: _Stored, unsure: list[_Source], options: InputOptions
) -> tuple[dict[bytes, Change], list[str], int, set[str]]:
    """The changes of documents that may differ from their files; the names of those that do, how many only have another
    time, and the names of files that hold no text any more."""
    changes: dict[bytes, Change] = {}
    changed: list[str] = []
    binary: set[str] = set()
    touched = 0
    texts = in_threads(lambda file: file.text(options), unsure, _REQUESTS, _THREADS)
    for file, text in zip(unsure, texts, strict=True):
        if text is None:
            binary.add(file.name)
            continue
        facts = encode_metadata({**(there.facts(file.name) or {}), **file.facts}, 0)
        if there.text(file.name) == text:
            touched += 1
            changes[file.name.encode()] = Change(None, facts, True)
        else:
            changed.append(file.name)
            changes[file.name.encode()] = Change(text, facts)
    return changes, changed, touched, binary


def _inputs(new: list[_Source], options: InputOptions, added: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """New documents, each read when it is stored; `added` gets their names."""
    for file in new:
        text = file.text(options)
        if text is not None:
            added.append(file.name)
            yield file.name, text, file.facts


def _numbered(changes: dict[bytes, Change], names: Iterable[bytes]) -> dict[int, Change]:
    """The changes by number: a deletion of all documents with the name, else of the last one."""
    found: dict[int, Change] = {}
    last: dict[bytes, int] = {}
    for number, name in enumerate(names):
        change = changes.get(name)
        if change is None:
            continue
        if not change.deletes:
            found.pop(last.get(name, -1), None)
            last[name] = number
        found[number] = change
    return found


class _Source(Protocol):
    """A file or an object that is to be a document."""

    name: str
    facts: dict[str, dict[str, Any]]
    """What its document's metadata record: `file`, by which a change is seen."""

    def is_text(self, options: InputOptions) -> bool:
        """Whether an upload would take it, by its first bytes."""
        ...

    def text(self, options: InputOptions) -> str | None:
        """Its text; None for what an upload leaves out."""
        ...


class _File:
    """A file, in a folder or named by itself."""

    def __init__(self, name: str, path: str, folder: Folder | None, relative: str) -> None:
        self.name = name
        self._path, self._folder, self._relative = path, folder, relative
        found = os.stat(path)
        self.facts: dict[str, dict[str, Any]] = {"file": {"bytes": found.st_size, "modified_ns": found.st_mtime_ns}}

    def is_text(self, options: InputOptions) -> bool:
        return self._folder is None or is_text(self._folder, self._relative, options)

    def text(self, options: InputOptions) -> str | None:
        if not self.is_text(options):
            return None
        with self._folder.open(self._relative) if self._folder else open_file(self._path) as file:
            return b"".join(data for data, _ in read_stream(file, self._path, options)).decode()


class _Object:
    """An object of a store."""

    def __init__(self, store: Store, info: ObjectInfo) -> None:
        self.name = info.key
        self._store, self._size_bytes = store, info.size_bytes
        self.facts: dict[str, dict[str, Any]] = {"file": {"bytes": info.size_bytes, "etag": info.etag}}

    def is_text(self, options: InputOptions) -> bool:
        head = min(HEAD_BYTES, self._size_bytes)
        return not is_binary(self._store.get_range(self.name, 0, head).data if head else b"", options.encoding)

    def text(self, options: InputOptions) -> str | None:
        data = self._store.get(self.name).data
        if is_binary(data[:HEAD_BYTES], options.encoding):
            return None
        return b"".join(data for data, _ in read_stream(BytesIO(data), self.name, options)).decode()


def _sources(
    given: list[str | os.PathLike[str]],
    options: InputOptions,
    ignored: bool,
    store_options: StoreOptions | None,
    stack: ExitStack,
) -> Iterator[_Source]:
    """All files of these paths, and all objects of these URLs, that are selected by name."""
    places = [each for each in given if isinstance(each, str) and "://" in each]
    for path, prefix in file_names([Path(each) for each in given if each not in places], options):
        if not path.is_dir():
            yield _File(prefix, str(path), None, "")
            continue
        folder = Folder(path, follow_links=options.follow_links)
        wanted = None if ignored else _not_ignored(path)
        for name in folder.files():
            if (wanted is None or name in wanted) and is_selected(name, options):
                yield _File(displayable(prefix + name), os.path.join(folder.path, name), folder, name)
    for place in places:
        store = stack.enter_context(open_store_at(place, store_options))
        found = [_Object(store, info) for info in store.list() if is_selected(info.key, options)]
        if not found:
            raise NotFound(f"{place}: no object there to sync")
        yield from found


def _not_ignored(path: Path) -> set[str] | None:
    """The files of a git repository that git does not ignore; None for another folder."""
    if not (path / ".git").exists():
        return None
    # A repository's own configuration may name a program as its file monitor; nothing of it is run here.
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(path), "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotFound(f"{path}: git cannot list its files ({error}); `ignored` takes all files") from error
    return {os.fsdecode(name) for name in listed.split(b"\0") if name}


class _Stored:
    """The documents of a context, if there is one: their metadata, and their texts to compare."""

    def __init__(self, store: Store, base: Manifest | None, options: StoreOptions | None) -> None:
        self.numbers: dict[str, tuple[DocumentPage, int]] = {}
        for page in load_documents(store, base.documents) if base else []:
            for i, name in enumerate(page.names()):
                self.numbers[name] = (page, i)
        self._context = ContextHandle(
            store, cache_bytes=_CACHE_BYTES, allow=(), store_options=options, owns_store=False
        )
        self._text = self._context.read(base) if base else None

    def facts(self, name: str) -> dict[str, Any] | None:
        """The metadata of a document; None where there is none of that name."""
        found = self.numbers.get(name)
        return None if found is None else found[0].metadata(found[1])

    def file_facts(self, name: str) -> object:
        """What is recorded of the file of a document."""
        return (self.facts(name) or {}).get("file")

    def text(self, name: str) -> str:
        assert self._text is not None
        page, i = self.numbers[name]
        return self._text.read(page.starts[i], page.stops[i])

    def close(self) -> None:
        if self._text is not None:
            self._text.close()
        self._context.close()
