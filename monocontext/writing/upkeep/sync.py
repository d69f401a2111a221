"""Update the documents of a context from their sources, whose size, time or ETag their metadata record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from monocontext.errors import InvalidText, NotFound
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import NamedTuple, dataclass
from monocontext.stores import Place, open_store_at, options_for
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store
from monocontext.writing.commit import Staged, commit
from monocontext.writing.decoding import InputOptions, ReadingOptions
from monocontext.writing.documents import READ_AT_ONCE, Change, DocumentInputs, documents
from monocontext.writing.inputs import DocumentPieces
from monocontext.writing.publish import TextWorkers, store_text
from monocontext.writing.segments import Written
from monocontext.writing.sources import InputFile, SourceText, find_files, find_objects, note_left_out, read_texts
from monocontext.writing.splice import EMPTY_ROOT
from monocontext.writing.stored_text import StoredText
from monocontext.writing.upkeep.edit import Edit, edited_root


@dataclass(frozen=True, slots=True)
class Synced:
    """What `sync` changed. Names are in the order of the sources, those of `deleted` in the order of the text."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]  # each once; also names of which only earlier documents were deleted
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
    `include` and `exclude` do not select stay, and so do those whose source is not text any more, with a note. Of
    documents with the name of a source that is read, the last stays; others are deleted, also without `delete`.
    `dry_run`: only return the changes. `executor`: its workers store new documents. `reading`: as for `publish`.

    Reads new sources, and those whose size, time or ETag differs from the recorded one, with the documents of
    these. Changed texts are kept in memory, new ones are not. All changes are one generation. Cost: as for `replace`
    and `append`. Raises `NotFound` for a missing path, or if a new context would have no text, and `InvalidText` for a
    source that is not text, or for two sources with the same name.
    """
    options = InputOptions(**reading)
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    context_options = options_for(url, store_options)
    with ExitStack() as stack:

        def opened(source_url: str) -> Store:
            return stack.enter_context(open_store_at(source_url, options_for(source_url, store_options)))

        store = stack.enter_context(open_store_at(url, context_options))
        files = _find(paths, options, store.url, opened)
        write = partial(store_text, workers=TextWorkers(executor, url, context_options) if executor else None)
        planner = _Planner(files, options, context_options, delete, None if dry_run else write)
        root = commit(store, lambda base, staged: edited_root(base, staged, planner.plan, context_options))
    found, added = planner.differences, planner.added
    assert found is not None  # `commit` calls `plan` at least once
    note_left_out([*found.left_out, *added.left_out], options)
    if root is None and not dry_run:
        raise NotFound(f"no text in the sources, so no context was created at {store.url}: check their paths")
    return Synced(tuple(added.names), tuple(found.changed), tuple(found.deleted), found.unchanged, root)


_Place = tuple[DocumentPage, int]  # of a document: its page, and its index in the page


class _Differences(NamedTuple):
    """The differences between sources and the documents of a root."""

    new: list[InputFile]  # sources without a document
    changes: dict[int, Change]  # by the number of the document
    changed: list[str]  # names of documents with another text
    deleted: list[str]  # names of documents without a source, and of earlier ones with the name of a source
    unchanged: int  # documents with the same text as their source
    left_out: list[SourceText]  # sources that have a document, but are not text any more


class _Added(NamedTuple):
    """The new sources that are text, as documents."""

    written: Written | None = None  # the documents; None in a dry run, and if there are no new sources
    names: Sequence[str] = ()
    left_out: Sequence[SourceText] = ()  # new sources that are not text


@dataclass(slots=True)
class _Planner:
    """Plans the edit that gives a context a document for each source."""

    files: dict[str, InputFile]  # the sources, by the names of their documents
    options: InputOptions
    store_options: StoreOptions
    deletes: bool
    write: Callable[[Staged, DocumentInputs, Manifest | None], Written] | None  # stores documents; None in a dry run
    differences: _Differences | None = None  # set by each call of `plan`, as is `added`
    added: _Added = _Added()

    def plan(self, base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
        """Compare the sources with the documents of `base`, and store new ones unless an earlier call has done so."""
        with StoredText(store, base or EMPTY_ROOT, store_options=self.store_options) as text:
            self.differences = self._compare(text, pages)
        new, changes = self.differences.new, self.differences.changes
        names = tuple(file.name for file in new)
        self.added = store.once(names, lambda: self._add(store, base, new), repeatable=True) if names else _Added()
        return Edit({} if self.write is None else changes, self.added.written)

    def _add(self, store: Staged, base: Manifest | None, new: list[InputFile]) -> _Added:
        """Store new sources, or in a dry run only read them."""
        names, left_out = list[str](), list[SourceText]()

        def read() -> Iterator[tuple[str, DocumentPieces, dict[str, Any]]]:
            """Yield the new documents, each read when it is stored."""
            for item in read_texts(new, self.options):
                if item.not_text:
                    left_out.append(item)
                    continue
                names.append(item.source.name)
                yield item.source.name, DocumentPieces(item.pieces), {"file": item.source.facts}

        if self.write is not None:
            return _Added(self.write(store, documents(read()), base), names, left_out)
        for _, text, _ in read():
            for _ in text.pieces:  # raises `NotText`
                pass
        return _Added(None, names, left_out)

    def _compare(self, text: StoredText, pages: list[DocumentPage]) -> _Differences:
        """Compare sources with documents, and read those that may differ. Of documents of one name, the last counts."""
        stored: dict[str, list[_Place]] = {}  # by name
        for page in pages:
            for i, name in enumerate(page.names()):
                stored.setdefault(name, []).append((page, i))
        if self.deletes and stored and not self.files:
            raise NotFound(f"no files found: `delete` would remove all {len(stored):,} documents: check the paths")
        selected = [file for file in self.files.values() if file.is_selected]
        new = [file for file in selected if file.name not in stored]
        known = [(file, *stored[file.name][-1]) for file in selected if file.name in stored]
        unsure = [(file, page, i) for file, page, i in known if page.metadata(i).get("file") != file.facts]
        results = at_once(lambda item: self._read_again(text, *item), unsure, READ_AT_ONCE)
        left_out = [result for result in results if isinstance(result, SourceText)]
        pairs = list(zip(unsure, results, strict=True))
        changes = {page.first + i: change for (_, page, i), change in pairs if isinstance(change, Change)}
        changed = [
            file.name for (file, _, _), change in pairs if isinstance(change, Change) and change.text is not None
        ]
        updated = {file.name for file in selected} - {item.source.name for item in left_out}
        deleted = self._find_deleted(stored, updated)
        changes |= {page.first + i: Change(deletes=True) for places in deleted.values() for page, i in places}
        unchanged = len(known) - len(changed) - len(left_out)
        return _Differences(new, changes, changed, list(deleted), unchanged, left_out)

    def _read_again(self, text: StoredText, file: InputFile, page: DocumentPage, i: int) -> Change | SourceText:
        """Read a source whose facts changed. Returns the change of its document, which has index `i` in the page, or
        the source with the reason if it is not text any more."""
        source_text = next(read_texts([file], self.options))
        if source_text.not_text:
            return source_text._replace(not_text=f"{source_text.not_text}; its earlier text stays")
        new = b"".join(data for data, _ in source_text.pieces).decode()
        start, stop = page.starts[i], page.stops[i]
        is_same = len(new) == stop - start and text.read(start, stop) == new
        return Change(None if is_same else new, encode_metadata({**page.metadata(i), "file": file.facts}, 0))

    def _find_deleted(self, stored: dict[str, list[_Place]], updated: set[str]) -> dict[str, list[_Place]]:
        """The documents to delete, by name: with `deletes` those without a source; earlier ones of `updated` names."""
        unread = tuple(f"{name}/" for name, file in self.files.items() if not file.facts)  # links, contexts in folders
        results: dict[str, list[_Place]] = {}
        for name, places in stored.items():
            is_gone = name not in self.files and self.options.selects(name) and not name.startswith(unread)
            if self.deletes and is_gone:
                results[name] = places
            elif name in updated and len(places) > 1:
                results[name] = places[:-1]
        return results


def _find(
    sources: list[str | os.PathLike[str]], options: InputOptions, context_url: str, opened: Callable[[str], Store]
) -> dict[str, InputFile]:
    """The sources by document name. `opened` opens a store by its URL. Raises `InvalidText` if two share a name."""
    urls = [item for item in sources if isinstance(item, str) and "://" in item]
    files = list(find_files([Path(item) for item in sources if item not in urls], options))
    for url in urls:
        files += find_objects(url, options, context_url, opened)
    by_name: dict[str, InputFile] = {}
    for file in files:
        other = by_name.setdefault(file.name, file)
        if not other.is_selected:
            by_name[file.name] = file
        elif file.is_selected and file.label != other.label:
            clash = f"{other.label} and {file.label} both give a document named {file.name!r}"
            raise InvalidText(f"{clash}: rename one, or sync them to different URLs")
    return by_name
