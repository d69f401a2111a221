"""Verify a context: read all of it and check every checksum, length, count and filter.

The text is checked in parts, by this process as one part, by the workers of an executor as many. Filters and documents
reach over several parts, so their results are joined at the end.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from functools import partial
from itertools import groupby

from monocontext.engine.open import ContextHandle
from monocontext.engine.reader import Reader
from monocontext.errors import MonocontextError, NotFound
from monocontext.format import codec, inline
from monocontext.format.directories import expand
from monocontext.format.document_names import HASH_BYTES, decode_names, entries_of, last_of_each_name, name_hash
from monocontext.format.document_refs import DocumentsRef, documents_key
from monocontext.format.documents import Document
from monocontext.format.filters.checking import Checker, describe_lacking
from monocontext.format.generations import find_root, read_generation, read_newest
from monocontext.format.index import ENDS_LINE, OF_TEXT, Frame, Page
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.documents import load_document_page
from monocontext.writing.pages import load_page, record_of
from monocontext.writing.place import Place, open_store_at, portable_place
from monocontext.writing.segments import segment_key

CHECKED_BYTES = 64 << 20
"""The least stored bytes in a part for a worker."""
PARTS_OF_FILTER = 8
"""The most parts in the frames of one filter: each of their workers reads the whole filter."""
_PARTS_AHEAD = 64
_READ_BYTES = 8 << 20
"""The most bytes of one read."""

_Get = Callable[[str], bytes]


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

    def add(self, part: Report) -> None:
        """Add the report of the next part of the text."""
        self.frames += part.frames
        self.text_bytes += part.text_bytes
        self.stored_bytes += part.stored_bytes
        self.final_newline = part.final_newline
        self.flags &= part.flags
        self.problems += part.problems

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(
    url: Place,
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    generation: int | None = None,
    progress: Callable[[Report], None] | None = None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
) -> Report:
    """Check every checksum, length and count of a context: root, pages, segments, frames. Reads everything once.

    Also checks that no gram of the text is missing from its search filters, since a search would miss a match then, and
    that documents are found by name and have the recorded counts. Of filters with other folding tables
    (`case_folding.TABLES`), only names and checksums are checked.

    `executor`: any `concurrent.futures.Executor`, whose workers then read the segments, 64 MiB stored or more each, and
    the filters of these: each filter is read some 8 to 16 times.

    The report lists all damage. Raises `NotFound`, `NotAContext`, `AccessDenied`, or the error of a root that cannot be
    read: then nothing could be checked.
    """
    with open_store_at(url, store_options) as store:
        manifest = find_root(store, generation).manifest
        report = Report(store.url, manifest.generation)

        def get(key: str) -> bytes:
            return store.get(key).data

        _check_commit(store, manifest, generation is None, report)
        try:
            manifest = expand(manifest, lambda directory: get(directory.key))
        except MonocontextError as error:
            report.problems.append(f"{error}: nothing that it names was checked")
            return report
        places = tuple(os.fspath(item) for item in allow)
        _check_copies(store, manifest, places, store_options, report)
        work = partial(_check_part, options=store_options or {}, allow=places, generation=manifest.generation)
        joined = _Joined(report)
        if executor is None:
            joined.add(work(_Part(0, manifest.frames), url=store, report=report, progress=progress))
        else:
            parts: list[_Part] = []

            def noted() -> Iterator[_Part]:
                for part in _cut_parts(store, manifest, report):
                    parts.append(part)
                    yield part

            for result in in_order(executor, partial(work, url=portable_place(url)), noted(), _PARTS_AHEAD):
                joined.add(result)
                if progress:
                    progress(report)
            unseen = tuple(ref for ref in manifest.filters if not any(ref.first_frame in part for part in parts))
            joined.filter_problems |= dict.fromkeys(Checker(unseen, get).finish())
        joined.finish()
        if manifest.flags & ~report.flags:
            report.problems.append(
                f"{store.url}: flags differ: expected {manifest.flags} of all frames, found {report.flags}"
            )
        report.problems += _check_documents(manifest.documents, get)
        report.documents = manifest.documents.documents if manifest.documents else 0
        report.filters = len(manifest.filters)
        _check_totals(store, manifest, report)
        return report


# -- parts -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """Frames [first, stop) of the text."""

    first: int
    stop: int

    def __contains__(self, frame: int) -> bool:
        return self.first <= frame < self.stop


@dataclass(slots=True)
class _Counted:
    """A document, and the counts of its text that was read so far."""

    document: Document
    characters: int = 0
    bytes: int = 0
    newlines: int = 0

    def add(self, other: _Counted) -> None:
        """Add the counts of another part of the document."""
        self.characters += other.characters
        self.bytes += other.bytes
        self.newlines += other.newlines

    def problems(self) -> Iterator[str]:
        """Yield a line if all of the document was counted and the counts differ from the record."""
        now = self.document
        result, expected = (self.bytes, self.newlines), (now.bytes, now.newlines)
        if self.characters == len(now) and result != expected:
            yield f"document {now.number} ({now.name!r}): counts differ: expected {expected}, found {result}"


@dataclass(slots=True)
class PartResult:
    """The result of checking a part."""

    report: Report
    filter_problems: list[str] = field(default_factory=list)
    lacking: dict[str, list[int]] = field(default_factory=dict)
    """Frames whose columns lack a gram, by filter."""
    cut: list[_Counted] = field(default_factory=list)
    """Documents of which some text was not in the part."""


class _Joined:
    """Joins the results of parts, in order, into a report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.filter_problems: dict[str, None] = {}
        """Used as an ordered set: several parts may read the same filter and report the same line."""
        self._lacking: dict[str, list[int]] = {}
        self._cut: dict[int, _Counted] = {}

    def add(self, part: PartResult) -> None:
        if part.report is not self._report:
            self._report.add(part.report)
        self.filter_problems |= dict.fromkeys(part.filter_problems)
        for name, frames in part.lacking.items():
            self._lacking.setdefault(name, []).extend(frames)
        for counted in part.cut:
            self._cut.setdefault(counted.document.number, _Counted(counted.document)).add(counted)

    def finish(self) -> None:
        """Report the problems of filters and documents, which may reach over several parts."""
        self._report.problems += self.filter_problems
        self._report.problems += describe_lacking(self._lacking)
        for counted in self._cut.values():
            self._report.problems += counted.problems()


