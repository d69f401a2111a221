"""Store a text with the workers of an executor: each encodes and stores batches of frames, and returns their records.

Frames are the same as those of `segments.write_segments`; segments also end where a batch does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import Any

from monocontext.format.codec import encode
from monocontext.format.filters.building import Columns
from monocontext.format.filters.frame_column import compute_column, fold_head
from monocontext.format.filters.grams import HIGHEST
from monocontext.format.index import FrameRecord, FrameRun
from monocontext.format.inline import Gathered
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.place import open_store_at
from monocontext.writing.segments import Progress, SegmentBuilder, SegmentLayout, Written, cut_frames

BATCH_BYTES = 32 << 20
"""Text in a batch: about two segments, a second of one core's time."""
PARTS_AHEAD = 64
"""Tasks in progress at once where workers read the text themselves: only their small results wait in memory."""
BORDER_BYTES = 8
"""The bytes around a border that `border_in` needs."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring frames, and the text after them."""

    frames: list[bytes]
    text_after: bytes
    """Folded text after the last frame, for its column."""


@dataclass(slots=True)
class StoredBatch:
    """The runs and records of a batch that is in the store."""

    runs: list[FrameRun] = field(default_factory=list)
    records: list[FrameRecord] = field(default_factory=list)
    columns: list[bytes] = field(default_factory=list)
    """The rows of the filter column of each frame, eight to a byte."""
    final_newline: bool = False
    gathered: Gathered = field(default_factory=Gathered)


def write_batches(
    url: str | Store,
    options: StoreOptions,
    pieces: Iterable[bytes],
    layout: SegmentLayout,
    executor: Executor,
    progress: Callable[[Progress], None] | None = None,
    frames_before: int = 0,
) -> Written:
    """Store a text as `segments.write_segments` does, but on the workers of an executor (1 PUT per segment).

    Holds about 8 batches of text in memory. Workers in threads can use any store; those in other processes need a URL.
    """
    gathering = Gathering(layout, progress, frames_before)
    columns = gathering.written.columns
    work = partial(store_batch, url=url, options=options, layout=layout, reach=columns.reach if columns else 0)
    for stored_batch in in_order(executor, work, _cut_batches(cut_frames(pieces, layout.frame_bytes), columns)):
        gathering.add(stored_batch)
    return gathering.finish()


class Gathering:
    """Joins the results of batches, in order, into those of the whole text."""

    def __init__(
        self, layout: SegmentLayout, progress: Callable[[Progress], None] | None, frames_before: int = 0
    ) -> None:
        self.written = Written(columns=layout.columns(frames_before))
        self._done = Progress()
        self._progress = progress

    def add(self, stored_batch: StoredBatch) -> None:
        """Add the result of the next batch, which may have no frames, and report the progress."""
        written, done = self.written, self._done
        written.runs += stored_batch.runs
        written.records += stored_batch.records
        if stored_batch.records:
            written.final_newline = stored_batch.final_newline
        written.gathered.extend(stored_batch.gathered)
        if written.columns:
            for rows in stored_batch.columns:
                written.columns.add(unpack_rows(rows))
        self._done = Progress(
            done.text_bytes + sum(record.bytes for record in stored_batch.records),
            done.stored_bytes + sum(record.stored_bytes for record in stored_batch.records),
            done.segments + len(stored_batch.runs),
        )
        if self._progress:
            self._progress(self._done)

    def finish(self) -> Written:
        """The result of the whole text, once all batches were added."""
        written = self.written
        if written.columns and written.columns.frames < written.columns.least_frames:
            written.columns = None
        if written.columns:
            written.columns.finish()
        return written


def _cut_batches(frames: Iterable[bytes], columns: Columns | None) -> Iterator[Batch]:
    """Yield each batch once enough text after it is known."""
    reach = columns.reach if columns else 0
    waiting: list[list[bytes]] = [[]]

    def text_after_first() -> bytes:
        return fold_head((frame for frames in waiting[1:] for frame in frames), reach)

    for frame in frames:
        if waiting[-1] and sum(map(len, waiting[-1])) + len(frame) > BATCH_BYTES:
            waiting.append([])
        waiting[-1].append(frame)
        if len(waiting) > 1 and len(text_after := text_after_first()) == reach:
            yield Batch(waiting.pop(0), text_after)
    while waiting and waiting[0]:
        text_after = text_after_first()
        yield Batch(waiting.pop(0), text_after)


def store_batch(
    batch: Batch,
    *,
    url: str | Store,
    options: StoreOptions,
    layout: SegmentLayout,
    reach: int,
) -> StoredBatch:
    """Encode a batch and store its segments. Runs in any thread or process."""
    stored_batch = StoredBatch(final_newline=batch.frames[-1].endswith(b"\n"))
    segment = SegmentBuilder()
    with open_store_at(url, options) as store:

        def seal() -> None:
            key, body = segment.seal()
            store.put(key, body)
            stored_batch.runs.append(FrameRun(key, 0, len(segment.records), layout.codec))
            stored_batch.records.extend(segment.records)

        for frame in batch.frames:
            stored, record = encode(frame, layout.codec)
            if segment.records and segment.stored_bytes + len(stored) > layout.segment_bytes:
                seal()
                segment = SegmentBuilder()
            segment.add(stored, record)
            stored_batch.gathered.add(frame, stored)
        seal()
    if reach:
        stored_batch.columns = list(compute_columns(batch, reach))
    return stored_batch


def compute_columns(batch: Batch, reach: int) -> Iterator[bytes]:
    """Yield the filter column of each frame, as in `StoredBatch.columns`. Each covers `reach` bytes after its frame."""
    import numpy as np

    for number, frame in enumerate(batch.frames):
        text_after = fold_head(batch.frames[number + 1 :], reach)
        column = compute_column(frame, (text_after + batch.text_after)[:reach])
        yield np.packbits(column, bitorder="little").tobytes()


def unpack_rows(rows: bytes) -> Any:
    import numpy as np

    return np.unpackbits(np.frombuffer(rows, np.uint8), count=HIGHEST, bitorder="little")


def border_in(data: bytes) -> int:
    """Where text may be cut: the first byte from 1 on that begins a character and is not the LF of a CR LF."""
    at = 1
    while at < len(data) - 1 and (data[at] & 0xC0 == 0x80 or data[at - 1 : at + 1] == b"\r\n"):
        at += 1
    return at
