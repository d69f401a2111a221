"""Verify a context: read all of it and check every checksum, length, count and filter."""

from __future__ import annotations

import hashlib
import os
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from functools import partial
from itertools import groupby
from typing import Any

from monocontext.engine.open import ContextHandle
from monocontext.engine.reader import Reader
from monocontext.errors import MonocontextError, NotFound
from monocontext.format import codec, inline
from monocontext.format.filters.case_folding import fold_bytes
from monocontext.format.filters.checking import Checker, describe_lacking
from monocontext.format.generations import find_root, read_generation
from monocontext.format.index import ENDS_LINE, OF_TEXT, Frame, FrameRecord, Page
from monocontext.format.manifest import Manifest
from monocontext.format.refs import FilterRef
from monocontext.format.root_directories import expand
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.batches import PARTS_AHEAD
from monocontext.writing.pages import load_page
from monocontext.writing.place import Place, open_store_at, portable_place
from monocontext.writing.reuse import segment_key
from monocontext.writing.upkeep.document_check import Counted, DocumentCheck

READ_BYTES = 8 << 20
PART_BYTES = 64 << 20
PARTS_OF_FILTER = 8
"""Workers that check one filter read it as a whole each."""


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
    """The flags of `index.OF_TEXT` that all these frames have."""
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


@dataclass(frozen=True, slots=True)
class _Checks:
    """Callbacks that receive the text of each frame."""

    filters: Checker
    documents: DocumentCheck
    filter_problems: list[str]


def verify(
    url: Place,
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    generation: int | None = None,
    progress: Callable[[Report], None] | None = None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
) -> Report:
    """Check every checksum, length and count of a context: root, pages, segments, frames (reads everything once).

    Also checks that no gram of the text is missing from its search filters, so that no search misses a match. Filters
    with other folding tables (`case_folding.TABLES`) are checked by their names and checksums alone. Of documents it
    checks that their names are found, and that their counts are those of the text.

    `executor`: any `concurrent.futures.Executor`, whose workers then read the segments, 64 MiB stored or more each, and
    the filter of these: each filter is read some 8 to 16 times.

    The report lists all damage. Raises only where nothing can be checked: `NotFound`, `NotAContext`, `AccessDenied`,
    or a root that cannot be read.
    """
    with open_store_at(url, store_options) as store:
        manifest = find_root(store, generation).manifest
        context = ContextHandle(store, cache_bytes=0, allow=allow, store_options=store_options, owns_store=False)
        report = Report(store.url, manifest.generation)
        _check_commit(store, manifest, report)
        try:
            manifest = expand(manifest, lambda ref: store.get(ref.key).data)
        except MonocontextError as error:
            report.problems.append(f"{error}: nothing that it names was checked")
            context.close()
            return report
        filters = Checker(manifest.filters, lambda key: store.get(key).data)
        checks = _Checks(filters, DocumentCheck(manifest.documents, lambda key: store.get(key).data), [])
        _check_copies(store, manifest, context, report)
        pages = _load_pages(store, manifest, report)
        if executor is None:
            for _, page in pages:
                for frames in _by_object(page):
                    _check_object(store, context, manifest, frames, checks, report)
                    if progress:
                        progress(report)
        else:
            place = (
                portable_place(url),
                store_options or {},
                tuple(os.fspath(each) for each in allow),
                manifest.generation,
            )
            gathered = _Gathered(report)
            parts: list[_Part] = []

            def cut() -> Iterator[_Part]:
                for part in _parts(pages, manifest.filters):
                    parts.append(part)
                    yield part

            for part in in_order(executor, partial(_check_part, place), cut(), PARTS_AHEAD):
                gathered.add(part)
                if progress:
                    progress(report)
            gathered.finish()
            filters = Checker(_unseen(manifest.filters, parts), lambda key: store.get(key).data)
        if manifest.flags & ~report.flags:
            report.problems.append(
                f"{store.url}: flags differ: expected {manifest.flags} of all frames, found {report.flags}"
            )
        report.problems += [*checks.filter_problems, *filters.finish()]
        report.problems += describe_lacking(filters.lacking)
        report.problems += checks.documents.finish()
        report.documents = manifest.documents.documents if manifest.documents else 0
        report.filters = len(manifest.filters)
        context.close()
        if report.ok and report.stored_bytes != manifest.stored_bytes:
            report.problems.append(
                f"{store.url}: stored_bytes differs: expected {manifest.stored_bytes}, found {report.stored_bytes}"
            )
        if report.ok and report.final_newline != manifest.final_newline:
            report.problems.append(
                f"{store.url}: final_newline differs: expected {manifest.final_newline}, found {report.final_newline}"
            )
        return report