def _cut_parts(store: Store, manifest: Manifest, report: Report) -> Iterator[_Part]:
    """Yield parts for workers: neighbouring segments of one index page, some 64 MiB stored and an eighth of the frames
    of a filter. Reports pages that cannot be read (1 GET each)."""
    for page in _pages(store, manifest, 0, manifest.frames, report):
        first = stop = page.first_frame
        size = 0
        for frames in _group_by_object(page, stop, page.first_frame + len(page)):
            stop += len(frames)
            size += sum(frame.stored_bytes for frame in frames)
            covered = next((ref.frames for ref in manifest.filters if ref.first_frame <= first < ref.stop_frame), 0)
            if size >= CHECKED_BYTES and stop - first >= covered // PARTS_OF_FILTER:
                yield _Part(first, stop)
                first, size = stop, 0
        if stop > first:
            yield _Part(first, stop)


def _pages(store: Store, manifest: Manifest, first: int, stop: int, report: Report) -> Iterator[Page]:
    """Yield the index pages of frames [first, stop) that can be read (1 GET each), and report the others."""
    for number in range(bisect_right(manifest.pages, first, key=lambda page: page.frames), len(manifest.pages)):
        if number and manifest.pages[number - 1].frames >= stop:
            return
        try:
            yield load_page(store, manifest.pages, number)
        except MonocontextError as error:
            report.problems.append(str(error))


