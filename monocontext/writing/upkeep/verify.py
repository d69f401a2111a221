"""Verify a context: read all of it and check every checksum, length, count and filter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from monocontext.errors import ForeignObject, MonocontextError, NotFound
from monocontext.format import codec, inline
from monocontext.format.document_names import HASH_BYTES, name_hash
from monocontext.format.documents import Document, DocumentPage
from monocontext.format.filters.checking import Checker
from monocontext.format.index import ENDS_LINE, WHOLE_TEXT_FLAGS, Frame
from monocontext.format.manifest import Manifest, find_root, generation_key, read_generation, read_newest
from monocontext.format.name_tables import decode_names, entries_of, last_of_each_name
from monocontext.format.refs import DocumentsRef, documents_key
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field, replace
from monocontext.stores import Place, open_store_at
from monocontext.stores.protocol import Store
from monocontext.writing.documents import load_document_page
from monocontext.writing.pages import record_of
from monocontext.writing.stored_text import StoredText, expanded, neighbours


@dataclass(slots=True)
class Report:
    """The result of `verify`."""

    url: str
    generation: int = 0
    frames: int = 0  # that were read
    text_bytes: int = 0
    stored_bytes: int = 0
    filters: int = 0  # that were checked
    documents: int = 0  # whose records could be read
    problems: list[str] = field(default_factory=list)  # a line each: the object, the expected and the found value

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(
    url: Place,
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    generation: int | None = None,
    progress: Callable[[Report], None] = lambda report: None,
    store_options: StoreOptions | None = None,
) -> Report:
    """Check every checksum, length and count of a context: root, pages, segments, frames. Reads all of it.

    Also checks that the search filters contain every gram of the text, and that documents are found by name and have
    the recorded counts. Of a filter built with other folding tables, only name and checksum are checked. The report
    lists all damage. Raises `NotFound`, `NotAContext`, `AccessDenied`, or the error of a root that cannot be read.
    """
    with open_store_at(url, store_options) as store:
        root = find_root(store, generation).manifest
        report = Report(store.url, root.generation)
        _check_commit(store, root, generation is None, report)
        try:
            root = expanded(store, root)
        except MonocontextError as error:
            report.problems.append(f"{error}: nothing below this object was checked")
            return report
        report.filters = len(root.filters)
        from_frames = replace(root, text="", head="", tail="", last_page=None)  # so that `text` reads objects
        with StoredText(store, from_frames, allow=allow, store_options=store_options) as text:
            _check_copies(text, root, report)
            pages = _load_documents(root.documents, text.get, report)
            report.documents = sum(map(len, pages))
            _check_text(text, (page[i] for page in pages for i in range(len(page))), report, progress)
        report.problems = list(dict.fromkeys(report.problems))  # `_check_copies` reads pages too
        return report


@contextmanager
def _reporting(report: Report, prefix: str = "") -> Iterator[None]:
    """Report a `MonocontextError` of the `with` block, after a prefix, and continue after the block."""
    try:
        yield
    except MonocontextError as error:
        report.problems.append(f"{prefix}{error}")


def _check_text(
    text: StoredText, documents: Iterator[Document], report: Report, progress: Callable[[Report], None]
) -> None:
    """Read all frames, and compare them with their records, the filters, the documents and the root."""
    root = text.root
    flags = WHOLE_TEXT_FLAGS
    final_newline = False
    checker = Checker(root.filters, text.get)
    counter = _DocumentCounter(documents, report)
    for group in neighbours(_readable_frames(text, report)):
        for frame, data in _read_group(text, group, report):
            report.problems += checker.feed(frame.number, data)
            counter.feed(frame.start, data.decode())
            expected = record_of(frame)
            # `_read_group` has checked the stored bytes and their checksum.
            result = codec.describe(data, b"")._replace(stored_bytes=frame.stored_bytes, crc32c=frame.crc32c)
            flags &= result.flags
            final_newline = data.endswith(b"\n")
            if not expected.flags & ENDS_LINE:  # older writers do not set it
                result = result._replace(flags=result.flags & ~ENDS_LINE)
            if result != expected:
                where = f"frame {frame.number} of {frame.object}"
                report.problems.append(f"{where}: counts differ: expected {expected}, found {result}")
        progress(report)
    counter.end()
    report.problems += checker.finish()
    if root.flags & ~flags:
        report.problems.append(f"{report.url}: flags differ: expected {root.flags} of all frames, found {flags}")
    # After damage these differ anyway, since frames are missing.
    for name, value in (("stored_bytes", report.stored_bytes), ("final_newline", final_newline)):
        if report.ok and value != getattr(root, name):
            report.problems.append(f"{report.url}: {name} differs: expected {getattr(root, name)}, found {value}")


def _readable_frames(text: StoredText, report: Report) -> Iterator[Frame]:
    """Yield the frames whose index pages can be read (1 GET each), and report the others."""
    first = 0
    for page in text.root.pages:
        frames = text.frames(first, page.frames)
        first = page.frames
        with _reporting(report):
            yield from list(frames)


def _read_group(text: StoredText, group: list[Frame], report: Report) -> Iterator[tuple[Frame, bytes]]:
    """Yield neighbouring frames with their text (1 GET), and report those that cannot be read."""
    try:
        frames = text.read_range(group)
    except MonocontextError as error:
        report.problems.append(str(error) if isinstance(error, ForeignObject) else f"{group[0].object}: {error}")
        return
    for frame, data in frames:
        report.frames += 1
        report.stored_bytes += len(data)
        try:
            decoded = codec.decode(data, frame)
        except MonocontextError as error:
            report.problems.append(str(error))
        else:
            report.text_bytes += len(decoded)
            yield frame, decoded


class _DocumentCounter:
    """Counts the text of documents, frame by frame, and compares it with their records."""

    def __init__(self, documents: Iterator[Document], report: Report) -> None:
        self._documents, self._report = documents, report
        self._begin_next()

    def _begin_next(self) -> None:
        self._document = next(self._documents, None)
        self._characters = self._bytes = self._newlines = 0  # counted so far in this document

    def feed(self, start: int, text: str) -> None:
        """Count the documents in the text of the next frame, which begins at character `start`."""
        stop = start + len(text)
        while self._document is not None and self._document.start < stop:
            part = text[max(self._document.start - start, 0) : max(self._document.stop - start, 0)]
            self._characters += len(part)
            self._bytes += len(part.encode())
            self._newlines += part.count("\n")
            if self._document.stop > stop:
                return
            self.end()

    def end(self) -> None:
        """End the document: compare it with its record if all of its frames could be read, and begin the next."""
        if self._document is not None and self._characters >= len(self._document):
            expected, result = (self._document.bytes, self._document.newlines), (self._bytes, self._newlines)
            if result != expected:
                name = f"document {self._document.number} ({self._document.name!r})"
                self._report.problems.append(f"{name}: counts differ: expected {expected}, found {result}")
        self._begin_next()


def _load_documents(ref: DocumentsRef | None, get: Callable[[str], bytes], report: Report) -> list[DocumentPage]:
    """Load the pages of documents (1 GET each), up to one that cannot be read, and check the tables of names."""
    pages: list[DocumentPage] = []
    if ref is None:
        return pages
    with _reporting(report):
        for number in range(len(ref.pages)):
            page = load_document_page(ref, number, get)
            for i in range(len(page)):
                page.metadata(i)
            pages.append(page)
    if len(pages) < len(ref.pages):
        return pages
    hashes = b"".join(name_hash(page.raw_name(i)) for page in pages for i in range(len(page)))
    first = 0  # the first document of a table
    for table in ref.names:
        key = documents_key(table.id)
        with _reporting(report):
            result = decode_names(get(key), table)
            expected = last_of_each_name(entries_of(hashes[first * HASH_BYTES : table.documents * HASH_BYTES], first))
            if expected.tobytes() != last_of_each_name(result).tobytes():
                report.problems.append(f"{key}: does not find documents {first} to {table.documents - 1} by name")
        first = table.documents
    return pages


def _check_commit(store: Store, manifest: Manifest, is_newest: bool, report: Report) -> None:
    """Check that a root equals the object of its generation, and with `is_newest` that no later one is damaged."""
    with _reporting(report):
        try:
            if read_generation(store, manifest.generation) != manifest:
                report.problems.append(f"{store.url}: manifest.json differs from generation {manifest.generation}")
            if is_newest:
                read_newest(store)
        except NotFound:
            report.problems.append(f"{store.url}/{generation_key(manifest.generation)} is missing")


def _check_copies(text: StoredText, root: Manifest, report: Report) -> None:
    """Check that the copies of text in a root equal its frames, which `text` reads."""
    with _reporting(report, f"{report.url}: the text in the root could not be compared: "):
        if root.text and inline.decode_text(root) != text.read(0, root.characters).encode():
            report.problems.append(f"{report.url}: the text in the root differs from its frames")
        head, tail = (inline.read_end(copy).decode() for copy in (root.head, root.tail))
        size = root.characters
        if head != text.read(0, min(len(head), size)) or tail != text.read(max(size - len(tail), 0), size):
            report.problems.append(f"{report.url}: an end of the text in the root differs from its frames")