def _check_commit(store: Store, manifest: Manifest, report: Report) -> None:
    try:
        committed = read_generation(store, manifest.generation)
    except NotFound:
        report.problems.append(f"{store.url}: generation {manifest.generation} has no object of its own")
    except MonocontextError as error:
        report.problems.append(str(error))
    else:
        if committed != manifest:
            report.problems.append(f"{store.url}: manifest.json differs from generation {manifest.generation}")


def _check_copies(store: Store, manifest: Manifest, context: ContextHandle, report: Report) -> None:
    """Check that the copies of text in the root equal its frames."""
    bare = replace(manifest, text=b"", head="", tail="")
    with closing(context.read(bare)) as text:
        try:
            if manifest.text and inline.decode_text(manifest) != text.read(0, text.characters).encode():
                report.problems.append(f"{store.url}: the text in the root differs from its frames")
            head, tail = (inline.read_end(copy).decode() for copy in (manifest.head, manifest.tail))
            size = text.characters
            if head != text.read(0, min(len(head), size)) or tail != text.read(max(size - len(tail), 0), size):
                report.problems.append(f"{store.url}: an end of the text in the root differs from its frames")
        except MonocontextError as error:
            report.problems.append(f"{store.url}: the text in the root could not be compared: {error}")


def _load_pages(store: Store, manifest: Manifest, report: Report) -> Iterator[tuple[int, Page]]:
    for number, _ in enumerate(manifest.pages):
        try:
            yield number, load_page(store, manifest.pages, number)
        except MonocontextError as error:
            report.problems.append(str(error))


@dataclass(frozen=True, slots=True)
class _Part:
    """Some frames of one page, for one worker."""

    page: int
    start: int
    """The first frame, counted within the page; `stop` is counted likewise."""
    stop: int
    first_frame: int
    """The number of the frame `start` in the whole text."""

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.stop - self.start


@dataclass(slots=True)
class _Checked:
    """The result of a part."""

    report: Report
    filter_problems: list[str] = field(default_factory=list)
    lacking: dict[str, list[int]] = field(default_factory=dict)
    cut: list[Counted] = field(default_factory=list)
    """Documents that reach into other parts."""


class _Gathered:
    """Puts the results of parts together."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._filter_problems: dict[str, None] = {}
        """Used as an ordered set: several parts may read the same filter and report the same line."""
        self._lacking: dict[str, list[int]] = {}
        self._cut: dict[int, Counted] = {}

    def add(self, part: _Checked) -> None:
        self._report.add(part.report)
        self._filter_problems |= dict.fromkeys(part.filter_problems)
        for name, frames in part.lacking.items():
            self._lacking.setdefault(name, []).extend(frames)
        for counted in part.cut:
            self._cut.setdefault(counted.document.number, Counted(counted.document)).add(counted)

    def finish(self) -> None:
        """All parts are here."""
        self._report.problems += self._filter_problems
        self._report.problems += describe_lacking(self._lacking)
        for counted in self._cut.values():
            self._report.problems += counted.problems()


def _parts(pages: Iterable[tuple[int, Page]], filters: Sequence[FilterRef]) -> Iterator[_Part]:
    """Yield parts of neighbouring segments of one page: some 64 MiB stored, and an eighth of the frames of a filter."""
    for number, page in pages:
        start = stop = size = 0
        for frames in _by_object(page):
            stop += len(frames)
            size += sum(frame.stored_bytes for frame in frames)
            first = page.first_frame + start
            at = bisect_right(filters, first, key=lambda ref: ref.stop_frame)
            covered = filters[at].frames if at < len(filters) and filters[at].first_frame <= first else 0
            if size >= PART_BYTES and stop - start >= covered // PARTS_OF_FILTER:
                yield _Part(number, start, stop, first)
                start, size = stop, 0
        if stop > start:
            yield _Part(number, start, stop, page.first_frame + start)


def _unseen(filters: Sequence[FilterRef], parts: Sequence[_Part]) -> tuple[FilterRef, ...]:
    """The filters none of whose frames could be read."""

    def is_seen(ref: FilterRef) -> bool:
        at = bisect_right(parts, ref.first_frame, key=lambda part: part.stop_frame)
        return at < len(parts) and parts[at].first_frame < ref.stop_frame

    return tuple(ref for ref in filters if not is_seen(ref))


def _check_part(place: tuple[Any, ...], part: _Part) -> _Checked:
    """Open the context in a worker, and check some frames of one of its pages, with what filters and documents have of
    them."""
    url, options, allow, generation = place
    with open_store_at(url, options) as store:
        manifest = expand(read_generation(store, generation), lambda ref: store.get(ref.key).data)
        context = ContextHandle(store, cache_bytes=0, allow=allow, store_options=options, owns_store=False)
        report = Report(store.url, generation)
        page = load_page(store, manifest.pages, part.page)
        first, stop = part.first_frame, part.stop_frame
        refs = _filters_of(manifest.filters, first, stop)
        checker = Checker(refs, lambda key: store.get(key).data, first, stop)
        documents = DocumentCheck(manifest.documents, lambda key: store.get(key).data, page[part.start].start)
        result = _Checked(report)
        with closing(context), closing(context.read(replace(manifest, text=b"", head="", tail=""))) as text:
            if any(ref.first_frame >= first and ref.border_frames for ref in refs):
                reach = max(ref.reach_bytes for ref in refs)
                for number, data in reversed(list(_texts(text, range(first - 1, -1, -1), reach))):
                    result.filter_problems += checker.feed(number, data)
            checks = _Checks(checker, documents, result.filter_problems)
            for _, frames in groupby((page[i] for i in range(part.start, part.stop)), key=lambda frame: frame.object):
                _check_object(store, context, manifest, list(frames), checks, report)
            for number, data in _texts(text, range(stop, manifest.frames), sys.maxsize):
                if not checker.waits:
                    break
                result.filter_problems += checker.feed(number, data)
        result.filter_problems += checker.finish()
        result.lacking, result.cut = checker.lacking, documents.finish_part()
        return result


def _filters_of(filters: Sequence[FilterRef], first: int, stop: int) -> tuple[FilterRef, ...]:
    """The filters of frames [first, stop), and the next one, whose border says how far columns before it reach."""
    at = bisect_right(filters, first, key=lambda ref: ref.stop_frame)
    end = bisect_left(filters, stop, key=lambda ref: ref.first_frame)
    return tuple(filters[at : end + 1])


def _texts(text: Reader, numbers: range, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield neighbouring frames with their numbers (1 GET each), up to one that cannot be read, until they have some
    bytes when folded."""
    folded = 0
    for number in numbers:
        try:
            data = text.load(text.frame(number)).data
        except MonocontextError:
            return  # its own part says so
        yield number, data
        folded += len(fold_bytes(data))
        if folded >= most_bytes:
            return


