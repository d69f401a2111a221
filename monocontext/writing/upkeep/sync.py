"""Update the documents of a context from their sources: read and store only those that are new or have changed.

A file counts as unchanged if its size and time are those in the document's metadata (`file`), as in rsync; an object if
its size and ETag are. Other sources are read, and stored if their text differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack

from monocontext.engine.fetch.threads import in_threads
from monocontext.errors import InvalidUrl, NotFound
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import dataclass, field
from monocontext.stores import options_for, split_object
from monocontext.stores.protocol import Store
from monocontext.writing.changes import Change
from monocontext.writing.commit import Staged
from monocontext.writing.decoding import NotText
from monocontext.writing.documents import documents
from monocontext.writing.input_options import InputOptions, ReadingOptions
from monocontext.writing.place import Place, open_store_at, own_options
from monocontext.writing.publish import store_text
from monocontext.writing.segments import Written
from monocontext.writing.sources import (
    Source,
    describe,
    find_files,
    find_objects,
    named_object,
    note_left_out,
    read_found,
    read_source,
)
from monocontext.writing.splice import EMPTY_ROOT
from monocontext.writing.stored_text import StoredText
from monocontext.writing.upkeep.edit import Edit, edit

_REQUESTS = 8
"""The most files that are read at once."""
_THREADS = "monocontext-sync"


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
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
    **reading: Unpack[ReadingOptions],
) -> Synced:
    """Update the context at `url` so that it has a document for each of the sources. Returns the changes.

    `sources` are paths of files and folders, and URLs of places in a store, of which all objects are taken. Documents
    have the names that `publish` gives to files, or the keys of objects, and no header lines. If there is no context,
    one is made.

    `delete`: delete documents whose source is gone; raises `NotFound` if there is no source at all. A document stays
    whose name `include` and `exclude` do not select, or whose source is there but is no text; that is noted. `dry_run`:
    change nothing, but return the changes. `executor`: any `concurrent.futures.Executor`, whose workers then encode and
    store new documents; this process reads all sources. `reading`: as for `publish`.

    Reads each source that is new, or whose size or time differs from the recorded one, and in the second case also the
    text of its document. Changed texts are kept in memory, new ones are not. All changes are one generation; of several
    stored documents with the name of a source, the last one stays. Cost: as for `replace` and `append`. Raises
    `NotFound` for a missing path, and `InvalidText` for a source that is not text.
    """
    options = InputOptions(**reading)
    value = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    with ExitStack() as stack:
        own = own_options(url, store_options)
        store = stack.enter_context(open_store_at(url, own))
        there = {file.name: file for file in _find(value, options, store.url, store_options or {}, stack)}
        synced: list[_Differences] = []

        def add(
            base: Manifest | None, store: Staged, new: list[Source]
        ) -> tuple[Written, list[str], dict[str, list[str]]]:
            """Store new documents; returns also the names of those that are text, and the others."""
            added: list[str] = []
            left_out: dict[str, list[str]] = {}
            inputs = documents(_inputs(new, options, left_out, added))
            return store_text(store, inputs, base, executor, url, own), added, left_out

        def plan(base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
            """Compare the sources with the documents of `base`, and store new ones, unless an earlier call has."""
            result = _compare(store, base, pages, there, options, delete, own)
            synced[:] = [result]
            if dry_run:
                result.added += [name for name, _, _ in _inputs(result.new, options, result.left_out)]
                return Edit()
            new = None
            if result.new:
                names = tuple(file.name for file in result.new)
                new, added, left_out = store.once(names, lambda: add(base, store, result.new), again=True)
                result.added += added
                for where, remaining in left_out.items():
                    result.left_out.setdefault(where, []).extend(remaining)
            return Edit(_numbered(result.changes, there, pages), new)

        root = edit(store, plan, store_options=own)
        [result] = synced
        added = result.added
        note_left_out(result.left_out, options)
        unchanged = result.known - len(result.changed)
        return Synced(tuple(added), tuple(result.changed), tuple(result.gone), unchanged, result.touched, root)


@dataclass(slots=True)
class _Differences:
    """The differences between sources and the documents of a generation. `touched` counts files with another time but
    the same text, `known` the stored documents whose source is text."""

    new: list[Source]
    changes: dict[bytes, Change]
    changed: list[str]
    gone: list[str]
    touched: int
    known: int
    left_out: dict[str, list[str]]
    added: list[str] = field(default_factory=list)


def _compare(
    store: Store,
    base: Manifest | None,
    pages: list[DocumentPage],
    there: dict[str, Source],
    options: InputOptions,
    delete: bool,
    store_options: StoreOptions | None,
) -> _Differences:
    """Compare sources with the documents of `base`. Reads those that may differ, and their documents."""
    with StoredText(store, base or EMPTY_ROOT, store_options=store_options) as text_of:
        stored = _StoredDocuments(text_of, pages)
        if delete and stored.numbers and not there:
            raise NotFound(f"no file in the sources: `delete` would remove all {len(stored.numbers):,} documents")
        files = [file for file in there.values() if file.is_selected]
        new = [file for file in files if file.name not in stored.numbers]
        unsure = [f for f in files if f.name in stored.numbers and stored.facts(f.name).get("file") != f.facts]
        changes: dict[bytes, Change] = {}
        changed: list[str] = []
        left_out: dict[str, list[str]] = {}
        known, touched = len(files) - len(new), 0
        for file, text in zip(
            unsure, in_threads(lambda file: _text(file, options), unsure, _REQUESTS, _THREADS), strict=True
        ):
            if isinstance(text, NotText):
                left_out.setdefault(file.where, []).append(f"{describe(file, text)}, stored as it was")
                known -= 1
                continue
            facts = encode_metadata({**stored.facts(file.name), "file": file.facts}, 0)
            if stored.has_text(file.name, text):
                touched += 1
                changes[file.name.encode()] = Change(None, facts, True)
            else:
                changed.append(file.name)
                changes[file.name.encode()] = Change(text, facts)
        gone = [name for name in stored.numbers if name not in there and options.selects(name)] if delete else []
        changes |= {name.encode(): Change(None) for name in gone}
        return _Differences(new, changes, changed, gone, touched, known, left_out)


def _find(
    given: list[str | os.PathLike[str]],
    options: InputOptions,
    own: str,
    store_options: StoreOptions,
    stack: ExitStack,
) -> Iterator[Source]:
    """Yield the sources at paths, and those at URLs of places, whose stores `stack` closes."""
    places = [item for item in given if isinstance(item, str) and "://" in item]
    yield from find_files([Path(item) for item in given if item not in places], options)
    for location in places:
        try:
            above, key = split_object(location)
            yield named_object(
                stack.enter_context(open_store_at(above, options_for(above, store_options))), key, location
            )
        except (NotFound, InvalidUrl):  # no object: perhaps a place
            store = stack.enter_context(open_store_at(location, options_for(location, store_options)))
            yield from find_objects(store, options, own)


def _text(file: Source, options: InputOptions) -> str | NotText:
    """Read a source; one that was found in a folder or a place may be no text."""
    try:
        return b"".join(data for data, _ in read_source(file, options)).decode()
    except NotText as error:
        if not file.where:
            raise
        return error


def _inputs(
    new: list[Source], options: InputOptions, left_out: dict[str, list[str]], added: list[str] | None = None
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield new documents, each read when it is stored. Appends their names to `added`, and adds to `left_out`."""
    for file, pieces in read_found(new, options, left_out):
        if added is not None:
            added.append(file.name)
        yield file.name, b"".join(data for data, _ in pieces).decode(), {"file": file.facts}


