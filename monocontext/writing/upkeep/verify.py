"""Verify a context: read all of it and check every checksum, length, count and filter.

The text is checked in parts, by this process as one part, by the workers of an executor as many. Filters and documents
reach over several parts, so what a part learned of these is joined with that of the others.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from functools import partial
from operator import add

from monocontext.errors import ForeignObject, MonocontextError, NotFound
from monocontext.format import codec, inline
from monocontext.format.document_names import HASH_BYTES, decode_names, entries_of, last_of_each_name, name_hash
from monocontext.format.document_refs import DocumentsRef, documents_key
from monocontext.format.documents import Document
from monocontext.format.filters.checking import Checker, describe_lacking
from monocontext.format.generations import find_root, read_generation, read_newest
from monocontext.format.index import ENDS_LINE, OF_TEXT, Frame
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.documents import load_document_page
from monocontext.writing.pages import load_page, record_of
from monocontext.writing.place import Place, open_store_at, portable_place
from monocontext.writing.stored_text import StoredText, expanded, neighbours, split

CHECKED_BYTES = 64 << 20
"""About as many stored bytes are in a part for a worker."""
PARTS_OF_FILTER = 8
"""The most parts in the frames of one filter: each of their workers reads the whole filter."""
_PARTS_AHEAD = 64

_Get = Callable[[str], bytes]
_Counts = tuple[int, int, int]
"""Characters, bytes and newlines."""


@dataclass(slots=True)
class Report:
    """The result of `verify`."""

    url: str
    generation: int = 0
    frames: int = 0
    """Frames that were read."""
    text_bytes: int = 0
    stored_bytes: int = 0
    filters: int = 0
    """Search filters that were checked."""
    documents: int = 0
    """Documents whose records were checked."""
    final_newline: bool = False
    """Whether the frame that was read last ends in a newline."""
    flags: int = OF_TEXT
    """The flags among `index.OF_TEXT` that every frame read so far has."""
    problems: list[str] = field(default_factory=list)
    """One line each: the object, the expected value, the found value."""
    lacking: dict[str, list[int]] = field(default_factory=dict, compare=False)
    """Frames whose columns lack a gram, by filter."""
    cut: dict[int, tuple[Document, _Counts]] = field(default_factory=dict, compare=False)
    """Documents, by number, with the counts of the text of theirs that was read, if some of it was not."""

    @property
    def ok(self) -> bool:
        return not self.problems

    def add(self, part: Report) -> None:
        """Add the report of the next part of the text."""
        self.frames += part.frames
        self.text_bytes += part.text_bytes
        self.stored_bytes += part.stored_bytes
        self.final_newline = part.final_newline
        self.flags &= part.flags
        self.problems += part.problems
        for name, frames in part.lacking.items():
            self.lacking.setdefault(name, []).extend(frames)
        for document, counts in part.cut.values():
            self.add_counts(document, counts)

    def add_counts(self, document: Document, counts: _Counts) -> None:
        """Add the counts of text of a document, and compare them with its record once all of it was read."""
        _, before = self.cut.pop(document.number, (document, (0, 0, 0)))
        characters, *sizes = counts = _sum(before, counts)
        if characters < len(document):
            self.cut[document.number] = document, counts
        elif (expected := [document.bytes, document.newlines]) != sizes:
            self.problems.append(
                f"document {document.number} ({document.name!r}): counts differ: expected {tuple(expected)}, "
                f"found {tuple(sizes)}"
            )


def _sum(left: _Counts, right: _Counts) -> _Counts:
    characters, size_bytes, newlines = map(add, left, right)
    return characters, size_bytes, newlines


def verify(
    url: Place,
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    generation: int | None = None,
    progress: Callable[[Report], None] = lambda report: None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
) -> Report:
    """Check every checksum, length and count of a context: root, pages, segments, frames. Reads everything once.

    Also checks that no gram of the text is missing from its search filters, since a search would miss a match then, and
    that documents are found by name and have the recorded counts. Of filters with other folding tables
    (`case_folding.TABLES`), only names and checksums are checked.

    `executor`: any `concurrent.futures.Executor`, whose workers then read the segments, some 64 MiB stored each, and
    the filters of these: each filter is read some 8 to 16 times.

    The report lists all damage. Raises `NotFound`, `NotAContext`, `AccessDenied`, or the error of a root that cannot be
    read: then nothing could be checked.
    """
    with open_store_at(url, store_options) as store:
        root = find_root(store, generation).manifest
        report = Report(store.url, root.generation)
        _check_commit(store, root, generation is None, report)
        try:
            root = expanded(store, root)
        except MonocontextError as error:
            report.problems.append(f"{error}: nothing that it names was checked")
            return report
        places = tuple(os.fspath(item) for item in allow)
        with StoredText(store, _without_copies(root), allow=places, store_options=store_options) as text:
            _check_copies(text, root, report)
        work = partial(_check_part, options=store_options or {}, allow=places, generation=root.generation)
        if executor is None:
            work((0, root.frames), url=store, report=report, progress=progress)
        else:
            for part in in_order(executor, partial(work, url=portable_place(url)), _parts(root), _PARTS_AHEAD):
                report.add(part)
                progress(report)
        report.problems += describe_lacking(report.lacking)
        if root.flags & ~report.flags:
            report.problems.append(
                f"{store.url}: flags differ: expected {root.flags} of all frames, found {report.flags}"
            )
        report.problems += _check_documents(root.documents, lambda key: store.get(key).data)
        report.documents = root.documents.documents if root.documents else 0
        report.filters = len(root.filters)
        _check_totals(store, root, report)
        report.problems = list(dict.fromkeys(report.problems))  # several parts may read the same page or filter
        return report


def _without_copies(root: Manifest) -> Manifest:
    """The root, so that all of its text is read from frames."""
    return replace(root, text="", head="", tail="", last_page=None)


# -- parts -------------------------------------------------------------------------------------------------------------


def _parts(root: Manifest) -> list[tuple[int, int]]:
    """Ranges of frames for workers, some `CHECKED_BYTES` stored and at least an eighth of the frames of a filter."""
    frames = CHECKED_BYTES * root.frames // max(root.stored_bytes, 1)
    frames = max(frames, *(ref.frames // PARTS_OF_FILTER for ref in root.filters), 1)
    return [(first, min(first + frames, root.frames)) for first in range(0, root.frames, frames)]


def _check_part(
    part: tuple[int, int],
    *,
    url: str | Store,
    options: StoreOptions,
    allow: tuple[str, ...],
    generation: int,
    report: Report | None = None,
    progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Open the context and check frames [first, stop), with their filters and documents."""
    first, stop = part
    with open_store_at(url, options) as store:
        root = expanded(store, read_generation(store, generation))
        report = report or Report(store.url, generation)
        refs = tuple(ref for ref in root.filters if ref.first_frame < stop and first < ref.stop_frame)
        checker = Checker(refs, lambda key: store.get(key).data, first, stop)
        counter: _Counter | None = None
        with StoredText(store, _without_copies(root), allow=allow, store_options=options) as text:
            for group in neighbours(_frames(text, first, stop, report)):
                for frame, data in _read(text, group, report):
                    report.problems += checker.feed(frame.number, data)
                    counter = counter or _Counter(root.documents, text.get, frame.start, report)
                    counter.feed(frame.start, data.decode())
                    _compare(frame, data, report)
                progress(report)
            if counter:
                counter.end()
            for number in range(stop, root.frames):
                if not checker.waits:
                    break
                try:
                    report.problems += checker.feed(number, *text.texts(number, number + 1))
                except MonocontextError:
                    break  # the part of that frame reports it
        report.problems += checker.finish()
        report.lacking = checker.lacking
        return report