def _check_part(
    part: _Part,
    *,
    url: str | Store,
    options: StoreOptions,
    allow: tuple[str, ...],
    generation: int,
    report: Report | None = None,
    progress: Callable[[Report], None] | None = None,
) -> PartResult:
    """Open the context and check the frames of a part, with their filters and documents."""
    with open_store_at(url, options) as store:
        manifest = expand(read_generation(store, generation), lambda ref: store.get(ref.key).data)
        context = ContextHandle(store, cache_bytes=0, allow=allow, store_options=options, owns_store=False)
        result = PartResult(report or Report(store.url, generation))
        refs = tuple(ref for ref in manifest.filters if ref.first_frame < part.stop and part.first < ref.stop_frame)
        checker = Checker(refs, lambda key: store.get(key).data, part.first, part.stop)
        bare = replace(manifest, text="", head="", tail="")
        with closing(context), closing(context.read(bare)) as text:
            checks = _Checks(store, context, manifest, checker, result)
            for page in _pages(store, manifest, part.first, part.stop, result.report):
                for frames in _group_by_object(page, part.first, part.stop):
                    checks.check(frames)
                    if progress:
                        progress(result.report)
            for number, data in _texts_from(text, part.stop):
                if not checker.waits:
                    break
                result.filter_problems += checker.feed(number, data)
        result.filter_problems += checker.finish()
        result.lacking, result.cut = checker.lacking, checks.cut_documents()
        return result


