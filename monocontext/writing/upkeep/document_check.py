"""Check the documents of a text: their pages, their counts against the text, and that each name is found."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from monocontext.errors import MonocontextError
from monocontext.format.document_refs import DocumentsRef, documents_key
from monocontext.format.documents import (
    HASH_BYTES,
    Document,
    decode_names,
    entries_of,
    last_of_each_name,
    name_hash,
)
from monocontext.records import dataclass
from monocontext.writing.documents import load_document_page


@dataclass(slots=True)
class Counted:
    """A document, and the counts of its text that was read so far."""

    document: Document
    characters: int = 0
    bytes: int = 0
    newlines: int = 0

    def add(self, other: Counted) -> None:
        """Add the counts of another part of the document."""
        self.characters += other.characters
        self.bytes += other.bytes
        self.newlines += other.newlines

    def problems(self) -> Iterator[str]:
        """Yield a line if all of the document was counted and the counts differ from the record."""
        now = self.document
        found, expected = (self.bytes, self.newlines), (now.bytes, now.newlines)
        if self.characters == len(now) and found != expected:
            yield f"document {now.number} ({now.name!r}): counts differ: expected {expected}, found {found}"


class DocumentCheck:
    """Checks documents, given the frames of the text in order. Those in frames that are left out are not checked."""

    def __init__(self, ref: DocumentsRef | None, get: Callable[[str], bytes], first: int = 0):
        """`first` is the first character of the text that is given."""
        self._ref = ref
        self._get = get
        self._problems: list[str] = []
        self._hashes = bytearray()
        self._cut: list[Counted] = []
        self._records = self._read(bisect_left(ref.pages, first, key=lambda page: page.characters) if ref else 0)
        self._now = self._next()
        while self._now and self._now.document.start < first and self._now.document.stop <= first:
            self._now = self._next()

    def _next(self) -> Counted | None:
        document = next(self._records, None)
        return None if document is None else Counted(document)  # not `document and`: an empty document is false

    def _read(self, first_page: int) -> Iterator[Document]:
        """Yield the records of pages from number `first_page` on, up to a page that cannot be read."""
        ref = self._ref
        for number in range(first_page, len(ref.pages) if ref else 0):
            assert ref is not None
            try:
                page = load_document_page(ref, number, self._get)
                for i in range(len(page)):
                    page.metadata(i)
            except MonocontextError as error:
                self._problems.append(str(error))
                return
            self._hashes += b"".join(name_hash(page.raw_name(i)) for i in range(len(page)))
            yield from (page[i] for i in range(len(page)))

    def feed(self, start: int, data: bytes) -> Iterator[str]:
        """Check a frame that begins at character `start`. Yields the problems of documents that end in it."""
        now = self._now
        if now is None:
            return
        text = data.decode()
        stop = start + len(text)
        while now is not None and now.document.start < stop:
            document = now.document
            part = text[max(document.start - start, 0) : max(document.stop - start, 0)]
            now.add(Counted(document, len(part), len(part.encode()), part.count("\n")))
            if document.stop > stop:
                return
            yield from now.problems()
            if now.characters < len(document):
                self._cut.append(now)
            now = self._now = self._next()

    def finish_part(self) -> list[Counted]:
        """End a part of the text. Returns the documents of which only some text was given."""
        return self._cut + ([self._now] if self._now and self._now.characters else [])

    def finish(self) -> list[str]:
        """End the text. Returns the problems of pages and names."""
        for _ in self._records:
            pass
        ref = self._ref
        if ref is None or self._problems:
            return self._problems
        began = 0
        for table in ref.names:
            key = documents_key(table.id)
            try:
                found = decode_names(self._get(key), table)
            except MonocontextError as error:
                self._problems.append(str(error))
            else:
                hashes = self._hashes[began * HASH_BYTES : table.documents * HASH_BYTES]
                expected = last_of_each_name(entries_of(hashes, began))
                if expected.tobytes() != last_of_each_name(found).tobytes():
                    self._problems.append(
                        f"{key}: does not find the documents {began} to {table.documents - 1} by name"
                    )
            began = table.documents
        return self._problems