def _frames(text: StoredText, first: int, stop: int, report: Report) -> Iterator[Frame]:
    """Yield the frames [first, stop) whose index pages can be read (1 GET each), and report the others."""
    pages = text.root.pages
    for number in range(bisect_right(pages, first, key=lambda page: page.frames), len(pages)):
        if number and pages[number - 1].frames >= stop:
            return
        try:
            page = load_page(text.store, pages, number)
        except MonocontextError as error:
            report.problems.append(str(error))
            continue
        for i in range(max(first - page.first_frame, 0), min(stop - page.first_frame, len(page))):
            yield page[i]


def _read(text: StoredText, group: list[Frame], report: Report) -> Iterator[tuple[Frame, bytes]]:
    """Yield neighbouring frames with their text (1 GET), and report those that cannot be read."""
    try:
        read = text.read_range(group)
    except MonocontextError as error:
        report.problems.append(str(error) if isinstance(error, ForeignObject) else f"{group[0].object}: {error}")
        return
    for frame, data in split([read]):
        report.frames += 1
        report.stored_bytes += len(data)
        try:
            decoded = codec.decode(data, frame)
            decoded.decode()
        except MonocontextError as error:
            report.problems.append(str(error))
        except UnicodeDecodeError as error:
            where = f"frame {frame.number} of {frame.object}"
            report.problems.append(f"{where}: not UTF-8 at byte {error.start}: {error.reason}")
        else:
            yield frame, decoded


