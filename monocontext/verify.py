"""Reading a whole context against everything that is recorded of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from monocontext import codec
from monocontext.errors import MonocontextError, NotFound
from monocontext.filters.checking import Checker
from monocontext.generations import read_generation, read_root
from monocontext.index import ENDS_LINE, Frame, FrameRecord, Page
from monocontext.manifest import Manifest
from monocontext.opening import Opened
from monocontext.segments import segment_key
from monocontext.spread import in_order
from monocontext.store import Store
from monocontext.writer import Place, load_page, opened, portable

READ_BYTES = 8 << 20
PART_BYTES = 64 << 20


@dataclass(slots=True)
class Report:
    """What a verification found."""

    url: str
    generation: int = 0
    frames: int = 0
    """Frames that were read."""
    text_bytes: int = 0
    stored_bytes: int = 0
    filters: int = 0
    """Search filters that were checked."""
    final_newline: bool = False
    """Whether the frame that was read last ends in a newline."""
    problems: list[str] = field(default_factory=list)
    """One line each: the object, what was expected, what was found."""

    def add(self, part: Report) -> None:
        """Take in what was found further on in the text."""
        self.frames += part.frames
        self.text_bytes += part.text_bytes
        self.stored_bytes += part.stored_bytes
        self.final_newline = part.final_newline
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
    store_options: dict[str, Any] | None = None,
    executor: Executor | None = None,
) -> Report:
    """Check every checksum, length and count of a context: root, pages, segments, frames (reads everything once).

    Of search filters also that no gram of the text is missing from them, so that no search misses a match; those that
    were made with other tables of foldings (`filters.fold.TABLES`) are checked against their names and checksums alone.
    So are all of them with an `executor` (any `concurrent.futures.Executor`), whose workers check some segments each.

    Damage does not stop it: all of it is listed in the report. Raises only where there is nothing to check: `NotFound`,
    `NotAContext`, `AccessDenied`, or a root that cannot be read.
    """
    with opened(url, store_options) as store:
        manifest = read_root(store)[0] if generation is None else read_generation(store, generation)
        context = Opened(store, cache_bytes=0, allow=allow, store_options=store_options, owns_store=False)
        report = Report(store.url, manifest.generation)
        _check_commit(store, manifest, report)
        filters = Checker(manifest.filters, lambda key: store.get(key).data)
        pages = _pages(store, manifest, report)
        if executor is None:
            for _, page in pages:
                for frames in _by_object(page):
                    _check_object(store, context, manifest, frames, filters, report)
                    if progress:
                        progress(report)
        else:
            place = (portable(url), store_options or {}, tuple(os.fspath(each) for each in allow), manifest.generation)
            for part in in_order(executor, partial(_check_part, place), _parts(pages)):
                report.add(part)
                if progress:
                    progress(report)
        report.problems += filters.finish()
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


def _pages(store: Store, manifest: Manifest, report: Report) -> Iterator[tuple[int, Page]]:
    for number, _ in enumerate(manifest.pages):
        try:
            yield number, load_page(store, manifest.pages, number)
        except MonocontextError as error:
            report.problems.append(str(error))


def _parts(pages: Iterable[tuple[int, Page]]) -> Iterator[tuple[int, int, int]]:
    """Neighbouring segments of a page, some 64 MiB stored: its number, and the first and last of its frames."""
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
    """What a worker elsewhere does: open the context, and check some frames of one of its pages."""
    url, options, allow, generation = place
    number, start, stop = part
    with opened(url, options) as store:
        manifest = read_generation(store, generation)
        context = Opened(store, cache_bytes=0, allow=allow, store_options=options, owns_store=False)
        report = Report(store.url, generation)
        page = load_page(store, manifest.pages, number)
        for _, frames in groupby((page[i] for i in range(start, stop)), key=lambda frame: frame.object):
            _check_object(store, context, manifest, list(frames), Checker((), lambda key: b""), report)
        context.close()
        return report


def _by_object(page: Page) -> Iterator[list[Frame]]:
    frames = (page[i] for i in range(len(page)))
    for _, group in groupby(frames, key=lambda frame: frame.object):
        yield list(group)


def _check_object(
    store: Store, context: Opened, manifest: Manifest, frames: list[Frame], filters: Checker, report: Report
) -> None:
    name = frames[0].object
    try:
        reader, key = context.place(name, manifest) if "://" in name else (store, name)
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
            sound &= _check_frame(frame, blob.data[frame.offset - start :][: frame.stored_bytes], filters, report)
        # A segment is named by its content; one that reaches into another page is checked by its frames alone.
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


def _check_frame(frame: Frame, stored: bytes, filters: Checker, report: Report) -> bool:
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
    report.problems += filters.feed(frame.number, data)
    expected = FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields))
    if not expected.flags & ENDS_LINE:  # older writers do not set it
        found = found._replace(flags=found.flags & ~ENDS_LINE)
    if found != expected:
        report.problems.append(f"{where}: counts differ: expected {expected}, found {found}")
        return False
    return True
