"""Store the documents of a text: a row for each, in pages, and tables of their names.

publish({"name": text, ...}, url)
publish(documents([(name, text, metadata), ...]), url)

`DocumentRows` collects those of a new text, `join_documents` adds them to a context, `change_documents` changes some.
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
from monocontext.format.refs import (
    NO_DOCUMENTS,
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

READ_AT_ONCE = 8  # the most pages, roots or files that are read at once


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


class Offset(NamedTuple):
    """A place in a text, or the distance between two: the characters before it, and the newlines among them."""

    characters: int
    newlines: int


class DocumentWriter:
    """Makes the pages of documents of a text from old pages and single rows, which are given in the order of the text.
    A page is stored when another one follows (1 PUT): a small last one stays in the root."""

    def __init__(self, store: Store, pages: Iterable[DocumentPageRef] = ()):
        self._store = store
        self.pages = list(pages)  # the entries of the pages so far
        self.last_page: bytes | None = None  # the last page, if only the root holds it
        self.rows: list[DocumentRow] = []  # the documents after these pages
        last = self.pages[-1] if self.pages else NO_DOCUMENTS
        self.end = Offset(last.characters, last.newlines)  # the end of the last document
        self._heap_bytes = 0  # the size of the names and metadata in `rows`
        self._unstored: tuple[str, bytes] | None = None  # the key and the bytes of the last page

    def add(self, row: DocumentRow, start: Offset) -> None:
        """Add a document at an offset of the text; the gaps in its row are computed anew."""
        gap, gap_newlines = start.characters - self.end.characters, start.newlines - self.end.newlines
        self.end = Offset(start.characters + row.characters, start.newlines + row.newlines)
        self.rows.append(DocumentRow(gap, gap_newlines, *row[2:]))
        self._heap_bytes += len(row.name) + len(row.metadata)
        if len(self.rows) >= DOCUMENTS_PER_PAGE or self._heap_bytes >= HEAP_BYTES:
            self.end_page()

    def add_rows(self, rows: Iterable[DocumentRow], start: Offset) -> None:
        """Add documents with the gaps in their rows, the first of which counts from `start`."""
        characters, newlines = start
        for row in rows:
            characters, newlines = characters + row.gap, newlines + row.gap_newlines
            self.add(row, Offset(characters, newlines))
            characters, newlines = characters + row.characters, newlines + row.newlines

    def keep(
        self, page: DocumentPageRef, before: DocumentPageRef | None, shift: Offset, copy: bytes | None = None
    ) -> None:
        """Add an old page, which followed `before`, `shift` later. `copy`: the page if only the root holds it."""
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
        """Make a page of the documents after the last one, if there are any (1 PUT for the page before it)."""
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
        """Store all pages but a small last one, which becomes `last_page`."""
        self.end_page()
        if self._unstored and len(self._unstored[1]) <= INLINE_BYTES:
            self.last_page, self._unstored = self._unstored[1], None
        self.store_page()


class DocumentRows(DocumentWriter):
    """Collects the documents of a text. Report all of it in order, with `begin` and `end_document` around documents."""

    def __init__(self, store: Store):
        super().__init__(store)
        self.count = 0  # the number of documents so far
        self.hashes = bytearray()  # the hashes of their names, `HASH_BYTES` each
        self.doubled: tuple[int, int] | None = None
        """The numbers of the first two documents with one name; known after `close`."""
        self._characters = self._bytes = self._newlines = 0  # the size of the text so far
        self._begun: DocumentRow | None = None
        """The document whose end is not known yet, with the size of the text before it instead of its own."""

    def add_counts(self, characters: int, text_bytes: int, newlines: int) -> None:
        """Report the size of the next text."""
        self._characters += characters
        self._bytes += text_bytes
        self._newlines += newlines

    def begin(self, name: object, metadata: Any = None) -> None:
        """Begin a document here. Raises `InvalidText` for a name or metadata that cannot be stored."""
        encoded = encode_name(name, self.count), encode_metadata(metadata, self.count)
        self._begun = DocumentRow(0, 0, self._characters, self._bytes, self._newlines, *encoded)

    def end_document(self) -> None:
        """End the document that was begun last."""
        assert self._begun is not None
        begun, self._begun = self._begun, None
        start = Offset(begun.characters, begun.newlines)
        characters, newlines = self._characters - start.characters, self._newlines - start.newlines
        size_bytes = self._bytes - begun.text_bytes
        self.add(DocumentRow(0, 0, characters, size_bytes, newlines, begun.name, begun.metadata), start)
        self.count += 1
        self.hashes += name_hash(begun.name)

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
    return at_once(lambda n: load_document_page(ref, n, lambda key: store.get(key).data), numbers, READ_AT_ONCE)


def names_in(pages: Iterable[DocumentPage]) -> list[bytes]:
    """The names of all documents of some pages, in UTF-8."""
    return [page.raw_name(i) for page in pages for i in range(len(page))]


def join_documents(store: Store, base: Manifest | None, new: DocumentRows | None) -> DocumentsRef | None:
    """The documents of the root `base` and, after them, those of an appended text (1 PUT for each page and table)."""
    before = base.documents if base else None
    if new is None or not new.count:
        return before
    writer = DocumentWriter(store, before.pages if before else ())
    if before and before.last_page is not None:  # a page in the root takes new documents, too
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
    """The hashes of the names of all documents from number `first` on (1 GET for each page of them)."""
    if any(isinstance(page, DocumentDirectory) and page.documents > first for page in ref.pages):
        ref = expand_documents(ref, lambda directory: store.get(directory.key).data)
    hashes = b""
    for number, entry in enumerate(ref.pages):
        if entry.documents > first and not isinstance(entry, DocumentDirectory):
            page = load_document_page(ref, number, lambda key: store.get(key).data)
            hashes += b"".join(map(name_hash, names_in([page])[max(first - page.first, 0) :]))
    return hashes


class Change(NamedTuple):
    """The change of one document."""

    text: str | None = None  # the new text; None to keep the old one
    metadata: bytes | None = None  # the new metadata; None to keep the old ones
    deletes: bool = False


class Patch(NamedTuple):
    """The change of the text around a document: characters [start, stop) of the old text become `text`."""

    start: int  # the start of the document, or of its header line, which is deleted with it
    stop: int  # the end of the document, or of a newline after it that belongs to no document
    text: str  # the new text of the document, with a newline at its end


def change_documents(
    store: Store,
    old: DocumentsRef,
    pages: Sequence[DocumentPage],
    changes: Mapping[int, Change],
    patches: Mapping[int, Patch],
    *,
    all_pages: bool = False,
) -> DocumentsRef | None:
    """The documents of a changed text; None if it has none. Pages with a change are stored (1 PUT each).

    `old` and `pages` are the documents before; `changes` and `patches` are by the number of the document. If documents
    are deleted, a new table of names is stored too. `all_pages`: also store pages without a change, and the table.
    """
    writer, shift = DocumentWriter(store), Offset(0, 0)
    numbers = sorted(changes)
    for page, ref, before in zip(pages, old.pages, (None, *old.pages), strict=False):
        writer.end_page()
        is_changed = bisect_left(numbers, page.first) < bisect_left(numbers, page.first + len(page))
        start = Offset(ref.start + shift.characters, ref.start_newline + shift.newlines)
        begins_earlier = start.characters < writer.end.characters or start.newlines < writer.end.newlines
        if all_pages or is_changed or begins_earlier:
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
    return _with_names(store, result, [name for number, name in enumerate(names_in(pages)) if number not in deleted])


def _add_changed(
    writer: DocumentWriter,
    page: DocumentPage,
    ref: DocumentPageRef,
    shift: Offset,
    changes: Mapping[int, Change],
    patches: Mapping[int, Patch],
) -> Offset:
    """Add the changed documents of an old page, which begin `shift` later. Returns the shift of those after them."""
    characters, newlines = ref.start, ref.start_newline  # the offset in the old text
    for number, row in enumerate(page.rows(), page.first):
        characters, newlines = characters + row.gap, newlines + row.gap_newlines
        change, patch = changes.get(number, Change()), patches.get(number)
        if not change.deletes:
            writer.add(_changed(row, change), Offset(characters + shift.characters, newlines + shift.newlines))
        if patch:
            newlines_before, newlines_after = int(patch.start < characters), patch.stop - characters - row.characters
            removed_newlines = newlines_before + row.newlines + newlines_after
            shift = Offset(
                shift.characters + len(patch.text) - (patch.stop - patch.start),
                shift.newlines + patch.text.count("\n") - removed_newlines,
            )
        characters, newlines = characters + row.characters, newlines + row.newlines
    return shift


def _changed(row: DocumentRow, change: Change) -> DocumentRow:
    """The row of a document after its change."""
    text, metadata = change.text, row.metadata if change.metadata is None else change.metadata
    if text is None:
        return DocumentRow(*row[:-1], metadata)
    if change.metadata is None and b'"file"' in metadata:
        # Without the facts that `sync` recorded of a file: with another text, it has to compare the file again.
        facts = json.loads(metadata)
        metadata = encode_metadata({k: v for k, v in facts.items() if k != "file" or type(v) is not dict}, 0)
    return DocumentRow(0, 0, len(text), len(text.encode()), text.count("\n"), row.name, metadata)


def _with_names(store: Store, ref: DocumentsRef, names: list[bytes]) -> DocumentsRef:
    """These documents with one table of their names, if they fill a page (1 PUT), and the first doubled name anew."""
    if len(names) <= DOCUMENTS_PER_PAGE and ref.doubled is None:
        return replace(ref, names=())
    from monocontext.format import name_tables

    entries = name_tables.entries_of(b"".join(map(name_hash, names)))
    doubled = name_tables.first_doubled(entries) if ref.doubled is not None else None
    ref = replace(ref, names=(), doubled=doubled[1] if doubled else None)
    if len(names) > DOCUMENTS_PER_PAGE:
        table, data = name_tables.table_of(entries, len(names))
        store.put(documents_key(table.id), data)
        ref = replace(ref, names=(table,))
    return ref