def _compare(frame: Frame, data: bytes, report: Report) -> None:
    """Compare the record of a frame with its text. `decode` has checked its stored bytes."""
    expected = record_of(frame)
    result = codec.describe(data, b"")._replace(stored_bytes=frame.stored_bytes, crc32c=frame.crc32c)
    report.text_bytes += len(data)
    report.final_newline = data.endswith(b"\n")
    report.flags &= result.flags
    if not expected.flags & ENDS_LINE:  # older writers do not set it
        result = result._replace(flags=result.flags & ~ENDS_LINE)
    if result != expected:
        report.problems.append(
            f"frame {frame.number} of {frame.object}: counts differ: expected {expected}, found {result}"
        )


class _Counter:
    """Counts the text of documents, frame by frame."""

    def __init__(self, ref: DocumentsRef | None, get: _Get, first: int, report: Report) -> None:
        """`first`: the first character of the first frame."""
        self._documents = _documents_from(ref, get, first)
        self._report = report
        self._now = next(self._documents, None)
        self._counts: _Counts = (0, 0, 0)

    def feed(self, start: int, text: str) -> None:
        """Count the text of the next frame, which begins at character `start`."""
        stop = start + len(text)
        while self._now is not None and self._now.start < stop:
            part = text[max(self._now.start - start, 0) : max(self._now.stop - start, 0)]
            self._counts = _sum(self._counts, (len(part), len(part.encode()), part.count("\n")))
            if self._now.stop > stop:
                return
            self.end()

    def end(self) -> None:
        """The text of this document that is in the part ends here."""
        if self._now is not None:
            self._report.add_counts(self._now, self._counts)
        self._now, self._counts = next(self._documents, None), (0, 0, 0)


def _documents_from(ref: DocumentsRef | None, get: _Get, first: int) -> Iterator[Document]:
    """Yield the documents with text from character `first` on (1 GET a page), up to a page that cannot be read."""
    begin = bisect_left(ref.pages, first, key=lambda page: page.characters) if ref else 0
    for number in range(begin, len(ref.pages) if ref else 0):
        assert ref is not None
        try:
            page = load_document_page(ref, number, get)
        except MonocontextError:
            return  # `_check_documents` reports it
        yield from (item for i in range(len(page)) if (item := page[i]).stop > first or item.start >= first)


# -- the rest ----------------------------------------------------------------------------------------------------------


def _check_documents(ref: DocumentsRef | None, get: _Get) -> Iterator[str]:
    """Check all pages of documents, and that each name is found (1 GET each)."""
    if ref is None:
        return
    hashes = bytearray()
    for number in range(len(ref.pages)):
        try:
            page = load_document_page(ref, number, get)
            for i in range(len(page)):
                page.metadata(i)
        except MonocontextError as error:
            yield str(error)
            return
        hashes += b"".join(name_hash(page.raw_name(i)) for i in range(len(page)))
    began = 0
    for table in ref.names:
        key = documents_key(table.id)
        try:
            result = decode_names(get(key), table)
        except MonocontextError as error:
            yield str(error)
        else:
            expected = last_of_each_name(entries_of(hashes[began * HASH_BYTES : table.documents * HASH_BYTES], began))
            if expected.tobytes() != last_of_each_name(result).tobytes():
                yield f"{key}: does not find the documents {began} to {table.documents - 1} by name"
        began = table.documents


def _check_totals(store: Store, manifest: Manifest, report: Report) -> None:
    """Compare the size and the last newline in the root with those of all frames, if these are undamaged."""
    for name in ("stored_bytes", "final_newline"):
        expected, result = getattr(manifest, name), getattr(report, name)
        if report.ok and result != expected:
            report.problems.append(f"{store.url}: {name} differs: expected {expected}, found {result}")


def _check_commit(store: Store, manifest: Manifest, is_newest: bool, report: Report) -> None:
    """Check that a root equals the object of its generation, and with `is_newest` that no later one is damaged."""
    try:
        committed = read_generation(store, manifest.generation)
        if committed != manifest:
            report.problems.append(f"{store.url}: manifest.json differs from generation {manifest.generation}")
        if is_newest:
            read_newest(store)
    except NotFound:
        report.problems.append(f"{store.url}: generation {manifest.generation} has no object of its own")
    except MonocontextError as error:
        report.problems.append(str(error))


def _check_copies(text: StoredText, root: Manifest, report: Report) -> None:
    """Check that the copies of text in a root equal its frames, which `text` reads."""
    try:
        if root.text and inline.decode_text(root) != text.read(0, root.characters).encode():
            report.problems.append(f"{report.url}: the text in the root differs from its frames")
        head, tail = (inline.read_end(copy).decode() for copy in (root.head, root.tail))
        size = root.characters
        if head != text.read(0, min(len(head), size)) or tail != text.read(max(size - len(tail), 0), size):
            report.problems.append(f"{report.url}: an end of the text in the root differs from its frames")
    except MonocontextError as error:
        report.problems.append(f"{report.url}: the text in the root could not be compared: {error}")
