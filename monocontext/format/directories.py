"""Move the entries of a large root into directories and back, so that roots stay small however large their texts are.

A directory is an object that names neighbouring index pages, filters or pages of documents: a JSON list of entries as
in a root, in one zstd frame. Directories of level 2 name those of level 1, and so on. `use_directories` moves entries;
the last ones stay in the root, since appends change them. `expand` does the reverse: it makes a root that names
everything itself, in memory only, for work that reads all of it anyway.

Each directory is full, except the last one of its level: an entry is stored again only until its directory is full.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import google_crc32c
import zstandard

from monocontext.errors import DamagedData
from monocontext.format import inline, refs
from monocontext.format.index import check_stored
from monocontext.format.manifest import Manifest
from monocontext.records import dataclass, replace

MOST_NAMED_BYTES = 44 << 10
"""The most bytes of entries in a root without directories: some 160 pages with their filters, 160 GB of text."""
_MOST_ROOT_BYTES = 64 << 10
"""The most bytes of a root with directories: the entries, the two ends of the text (up to 16 KB), small fields."""
DIRECTORY_PAGES = 2048
"""The most entries in a directory of pages: 80 KB, like a page. One directory names 2 TB of text."""
DIRECTORY_FILTERS = 64
"""The most entries in a directory of filters: some 60 KB. A search loads one, for 1 TB of text, at a time."""
KEPT_PAGES = 16  # the number of last pages that stay in the root, since appends store them again
KEPT_FILTERS = 8  # the number of last filters that stay in the root, which take up to 1.4 KB each

Directory = refs.PageDirectory | refs.FilterDirectory | refs.DocumentDirectory
Get = Callable[[Directory], bytes]  # reads the object of a directory (1 GET)
Put = Callable[[str, bytes], object]  # stores an object under a key (1 PUT)
Entries = tuple[Any, ...]  # first directories, by falling level, then pages, filters or pages of documents


def rows_text(data: bytes, key: str) -> bytes:
    """The JSON text of a directory. Raises `DamagedData`, whose message names the object `key`."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 < size <= refs.MOST_PAGE_BYTES:
            raise DamagedData(f"{key}: expected 1 to {refs.MOST_PAGE_BYTES:,} bytes, its zstd header says {size:,}")
        return bytes(zstandard.ZstdDecompressor().decompress(data))
    except zstandard.ZstdError as error:
        raise DamagedData(f"{key}: not a directory: {error}") from None


def entries_in(ref: Directory, data: bytes, before: Any = None) -> Entries:
    """The entries of a stored directory; filters of unknown kinds are left out. `before`: the page before them, if any.
    Raises `DamagedData`."""
    check_stored(ref.key, data, ref)
    text = rows_text(data, ref.key)
    try:
        rows = json.loads(text)
        refs.require(isinstance(rows, list) and len(rows) == ref.entries, f"expected {ref.entries} entries")
        entries = _filters_in(ref, rows) if isinstance(ref, refs.FilterDirectory) else _pages_in(ref, rows, before)
        lower = ref.level - 1
        refs.require(all(refs.level_of(entry) == lower for entry in entries), f"expected entries of level {lower}")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DamagedData(f"{ref.key}: not the directory that the root names: {error}") from None
    return entries


def _filters_in(ref: refs.FilterDirectory, rows: list[Any]) -> Entries:
    if ref.level > 1:
        entries: Entries = refs.parse_entries(rows, refs.FilterDirectory, refs.FilterDirectory)
        refs.check_filter_directories(entries, ref.first_frame)
    else:
        entries = refs.parse_filters(rows)
        refs.check_filters(entries, ref.stop_frame)
    is_outside = any(entry.first_frame < ref.first_frame or entry.stop_frame > ref.stop_frame for entry in entries)
    refs.require(not is_outside, f"expected filters of frames {ref.first_frame} to {ref.stop_frame}, found others")
    return entries


def _pages_in(ref: refs.PageDirectory | refs.DocumentDirectory, rows: list[Any], before: Any) -> Entries:
    if isinstance(ref, refs.PageDirectory):
        entries = refs.parse_entries(rows, refs.PageRef, refs.PageDirectory)
        refs.check_pages(entries, before)
        refs.require(ref.pages == _pages_below(entries), f"expected {ref.pages} pages, found {_pages_below(entries)}")
    else:
        entries = refs.parse_entries(rows, refs.DocumentPageRef, refs.DocumentDirectory)
        refs.check_document_pages(entries, before)
    counted = "frames" if isinstance(ref, refs.PageDirectory) else "documents"
    for name in (counted, "bytes", "characters", "newlines"):
        expected, found = getattr(ref, name), getattr(entries[-1], name)
        refs.require(expected == found, f"{name} differ: expected {expected}, found {found}")
    return entries


def _pages_below(entries: Entries) -> int:
    return sum(entry.pages if isinstance(entry, refs.PageDirectory) else 1 for entry in entries)


def expand(root: Manifest, get: Get) -> Manifest:
    """The root with each directory replaced by the pages or filters below it (1 GET for each directory; 0.6 KB of
    memory for each GB of text). It may be too large to commit. Raises `DamagedData`, `NotFound`."""
    if not root.has_directories:
        return root
    return replace(
        root,
        pages=_expanded(root.pages, get),
        filters=(*_expanded(root.filter_directories, get), *root.filters),
        filter_directories=(),
        documents=root.documents and expand_documents(root.documents, get),
    )


def expand_documents(ref: refs.DocumentsRef, get: Get) -> refs.DocumentsRef:
    """`ref` with each directory replaced by the pages below it (1 GET for each 8 million documents)."""
    return replace(ref, pages=_expanded(ref.pages, get))


