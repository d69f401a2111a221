"""Write the documents of a text: collect them while it is read.

    publish({"name": text, ...}, url)
    publish(documents([(name, text, metadata), ...]), url)

Their pages are stored and joined with earlier ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from monocontext.engine.fetch.threads import DaemonThreads, Outcome
from monocontext.errors import InvalidText
from monocontext.format.document_names import (
    HASH_BYTES,
    decode_names,
    encode_names,
    entries_of,
    first_doubled,
    last_of_each_name,
    name_hash,
)
from monocontext.format.document_refs import (
    DocumentDirectory,
    DocumentPageRef,
    DocumentsRef,
    NameTableRef,
    documents_key,
)
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
from monocontext.format.refs import fresh_id
from monocontext.format.root_directories import expand_documents
from monocontext.records import replace
from monocontext.stores.protocol import Store

UPLOADS = 4
"""PUTs of pages at once."""

_UNCOUNTED_BYTES = 8 << 20
"""Text that waits until its writer has counted its newlines."""


class DocumentInputs:
    """Documents to publish, in order: the result of `documents`."""

    def __init__(self, items: Iterable[Any], *, unique: bool):
        self.items = items
        self.unique = unique


def documents(items: Iterable[Any] | Mapping[str, Any], *, unique: bool = False) -> DocumentInputs:
    """Documents for `publish` and `append`: a mapping of name to text, or an iterable, which is read once.

    An item is a text, or a tuple (name, text) or (name, text, metadata). A text is a `str` or the path of a file,
    metadata a mapping that JSON can hold, at most 64 KiB. A document without a name (None) gets its number as its name.
    Of several documents with one name a dict has the last; `unique` refuses them.

    A document that does not end in a newline gets one after it, which belongs to no document. Raises `InvalidText` for
    anything that is not a document, before anything is committed.
    """
    return DocumentInputs(
        items.items() if isinstance(items, Mapping) else items, unique=unique or isinstance(items, Mapping)
    )


class DocumentRows:
    """The documents of a text that is being read: the reader reports the text, and the ends of documents."""

    def __init__(self, store: Store):
        self._store = store
        self.unique = False
        """Whether two documents with one name are refused."""
        self.count = 0
        """Documents so far."""
        self.hashes = bytearray()
        """Hashes of their names."""
        self.pages: list[DocumentPageRef] = []
        """Pages that are stored, as if the text began here."""
        self.rows: list[DocumentRow] = []
        """Documents after them."""
        self.doubled: tuple[int, int] | None = None
        """Known after `finish`."""
        self.start = (0, 0)
        """Characters and newlines before the first of `rows` is counted."""
        self._heap_bytes = 0
        self._passed = (0, 0)
        """Characters and bytes."""
        self._counted = (0, 0)
        """Bytes up to which newlines are counted, and newlines."""
        self._uncounted: deque[tuple[int, bytes]] = deque()
        """Text after them, each piece with the byte at which it begins."""
        self._end = (0, 0)
        self._begun: tuple[bytes, bytes, int, int, int] | None = None
        self._uploads: DaemonThreads | None = None
        self._pending: deque[Outcome[Any]] = deque()

    def passed(self, data: bytes, characters: int) -> None:
        """This text comes next, in a document or between two."""
        before, start = self._passed
        self._passed = before + characters, start + len(data)
        self._uncounted.append((start, data))
        if start + len(data) - self._counted[0] > _UNCOUNTED_BYTES:
            self._count()

    def skip(self, characters: int, size_bytes: int, newlines: int) -> None:
        """Text comes next whose counts are known, in a document or between two."""
        before, start = self._passed
        newlines += self._count()
        self._passed = before + characters, start + size_bytes
        self._counted = start + size_bytes, newlines

    def counted(self, stop: int, newlines: int) -> None:
        """Record the number of newlines before byte `stop`. The writer of the text counts them anyway, a little after
        the read, so those of a long document are counted once."""
        if stop > self._counted[0]:
            self._counted = stop, newlines
            while self._uncounted and self._uncounted[0][0] + len(self._uncounted[0][1]) <= stop:
                self._uncounted.popleft()

    def _count(self) -> int:
        """The newlines in all that has passed."""
        stop, newlines = self._counted
        for start, data in self._uncounted:
            newlines += data.count(b"\n", max(stop - start, 0))
        self._uncounted.clear()
        self._counted = max(stop, self._passed[1]), newlines
        return newlines

    def begin(self, name: object, metadata: Any = None) -> None:
        """A document begins here."""
        name = encode_name(name, self.count)
        characters, size = self._passed
        self._begun = (name, encode_metadata(metadata, self.count), characters, self._count(), size)

    def end(self) -> None:
        """The document ends here."""
        assert self._begun is not None
        name, metadata, start, first_line, start_byte = self._begun
        stop, stop_byte = self._passed
        last_line = self._count()
        self._begun = None
        self._add(
            DocumentRow(
                start - self._end[0], first_line - self._end[1], stop - start, stop_byte - start_byte,
                last_line - first_line, name, metadata,
            )
        )  # fmt: skip
        self._end = stop, last_line

    def add_passed(self, found: Iterable[tuple[bytes, bytes, int, int, int, int]]) -> None:
        """Add documents whose text follows: name, metadata, characters, bytes and newlines of each, and 1 if a newline
        that belongs to no document comes after it, else 0."""
        characters, passed_bytes = self._passed
        newlines = self._count()
        end, last_line = self._end
        for name, metadata, length, size, lines, newline in found:
            self._add(DocumentRow(characters - end, newlines - last_line, length, size, lines, name, metadata))
            end, last_line = characters + length, newlines + lines
            characters, newlines = end + newline, last_line + newline
            passed_bytes += size + newline
        self._end = end, last_line
        self._counted = passed_bytes, newlines

    def _add(self, row: DocumentRow) -> None:
        self.rows.append(row)
        self.count += 1
        self.hashes += name_hash(row.name)
        self._heap_bytes += len(row.name) + len(row.metadata)
        if len(self.rows) >= DOCUMENTS_PER_PAGE or self._heap_bytes >= HEAP_BYTES:
            self._store_page()

    def _store_page(self) -> None:
        data = encode_page(self.rows)
        ref = page_ref(data, self.rows, self.pages[-1] if self.pages else None, *self.start)
        ref = replace(ref, id=fresh_id())
        self.pages.append(ref)
        self.rows, self._heap_bytes = [], 0
        self.start = ref.characters, ref.newlines
        uploads = self._uploads = self._uploads or DaemonThreads(UPLOADS, "monocontext-documents")
        while len(self._pending) >= 2 * UPLOADS:
            self._pending.popleft().result()
        self._pending.append(uploads.call(lambda: self._store.put(documents_key(ref.id), data)))

    def finish(self) -> None:
        """The text is complete: wait for the stores in progress. Raises `InvalidText` for names that must differ."""
        while self._pending:
            self._pending.popleft().result()
        if self._uploads:
            self._uploads.close()
        self.doubled = self._first_doubled()
        if self.unique and self.doubled:
            earlier, later = self.doubled
            raise InvalidText(f"documents {earlier} and {later} are both named {self._name(later)!r}")

    def _first_doubled(self) -> tuple[int, int] | None:
        """The first document whose name an earlier one has, after that one."""
        if self.count > DOCUMENTS_PER_PAGE:
            return first_doubled(entries_of(self.hashes))
        seen: dict[bytes, int] = {}  # few do not need numpy
        for number in range(self.count):
            hashed = bytes(self.hashes[number * HASH_BYTES : (number + 1) * HASH_BYTES])
            if (earlier := seen.setdefault(hashed, number)) != number:
                return earlier, number
        return None

    def _name(self, number: int) -> str:
        before: DocumentPageRef | None = None
        for ref in self.pages:
            if number < ref.documents:
                page = DocumentPage(self._store.get(documents_key(ref.id)).data, ref, before)
                return page.name(number - page.first)
            before = ref
        return self.rows[number - (before.documents if before else 0)].name.decode()


def join_documents(store: Store, base: Manifest | None, new: DocumentRows | None) -> DocumentsRef | None:
    """The documents of a text: those of `base`, and those of the text after it. Stores the new ones.

    Costs 1 PUT for a page and a table of names, none for a last page of up to 32 KiB; where few documents precede the
    new ones also 1 GET for each of their pages and tables.
    """
    before = base.documents if base else None
    if new is None or not new.count:
        return before
    known = _Known(store, before)
    before = known.ref
    pages = list(before.pages) if before else []
    last = before.last_page if before else None
    rows, start = new.rows, new.start
    shift = (base.characters, base.newlines) if base else (0, 0)
    first_rows_shift = shift
    if last is not None:
        tail = known.page(len(pages) - 1)
        if not new.pages and len(tail) + len(rows) <= DOCUMENTS_PER_PAGE:
            ref = pages.pop()
            gap, gap_newlines = shift[0] - ref.characters, shift[1] - ref.newlines
            head = rows[0]._replace(gap=rows[0].gap + gap, gap_newlines=rows[0].gap_newlines + gap_newlines)
            rows = [*tail.rows(), head, *rows[1:]]
            start, first_rows_shift = (ref.start, ref.start_newline), (0, 0)
        else:
            pages[-1] = replace(pages[-1], id=fresh_id())
            store.put(documents_key(pages[-1].id), last)
    end = pages[-1] if pages else None
    for ref in new.pages:
        pages.append(
            replace(
                ref,
                documents=ref.documents + (end.documents if end else 0),
                start=ref.start + shift[0],
                start_newline=ref.start_newline + shift[1],
                characters=ref.characters + shift[0],
                newlines=ref.newlines + shift[1],
                bytes=ref.bytes + (end.bytes if end else 0),
            )
        )
    last = None
    if rows:
        data = encode_page(rows)
        ref = page_ref(
            data, rows, pages[-1] if pages else None, start[0] + first_rows_shift[0], start[1] + first_rows_shift[1]
        )
        ref = replace(ref, id=fresh_id())
        pages.append(ref)
        if len(data) <= INLINE_BYTES:
            last = data
        else:
            store.put(documents_key(ref.id), data)
    doubled = before.doubled if before else None
    if doubled is None and new.doubled:
        doubled = (before.documents if before else 0) + new.doubled[1]
    return DocumentsRef(tuple(pages), last, _join_names(store, known, new), doubled)


class _Known:
    """The documents before, read as they are needed."""

    def __init__(self, store: Store, ref: DocumentsRef | None):
        self._store = store
        directories = [page for page in ref.pages if isinstance(page, DocumentDirectory)] if ref else []
        if ref and directories and directories[-1].documents > ref.named:  # pages that no table of names covers yet
            ref = expand_documents(ref, lambda ref: store.get(ref.key).data)
        self.ref = ref
        self.documents = ref.documents if ref else 0

    def page(self, number: int) -> DocumentPage:
        assert self.ref is not None
        pages = self.ref.pages
        held = self.ref.last_page if number == len(pages) - 1 else None
        data = held or self._store.get(documents_key(pages[number].id)).data
        return DocumentPage(data, pages[number], pages[number - 1] if number else None)

    def hashes_from(self, first: int) -> bytes:
        """The hashes of the names of documents from a number on."""
        found = b""
        for number, ref in enumerate(self.ref.pages if self.ref else ()):
            if ref.documents > first and not isinstance(ref, DocumentDirectory):
                page = self.page(number)
                found += b"".join(name_hash(page.raw_name(i)) for i in range(max(first - page.first, 0), len(page)))
        return found


def _join_names(store: Store, known: _Known, new: DocumentRows) -> tuple[NameTableRef, ...]:
    """The tables of names. Once documents without a table fill a page they get a table, which takes in the tables
    before it that cover no more than it does. So the number of tables grows with the logarithm of the documents."""
    tables = list(known.ref.names) if known.ref else []
    first = known.ref.named if known.ref else 0
    total = known.documents + new.count
    if total - first <= DOCUMENTS_PER_PAGE:
        return tuple(tables)
    entries = entries_of(known.hashes_from(first) + bytes(new.hashes), first)
    while tables:
        began = tables[-2].documents if len(tables) > 1 else 0
        if tables[-1].documents - began > total - first:
            break
        import numpy as np

        table, first = tables.pop(), began
        entries = np.concatenate([decode_names(store.get(documents_key(table.id)).data, table), entries])
    entries = last_of_each_name(entries)
    data, buckets, stride = encode_names(entries)
    ref = NameTableRef(fresh_id(), total, len(entries), buckets, stride)
    store.put(documents_key(ref.id), data)
    return (*tables, ref)