def _texts_from(text: Reader, first: int) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and texts of the frames from `first` on (1 GET each), up to one that cannot be read."""
    for number in range(first, text.manifest.frames):
        try:
            yield number, text.load(text.frame(number)).data
        except MonocontextError:
            return  # the part of that frame reports it


def _group_by_object(page: Page, first: int, stop: int) -> Iterator[list[Frame]]:
    """Yield neighbouring frames of one object, from the frames [first, stop) of the text that a page has."""
    begin = max(first - page.first_frame, 0)
    frames = (page[i] for i in range(begin, min(stop - page.first_frame, len(page))))
    for _, group in groupby(frames, key=lambda frame: frame.object):
        yield list(group)


class _Checks:
    """Checks the frames of a part, in order, and what is recorded of their text."""

    def __init__(
        self, store: Store, context: ContextHandle, manifest: Manifest, filters: Checker, result: PartResult
    ) -> None:
        self._store, self._context, self._manifest = store, context, manifest
        self._filters, self._result, self._report = filters, result, result.report
        self._documents: Iterator[_Counted] | None = None
        """Those from the first frame on; None until it comes."""
        self._now: _Counted | None = None
        self._cut: list[_Counted] = []

    def check(self, frames: list[Frame]) -> None:
        """Check neighbouring frames of one object. If they are a whole segment, its name is compared with the hash of
        its bytes."""
        name, report = frames[0].object, self._report
        try:
            is_foreign = "://" in name
            reader, key = self._context.place(name, self._manifest.sources) if is_foreign else (self._store, name)
        except MonocontextError as error:
            report.problems.append(str(error))
            return
        digest = hashlib.sha256()
        read_bytes = 0
        is_sound = True
        for batch in _batches(frames):
            start, stop = batch[0].offset, batch[-1].offset + batch[-1].stored_bytes
            try:
                blob = reader.get_range(key, start, stop - start, etag=batch[0].etag)
            except MonocontextError as error:
                report.problems.append(f"{name}: {error}")
                is_sound = False
                continue
            digest.update(blob.data)
            read_bytes += len(blob.data)
            for frame in batch:
                is_sound &= self._check_frame(frame, blob.data[frame.offset - start :][: frame.stored_bytes])
            # Of a segment that reaches into another page only the frames are checked.
            if stop == blob.total_bytes == read_bytes and is_sound and not is_foreign:
                result = segment_key(digest.hexdigest())
                if result != name:
                    report.problems.append(f"{name}: content differs from the name: found what would be {result}")

    def _check_frame(self, frame: Frame, stored: bytes) -> bool:
        """Check one frame, given its stored bytes. Returns whether it is as recorded."""
        report = self._report
        report.frames += 1
        report.stored_bytes += len(stored)
        where = f"frame {frame.number} of {frame.object}"
        try:
            data = codec.decode(stored, frame)
            result = codec.describe(data, stored)
        except MonocontextError as error:
            report.problems.append(str(error))
            return False
        except UnicodeDecodeError as error:
            report.problems.append(f"{where}: not UTF-8 at byte {error.start}: {error.reason}")
            return False
        report.text_bytes += len(data)
        report.final_newline = data.endswith(b"\n")
        report.flags &= result.flags
        self._result.filter_problems += self._filters.feed(frame.number, data)
        report.problems += self._count(frame.start, data.decode())
        expected = record_of(frame)
        if not expected.flags & ENDS_LINE:  # older writers do not set it
            result = result._replace(flags=result.flags & ~ENDS_LINE)
        if result != expected:
            report.problems.append(f"{where}: counts differ: expected {expected}, found {result}")
            return False
        return True

    def _count(self, start: int, text: str) -> Iterator[str]:
        """Count the text of documents in a frame that begins at character `start`. Yields problems of those that end
        in it."""
        if self._documents is None:
            self._documents = _documents_from(self._manifest.documents, lambda key: self._store.get(key).data, start)
            self._now = next(self._documents, None)
        stop = start + len(text)
        while self._now is not None and self._now.document.start < stop:
            now, document = self._now, self._now.document
            part = text[max(document.start - start, 0) : max(document.stop - start, 0)]
            now.add(_Counted(document, len(part), len(part.encode()), part.count("\n")))
            if document.stop > stop:
                return
            yield from now.problems()
            if now.characters < len(document):
                self._cut.append(now)
            self._now = next(self._documents, None)

    def cut_documents(self) -> list[_Counted]:
        """The documents of which only some text was in the part."""
        return self._cut + ([self._now] if self._now and self._now.characters else [])


def _batches(frames: list[Frame]) -> Iterator[list[Frame]]:
    """Yield neighbouring frames whose bytes one read fetches."""
    batch: list[Frame] = []
    for frame in frames:
        follows = batch and frame.offset == batch[-1].offset + batch[-1].stored_bytes
        if batch and (not follows or frame.offset + frame.stored_bytes - batch[0].offset > _READ_BYTES):
            yield batch
            batch = []
        batch.append(frame)
    if batch:
        yield batch


def _documents_from(ref: DocumentsRef | None, get: _Get, first: int) -> Iterator[_Counted]:
    """Yield the documents with text from character `first` on (1 GET a page), up to a page that cannot be read."""
    begin = bisect_left(ref.pages, first, key=lambda page: page.characters) if ref else 0
    for number in range(begin, len(ref.pages) if ref else 0):
        assert ref is not None
        try:
            page = load_document_page(ref, number, get)
        except MonocontextError:
            return  # `_check_documents` reports it
        yield from (_Counted(item) for i in range(len(page)) if (item := page[i]).stop > first or item.start >= first)


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


def _check_copies(
    store: Store, manifest: Manifest, allow: tuple[str, ...], options: StoreOptions | None, report: Report
) -> None:
    """Check that the copies of text in the root equal its frames."""
    context = ContextHandle(store, cache_bytes=0, allow=allow, store_options=options, owns_store=False)
    bare = replace(manifest, text="", head="", tail="")
    with closing(context), closing(context.read(bare)) as text:
        try:
            if manifest.text and inline.decode_text(manifest) != text.read(0, text.characters).encode():
                report.problems.append(f"{store.url}: the text in the root differs from its frames")
            head, tail = (inline.read_end(copy).decode() for copy in (manifest.head, manifest.tail))
            size = text.characters
            if head != text.read(0, min(len(head), size)) or tail != text.read(max(size - len(tail), 0), size):
                report.problems.append(f"{store.url}: an end of the text in the root differs from its frames")
        except MonocontextError as error:
            report.problems.append(f"{store.url}: the text in the root could not be compared: {error}")
