"""Verify a context: read all of it and check every checksum, length, count and filter."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from functools import partial
from itertools import groupby
from typing import Any

from monocontext.engine.open import ContextHandle
from monocontext.errors import MonocontextError, NotFound
from monocontext.format import codec, inline
from monocontext.format.filters.checking import Checker
from monocontext.format.folding import opened
from monocontext.format.generations import find_root, read_generation
from monocontext.format.index import ENDS_LINE, OF_TEXT, Frame, FrameRecord, Page
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.pages import load_page
from monocontext.writing.publish import Place, open_store_at, portable_place
from monocontext.writing.reuse import segment_key
from monocontext.writing.upkeep.document_check import DocumentCheck

READ_BYTES = 8 << 20
PART_BYTES = 64 << 20


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
    """One line each: the object, what was expected, what was found."""

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
    with other folding tables (`case_folding.TABLES`) are checked by their names and checksums alone; so are all filters
    with an `executor` (any `concurrent.futures.Executor`), whose workers check some segments each.

    Of documents it checks that their names are found, and, without an `executor`, that their counts are those of the
    text.

    The report lists all damage. Raises only where nothing can be checked: `NotFound`, `NotAContext`, `AccessDenied`,
    or a root that cannot be read.
    """
    with open_store_at(url, store_options) as store:
        manifest = find_root(store, generation).manifest
        context = ContextHandle(store, cache_bytes=0, allow=allow, store_options=store_options, owns_store=False)
        report = Report(store.url, manifest.generation)
        _check_commit(store, manifest, report)
        try:
            manifest = opened(manifest, lambda ref: store.get(ref.key).data)
        except MonocontextError as error:
            report.problems.append(f"{error}: nothing that it names was checked")
            context.close()
            return report
        filters = Checker(manifest.filters, lambda key: store.get(key).data)
        checks = _Checks(filters, DocumentCheck(manifest.documents, lambda key: store.get(key).data))
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
            for part in in_order(executor, partial(_check_part, place), _parts(pages)):
                report.add(part)
                if progress:
                    progress(report)
        if manifest.flags & ~report.flags:
            report.problems.append(
                f"{store.url}: flags differ: expected {manifest.flags} of all frames, found {report.flags}"
            )
        report.problems += filters.finish()
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
    """Check that what the root has of the text is what its frames hold."""
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


def _parts(pages: Iterable[tuple[int, Page]]) -> Iterator[tuple[int, int, int]]:
    """Yield parts of some 64 MiB stored, of neighbouring segments: number of a page, and its frames [start, stop)."""
    for number, page in pages:
        start = stop = size = 0
        for frames in _by_object(page):
            stop += len(frames)
            size += sum(frame.stored_bytes for frame in frames)
            if size >= PART_BYTES:
                yield number, start, stop
                start, size = stop, 0
        if stop > start:
            yield number, start, stop


def _check_part(place: tuple[Any, ...], part: tuple[int, int, int]) -> Report:
    """Open the context in a worker, and check some frames of one of its pages."""
    url, options, allow, generation = place
    number, start, stop = part
    with open_store_at(url, options) as store:
        manifest = opened(read_generation(store, generation), lambda ref: store.get(ref.key).data)
        context = ContextHandle(store, cache_bytes=0, allow=allow, store_options=options, owns_store=False)
        report = Report(store.url, generation)
        page = load_page(store, manifest.pages, number)
        for _, frames in groupby((page[i] for i in range(start, stop)), key=lambda frame: frame.object):
            checks = _Checks(Checker((), lambda key: b""), DocumentCheck(None, lambda key: b""))
            _check_object(store, context, manifest, list(frames), checks, report)
        context.close()
        return report


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
        # Of a segment that has random bytes besides its frames, or reaches into another page, these are checked alone.
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
    report.problems += checks.filters.feed(frame.number, data)
    report.problems += checks.documents.feed(frame.start, data)
    expected = FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields))
    if not expected.flags & ENDS_LINE:  # older writers do not set it
        found = found._replace(flags=found.flags & ~ENDS_LINE)
    if found != expected:
        report.problems.append(f"{where}: counts differ: expected {expected}, found {found}")
        return False
    return True
