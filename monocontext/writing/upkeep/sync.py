"""Update the documents of a context from their sources. Their metadata record the size, time or ETag of each source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from monocontext.errors import InvalidText, NotFound
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import NamedTuple, dataclass, field
from monocontext.stores import Place, open_store_at, options_for
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store
from monocontext.writing.commit import Staged, commit
from monocontext.writing.decoding import InputOptions, NotText, ReadingOptions
from monocontext.writing.documents import READ_AT_ONCE, Change, DocumentInputs, documents
from monocontext.writing.inputs import Pieces
from monocontext.writing.publish import TextWorkers, store_text
from monocontext.writing.segments import Written
from monocontext.writing.sources import InputFile, find_files, find_objects, note_left_out, read_found, read_source
from monocontext.writing.splice import EMPTY_ROOT
from monocontext.writing.stored_text import StoredText
from monocontext.writing.upkeep.edit import Edit, edited_root


@dataclass(frozen=True, slots=True)
class Synced:
    """What `sync` changed. Names are in the order of the sources, those of `deleted` in the order of the text."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: int  # the number of documents whose text stays
    root: Manifest | None  # the newest root afterwards; None with `dry_run` if there is no context


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
    """Update or create the context at `url`, so that it has a document for each source. Returns the changes.

    `sources` are paths of files and folders, and URLs of objects and of buckets or folders, whose objects are all read.
    Documents are named as `publish` names files, or by the keys of objects, and have no header lines.

    `delete`: delete documents whose source is gone; raises `NotFound` if there is no source at all. Documents that
    `include` and `exclude` do not select stay, and so do those whose source is not text any more, with a note.
    `dry_run`: only return the changes. `executor`: its workers store new documents. `reading`: as for `publish`.

    Reads new sources, sources whose size, time or ETag differs from the recorded one, and the documents of the
    latter. Changed texts are kept in memory, new ones are not. All changes are one generation. Cost: as for `replace`
    and `append`. Raises `NotFound` for a missing path, or if a new context would have no text, and `InvalidText` for a
    source that is not text, or for two sources with the same name.
    """
    options = InputOptions(**reading)
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    context_options = options_for(url, store_options)
    with ExitStack() as stack:
        store = stack.enter_context(open_store_at(url, context_options))
        files = _find(paths, options, store.url, store_options or {}, stack)
        write = partial(store_text, workers=TextWorkers(executor, url, context_options) if executor else None)
        planner = _Planner(files, options, context_options, delete, None if dry_run else write)
        root = commit(store, lambda base, store: edited_root(base, store, planner.plan, context_options))
    result = planner.result
    note_left_out(result.left_out, options)
    if root is None and not dry_run:
        raise NotFound(f"no text in the sources, so no context was created at {store.url}: check their paths")
    unchanged = result.known - len(result.changed)
    return Synced(tuple(result.added), tuple(result.changed), tuple(result.deleted), unchanged, root)


@dataclass(slots=True)
class _Differences:
    """The differences between sources and the documents of a generation."""

    new: list[InputFile] = field(default_factory=list)  # sources without a document
    changes: dict[int, Change] = field(default_factory=dict)  # by the number of the document
    added: list[str] = field(default_factory=list)  # names of the new sources that are text
    changed: list[str] = field(default_factory=list)  # names of documents with another text
    deleted: list[str] = field(default_factory=list)  # names of documents without a source
    known: int = 0  # documents whose source is text
    left_out: dict[str, list[str]] = field(default_factory=dict)  # sources that are not text, for `note_left_out`


class _Added(NamedTuple):
    written: Written | None  # the new documents; None in a dry run
    names: list[str]
    left_out: dict[str, list[str]]


