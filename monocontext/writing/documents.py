"""Documents of a text: those that a caller gives, and the rows that describe them, collected while the text is read.

publish({"name": text, ...}, url)
publish(documents([(name, text, metadata), ...]), url)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import add, sub
from typing import Any

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
from monocontext.format.refs import DocumentPageRef, DocumentsRef, documents_key, fresh_id
from monocontext.records import NamedTuple, replace
from monocontext.stores.protocol import Store

_NO_PAGE = DocumentPageRef("", 0, 0, 0, 0, 0, 0, 0, 0)


class DocumentInputs(NamedTuple):
    """Documents to publish, in order: the result of `documents`."""

    items: Iterable[Any]
    unique: bool


def documents(items: Iterable[Any] | Mapping[str, Any], *, unique: bool = False) -> DocumentInputs:
    """Documents for `publish` and `append`: a mapping of name to text, or an iterable, which is read once.

    An item is a text, or a tuple (name, text) or (name, text, metadata). A text is a `str` or the path of a file,
    metadata a mapping that JSON can hold, encoded in at most 64 KiB. A document without a name (None) gets its number
    as its name. If documents share a name, a lookup by name finds the last one; with `unique` they are an
    `InvalidText`.

    A document that does not end in a newline gets one after it, which belongs to no document. Raises `InvalidText` for
    anything that is not a document, before anything is committed.
    """
    return DocumentInputs(items.items() if isinstance(items, Mapping) else items, unique)


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
        """The next document, given the characters and newlines before it, and its own characters, bytes and
        newlines."""
        gap, gap_newlines = start[0] - self.end[0], start[1] - self.end[1]
        self.end = start[0] + size[0], start[1] + size[2]
        self.rows.append(DocumentRow(gap, gap_newlines, *size, name, metadata))
        self._heap_bytes += len(name) + len(metadata)
        if len(self.rows) >= DOCUMENTS_PER_PAGE or self._heap_bytes >= HEAP_BYTES:
            self.end_page()

    def add_rows(self, rows: Iterable[DocumentRow], start: tuple[int, int]) -> None:
        """The next documents, whose first gap counts from a place: the characters and newlines before it."""
        for row in rows:
            start = start[0] + row.gap, start[1] + row.gap_newlines
            self.add(row.name, row.metadata, start, (row.characters, row.text_bytes, row.newlines))
            start = start[0] + row.characters, start[1] + row.newlines

    def keep(
        self, page: DocumentPageRef, before: DocumentPageRef | None, shift: tuple[int, int], copy: bytes | None = None
    ) -> None:
        """The next page is an old one, which followed `before`, and whose text moves by so many characters and
        newlines."""
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
    """Collects the documents of a new text while it is read: `begin`, `add_text` for each piece, `end_document`.

    All counts begin with the first reported text, also if that is appended to another text.
    """

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
        """A document begins here. Raises `InvalidText` for a name or metadata that cannot be stored."""
        self._begun = encode_name(name, self.count), encode_metadata(metadata, self.count), self._size

    def end_document(self) -> None:
        """The document begun last ends here."""
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
        seen: dict[bytes, int] = {}
        for number in range(self.count):
            hashed = bytes(self.hashes[number * HASH_BYTES : (number + 1) * HASH_BYTES])
            if (earlier := seen.setdefault(hashed, number)) != number:
                self.doubled = earlier, number
                return


def load_document_page(ref: DocumentsRef, number: int, get: Callable[[str], bytes]) -> DocumentPage:
    """Load and check a page of documents by its number (1 GET; none for a last page in the root)."""
    copy = ref.last_page if number == len(ref.pages) - 1 else None
    page = ref.pages[number]
    return DocumentPage(copy or get(documents_key(page.id)), page, ref.pages[number - 1] if number else None)
