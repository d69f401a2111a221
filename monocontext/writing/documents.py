"""Store the documents of a text: a row for each document, in pages, and tables of their names.

    publish({"name": text, ...}, url)
    publish(documents([(name, text, metadata), ...]), url)

`DocumentRows` collects the documents of a new text, `join_documents` adds them to a context, and `change_documents`
changes some.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from monocontext.format.refs import NO_DOCUMENTS, DocumentPageRef, DocumentsRef, NameTableRef, documents_key, fresh_id
from monocontext.records import NamedTuple, replace
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store

READ_AT_ONCE = 8  # pages, roots or files that are read at once


class DocumentInputs(NamedTuple):
    """Documents to publish, in order: the result of `documents`."""

    items: Iterable[Any]


def documents(items: Iterable[Any] | Mapping[str, Any]) -> DocumentInputs:
    """Make documents for `publish` and `append` from a mapping of name to text, or an iterable, which is read once.

    An item is a text, or a tuple (name, text) or (name, text, metadata). A text is a `str` or the path of a file, and
    metadata a mapping of at most 64 KiB as JSON. A document without a name (None) is named by its number. If several
    documents have the same name, a lookup finds the last.

    A newline is stored after each document that does not end in one; it belongs to no document. A function that
    reads the result raises `InvalidText` for an item that is not a document, before it commits anything.
    """
    return DocumentInputs(items.items() if isinstance(items, Mapping) else items)


class Offset(NamedTuple):
    """An offset in a text, or the difference between two: in characters, and in the newlines among them."""

    characters: int
    newlines: int


class DocumentWriter:
    """Makes the document pages of a text from old pages and single rows, which are added in the order of the text.
    A page is stored when another follows it (1 PUT); a small last page goes into the root."""

    def __init__(self, store: Store, pages: Iterable[DocumentPageRef] = ()):
        self._store = store
        self.pages = list(pages)  # the entries of the pages so far
        self.last_page: bytes | None = None  # the last page if it is only in the root
        self.rows: list[DocumentRow] = []  # the documents after these pages
        last = self.pages[-1] if self.pages else NO_DOCUMENTS
        self.end = Offset(last.characters, last.newlines)  # the end of the last document
        self._heap_bytes = 0  # the length of the names and metadata in `rows`
        self._unstored: tuple[str, bytes] | None = None  # the key and bytes of the last page, until it is stored

    def add(self, row: DocumentRow, start: Offset) -> None:
        """Add a document that begins at an offset of the text. The gaps in its row are ignored."""
        gap, gap_newlines = start.characters - self.end.characters, start.newlines - self.end.newlines
        self.end = Offset(start.characters + row.characters, start.newlines + row.newlines)
        self.rows.append(DocumentRow(gap, gap_newlines, *row[2:]))
        self._heap_bytes += len(row.name) + len(row.metadata)
        if len(self.rows) >= DOCUMENTS_PER_PAGE or self._heap_bytes >= HEAP_BYTES:
            self.end_page()

    def add_rows(self, rows: Iterable[DocumentRow], start: Offset) -> None:
        """Add documents that are separated by the gaps in their rows. The first gap begins at `start`."""
        characters, newlines = start
        for row in rows:
            characters, newlines = characters + row.gap, newlines + row.gap_newlines
            self.add(row, Offset(characters, newlines))
            characters, newlines = characters + row.characters, newlines + row.newlines

    def keep(
        self, page: DocumentPageRef, before: DocumentPageRef | None, shift: Offset, copy: bytes | None = None
    ) -> None:
        """Add an old page, which followed the page `before` and moves by `shift`. `copy`: the page if it is only in the
        root."""
        self.end_page()
        self.store_page()
        old, new = before or NO_DOCUMENTS, self.pages[-1] if self.pages else NO_DOCUMENTS
        moved = replace(
            page,
            documents=new.documents + page.documents - old.documents,
            start=page.start + shift.characters,
            start_newline=page.start_newline + shift.newlines,
            characters=page.characters + shift.characters,
            newlines=page.newlines + shift.newlines,
            bytes=new.bytes + page.bytes - old.bytes,
        )
        self.pages.append(moved)
        self.end, self.last_page = Offset(moved.characters, moved.newlines), copy

    def end_page(self) -> None:
        """Make a page of `rows`, if there are any (1 PUT, for the page before it)."""
        if self.rows:
            self.store_page()
            before = self.pages[-1] if self.pages else NO_DOCUMENTS
            data = encode_page(self.rows)
            ref = page_ref(data, self.rows, before, before.characters, before.newlines)
            self.pages.append(replace(ref, id=fresh_id()))
            self._unstored = documents_key(self.pages[-1].id), data
            self.rows, self._heap_bytes, self.last_page = [], 0, None

    def store_page(self) -> None:
        """Store the last page, unless it is stored already."""
        if self._unstored:
            self._store.put(*self._unstored)
            self._unstored = None

    def finish(self) -> None:
        """End the last page, and store it unless it is small: then it becomes `last_page`."""
        self.end_page()
        if self._unstored and len(self._unstored[1]) <= INLINE_BYTES:
            self.last_page, self._unstored = self._unstored[1], None
        self.store_page()


class DocumentRows(DocumentWriter):
    """Collects the documents of a text. `add_counts` takes the sizes of its parts in order; those between `begin` and
    `end_document` are parts of one document."""

    def __init__(self, store: Store):
        super().__init__(store)
        self.count = 0  # the number of documents so far
        self.hashes = bytearray()  # the hashes of their names, `HASH_BYTES` each
        self.doubled: int | None = None  # the number of the first that repeats a name; known after `close`
        self._characters = self._bytes = self._newlines = 0  # the size of the text so far
        self._start: Offset | None = None  # of the open document, as the next three fields are
        self._start_byte = 0
        self._name = self._metadata = b""

    def add_counts(self, characters: int, text_bytes: int, newlines: int) -> None:
        """Report the size of the next part of the text."""
        self._characters += characters
        self._bytes += text_bytes
        self._newlines += newlines

    def begin(self, name: object, metadata: Any = None) -> None:
        """Begin a document here. Raises `InvalidText` for a name or metadata that cannot be stored."""
        self._name, self._metadata = encode_name(name, self.count), encode_metadata(metadata, self.count)
        self._start, self._start_byte = Offset(self._characters, self._newlines), self._bytes

    def end_document(self) -> None:
        """End the document that is open."""
        assert self._start is not None
        start, self._start = self._start, None
        characters, newlines = self._characters - start.characters, self._newlines - start.newlines
        text_bytes = self._bytes - self._start_byte
        self.add(DocumentRow(0, 0, characters, text_bytes, newlines, self._name, self._metadata), start)
        self.count += 1
        self.hashes += name_hash(self._name)

    def close(self) -> None:
        """End the text: store its full pages, and find the first document that repeats a name."""
        self.store_page()
        if self.count > DOCUMENTS_PER_PAGE:
            from monocontext.format import name_tables  # imports numpy, which few documents do not need

            self.doubled = name_tables.first_duplicate(name_tables.entries_of(self.hashes))
            return
        names = [bytes(self.hashes[start : start + HASH_BYTES]) for start in range(0, len(self.hashes), HASH_BYTES)]
        first_numbers = {name: number for number, name in reversed([*enumerate(names)])}
        self.doubled = next((number for number, name in enumerate(names) if first_numbers[name] < number), None)


def load_document_page(ref: DocumentsRef, number: int, get: Callable[[str], bytes]) -> DocumentPage:
    """Load and check a page of documents by its number (1 GET; none for the last page if it is in the root)."""
    copy = ref.last_page if number == len(ref.pages) - 1 else None
    page = ref.pages[number]
    return DocumentPage(copy or get(documents_key(page.id)), page, ref.pages[number - 1] if number else None)


def load_documents(store: Store, ref: DocumentsRef | None) -> list[DocumentPage]:
    """Load all pages of documents (1 GET each, `READ_AT_ONCE` in parallel)."""
    if ref is None:
        return []
    numbers = range(len(ref.pages))
    return at_once(lambda n: load_document_page(ref, n, lambda key: store.get(key).data), numbers, READ_AT_ONCE)


def names_in(pages: Iterable[DocumentPage]) -> list[bytes]:
    """The names of all documents of some pages, in UTF-8."""
    return [page.raw_name(i) for page in pages for i in range(len(page))]


def join_documents(store: Store, base: Manifest | None, new: DocumentRows | None) -> DocumentsRef | None:
    """The documents of `base`, then those of a new text; None if there are none (1 PUT per new page and table)."""
    before = base.documents if base else None
    if new is None or not new.count:
        return before
    writer = DocumentWriter(store, before.pages if before else ())
    if before and before.last_page is not None:  # the page in the root is filled up
        last, ref = load_document_page(before, len(before.pages) - 1, lambda key: b""), before.pages[-1]
        writer = DocumentWriter(store, before.pages[:-1])
        writer.add_rows(last.rows(), Offset(ref.start, ref.start_newline))
    shift = Offset(base.characters, base.newlines) if base else Offset(0, 0)
    previous: DocumentPageRef | None = None
    for page in new.pages:
        writer.keep(page, previous, shift)
        previous = page
    writer.add_rows(new.rows, writer.end if new.pages else shift)
    writer.finish()
    doubled = before.doubled if before else None
    if doubled is None and new.doubled is not None:
        doubled = (before.documents if before else 0) + new.doubled
    return DocumentsRef(tuple(writer.pages), writer.last_page, _join_names(store, before, new), doubled)


def _join_names(store: Store, before: DocumentsRef | None, new: DocumentRows) -> tuple[NameTableRef, ...]:
    """All tables of names. Documents without a table get one when they fill a page. It is joined with each table before
    it that has at most as many documents."""
    tables = list(before.names) if before else []
    first = before.named if before else 0
    total = (before.documents if before else 0) + new.count
    if total - first <= DOCUMENTS_PER_PAGE:
        return tuple(tables)
    from monocontext.format import name_tables

    hashes = _hashes_after(store, before, first) if before else b""
    entries = name_tables.entries_of(hashes + bytes(new.hashes), first)
    while tables:
        first_of_table = tables[-2].documents if len(tables) > 1 else 0
        if tables[-1].documents - first_of_table > total - first:
            break
        table, first = tables.pop(), first_of_table
        entries = name_tables.join(store.get(documents_key(table.id)).data, table, entries)
    table, data = name_tables.table_of(entries, total)
    store.put(documents_key(table.id), data)
    return (*tables, table)


def _hashes_after(store: Store, ref: DocumentsRef, first: int) -> bytes:
    """The hashes of the names of the documents from number `first` on (1 GET per page of these)."""
    if any(hasattr(page, "level") and page.documents > first for page in ref.pages):  # a directory
        ref = expand_documents(ref, lambda directory: store.get(directory.key).data)
    hashes = b""
    for number, entry in enumerate(ref.pages):
        if entry.documents > first:
            page = load_document_page(ref, number, lambda key: store.get(key).data)
            hashes += b"".join(map(name_hash, names_in([page])[max(first - page.first, 0) :]))
    return hashes


class Change(NamedTuple):
    """What to change in a document."""

    text: str | None = None  # the new text; None to keep the old one
    metadata: bytes | None = None  # the new metadata; None to keep the old ones
    deletes: bool = False  # whether to delete the document


class Patch(NamedTuple):
    """A change of the text of a document: `text` replaces characters [start, stop) of the old text."""

    start: int  # the start of the document, or of the header line that is deleted with it
    stop: int  # the end of the document, or of the newline after it that belongs to no document
    text: str  # the new text of the document, which ends in a newline; empty if it is deleted


def change_documents(
    store: Store,
    old: DocumentsRef,
    pages: Sequence[DocumentPage],
    changes: Mapping[int, Change],
    patches: Mapping[int, Patch],
    *,
    all_pages: bool = False,
) -> DocumentsRef | None:
    """The documents of a changed text, or None if all are deleted. Pages with a change are stored (1 PUT each). `old`
    and `pages` are the documents before the change; `changes` and `patches` are by the number of the document. If
    documents are deleted, a new table of names is stored too. `all_pages`: store all pages again, and the table."""
    writer, shift = DocumentWriter(store), Offset(0, 0)
    numbers = sorted(changes)
    for page, ref, before in zip(pages, old.pages, (None, *old.pages), strict=False):
        writer.end_page()
        is_changed = bisect_left(numbers, page.first) < bisect_left(numbers, page.first + len(page))
        start = Offset(ref.start + shift.characters, ref.start_newline + shift.newlines)
        # The last document before this page took the newline between them.
        overlaps = start.characters < writer.end.characters or start.newlines < writer.end.newlines
        if all_pages or is_changed or overlaps:
            shift = _add_changed(writer, page, ref, shift, changes, patches)
        else:
            writer.keep(ref, before, shift, old.last_page if ref is old.pages[-1] else None)
    writer.finish()
    if not writer.pages:
        return None
    result = DocumentsRef(tuple(writer.pages), writer.last_page, old.names, old.doubled)
    deleted = {number for number, change in changes.items() if change.deletes}
    if not deleted and not all_pages:
        return result
    return _store_names(store, result, [name for number, name in enumerate(names_in(pages)) if number not in deleted])


def _add_changed(
    writer: DocumentWriter,
    page: DocumentPage,
    ref: DocumentPageRef,
    shift: Offset,
    changes: Mapping[int, Change],
    patches: Mapping[int, Patch],
) -> Offset:
    """Add the documents of an old page, moved by `shift`, with their changes. Returns the shift of later ones."""
    characters, newlines = ref.start, ref.start_newline  # the offset in the old text
    for number, row in enumerate(page.rows(), page.first):
        characters, newlines = characters + row.gap, newlines + row.gap_newlines
        change, patch = changes.get(number, Change()), patches.get(number)
        if not change.deletes:
            writer.add(_changed_row(row, change), Offset(characters + shift.characters, newlines + shift.newlines))
        if patch:
            newlines_before, newlines_after = int(patch.start < characters), patch.stop - characters - row.characters
            removed_newlines = newlines_before + row.newlines + newlines_after
            shift = Offset(
                shift.characters + len(patch.text) - (patch.stop - patch.start),
                shift.newlines + patch.text.count("\n") - removed_newlines,
            )
        characters, newlines = characters + row.characters, newlines + row.newlines
    return shift


def _changed_row(row: DocumentRow, change: Change) -> DocumentRow:
    text, metadata = change.text, row.metadata if change.metadata is None else change.metadata
    if text is None:
        return DocumentRow(*row[:-1], metadata)
    if change.metadata is None and b'"file"' in metadata:
        # Drop what `sync` recorded of a file, so that it compares the file with the new text.
        values = json.loads(metadata)
        metadata = encode_metadata({k: v for k, v in values.items() if k != "file" or type(v) is not dict}, 0)
    return DocumentRow(0, 0, len(text), len(text.encode()), text.count("\n"), row.name, metadata)


def _store_names(store: Store, ref: DocumentsRef, names: list[bytes]) -> DocumentsRef:
    """The documents, with a table of their names if they do not fit a page (1 PUT), and the first repeated name."""
    if len(names) <= DOCUMENTS_PER_PAGE and ref.doubled is None:
        return replace(ref, names=())
    from monocontext.format import name_tables

    entries = name_tables.entries_of(b"".join(map(name_hash, names)))
    doubled = None if ref.doubled is None else name_tables.first_duplicate(entries)
    tables: tuple[NameTableRef, ...] = ()
    if len(names) > DOCUMENTS_PER_PAGE:
        table, data = name_tables.table_of(entries, len(names))
        store.put(documents_key(table.id), data)
        tables = (table,)
    return replace(ref, names=tables, doubled=doubled)
