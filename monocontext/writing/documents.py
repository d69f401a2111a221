"""Documents of a text: those that a caller gives, and the rows that describe them, collected while the text is read.

publish({"name": text, ...}, url)
publish(documents([(name, text, metadata), ...]), url)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from monocontext.engine.fetch.threads import DaemonThreads, Outcome
from monocontext.errors import InvalidText
from monocontext.format.document_names import HASH_BYTES, entries_of, first_doubled, name_hash
from monocontext.format.document_refs import DocumentPageRef, DocumentsRef, documents_key
from monocontext.format.documents import (
    DOCUMENTS_PER_PAGE,
    HEAP_BYTES,
    DocumentPage,
    DocumentRow,
    encode_metadata,
    encode_name,
    encode_page,
    page_ref,
)
from monocontext.format.refs import fresh_id
from monocontext.records import NamedTuple, replace
from monocontext.stores.protocol import Store

_UPLOADS = 4
"""PUTs of pages at once."""

_UNCOUNTED_BYTES = 8 << 20
"""The most text that is kept until its writer has counted the newlines."""


class DocumentInputs:
    """Documents to publish, in order: the result of `documents`."""

    def __init__(self, items: Iterable[Any], *, unique: bool):
        self.items = items
        self.unique = unique


def documents(items: Iterable[Any] | Mapping[str, Any], *, unique: bool = False) -> DocumentInputs:
    """Documents for `publish` and `append`: a mapping of name to text, or an iterable, which is read once.

    An item is a text, or a tuple (name, text) or (name, text, metadata). A text is a `str` or the path of a file,
    metadata a mapping that JSON can hold, encoded in at most 64 KiB. A document without a name (None) gets its number
    as its name. If documents share a name, a lookup by name finds the last one; with `unique`, and always for a
    mapping, they are an `InvalidText`.

    A document that does not end in a newline gets one after it, which belongs to no document. Raises `InvalidText` for
    anything that is not a document, before anything is committed.
    """
    return DocumentInputs(
        items.items() if isinstance(items, Mapping) else items, unique=unique or isinstance(items, Mapping)
    )


class _Begun(NamedTuple):
    """A document whose end is not known yet."""

    name: bytes
    metadata: bytes
    character: int
    """The character of the text at which it begins."""
    byte: int
    line: int
    """The number of newlines before it."""


class DocumentRows:
    """Collects the rows of documents while a text is read. Its user calls `add_text` for each piece and `begin` and
    `end` at the borders of documents, in order. Full pages are stored in the background.

    Characters, bytes and newlines count from the first reported text, also if that is appended to another text.
    """

    def __init__(self, store: Store):
        self._store = store
        self.unique = False
        """Whether two documents with one name are refused."""
        self.count = 0
        """The number of documents so far."""
        self.hashes = bytearray()
        """The hashes of their names, `HASH_BYTES` each."""
        self.pages: list[DocumentPageRef] = []
        """The pages that are stored."""
        self.rows: list[DocumentRow] = []
        """The documents after these pages."""
        self.doubled: tuple[int, int] | None = None
        """The numbers of the first two documents with one name; known after `finish`."""
        self.start = (0, 0)
        """The characters and newlines before the place from which `rows` count."""
        self._heap_bytes = 0
        """Bytes of names and metadata in `rows`."""
        self._characters = 0
        """The length of the text so far."""
        self._bytes = 0
        self._counted = (0, 0)
        """Bytes of the text up to which newlines are counted, and the newlines in them."""
        self._uncounted: deque[tuple[int, bytes]] = deque()
        """Text after these bytes: the byte at which each piece begins, and the piece."""
        self._end = (0, 0)
        """The characters and newlines before the end of the last document."""
        self._begun: _Begun | None = None
        self._uploads: DaemonThreads | None = None
        self._pending: deque[Outcome[Any]] = deque()

    def add_text(self, data: bytes, characters: int) -> None:
        """Report the next text, in a document or between two: its UTF-8 bytes, and their number of characters."""
        self._uncounted.append((self._bytes, data))
        self._characters += characters
        self._bytes += len(data)
        if self._bytes - self._counted[0] > _UNCOUNTED_BYTES:
            self._count()

    def add_counted_text(self, characters: int, size_bytes: int, newlines: int) -> None:
        """Report the next text by its size alone."""
        newlines += self._count()
        self._characters += characters
        self._bytes += size_bytes
        self._counted = self._bytes, newlines

    def set_newlines(self, stop: int, newlines: int) -> None:
        """Record the number of newlines before byte `stop`: the writer of the text counts them anyway, soon after the
        text is read."""
        if stop > self._counted[0]:
            self._counted = stop, newlines
            while self._uncounted and self._uncounted[0][0] + len(self._uncounted[0][1]) <= stop:
                self._uncounted.popleft()

    def _count(self) -> int:
        """Count what is uncounted; returns the newlines in the text so far."""
        stop, newlines = self._counted
        for start, data in self._uncounted:
            newlines += data.count(b"\n", max(stop - start, 0))
        self._uncounted.clear()
        self._counted = max(stop, self._bytes), newlines
        return newlines

    def begin(self, name: object, metadata: Any = None) -> None:
        """A document begins here. Raises `InvalidText` for a name or metadata that cannot be stored."""
        encoded = encode_name(name, self.count), encode_metadata(metadata, self.count)
        self._begun = _Begun(*encoded, self._characters, self._bytes, self._count())

    def end(self) -> None:
        """The document begun last ends here."""
        started, self._begun = self._begun, None
        assert started is not None
        last_character, last_line = self._end
        line = self._count()
        self._add(
            DocumentRow(
                gap=started.character - last_character,
                gap_newlines=started.line - last_line,
                characters=self._characters - started.character,
                text_bytes=self._bytes - started.byte,
                newlines=line - started.line,
                name=started.name,
                metadata=started.metadata,
            )
        )
        self._end = self._characters, line

    def add_documents(self, found: Iterable[tuple[bytes, bytes, int, int, int, int]]) -> None:
        """Add documents whose text follows: `add_text` reports it next, in one call or more.

        Each item is (name, metadata, characters, bytes, newlines, newline_after); `newline_after` is 1 if a newline
        that belongs to no document follows, else 0.
        """
        offset, at_byte, line = self._characters, self._bytes, self._count()
        last_character, last_line = self._end
        for name, metadata, characters, size_bytes, newlines, newline_after in found:
            gap, gap_newlines = offset - last_character, line - last_line
            self._add(DocumentRow(gap, gap_newlines, characters, size_bytes, newlines, name, metadata))
            last_character, last_line = offset + characters, line + newlines
            offset, line = last_character + newline_after, last_line + newline_after
            at_byte += size_bytes + newline_after
        self._end = last_character, last_line
        self._counted = at_byte, line

    def _add(self, row: DocumentRow) -> None:
        self.rows.append(row)
        self.count += 1
        self.hashes += name_hash(row.name)
        self._heap_bytes += len(row.name) + len(row.metadata)
        if len(self.rows) >= DOCUMENTS_PER_PAGE or self._heap_bytes >= HEAP_BYTES:
            self._store_page()

    def _store_page(self) -> None:
        """Store `rows` as a page in the background; waits if 2 * _UPLOADS are on their way. Raises the error of an
        earlier PUT."""
        data = encode_page(self.rows)
        ref = page_ref(data, self.rows, self.pages[-1] if self.pages else None, *self.start)
        ref = replace(ref, id=fresh_id())
        self.pages.append(ref)
        self.rows, self._heap_bytes = [], 0
        self.start = ref.characters, ref.newlines
        uploads = self._uploads = self._uploads or DaemonThreads(_UPLOADS, "monocontext-documents")
        while len(self._pending) >= 2 * _UPLOADS:
            self._pending.popleft().result()
        self._pending.append(uploads.call(lambda: self._store.put(documents_key(ref.id), data)))

    def finish(self) -> None:
        """End the text: wait for the pages that are being stored. Raises the errors of their PUTs, and `InvalidText`
        for names that must differ."""
        try:
            while self._pending:
                self._pending.popleft().result()
        finally:
            if self._uploads:
                self._uploads.close()
        self.doubled = self._first_doubled()
        if self.unique and self.doubled:
            earlier, later = self.doubled
            raise InvalidText(f"documents {earlier} and {later} are both named {self._name(later)!r}")

    def _first_doubled(self) -> tuple[int, int] | None:
        """The numbers of the first two documents with one name, the earlier first; None if all names differ."""
        if self.count > DOCUMENTS_PER_PAGE:
            return first_doubled(entries_of(self.hashes))
        seen: dict[bytes, int] = {}  # for few documents numpy need not be imported
        for number in range(self.count):
            hashed = bytes(self.hashes[number * HASH_BYTES : (number + 1) * HASH_BYTES])
            if (earlier := seen.setdefault(hashed, number)) != number:
                return earlier, number
        return None

    def _name(self, number: int) -> str:
        """The name of a document (1 GET if its page is stored)."""
        before: DocumentPageRef | None = None
        for ref in self.pages:
            if number < ref.documents:
                page = DocumentPage(self._store.get(documents_key(ref.id)).data, ref, before)
                return page.name(number - page.first)
            before = ref
        return self.rows[number - (before.documents if before else 0)].name.decode()


def load_document_page(ref: DocumentsRef, number: int, get: Callable[[str], bytes]) -> DocumentPage:
    """Load and check a page of documents by its number (1 GET; none for a last page that the root holds).

    `get`: from a key to bytes.
    """
    copy = ref.last_page if number == len(ref.pages) - 1 else None
    page = ref.pages[number]
    return DocumentPage(copy or get(documents_key(page.id)), page, ref.pages[number - 1] if number else None)
