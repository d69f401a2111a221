"""Name pages and filters by directories, so that a root stays small at any size of the text.

`folded` moves entries of a root that has become large into directories; the last ones stay in the root, for appends.
`opened` is the reverse: a root that names everything itself, in memory only, for work that reads all of it anyway.

Invariant: a directory is full but for the last of its level, so entries are stored again only while that fills up.
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
"""Size of a root's names of pages and filters; some 160 pages with their filters, 160 GB of text."""
MOST_BYTES = 64 << 10
"""The size of a root with directories, without them: the two ends of the text, 16 KB, and small parts."""
PAGES = 2048
"""Entries of a directory of pages: 80 KB, as much as a page. One names 2 TB of text, 50 name 100 TB."""
FILTERS = 64
"""Entries of a directory of filters: some 60 KB. A search looks up the filters of one, 1 TB of text, at once."""
KEPT_PAGES = 16
"""Last pages that stay in the root: appends store them again."""
KEPT_FILTERS = 8
"""The number of filters in a root, which take up to 1.4 KB each."""

Directory = PageDirectory | FilterDirectory | DocumentDirectory
Get = Callable[[Directory], bytes]
Put = Callable[[str, bytes], object]
T = TypeVar("T")


# -- a root that names everything --------------------------------------------------------------------------------------


def opened(root: Manifest, get: Get) -> Manifest:
    """The root with all pages and filters instead of directories (1 GET for each of these). Never committed as it is.

    Takes some 0.5 KB of memory for each GB of text, and 1.4 KB for each 16. Raises `DamagedData`, `NotFound`.
    """
    if not root.has_directories:
        return root
    pages, filters = list[PageRef](), list[FilterRef]()
    for page in root.pages:
        _open_pages(page, get, pages)
    for directory in root.filter_directories:
        _open_filters(directory, get, filters)
    return replace(
        root,
        pages=tuple(pages),
        filters=(*filters, *root.filters),
        filter_directories=(),
        documents=opened_documents(root.documents, get),
    )


def _open_pages(entry: PageRef, get: Get, found: list[PageRef]) -> None:
    if isinstance(entry, PageDirectory):
        for each in pages_in(entry, get(entry), found[-1] if found else None):
            _open_pages(each, get, found)
    else:
        found.append(entry)


def _open_filters(entry: FilterRef | FilterDirectory, get: Get, found: list[FilterRef]) -> None:
    if isinstance(entry, FilterDirectory):
        for each in filters_in(entry, get(entry)):
            _open_filters(each, get, found)
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
        found = (last.documents, last.characters, last.newlines, last.bytes)
        if found != (ref.documents, ref.characters, ref.newlines, ref.bytes):
            raise ValueError(f"counts differ: found {found}")
    except ValueError as error:
        raise DamagedData(f"{ref.key}: {error}") from None
    return entries


def opened_documents(ref: DocumentsRef | None, get: Get) -> DocumentsRef | None:
    """The documents with all their pages (1 GET for each directory, of 8 million documents)."""
    if ref is None or not isinstance(ref.pages[0], DocumentDirectory):
        return ref
    found: list[DocumentPageRef] = []

    def add(entry: DocumentPageRef) -> None:
        if isinstance(entry, DocumentDirectory):
            for each in document_pages_in(entry, get(entry), found[-1] if found else None):
                add(each)
        else:
            found.append(entry)

    for entry in ref.pages:
        add(entry)
    return replace(ref, pages=tuple(found))


# -- a root that is small ----------------------------------------------------------------------------------------------


