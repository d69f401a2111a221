"""Reading a whole context against everything that is recorded of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from monocontext import codec
from monocontext.errors import MonocontextError, NotFound
from monocontext.generations import read_generation, read_root
from monocontext.index import ENDS_LINE, Frame, FrameRecord, Page
from monocontext.manifest import Manifest
from monocontext.opening import Opened
from monocontext.segments import segment_key
from monocontext.store import Store
from monocontext.writer import Place, load_page, opened

READ_BYTES = 8 << 20


@dataclass(slots=True)
class Report:
    """What a verification found."""

    url: str
    generation: int = 0
    frames: int = 0
    """Frames that were read."""
    text_bytes: int = 0
    stored_bytes: int = 0
    final_newline: bool = False
    """Whether the frame that was read last ends in a newline."""
    problems: list[str] = field(default_factory=list)
    """One line each: the object, what was expected, what was found."""

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
) -> Report:
    """Check every checksum, length and count of a context: root, pages, segments, frames (reads everything once).

    Damage does not stop it: all of it is listed in the report. Raises only where there is nothing to check: `NotFound`,
    `NotAContext`, `AccessDenied`, or a root that cannot be read.
    """
    with opened(url, store_options) as store:
        manifest = read_root(store)[0] if generation is None else read_generation(store, generation)
        context = Opened(store, cache_bytes=0, allow=allow, store_options=store_options, owns_store=False)
        report = Report(store.url, manifest.generation)
        _check_commit(store, manifest, report)
        for number, _ in enumerate(manifest.pages):
            try:
                page = load_page(store, manifest.pages, number)
            except MonocontextError as error:
                report.problems.append(str(error))
                continue
            for frames in _by_object(page):
                _check_object(store, context, manifest, frames, report)
                if progress:
                    progress(report)
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


def _by_object(page: Page) -> Iterator[list[Frame]]:
    frames = (page[i] for i in range(len(page)))
    for _, group in groupby(frames, key=lambda frame: frame.object):
        yield list(group)


def _check_object(store: Store, context: Opened, manifest: Manifest, frames: list[Frame], report: Report) -> None:
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
            sound &= _check_frame(frame, blob.data[frame.offset - start :][: frame.stored_bytes], report)
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


def _check_frame(frame: Frame, stored: bytes, report: Report) -> bool:
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
    expected = FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields))
    if not expected.flags & ENDS_LINE:  # older writers do not set it
        found = found._replace(flags=found.flags & ~ENDS_LINE)
    if found != expected:
        report.problems.append(f"{where}: counts differ: expected {expected}, found {found}")
        return False
    return True
