"""Check the frames of a context: read their objects, and compare checksums, lengths and counts with the index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import groupby

from monocontext.engine.open import ContextHandle
from monocontext.errors import MonocontextError
from monocontext.format import codec
from monocontext.format.filters.checking import Checker
from monocontext.format.index import ENDS_LINE, OF_TEXT, Frame, Page
from monocontext.format.manifest import Manifest
from monocontext.records import dataclass, field
from monocontext.stores.protocol import Store
from monocontext.writing.pages import record_of
from monocontext.writing.segments import segment_key
from monocontext.writing.upkeep.document_check import DocumentCheck

READ_BYTES = 8 << 20
"""The most bytes of one read."""


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


@dataclass(frozen=True, slots=True)
class Checks:
    """Checks of filters and documents, which are given the text of each frame."""

    filters: Checker
    documents: DocumentCheck
    filter_problems: list[str]
    """Problems of filters so far. Kept apart: parts of a text that are checked in parallel may find the same ones."""


def group_by_object(page: Page, start: int = 0, stop: int | None = None) -> Iterator[list[Frame]]:
    """Yield neighbouring frames of one object, from the frames [start, stop) of a page."""
    frames = (page[i] for i in range(start, len(page) if stop is None else stop))
    for _, group in groupby(frames, key=lambda frame: frame.object):
        yield list(group)


def check_object(
    store: Store, context: ContextHandle, manifest: Manifest, frames: list[Frame], checks: Checks, report: Report
) -> None:
    """Check neighbouring frames of one object. If they are a whole segment, its name is compared with the hash of its
    bytes."""
    name = frames[0].object
    try:
        reader, key = context.place(name, manifest.sources) if "://" in name else (store, name)
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
            is_sound &= _check_frame(frame, blob.data[frame.offset - start :][: frame.stored_bytes], checks, report)
        # If a segment ends in a salt (`writing.segments`), or reaches into another page, only its frames are checked.
        if stop == blob.total_bytes == read_bytes and is_sound and "://" not in name:
            found = segment_key(digest.hexdigest())
            if found != name:
                report.problems.append(f"{name}: content differs from the name: found what would be {found}")


def _batches(frames: list[Frame]) -> Iterator[list[Frame]]:
    """Yield adjacent frames that one read fetches."""
    batch: list[Frame] = []
    for frame in frames:
        follows = batch and frame.offset == batch[-1].offset + batch[-1].stored_bytes
        if batch and (not follows or frame.offset + frame.stored_bytes - batch[0].offset > READ_BYTES):
            yield batch
            batch = []
        batch.append(frame)
    if batch:
        yield batch


def _check_frame(frame: Frame, stored: bytes, checks: Checks, report: Report) -> bool:
    """Check one frame, given its stored bytes. Returns whether it is as recorded."""
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
    expected = record_of(frame)
    if not expected.flags & ENDS_LINE:  # older writers do not set it
        found = found._replace(flags=found.flags & ~ENDS_LINE)
    if found != expected:
        report.problems.append(f"{where}: counts differ: expected {expected}, found {found}")
        return False
    return True
