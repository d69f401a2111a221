"""Update the documents of a context from their sources, whose sizes, times and ETags are in the metadata."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack

from monocontext.errors import InvalidUrl, NotFound
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import dataclass, field
from monocontext.stores import options_for, split_object
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store
from monocontext.writing.commit import Place, Staged, commit, open_store_at, own_options
from monocontext.writing.decoding import InputOptions, NotText, ReadingOptions
from monocontext.writing.documents import Change, documents
from monocontext.writing.publish import store_text
from monocontext.writing.segments import Written
from monocontext.writing.sources import (
    InputFile,
    find_files,
    find_objects,
    named_object,
    note_left_out,
    read_found,
    read_source,
)
from monocontext.writing.splice import EMPTY_ROOT
from monocontext.writing.stored_text import StoredText
from monocontext.writing.upkeep.edit import Edit, edited

_REQUESTS = 8  # the most files that are read at once


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
    """Update the context at `url`, or make one, so that it has a document for each of the sources. Returns the changes.

    `sources` are paths of files and folders, and URLs of objects and of places, of which all objects are taken.
    Documents have the names that `publish` gives to files, or the keys of objects, and no header lines.

    `delete`: delete documents whose source is gone; raises `NotFound` if there is no source at all. A document stays
    whose name `include` and `exclude` do not select, or whose source is there but is no text; that is noted. `dry_run`:
    only return the changes. `executor`: its workers store new documents. `reading`: as for `publish`.

    Reads sources that are new or have another size or time than recorded, and the documents of these. Changed texts are
    kept in memory, new ones are not. All changes are one generation. Cost: as for `replace` and `append`. Raises
    `NotFound` for a missing path, and `InvalidText` for a source that is not text.
    """
    options = InputOptions(**reading)
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    with ExitStack() as stack:
        own = own_options(url, store_options)
        store = stack.enter_context(open_store_at(url, own))
        files = {file.name: file for file in _find(paths, options, store.url, store_options or {}, stack)}
        result = _Differences()

        def plan(base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
            """Compare the sources with the documents of `base`, and store new ones, unless an earlier call has."""
            nonlocal result
            with StoredText(store, base or EMPTY_ROOT, store_options=own) as text:
                result = _compare(text, pages, files, options, delete)
            names = tuple(file.name for file in result.new)

            def add() -> tuple[Written | None, list[str], dict[str, list[str]]]:
                """Store new documents; returns also the names of those that are text, and the others."""
                added, left_out = list[str](), dict[str, list[str]]()
                inputs = documents(_inputs(result.new, options, left_out, added))
                if dry_run:
                    deque(inputs.items, 0)
                    return None, added, left_out
                new = store_text(store, inputs, base, executor=executor, url=url, store_options=own)
                return new, added, left_out

            new, result.added, left_out = store.once(names, add, again=True) if names else (None, [], {})
            for folder, remaining in left_out.items():
                result.left_out.setdefault(folder, []).extend(remaining)
            return ({}, None) if dry_run else (result.changes, new)

        root = commit(store, lambda base, store: edited(base, store, plan, own))
        note_left_out(result.left_out, options)
        unchanged = result.known - len(result.changed)
        return Synced(tuple(result.added), tuple(result.changed), tuple(result.gone), unchanged, result.touched, root)


@dataclass(slots=True)
class _Differences:
    """The differences between sources and the documents of a generation."""

    new: list[InputFile] = field(default_factory=list)
    changes: dict[int, Change] = field(default_factory=dict)
    """By the number of the document."""
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    touched: int = 0
    known: int = 0
    """Stored documents whose source is text."""
    left_out: dict[str, list[str]] = field(default_factory=dict)


def _compare(
    text: StoredText, pages: list[DocumentPage], files: dict[str, InputFile], options: InputOptions, delete: bool
) -> _Differences:
    """Compare sources with the documents of a text; reads those that may differ. Of several documents with the name of
    a source, the last one counts, and the others go."""
    stored: dict[str, list[tuple[DocumentPage, int]]] = {}
    for page in pages:
        for i, name in enumerate(page.names()):
            stored.setdefault(name, []).append((page, i))
    if delete and stored and not files:
        raise NotFound(f"no file in the sources: `delete` would remove all {len(stored):,} documents")
    result = _Differences()
    for name, all_of_name in stored.items():
        is_gone = delete and name not in files and options.selects(name)
        if is_gone:
            result.gone.append(name)
        gone = all_of_name if is_gone else all_of_name[:-1] if name in files else []
        result.changes |= {page.first + i: Change(deletes=True) for page, i in gone}
    unsure = []
    for file in (file for file in files.values() if file.is_selected):
        if file.name not in stored:
            result.new.append(file)
            continue
        result.known += 1
        page, i = stored[file.name][-1]
        metadata_before = page.metadata(i)
        if metadata_before.get("file") != file.facts:
            unsure.append((file, page, i, encode_metadata({**metadata_before, "file": file.facts}, 0)))

    def changed(item: tuple[InputFile, DocumentPage, int, bytes]) -> str | NotText | None:
        """The text of a source; None if its document has the same."""
        file, page, i, _ = item
        start, stop = page.starts[i], page.stops[i]
        try:
            new = b"".join(data for data, _ in read_source(file, options)).decode()
        except NotText as error:
            if not file.where:
                raise
            return error  # one that was found in a folder or a place may not be text
        return None if len(new) == stop - start and text.read(start, stop) == new else new

    for (file, page, i, metadata), new in zip(unsure, at_once(changed, unsure, _REQUESTS), strict=True):
        if isinstance(new, NotText):
            result.left_out.setdefault(file.where, []).append(f"{file.name} ({new.reason}), stored as it was")
            result.known -= 1
        elif new is None:
            result.touched += 1
            result.changes[page.first + i] = Change(metadata=metadata)
        else:
            result.changed.append(file.name)
            result.changes[page.first + i] = Change(new, metadata)
    return result


def _find(
    sources: list[str | os.PathLike[str]], options: InputOptions, own: str, remote: StoreOptions, stack: ExitStack
) -> Iterator[InputFile]:
    """Yield the sources at paths, and those at URLs of places, whose stores `stack` closes."""

    def opened(url: str) -> Store:
        return stack.enter_context(open_store_at(url, options_for(url, remote)))

    places = [item for item in sources if isinstance(item, str) and "://" in item]
    yield from find_files([Path(item) for item in sources if item not in places], options)
    for location in places:
        try:
            above, key = split_object(location)
            yield named_object(opened(above), key, location)
        except (NotFound, InvalidUrl):  # no object: perhaps a place
            yield from find_objects(opened(location), options, own)


def _inputs(
    new: list[InputFile], options: InputOptions, left_out: dict[str, list[str]], added: list[str]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield new documents, each read when it is stored. Appends their names to `added`, and adds to `left_out`."""
    for file, pieces in read_found(new, options, left_out):
        added.append(file.name)
        yield file.name, b"".join(data for data, _ in pieces).decode(), {"file": file.facts}
