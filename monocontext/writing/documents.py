"""Documents of a text: those that a caller gives, the rows that describe them, and their pages and tables of names.

publish({"name": text, ...}, url)
publish(documents([(name, text, metadata), ...]), url)
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add, sub
from typing import Any

from monocontext.format.directories import expand_documents
from monocontext.format.document_names import HASH_BYTES, name_hash
from monocontext.format.documents import (
    DOCUMENTS_PER_PAGE,
    HEAP_BYTES,
    INLINE_BYTES,
    DocumentPage,
    DocumentRow,
    encode_metadata,
    encode_name,
    encode_page,
    page_ref,
)
from monocontext.format.manifest import Manifest
from monocontext.format.refs import (
    DocumentDirectory,
    DocumentPageRef,
    DocumentsRef,
    NameTableRef,
    documents_key,
    fresh_id,
)
from monocontext.records import NamedTuple, replace
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store

_NO_PAGE = DocumentPageRef("", 0, 0, 0, 0, 0, 0, 0, 0)
_REQUESTS = 8  # the most requests at once


class DocumentInputs(NamedTuple):
    """Documents to publish, in order: the result of `documents`."""

    items: Iterable[Any]


def documents(items: Iterable[Any] | Mapping[str, Any]) -> DocumentInputs:
    """Documents for `publish` and `append`: a mapping of name to text, or an iterable, which is read once.

    An item is a text, or a tuple (name, text) or (name, text, metadata). A text is a `str` or the path of a file,
    metadata a mapping that JSON can hold, encoded in at most 64 KiB. A document without a name (None) gets its number
    as its name. If documents share a name, a lookup by name finds the last one.

    A document that does not end in a newline gets one after it, which belongs to no document. Raises `InvalidText` for
    anything that is not a document, before anything is committed.
    """
    return DocumentInputs(items.items() if isinstance(items, Mapping) else items)


class DocumentWriter:
    """Makes the pages of documents of a text, from old pages and single documents, which are given in their order."""

    def __init__(self, store: Store, pages: Iterable[DocumentPageRef] = ()):
        self._store = store
        self.pages = list(pages)  # the pages so far
        self.last_page: bytes | None = None  # a copy of the last page, if it is one that only the root has
        self.rows: list[DocumentRow] = []  # the documents after these pages
        self.end = (self.pages[-1].characters, self.pages[-1].newlines) if self.pages else (0, 0)
        """The characters and newlines before the end of the last document."""
        self._heap_bytes = 0  # bytes of names and metadata in `rows`
        self._unstored: tuple[str, bytes] | None = None
        """The last page, until another one follows: a small one stays in the root."""

    def add(self, name: bytes, metadata: bytes, start: tuple[int, int], size: tuple[int, int, int]) -> None:
        """Add a document. `start`: characters and newlines before it; `size`: its characters, bytes and newlines."""
        gap, gap_newlines = start[0] - self.end[0], start[1] - self.end[1]
        self.end = start[0] + size[0], start[1] + size[2]
        self.rows.append(DocumentRow(gap, gap_newlines, *size, name, metadata))
        self._heap_bytes += len(name) + len(metadata)
        if len(self.rows) >= DOCUMENTS_PER_PAGE or self._heap_bytes >= HEAP_BYTES:
            self.end_page()

    def add_rows(self, rows: Iterable[DocumentRow], start: tuple[int, int]) -> None:
        """Add documents. The gap before the first counts from `start`: the characters and newlines before it."""
        for row in rows:
            start = start[0] + row.gap, start[1] + row.gap_newlines
            self.add(row.name, row.metadata, start, (row.characters, row.text_bytes, row.newlines))
            start = start[0] + row.characters, start[1] + row.newlines

    def keep(
        self, page: DocumentPageRef, before: DocumentPageRef | None, shift: tuple[int, int], copy: bytes | None = None
    ) -> None:
        """Add an old page, which followed `before`, moved by `shift`: numbers of characters and newlines."""
        self.end_page()
        self.store_page()
        old, new = before or _NO_PAGE, self.pages[-1] if self.pages else _NO_PAGE
        moved = replace(
            page,
            documents=new.documents + page.documents - old.documents,
            start=page.start + shift[0],
            start_newline=page.start_newline + shift[1],
            characters=page.characters + shift[0],
            newlines=page.newlines + shift[1],
            bytes=new.bytes + page.bytes - old.bytes,
        )
        self.pages.append(moved)
        self.end, self.last_page = (moved.characters, moved.newlines), copy

    def end_page(self) -> None:
        """End the page of the documents that were added since the last one (1 PUT for the page before it)."""
        if self.rows:
            self.store_page()
            before = self.pages[-1] if self.pages else _NO_PAGE
            data = encode_page(self.rows)
            ref = page_ref(data, self.rows, before, before.characters, before.newlines)
            self.pages.append(replace(ref, id=fresh_id()))
            self._unstored = documents_key(self.pages[-1].id), data
            self.rows, self._heap_bytes, self.last_page = [], 0, None

    def store_page(self) -> None:
        """Store the page that was ended last."""
        if self._unstored:
            self._store.put(*self._unstored)
            self._unstored = None

    def finish(self) -> None:
        """Store all pages but a small last one."""
        self.end_page()
        if self._unstored and len(self._unstored[1]) <= INLINE_BYTES:
            self.last_page, self._unstored = self._unstored[1], None
        self.store_page()


class DocumentRows(DocumentWriter):
    """Collects the documents of a new text while it is read. Counts begin with the first text that is reported."""

    def __init__(self, store: Store):
        super().__init__(store)
        self.count = 0  # the number of documents so far
        self.hashes = bytearray()  # the hashes of their names, `HASH_BYTES` each
        self.doubled: tuple[int, int] | None = None
        """The numbers of the first two documents with one name; known after `close`."""
        self._size: tuple[int, ...] = (0, 0, 0)  # the characters, bytes and newlines of the text so far
        self._begun: tuple[bytes, bytes, tuple[int, ...]] | None = None
        """Name and metadata of the document whose end is not known yet, and the size of the text before it."""

    def add_text(self, data: bytes, characters: int) -> None:
        """Report the next text, in a document or between two: its UTF-8 bytes, and their number of characters."""
        self.add_counts(characters, len(data), data.count(b"\n"))

    def add_counts(self, *counts: int) -> None:
        """Report the next text by its characters, bytes and newlines alone."""
        self._size = tuple(map(add, self._size, counts))

    def begin(self, name: object, metadata: Any = None) -> None:
        """Begin a document here. Raises `InvalidText` for a name or metadata that cannot be stored."""
        self._begun = encode_name(name, self.count), encode_metadata(metadata, self.count), self._size

    def end_document(self) -> None:
        """End the document that was begun last."""
        assert self._begun is not None
        name, metadata, start = self._begun
        characters, size_bytes, newlines = map(sub, self._size, start)
        self.add(name, metadata, (start[0], start[2]), (characters, size_bytes, newlines))
        self._begun = None

    def add(self, name: bytes, metadata: bytes, start: tuple[int, int], size: tuple[int, int, int]) -> None:
        super().add(name, metadata, start, size)
        self.count += 1
        self.hashes += name_hash(name)

    def close(self) -> None:
        """End the text: store its full pages, and find the first two documents with one name."""
        self.store_page()
        if self.count > DOCUMENTS_PER_PAGE:
            from monocontext.format import name_tables  # imports numpy, for which few documents have no use

            self.doubled = name_tables.first_doubled(name_tables.entries_of(self.hashes))
            return
        first_numbers: dict[bytes, int] = {}
        for number in range(self.count):
            hashed = bytes(self.hashes[number * HASH_BYTES : (number + 1) * HASH_BYTES])
            if (earlier := first_numbers.setdefault(hashed, number)) != number:
                self.doubled = earlier, number
                return


def load_document_page(ref: DocumentsRef, number: int, get: Callable[[str], bytes]) -> DocumentPage:
    """Load and check a page of documents by its number (1 GET; none for a last page in the root)."""
    copy = ref.last_page if number == len(ref.pages) - 1 else None
    page = ref.pages[number]
    return DocumentPage(copy or get(documents_key(page.id)), page, ref.pages[number - 1] if number else None)


def load_documents(store: Store, ref: DocumentsRef | None) -> list[DocumentPage]:
    """Load all pages of documents (1 GET each, some at once)."""
    if ref is None:
        return []

    numbers = range(len(ref.pages))
    return at_once(lambda n: load_document_page(ref, n, lambda key: store.get(key).data), numbers, _REQUESTS)


def names_in(pages: Iterable[DocumentPage]) -> list[bytes]:
    """The names of all documents of some pages, in UTF-8."""
    return [page.raw_name(i) for page in pages for i in range(len(page))]


def join_documents(store: Store, base: Manifest | None, new: DocumentRows | None) -> DocumentsRef | None:
    """All documents: those of `base`, and the new ones after them, whose pages and names are stored (1 PUT each)."""
    before = base.documents if base else None
    if new is None or not new.count:
        return before
    pages = before.pages if before else ()
    writer = DocumentWriter(store, pages)
    if before and before.last_page is not None:  # it takes new documents, too
        last, ref = load_document_page(before, len(pages) - 1, lambda key: b""), pages[-1]
        writer = DocumentWriter(store, pages[:-1])
        writer.add_rows(last.rows(), (ref.start, ref.start_newline))
    shift = (base.characters, base.newlines) if base else (0, 0)
    previous: DocumentPageRef | None = None
    for page in new.pages:
        writer.keep(page, previous, shift)
        previous = page
    start = (previous.characters + shift[0], previous.newlines + shift[1]) if previous else shift
    writer.add_rows(new.rows, start)
    writer.finish()
    doubled = before.doubled if before else None
    if doubled is None and new.doubled:
        doubled = (before.documents if before else 0) + new.doubled[1]
    return DocumentsRef(tuple(writer.pages), writer.last_page, _join_names(store, before, new), doubled)


def _join_names(store: Store, before: DocumentsRef | None, new: DocumentRows) -> tuple[NameTableRef, ...]:
    """The tables of names. Documents that fill a page get one, joined with tables before it of no more documents."""
    tables = list(before.names) if before else []
    first = before.named if before else 0
    total = (before.documents if before else 0) + new.count
    if total - first <= DOCUMENTS_PER_PAGE:
        return tuple(tables)
    from monocontext.format import name_tables

    hashes = b""
    if before and any(isinstance(ref, DocumentDirectory) and ref.documents > first for ref in before.pages):
        before = expand_documents(before, lambda ref: store.get(ref.key).data)
    for number, ref in enumerate(before.pages if before else ()):
        if ref.documents > first and not isinstance(ref, DocumentDirectory):
            page = load_document_page(before, number, lambda key: store.get(key).data)  # type: ignore[arg-type]
            hashes += b"".join(map(name_hash, names_in([page])[max(first - page.first, 0) :]))
    entries = name_tables.entries_of(hashes + bytes(new.hashes), first)
    while tables:
        began = tables[-2].documents if len(tables) > 1 else 0
        if tables[-1].documents - began > total - first:
            break
        table, first = tables.pop(), began
        entries = name_tables.join(store.get(documents_key(table.id)).data, table, entries)
    return (*tables, _put_names(store, *name_tables.table_of(entries, total)))


def _put_names(store: Store, ref: NameTableRef, data: bytes) -> NameTableRef:
    store.put(documents_key(ref.id), data)
    return ref


class Change(NamedTuple):
    """The change of one document."""

    text: str | None = None  # the new text; None to keep the old one
    metadata: bytes | None = None  # None to keep the old ones
    deletes: bool = False


class Patch(NamedTuple):
    """Characters [start, stop) of the old text, and those that replace them."""

    start: int  # that of the document, or of its header line, which is deleted with it
    stop: int  # that of the document, or of a newline after it that belongs to no document
    text: str  # the new text of the document, with a newline at its end


def change_documents(
    store: Store,
    old: DocumentsRef,
    pages: Sequence[DocumentPage],
    changes: Mapping[int, Change],
    patches: Mapping[int, Patch],
    *,
    anew: bool = False,
) -> DocumentsRef | None:
    """Store the pages of documents with a change, and a table of names if some were deleted; with `anew`, all. Returns
    the documents of the changed text, or None if it has none."""
    numbers = sorted(changes)
    writer, shift = DocumentWriter(store), (0, 0)
    for page, ref, before in zip(pages, old.pages, (None, *old.pages), strict=False):
        is_touched = anew or bisect_left(numbers, page.first) < bisect_left(numbers, page.first + len(page))
        writer.end_page()
        start = ref.start + shift[0], ref.start_newline + shift[1]
        if not is_touched and start[0] >= writer.end[0] and start[1] >= writer.end[1]:
            writer.keep(ref, before, shift, old.last_page if ref is old.pages[-1] else None)
            continue
        characters, newlines = ref.start, ref.start_newline
        for number, row in enumerate(page.rows(), page.first):
            characters, newlines = characters + row.gap, newlines + row.gap_newlines
            change, patch = changes.get(number), patches.get(number)
            if not (change and change.deletes):
                writer.add(row.name, *_changed(row, change, (characters + shift[0], newlines + shift[1])))
            if patch:
                has_header, newline = characters > patch.start, patch.stop - characters - row.characters
                shift = (
                    shift[0] + len(patch.text) - (patch.stop - patch.start),
                    shift[1] + patch.text.count("\n") - row.newlines - has_header - newline,
                )
            characters, newlines = characters + row.characters, newlines + row.newlines
    writer.finish()
    if not writer.pages:
        return None
    gone = {number for number, change in changes.items() if change.deletes}
    result = DocumentsRef(tuple(writer.pages), writer.last_page, old.names, old.doubled)
    if not gone and not anew:
        return result
    return _with_names(store, result, [name for number, name in enumerate(names_in(pages)) if number not in gone])


def _with_names(store: Store, ref: DocumentsRef, names: list[bytes]) -> DocumentsRef:
    """These documents with one table of their names, if they fill a page (1 PUT), and the first doubled name anew."""
    if len(names) <= DOCUMENTS_PER_PAGE and ref.doubled is None:
        return replace(ref, names=())
    from monocontext.format import name_tables

    entries = name_tables.entries_of(b"".join(map(name_hash, names)))
    double = name_tables.first_doubled(entries) if ref.doubled is not None else None
    is_full = len(names) > DOCUMENTS_PER_PAGE
    tables = (_put_names(store, *name_tables.table_of(entries, len(names))),) if is_full else ()
    return replace(ref, names=tables, doubled=double[1] if double else None)


def _changed(
    row: DocumentRow, change: Change | None, start: tuple[int, int]
) -> tuple[bytes, tuple[int, int], tuple[int, int, int]]:
    """Metadata, start and size of a document after its change."""
    size, metadata = (row.characters, row.text_bytes, row.newlines), row.metadata
    if change and change.text is not None:
        size = len(change.text), len(change.text.encode()), change.text.count("\n")
        if change.metadata is None and b'"file"' in metadata:
            # without the facts that `sync` recorded of a file: with another text, it has to compare again
            facts = json.loads(metadata)
            metadata = encode_metadata({k: v for k, v in facts.items() if k != "file" or type(v) is not dict}, 0)
    return metadata if change is None or change.metadata is None else change.metadata, start, size