@dataclass(slots=True)
class _Planner:
    """Plans the edit that gives a context a document for each source."""

    files: dict[str, InputFile]  # the sources, by the names of their documents
    options: InputOptions
    store_options: StoreOptions
    deletes: bool
    write: Callable[[Staged, DocumentInputs, Manifest | None], Written] | None  # stores documents; None in a dry run
    result: _Differences = field(default_factory=_Differences)  # of the last call of `plan`

    def plan(self, base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
        """Compare the sources with the documents of `base`, and store new ones, unless an earlier call has."""
        with StoredText(store, base or EMPTY_ROOT, store_options=self.store_options) as text:
            self.result = result = _compare(text, pages, self.files, self.options, self.deletes)
        new = None
        if names := tuple(file.name for file in result.new):
            new, result.added, left_out = store.once(names, lambda: self._add(store, base), repeatable=True)
            for container, reasons in left_out.items():
                result.left_out.setdefault(container, []).extend(reasons)
        return Edit({} if self.write is None else result.changes, new)

    def _add(self, store: Staged, base: Manifest | None) -> _Added:
        names, left_out = list[str](), dict[str, list[str]]()

        def read() -> Iterator[tuple[str, Pieces, dict[str, Any]]]:
            """Yield the new documents, each read when it is stored."""
            for file, pieces in read_found(self.result.new, self.options, left_out):
                names.append(file.name)
                yield file.name, Pieces(pieces), {"file": file.facts}

        if self.write is not None:
            return _Added(self.write(store, documents(read()), base), names, left_out)
        for _, text, _ in read():
            for _ in text.pieces:  # raises `NotText`
                pass
        return _Added(None, names, left_out)


def _compare(
    text: StoredText, pages: list[DocumentPage], files: dict[str, InputFile], options: InputOptions, deletes: bool
) -> _Differences:
    """Compare sources with documents, and read those that may differ. Of documents with one name, the last stays."""
    stored: dict[str, list[tuple[DocumentPage, int]]] = {}
    for page in pages:
        for i, name in enumerate(page.names()):
            stored.setdefault(name, []).append((page, i))
    if deletes and stored and not files:
        raise NotFound(f"no file in the sources: `delete` would remove all {len(stored):,} documents")
    result = _Differences()
    unread = tuple(f"{name}/" for name, file in files.items() if not file.facts)  # links and contexts in a folder
    for name, all_of_name in stored.items():
        surplus = all_of_name[:-1] if name in files else []
        if deletes and name not in files and options.selects(name) and not name.startswith(unread):
            result.deleted.append(name)
            surplus = all_of_name
        result.changes |= {page.first + i: Change(deletes=True) for page, i in surplus}
    selected = [file for file in files.values() if file.is_selected]
    result.new = [file for file in selected if file.name not in stored]
    known = [(file, *stored[file.name][-1]) for file in selected if file.name in stored]
    _compare_texts(result, text, known, options)
    return result


def _compare_texts(
    result: _Differences, text: StoredText, known: list[tuple[InputFile, DocumentPage, int]], options: InputOptions
) -> None:
    """Compare sources with their documents, and read those whose recorded facts differ, some at once."""
    result.known = len(known)
    unsure = [(file, page, i) for file, page, i in known if page.metadata(i).get("file") != file.facts]
    texts = at_once(lambda item: _changed_text(text, *item, options), unsure, READ_AT_ONCE)
    for (file, page, i), new in zip(unsure, texts, strict=True):
        metadata = encode_metadata({**page.metadata(i), "file": file.facts}, 0)
        if isinstance(new, NotText):
            result.left_out.setdefault(file.container, []).append(f"{file.name} ({new.reason}), stored as it was")
            result.known -= 1
        elif new is None:
            result.changes[page.first + i] = Change(metadata=metadata)
        else:
            result.changed.append(file.name)
            result.changes[page.first + i] = Change(new, metadata)


def _changed_text(
    text: StoredText, file: InputFile, page: DocumentPage, i: int, options: InputOptions
) -> str | NotText | None:
    """The text of a source, None if document `i` of the page has the same text, or the error if it is not text."""
    try:
        new = b"".join(data for data, _ in read_source(file, options)).decode()
    except NotText as error:
        if not file.container:  # a source that the caller names must be text
            raise
        return error
    start, stop = page.starts[i], page.stops[i]
    return None if len(new) == stop - start and text.read(start, stop) == new else new


def _find(
    sources: list[str | os.PathLike[str]], options: InputOptions, own_url: str, remote: StoreOptions, stack: ExitStack
) -> dict[str, InputFile]:
    """The sources by the names of their documents. `stack` closes stores. Raises `InvalidText` if two have one name."""

    def opened(url: str) -> Store:
        return stack.enter_context(open_store_at(url, options_for(url, remote)))

    urls = [item for item in sources if isinstance(item, str) and "://" in item]
    files = list(find_files([Path(item) for item in sources if item not in urls], options))
    for url in urls:
        files += find_objects(url, options, own_url, opened)
    by_name: dict[str, InputFile] = {}
    for file in files:
        other = by_name.setdefault(file.name, file)
        if not other.is_selected:
            by_name[file.name] = file
        elif file.is_selected and file.label != other.label:
            clash = f"{other.label} and {file.label} both give a document named {file.name!r}"
            raise InvalidText(f"{clash}: rename one, or sync them to different URLs")
    return by_name
