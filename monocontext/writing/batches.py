"""Write segments with an executor: its workers encode and store batches of frames, and return records and columns.

Frames are the same as those of `segments.write_segments`; segments also end where a batch does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import Any

from monocontext.format.codec import encode
from monocontext.format.filters.building import Columns
from monocontext.format.filters.frame_column import Column, compute_column, fold_head
from monocontext.format.filters.grams import HIGHEST
from monocontext.format.index import FrameRecord, FrameRun
from monocontext.format.inline import Gathered
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field
from monocontext.stores import open_store
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.reuse import Stored
from monocontext.writing.segments import Progress, SegmentBuilder, SegmentLayout, Written, cut_frames

BATCH_BYTES = 32 << 20
"""Text in a batch: about two segments, a second of one core's time."""
PARTS_AHEAD = 64
"""Batches that workers have at once where they read the text themselves: only counts wait here for those before."""
BORDER_BYTES = 8
"""What `border_in` looks at."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring frames, and the text after them."""

    frames: list[bytes]
    text_after: bytes
    """Folded text after the last frame, for its column."""


@dataclass(slots=True)
class Packed:
    """The result of storing a batch."""

    runs: list[FrameRun] = field(default_factory=list)
    records: list[FrameRecord] = field(default_factory=list)
    columns: list[tuple[bytes, int]] = field(default_factory=list)
    """Rows, eight a byte, and folded length of each frame."""
    final_newline: bool = False
    reused: int = 0
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
    """Store a text as `segments.write_segments` does, but on the workers of an executor (1 PUT per segment, 1 LIST per
    thousand).

    Holds about 8 batches of text in memory. Workers in threads can use any store; those in other processes need a URL.
    """
    gathering = Gathering(layout, progress, frames_before)
    columns = gathering.written.columns
    there = stored_at(url, options, layout)
    work = partial(pack, url=url, options=options, layout=layout, there=there, reach=columns.reach if columns else 0)
    for packed in in_order(executor, work, _cut_batches(cut_frames(pieces, layout.frame_bytes), columns)):
        gathering.add(packed)
    return gathering.finish()


def stored_at(url: str | Store, options: StoreOptions, layout: SegmentLayout) -> Stored:
    """The segments that are there already, for workers that look for their own."""
    with opened(url, options) as store:
        return Stored(store, layout.reuse_after_seconds)


class Gathering:
    """Puts the results of batches together, in order."""

    def __init__(
        self, layout: SegmentLayout, progress: Callable[[Progress], None] | None, frames_before: int = 0
    ) -> None:
        self.written = Written(columns=layout.columns(frames_before))
        self._done = Progress()
        self._progress = progress

    def add(self, packed: Packed) -> None:
        """The next batch; it may be empty."""
        written, done = self.written, self._done
        written.runs += packed.runs
        written.records += packed.records
        if packed.records:
            written.final_newline = packed.final_newline
        written.gathered.extend(packed.gathered)
        if written.columns:
            for rows, folded_bytes in packed.columns:
                written.columns.add(Column(unpack_rows(rows), folded_bytes))
        self._done = Progress(
            done.text_bytes + sum(record.bytes for record in packed.records),
            done.stored_bytes + sum(record.stored_bytes for record in packed.records),
            done.segments + len(packed.runs),
            done.reused + packed.reused,
        )
        if self._progress:
            self._progress(self._done)

    def finish(self) -> Written:
        """All batches are here."""
        written = self.written
        if written.columns and written.columns.frames < written.columns.least_frames:
            written.columns = None
        if written.columns:
            written.columns.finish()
        return written


def _cut_batches(frames: Iterable[bytes], columns: Columns | None) -> Iterator[Batch]:
    """Yield each batch once the text after it is known."""
    reach = columns.reach if columns else 0
    waiting: list[list[bytes]] = [[]]
    for frame in frames:
        if columns and len(columns.head) < reach:
            columns.head += fold_head([frame], reach - len(columns.head))
        if sum(map(len, waiting[-1])) + len(frame) > BATCH_BYTES and waiting[-1]:
            waiting.append([])
        waiting[-1].append(frame)
        if len(waiting) > 1:
            text_after = fold_head((one for batch in waiting[1:] for one in batch), reach)
            if len(text_after) == reach:
                yield Batch(waiting.pop(0), text_after)
    while waiting:
        first = waiting.pop(0)
        if first:
            yield Batch(first, fold_head((one for batch in waiting for one in batch), reach))


def pack(
    batch: Batch, *, url: str | Store, options: StoreOptions, layout: SegmentLayout, there: Stored, reach: int
) -> Packed:
    """Encode a batch and store its segments. Runs in any thread or process."""
    packed = Packed(final_newline=batch.frames[-1].endswith(b"\n"))
    segment = SegmentBuilder()
    with opened(url, options) as store:

        def seal() -> None:
            found = there.find(store, segment.digest, segment.stored_bytes)
            key = found or there.name(segment.digest, segment.stored_bytes)
            if found:
                packed.reused += 1
            else:
                store.put(key, segment.body(there.salt))
            packed.runs.append(FrameRun(key, 0, len(segment.records), layout.codec))
            packed.records.extend(segment.records)

        for frame in batch.frames:
            stored, record = encode(frame, layout.codec)
            if segment.records and segment.stored_bytes + len(stored) > layout.segment_bytes:
                seal()
                segment = SegmentBuilder()
            segment.add(stored, record)
            packed.gathered.add(frame, stored)
        seal()
    if reach:
        packed.columns = list(compute_columns(batch, reach))
    return packed


def compute_columns(batch: Batch, reach: int) -> Iterator[tuple[bytes, int]]:
    import numpy as np

    for number, frame in enumerate(batch.frames):
        text_after = fold_head(batch.frames[number + 1 :], reach)
        made = compute_column(frame, (text_after + batch.text_after)[:reach])
        yield np.packbits(made.rows, bitorder="little").tobytes(), made.folded_bytes


def unpack_rows(rows: bytes) -> Any:
    import numpy as np

    return np.unpackbits(np.frombuffer(rows, np.uint8), count=HIGHEST, bitorder="little")


def border_in(data: bytes) -> int:
    """Where text may be cut: the first byte after the first one that begins a character, and is no LF after CR."""
    near = 1
    while near < len(data) - 1 and (data[near] & 0xC0 == 0x80 or data[near - 1 : near + 1] == b"\r\n"):
        near += 1
    return near


def opened(url: str | Store, options: StoreOptions) -> AbstractContextManager[Store]:
    return closing(open_store(url, **options)) if isinstance(url, str) else nullcontext(url)
