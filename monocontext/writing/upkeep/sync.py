"""Update the documents of a context from their sources: read and store only those that are new or have changed.

A file counts as unchanged if its size and time are those in the document's metadata (`file`), as in rsync; an object if
its size and ETag are. Other sources are read, and stored if their text differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from typing import Any, Unpack

from monocontext.engine.fetch.threads import in_threads
from monocontext.engine.open import ContextHandle
from monocontext.errors import NotFound
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.generations import on_newest, read_newest
from monocontext.format.manifest import Manifest
from monocontext.format.root_directories import expand
from monocontext.options import StoreOptions, validate_options
from monocontext.records import dataclass
from monocontext.stores.protocol import Store
from monocontext.writing.documents import documents
from monocontext.writing.input_options import InputOptions, ReadingOptions
from monocontext.writing.place import Place, open_store_at
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.edit import edit
from monocontext.writing.upkeep.edited_documents import load_documents
from monocontext.writing.upkeep.edited_text import Change
from monocontext.writing.upkeep.find_sources import find_sources
from monocontext.writing.upkeep.sync_source import SyncSource

_REQUESTS = 8
"""The most files that are read at once."""
_THREADS = "monocontext-sync"
_CACHE_BYTES = 64 << 20
"""The cache of the reader of the stored documents."""


@dataclass(frozen=True, slots=True)
class Synced:
    """The names of documents by their change, in the order of the sources."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: int
    """The number of documents whose text stays."""
    touched: int
    """The number of these whose source has a new time."""
    root: Manifest | None
    """The newest root afterwards; None with `dry_run` if there is no context."""


@validate_options(ReadingOptions)
def sync(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    url: Place,
    *,
    delete: bool = False,
    dry_run: bool = False,
    ignored: bool = False,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
    **reading: Unpack[ReadingOptions],
) -> Synced:
    """Update the context at `url` so that it has a document for each of the sources. Returns the changes.

    `sources` are paths of files and folders, and URLs of places in a store, of which all objects are taken. Documents
    have the names that `publish` gives to files, or the keys of objects, and no header lines. If there is no context,
    one is made.

    `delete`: delete documents without a source; raises `NotFound` if there is no source at all. `dry_run`: change
    nothing, but return the changes. In a folder with a git repository, files that git ignores are left out, unless
    `ignored`. `executor`: any `concurrent.futures.Executor`, whose workers then encode and store new documents; this
    process reads all sources. `reading`: as for `publish`.

    Reads each source that is new, or whose size or time differs from the recorded one, and in the second case also the
    text of its document. Changed texts are kept in memory, new ones are not. Replaced and deleted documents are one
    generation, new ones after them another. Cost: as for `replace` and `append`. Raises `NotFound` for a missing path,
    and `InvalidText` for a source that is not text.
    """
    options = InputOptions(**reading)
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    with ExitStack() as stack:
        store = stack.enter_context(open_store_at(url, store_options))
        sources_read = find_sources(
            given,
            options,
            ignored=ignored,
            own=store.url,
            store_options=store_options,
            stack=stack,
        )
        files = {file.name: file for file in sources_read}
        base, found = on_newest(
            store, read_newest(store), lambda base: _compare(store, base, files, options, delete, store_options)
        )
        changes, new = found.changes, found.new
        added: list[str] = []
        root = base
        if dry_run:
            added = [file.name for file in new if file.is_text(options)]
        else:
            inputs = documents(_inputs(new, options, added))
            place = store if executor is None else url  # workers open it themselves
            if base is None:
                root = publish(inputs, place, store_options=store_options, executor=executor)
            else:
                if changes:
                    root = edit(store, lambda names: _numbered(changes, names), (), store_options)
                root = append(inputs, place, store_options=store_options, executor=executor) if new else root
        unchanged = len(files) - len(new) - len(found.changed) - found.binary
        return Synced(tuple(added), tuple(found.changed), tuple(found.gone), unchanged, found.touched, root)


@dataclass(frozen=True)
class _Differences:
    """The differences between sources and the documents of a generation. `touched` counts files with another time but
    the same text, `binary` files that are no longer text."""

    new: list[SyncSource]
    changes: dict[bytes, Change]
    changed: list[str]
    gone: list[str]
    touched: int
    binary: int


def _compare(
    store: Store,
    base: Manifest | None,
    files: dict[str, SyncSource],
    options: InputOptions,
    delete: bool,
    store_options: StoreOptions | None,
) -> _Differences:
    """Compare sources with the documents of `base`. Reads those that may differ, and their documents."""
    root = base and expand(base, lambda directory: store.get(directory.key).data)
    with closing(_StoredDocuments(store, root, store_options)) as stored:
        if delete and stored.numbers and not files:
            raise NotFound(f"no file in the sources: `delete` would remove all {len(stored.numbers):,} documents")
        new = [file for file in files.values() if stored.facts(file.name) is None]
        known = (file for file in files.values() if stored.facts(file.name) is not None)
        unsure = [f for f in known if stored.file_facts(f.name) != f.facts["file"]]
        changes: dict[bytes, Change] = {}
        changed: list[str] = []
        binary: set[str] = set()
        touched = 0
        texts = in_threads(lambda file: file.text(options), unsure, _REQUESTS, _THREADS)
        for file, text in zip(unsure, texts, strict=True):
            if text is None:
                binary.add(file.name)
                continue
            facts = encode_metadata({**(stored.facts(file.name) or {}), **file.facts}, 0)
            if stored.text(file.name) == text:
                if stored.file_facts(file.name) == file.facts["file"]:
                    continue
                touched += 1
                changes[file.name.encode()] = Change(None, facts, True)
            else:
                changed.append(file.name)
                changes[file.name.encode()] = Change(text, facts)
        gone = [name for name in stored.numbers if name not in files or name in binary] if delete else []
        changes |= {name.encode(): Change(None) for name in gone}
        return _Differences(new, changes, changed, gone, touched, len(binary))


def _inputs(
    new: list[SyncSource], options: InputOptions, added: list[str]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield new documents, each read when it is stored. Appends their names to `added`."""
    for file in new:
        text = file.text(options)
        if text is not None:
            added.append(file.name)
            yield file.name, text, file.facts


def _numbered(changes: dict[bytes, Change], names: Iterable[bytes]) -> dict[int, Change]:
    """The changes, keyed by document number.

    A deletion applies to every document with the name, any other change only to the last of them.
    """
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


class _StoredDocuments:
    """The metadata and texts of the documents of a context, by name; empty if `base` is None."""

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
        """The metadata of a document, or None if there is no document with that name."""
        found = self.numbers.get(name)
        return None if found is None else found[0].metadata(found[1])

    def file_facts(self, name: str) -> object:
        """The size and time of a document's file, as recorded in its metadata."""
        return (self.facts(name) or {}).get("file")

    def text(self, name: str) -> str:
        assert self._text is not None
        page, i = self.numbers[name]
        return self._text.read(page.starts[i], page.stops[i])

    def close(self) -> None:
        if self._text is not None:
            self._text.close()
        self._context.close()