def folded(root: Manifest, put: Put, get: Get) -> Manifest:
    """The root with its first pages and filters in directories where it would be large without (1 PUT for each
    directory, 1 GET for one that is filled up); the root itself where it is small.

    A root with directories has at most `MOST_BYTES`: copies of text and of last pages give way.
    """
    for level in range(MOST_LEVELS):
        if _named_bytes(root) <= MOST_NAMED_BYTES:
            break
        root = _fold(root, level, put, get)
    if not root.has_directories:
        return root
    ends = inline.shorter(root.head, root.tail)
    if _is_large(root):
        root = replace(root, last_page=None)
    if _is_large(root):
        root = replace(root, head=ends.head, tail=ends.tail)
    documents = root.documents
    if documents and documents.last_page is not None and _is_large(root):
        last = replace(documents.pages[-1], id=fresh_id())
        put(documents_key(last.id), documents.last_page)
        root = replace(root, documents=replace(documents, pages=(*documents.pages[:-1], last), last_page=None))
    return root


def _is_large(root: Manifest) -> bool:
    return len(root.to_bytes()) > MOST_BYTES


def _named_bytes(root: Manifest) -> int:
    """The size of the parts that grow with the text."""
    of_documents = root.documents.pages if root.documents else ()
    named: tuple[Any, ...] = (*root.pages, *root.filter_directories, *root.filters, *of_documents)
    return sum(len(json.dumps(as_object(ref))) + 6 for ref in named)


def _fold(root: Manifest, level: int, put: Put, get: Get) -> Manifest:
    """The root with the entries of one level in directories, but for the last ones."""
    kept_pages, kept_filters = (1, 1) if level else (KEPT_PAGES, KEPT_FILTERS)

    def page_directory(entries: Sequence[PageRef]) -> PageRef:
        last, pages = entries[-1], sum(one.pages if isinstance(one, PageDirectory) else 1 for one in entries)
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

    pages = _fold_entries(
        root.pages, level, kept_pages, PAGES, page_directory, lambda ref, before: pages_in(ref, get(ref), before)
    )
    refs: tuple[FilterRef | FilterDirectory, ...] = (*root.filter_directories, *root.filters)
    filters = _fold_entries(
        refs, level, kept_filters, FILTERS, filter_directory, lambda ref, before: filters_in(ref, get(ref))
    )  # fmt: skip
    documents = root.documents
    if documents:
        of_documents = _fold_entries(
            documents.pages, level, kept_pages, PAGES, document_directory,
            lambda ref, before: document_pages_in(ref, get(ref), before),
        )  # fmt: skip
        documents = replace(documents, pages=of_documents)
    folded_root = replace(
        root,
        pages=pages,
        filter_directories=tuple(ref for ref in filters if isinstance(ref, FilterDirectory)),
        filters=tuple(ref for ref in filters if isinstance(ref, FilterRef)),
        documents=documents,
    )
    return root if folded_root == root else folded_root


def _fold_entries(
    entries: tuple[T, ...],
    level: int,
    kept: int,
    most: int,
    make: Callable[[Sequence[T]], T],
    read: Callable[[Any, Any], Sequence[T]],
) -> tuple[T, ...]:
    """The entries of a root, with all but the last entries of a level moved into directories of at most `most`."""
    first = sum(level_of(entry) > level for entry in entries)
    stop = first + sum(level_of(entry) == level for entry in entries[first:]) - kept
    if stop - first < 2:
        return entries
    higher, taken = list(entries[:first]), list(entries[first:stop])
    short: Any = higher[-1] if higher else None
    if short is not None and short.level == level + 1 and short.entries < most:
        higher.pop()
        taken = [*read(short, higher[-1] if higher else None), *taken]
    return (*higher, *(make(taken[at : at + most]) for at in range(0, len(taken), most)), *entries[stop:])


def _store(entries: Sequence[Any], put: Put) -> tuple[str, int, int]:
    """Store a directory: its id, length and checksum."""
    rows = json.dumps([as_object(entry) for entry in entries], separators=(",", ":")).encode()
    data = zstandard.ZstdCompressor(level=3, write_content_size=True).compress(rows)
    name = fresh_id()
    put(directory_key(name), data)
    return name, len(data), google_crc32c.value(data)
