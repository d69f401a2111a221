"""Move the entries of a large root into directories, so that a root stays small at any size of the text, and back.

`use_directories` moves entries; the last ones stay in the root, for appends. `expand` is the reverse: it makes a root
that names everything itself, in memory only, for work that reads all of it anyway.

Invariant: each directory is full, except the last one of its level. So an entry is stored again only until its
directory is full.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import google_crc32c
import zstandard

from monocontext.errors import DamagedData
from monocontext.format import inline
from monocontext.format.directories import check_levels, entries_in, filters_in, pages_in
from monocontext.format.document_refs import (
    DocumentDirectory,
    DocumentPageRef,
    DocumentsRef,
    check_document_pages,
    document_page_refs,
    documents_key,
)
from monocontext.format.manifest import Manifest
from monocontext.format.refs import (
    MOST_LEVELS,
    FilterDirectory,
    FilterRef,
    PageDirectory,
    PageRef,
    as_object,
    directory_key,
    fresh_id,
    level_of,
)
from monocontext.records import replace

MOST_NAMED_BYTES = 44 << 10
"""The most that pages and filters may take in a root without directories: some 160 pages with their filters, 160 GB of
text."""
_MOST_BYTES = 64 << 10
"""The most that a root with directories may take: the two ends of the text, up to 16 KB, and small parts."""
PAGES = 2048
"""The most entries in a directory of pages: 80 KB, as much as a page. One names 2 TB of text, 50 name 100 TB."""
FILTERS = 64
"""The most entries in a directory of filters: some 60 KB. A search uses the filters of one, 1 TB of text, at once."""
KEPT_PAGES = 16
"""The number of last pages that stay in the root, since appends store them again."""
KEPT_FILTERS = 8
"""The number of last filters that stay in the root, which take up to 1.4 KB each."""

Directory = PageDirectory | FilterDirectory | DocumentDirectory
Get = Callable[[Directory], bytes]
Put = Callable[[str, bytes], object]
Parse = Callable[[Any, bytes, Any], Sequence[Any]]
"""A function that returns the entries of a directory, given its own entry, its bytes and the entry before those."""
T = TypeVar("T")


def expand(root: Manifest, get: Get) -> Manifest:
    """The root with all pages and filters instead of directories (1 GET for each directory). It must not be committed.

    Takes some 0.5 KB of memory for each GB of text, and 1.4 KB for each 16 GB. Raises `DamagedData`, `NotFound`.
    """
    if not root.has_directories:
        return root
    pages, filters = list[PageRef](), list[FilterRef]()
    _expand_entries(root.pages, pages_in, get, pages)
    _expand_entries(root.filter_directories, filters_in, get, filters)
    return replace(
        root,
        pages=tuple(pages),
        filters=(*filters, *root.filters),
        filter_directories=(),
        documents=expand_documents(root.documents, get),
    )


def expand_documents(ref: DocumentsRef | None, get: Get) -> DocumentsRef | None:
    """The documents with all their pages (1 GET for each directory, of 8 million documents)."""
    if ref is None or not isinstance(ref.pages[0], DocumentDirectory):
        return ref
    pages: list[DocumentPageRef] = []
    _expand_entries(ref.pages, document_pages_in, get, pages)
    return replace(ref, pages=tuple(pages))


def _expand_entries(entries: Sequence[Any], parse: Parse, get: Get, found: list[Any]) -> None:
    """Add to `found` the pages or filters that these entries are or name, in order."""
    for entry in entries:
        if level_of(entry):
            _expand_entries(parse(entry, get(entry), found[-1] if found else None), parse, get, found)
        else:
            found.append(entry)


def document_pages_in(
    ref: DocumentDirectory, data: bytes, before: DocumentPageRef | None
) -> tuple[DocumentPageRef, ...]:
    """The entries of a directory of pages of documents. Raises `DamagedData`."""
    entries: tuple[DocumentPageRef, ...] = entries_in(ref, data, document_page_refs)
    try:
        check_document_pages(entries, before)
        check_levels(ref, entries)
        last = entries[-1]
        result = (last.documents, last.characters, last.newlines, last.bytes)
        if result != (ref.documents, ref.characters, ref.newlines, ref.bytes):
            raise ValueError(f"counts differ from the root: found {result}")
    except ValueError as error:
        raise DamagedData(f"{ref.key}: {error}") from None
    return entries


def use_directories(root: Manifest, put: Put, get: Get) -> Manifest:
    """A large root with its first pages and filters in directories; a small root as it is.

    Costs 1 PUT for each directory, and 1 GET for each that more entries are added to. A root with directories has at
    most `_MOST_BYTES`: copies of text are shortened, and copies of last pages left out.
    """
    for level in range(MOST_LEVELS):
        if _named_bytes(root) <= MOST_NAMED_BYTES:
            break
        root = _move_level(root, level, put, get)
    if not root.has_directories:
        return root
    if _is_large(root):
        root = replace(root, last_page=None)
    if _is_large(root):
        root = replace(root, **inline.shorter(root))
    documents = root.documents
    if documents and documents.last_page is not None and _is_large(root):
        last = replace(documents.pages[-1], id=fresh_id())
        put(documents_key(last.id), documents.last_page)
        root = replace(root, documents=replace(documents, pages=(*documents.pages[:-1], last), last_page=None))
    return root


def _is_large(root: Manifest) -> bool:
    return len(root.to_bytes()) > _MOST_BYTES


def _named_bytes(root: Manifest) -> int:
    """The size of the parts of a root that grow with the text."""
    document_pages = root.documents.pages if root.documents else ()
    named: tuple[Any, ...] = (*root.pages, *root.filter_directories, *root.filters, *document_pages)
    return sum(len(json.dumps(as_object(ref))) + 6 for ref in named)


def _move_level(root: Manifest, level: int, put: Put, get: Get) -> Manifest:
    """The root with the entries of one level in directories, except the last ones."""
    kept_pages, kept_filters = (1, 1) if level else (KEPT_PAGES, KEPT_FILTERS)

    def page_directory(entries: Sequence[PageRef]) -> PageRef:
        last, pages = entries[-1], sum(entry.pages if isinstance(entry, PageDirectory) else 1 for entry in entries)
        counts = (last.frames, last.bytes, last.characters, last.newlines)
        return PageDirectory(*_store(entries, put), *counts, len(entries), level + 1, pages)

    def filter_directory(entries: Sequence[FilterRef | FilterDirectory]) -> FilterDirectory:
        first = entries[0].first_frame
        frames = entries[-1].stop_frame - first
        return FilterDirectory(*_store(entries, put), first, frames, len(entries), level + 1)

    def document_directory(entries: Sequence[DocumentPageRef]) -> DocumentPageRef:
        first, last = entries[0], entries[-1]
        counts = (last.documents, first.start, first.start_newline, last.characters, last.newlines, last.bytes)
        return DocumentDirectory(*_store(entries, put), *counts, len(entries), level + 1)

    pages = _move_entries(root.pages, level, kept_pages, PAGES, page_directory, pages_in, get)
    rows, others = _in_a_row(root.filters, root.filter_directories)
    refs: tuple[FilterRef | FilterDirectory, ...] = (*root.filter_directories, *rows)
    filters = _move_entries(refs, level, kept_filters, FILTERS, filter_directory, filters_in, get)
    documents = root.documents
    if documents:
        moved = _move_entries(documents.pages, level, kept_pages, PAGES, document_directory, document_pages_in, get)
        documents = replace(documents, pages=moved)
    return replace(
        root,
        pages=pages,
        filter_directories=tuple(ref for ref in filters if isinstance(ref, FilterDirectory)),
        filters=(*(ref for ref in filters if isinstance(ref, FilterRef)), *others),
        documents=documents,
    )


def _in_a_row(
    refs: Sequence[FilterRef], directories: Sequence[FilterDirectory]
) -> tuple[list[FilterRef], list[FilterRef]]:
    """The filters of dense parts of the text that follow each other and the directories, which directories may name,
    and the others: those of edits, whose frames lie between the frames of others."""
    stop = directories[-1].stop_frame if directories else 0
    rows: list[FilterRef] = []
    others: list[FilterRef] = []
    for ref in sorted(refs, key=lambda ref: ref.first_frame):
        is_dense = 2 * ref.frames >= ref.stop_frame - ref.first_frame
        if is_dense and ref.first_frame >= stop:
            rows.append(ref)
            stop = ref.stop_frame
        else:
            others.append(ref)
    return rows, others


def _move_entries(
    entries: tuple[T, ...],
    level: int,
    kept: int,
    most: int,
    store: Callable[[Sequence[T]], T],
    parse: Parse,
    get: Get,
) -> tuple[T, ...]:
    """The entries of a root, with those of a level, except the last `kept`, in directories of at most `most` entries.

    `store` stores a directory and returns its entry. The last directory is stored again if it is not full.
    """
    first = sum(level_of(entry) > level for entry in entries)
    stop = first + sum(level_of(entry) == level for entry in entries[first:]) - kept
    if stop - first < 2:
        return entries
    higher, moved = list(entries[:first]), list(entries[first:stop])
    last: Any = higher[-1] if higher else None
    if last is not None and last.level == level + 1 and last.entries < most:
        higher.pop()
        moved = [*parse(last, get(last), higher[-1] if higher else None), *moved]
    directories = [store(moved[offset : offset + most]) for offset in range(0, len(moved), most)]
    return (*higher, *directories, *entries[stop:])


def _store(entries: Sequence[Any], put: Put) -> tuple[str, int, int]:
    """Store a directory; returns its id, length and checksum."""
    rows = json.dumps([as_object(entry) for entry in entries], separators=(",", ":")).encode()
    data = zstandard.ZstdCompressor(level=3, write_content_size=True).compress(rows)
    name = fresh_id()
    put(directory_key(name), data)
    return name, len(data), google_crc32c.value(data)