def _numbered(changes: dict[bytes, Change], there: dict[str, Source], pages: list[DocumentPage]) -> dict[int, Change]:
    """The changes, keyed by document number.

    A deletion applies to every document with the name, any other change only to the last of them. Earlier documents
    with the name of a source are deleted.
    """
    results: dict[int, Change] = {}
    last: dict[str, int] = {}
    for page in pages:
        for number, name in enumerate(page.names(), page.first):
            if name in last and name in there:
                results[last[name]] = Change(None)
            last[name] = number
            if (change := changes.get(name.encode())) is not None:
                results[number] = change
    return results


class _StoredDocuments:
    """The metadata and texts of the documents of a context, by name; empty if `base` is None."""

    def __init__(self, text: StoredText, pages: list[DocumentPage]) -> None:
        self._text = text
        self.numbers = {name: (page, i) for page in pages for i, name in enumerate(page.names())}

    def facts(self, name: str) -> dict[str, Any]:
        """The metadata of a document; `file` in it is what was recorded of its source."""
        page, i = self.numbers[name]
        return page.metadata(i)

    def has_text(self, name: str, text: str) -> bool:
        """Whether this is the text of a document, which is read only if it is as long."""
        page, i = self.numbers[name]
        start, stop = page.starts[i], page.stops[i]
        return len(text) == stop - start and self._text.read(start, stop) == text
