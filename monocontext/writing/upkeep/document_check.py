"""Check the documents of a text: their pages, their counts against the text, and that each name is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from monocontext.errors import MonocontextError
from monocontext.format.document_refs import DocumentsRef, documents_key
from monocontext.format.documents import (
    HASH_BYTES,
    Document,
    DocumentPage,
    decode_names,
    entries_of,
    last_of_each_name,
    name_hash,
)


class DocumentCheck:
    """Takes the text frame by frame, in order; frames may be left out, and so are the documents that lie in them."""

    def __init__(self, ref: DocumentsRef | None, get: Callable[[str], bytes]):
        self._ref = ref
        self._get = get
        self._problems: list[str] = []
        self._hashes = bytearray()
        self._records = self._read()
        self._now = next(self._records, None)
        self._seen = self._bytes = self._newlines = 0

    def _read(self) -> Iterator[Document]:
        """All records, as far as pages can be read."""
        ref = self._ref
        for number, page_ref in enumerate(ref.pages if ref else ()):
            assert ref is not None
            held = ref.last_page if number == len(ref.pages) - 1 else None
            try:
                before = ref.pages[number - 1] if number else None
                page = DocumentPage(held or self._get(documents_key(page_ref.id)), page_ref, before)
                for i in range(len(page)):
                    page.metadata(i)
            except MonocontextError as error:
                self._problems.append(str(error))
                return
            self._hashes += b"".join(name_hash(page.raw_name(i)) for i in range(len(page)))
            yield from (page[i] for i in range(len(page)))

    def feed(self, start: int, data: bytes) -> Iterator[str]:
        """Look at a frame that begins at a character; yields what is wrong with documents that end in it."""
        now = self._now
        if now is None:
            return
        text = data.decode()
        stop = start + len(text)
        while now is not None and now.start < stop:
            part = text[max(now.start - start, 0) : max(now.stop - start, 0)]
            self._seen += len(part)
            self._bytes += len(part.encode())
            self._newlines += part.count("\n")
            if now.stop > stop:
                return
            found, expected = (self._bytes, self._newlines), (now.bytes, now.newlines)
            if self._seen == len(now) and found != expected:
                yield f"document {now.number} ({now.name!r}): counts differ: expected {expected}, found {found}"
            now = self._now = next(self._records, None)
            self._seen = self._bytes = self._newlines = 0

    def finish(self) -> list[str]:
        """All text has passed: what is wrong with pages and names."""
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