def _expanded(entries: Entries, get: Get, before: Any = None) -> Entries:
    """These entries in order, each directory replaced by the pages or filters that it names, at any depth."""
    result: list[Any] = []
    for entry in entries:
        previous = result[-1] if result else before
        result += _expanded(entries_in(entry, get(entry), previous), get, previous) if refs.level_of(entry) else [entry]
    return tuple(result)


def use_directories(root: Manifest, put: Put, get: Get) -> Manifest:
    """A large root with its first pages and filters moved into directories; a small root unchanged (1 PUT for each new
    directory, and 1 GET for each that is extended). To keep a root with directories below `_MOST_ROOT_BYTES`, its
    copies of text are shortened, and its copies of last pages left out."""
    for level in range(refs.MOST_LEVELS):
        if _named_bytes(root) <= MOST_NAMED_BYTES:
            break
        root = _move_level(root, level, put, get)
    if not root.has_directories or not _is_large(root):
        return root
    root = replace(root, last_page=None)
    if _is_large(root):
        root = replace(root, **inline.shorter_end_copies(root))
    documents = root.documents
    if documents and documents.last_page is not None and _is_large(root):
        last = replace(documents.pages[-1], id=refs.fresh_id())
        put(refs.documents_key(last.id), documents.last_page)
        root = replace(root, documents=replace(documents, pages=(*documents.pages[:-1], last), last_page=None))
    return root


def _is_large(root: Manifest) -> bool:
    return len(root.to_bytes()) > _MOST_ROOT_BYTES


def _named_bytes(root: Manifest) -> int:
    """The size of the parts of a root that grow with the text."""
    document_pages = root.documents.pages if root.documents else ()
    named: Entries = (*root.pages, *root.filter_directories, *root.filters, *document_pages)
    return sum(len(json.dumps(refs.as_object(ref))) + 6 for ref in named)


def _move_level(root: Manifest, level: int, put: Put, get: Get) -> Manifest:
    """The root with the entries of one level moved into directories, except the last ones."""
    mover = _Mover(level, put, get)
    documents, (movable, others) = root.documents, _movable_filters(root)
    filters = mover.move((*root.filter_directories, *movable), KEPT_FILTERS, DIRECTORY_FILTERS)
    return replace(
        root,
        pages=mover.move(root.pages, KEPT_PAGES, DIRECTORY_PAGES),
        filter_directories=tuple(ref for ref in filters if isinstance(ref, refs.FilterDirectory)),
        filters=(*(ref for ref in filters if isinstance(ref, refs.FilterRef)), *others),
        documents=documents and replace(documents, pages=mover.move(documents.pages, KEPT_PAGES, DIRECTORY_PAGES)),
    )


@dataclass(frozen=True, slots=True)
class _Mover:
    """Moves the entries of one level into directories of the next one."""

    level: int
    put: Put
    get: Get

    def move(self, entries: Entries, kept: int, most_entries: int) -> Entries:
        """These entries, with those of the level moved into directories of at most `most_entries`. The last `kept` ones
        stay; above level 0, only the last one does. A directory that is not full is stored again, with more entries."""
        first = sum(refs.level_of(entry) > self.level for entry in entries)
        count = sum(refs.level_of(entry) == self.level for entry in entries[first:])
        stop = first + count - (1 if self.level else kept)
        if stop - first < 2:
            return entries
        directories, moved = list(entries[:first]), entries[first:stop]
        if directories and directories[-1].level == self.level + 1 and directories[-1].entries < most_entries:
            last = directories.pop()
            moved = (*entries_in(last, self.get(last), directories[-1] if directories else None), *moved)
        directories += (self._store(moved[i : i + most_entries]) for i in range(0, len(moved), most_entries))
        return (*directories, *entries[stop:])

    def _store(self, entries: Entries) -> Directory:
        """Store a directory of these entries (1 PUT), and return the directory's entry."""
        rows = json.dumps([refs.as_object(entry) for entry in entries], separators=(",", ":")).encode()
        data = zstandard.ZstdCompressor(level=3, write_content_size=True).compress(rows)
        id = refs.fresh_id()
        self.put(refs.directory_key(id), data)
        stored = id, len(data), google_crc32c.value(data)
        first, last, count, level = entries[0], entries[-1], len(entries), self.level + 1
        if isinstance(first, refs.PageRef):
            counts = (last.frames, last.bytes, last.characters, last.newlines)
            return refs.PageDirectory(*stored, *counts, count, level, _pages_below(entries))
        if isinstance(first, refs.DocumentPageRef):
            ends = (last.documents, first.start, first.start_newline, last.characters, last.newlines, last.bytes)
            return refs.DocumentDirectory(*stored, *ends, count, level)
        frames = last.stop_frame - first.first_frame
        return refs.FilterDirectory(*stored, first.first_frame, frames, count, level)


def _movable_filters(root: Manifest) -> tuple[list[refs.FilterRef], list[refs.FilterRef]]:
    """The filters that directories may name, and the others. Those that may be named cover dense parts of the text, in
    order, after the directories. The others come from edits: their frames lie between those of other filters."""
    stop = root.filter_directories[-1].stop_frame if root.filter_directories else 0
    movable: list[refs.FilterRef] = []
    others: list[refs.FilterRef] = []
    for ref in sorted(root.filters, key=lambda ref: ref.first_frame):
        is_dense = 2 * ref.frames >= ref.stop_frame - ref.first_frame
        if is_dense and ref.first_frame >= stop:
            movable.append(ref)
            stop = ref.stop_frame
        else:
            others.append(ref)
    return movable, others