def _by_object(page: Page) -> Iterator[list[Frame]]:
    frames = (page[i] for i in range(len(page)))
    for _, group in groupby(frames, key=lambda frame: frame.object):
        yield list(group)


def _check_object(
    store: Store, context: ContextHandle, manifest: Manifest, frames: list[Frame], checks: _Checks, report: Report
) -> None:
    name = frames[0].object
    try:
        reader, key = context.place(name, manifest.sources) if "://" in name else (store, name)
    except MonocontextError as error:
        report.problems.append(str(error))
        return
    digest = hashlib.sha256()
    read_bytes = 0
    sound = True
    for batch in _batches(frames):
        start, stop = batch[0].offset, batch[-1].offset + batch[-1].stored_bytes
        try:
            blob = reader.get_range(key, start, stop - start, etag=batch[0].etag)
        except MonocontextError as error:
            report.problems.append(f"{name}: {error}")
            sound = False
            continue
        digest.update(blob.data)
        read_bytes += len(blob.data)
        for frame in batch:
            sound &= _check_frame(frame, blob.data[frame.offset - start :][: frame.stored_bytes], checks, report)
        # If a segment has random bytes besides its frames, or reaches into another page, only its frames are checked.
        if stop == blob.total_bytes == read_bytes and sound and "://" not in name:
            found = segment_key(digest.hexdigest())
            if found != name:
                report.problems.append(f"{name}: content differs from the name: found what would be {found}")


def _batches(frames: list[Frame]) -> Iterator[list[Frame]]:
    batch: list[Frame] = []
    for frame in frames:
        follows = batch and frame.offset == batch[-1].offset + batch[-1].stored_bytes
        if batch and (not follows or frame.offset + frame.stored_bytes - batch[0].offset > READ_BYTES):
            yield batch
            batch = []
        batch.append(frame)
    if batch:
        yield batch


def _check_frame(frame: Frame, stored: bytes, checks: _Checks, report: Report) -> bool:
    report.frames += 1
    report.stored_bytes += len(stored)
    where = f"frame {frame.number} of {frame.object}"
    try:
        data = codec.decode(stored, frame)
        found = codec.describe(data, stored)
    except MonocontextError as error:
        report.problems.append(str(error))
        return False
    except UnicodeDecodeError as error:
        report.problems.append(f"{where}: not UTF-8 at byte {error.start}: {error.reason}")
        return False
    report.text_bytes += len(data)
    report.final_newline = data.endswith(b"\n")
    report.flags &= found.flags
    checks.filter_problems.extend(checks.filters.feed(frame.number, data))
    report.problems += checks.documents.feed(frame.start, data)
    expected = FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields))
    if not expected.flags & ENDS_LINE:  # older writers do not set it
        found = found._replace(flags=found.flags & ~ENDS_LINE)
    if found != expected:
        report.problems.append(f"{where}: counts differ: expected {expected}, found {found}")
        return False
    return True
