"""Segments made elsewhere: batches of frames go out to an executor, their records and columns come back.

The same frames as `segments.write_segments` cuts, in segments that end where a batch does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from monocontext.codec import encode
from monocontext.errors import NotFound
from monocontext.filters.building import Column, Columns, column, folded_head
from monocontext.filters.grams import MAX_BITS
from monocontext.index import FrameRecord, Run
from monocontext.segments import REUSE_SECONDS, Layout, Progress, Segment, Written, framed
from monocontext.spread import in_order
from monocontext.store import Store, seconds_now
from monocontext.stores import open_store

BATCH_BYTES = 32 << 20
"""Text in a batch: two segments or so, a second of one core's time."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring frames, and what follows them."""

    frames: list[bytes]
    behind: bytes
    """Folded text behind the last, for its column."""


@dataclass(slots=True)
class Packed:
    """What became of a batch."""

    runs: list[Run] = field(default_factory=list)
    records: list[FrameRecord] = field(default_factory=list)
    columns: list[tuple[bytes, int]] = field(default_factory=list)
    """Of each frame the rows, eight a byte, and its folded length."""
    final_newline: bool = False
    reused: int = 0


def write_batches(
    url: str | Store,
    options: dict[str, Any],
    pieces: Iterable[bytes],
    layout: Layout,
    executor: Executor,
    progress: Callable[[Progress], None] | None = None,
    frames_before: int = 0,
) -> Written:
    """As `segments.write_segments`, with the work done by an executor (1 PUT and 1 HEAD a segment).

    Holds about 8 batches of text. A store that is handed in must be one that the executor's workers can use: any in
    threads, only a URL in other processes.
    """
    written = Written(columns=layout.columns(frames_before))
    done = Progress()
    work = partial(pack, url=url, options=options, layout=layout, reach=written.columns.reach if written.columns else 0)
    for packed in in_order(executor, work, _batches(framed(pieces, layout.frame_bytes), written.columns)):
        written.runs += packed.runs
        written.records += packed.records
        written.final_newline = packed.final_newline
        if written.columns:
            for rows, folded_bytes in packed.columns:
                written.columns.add(Column(_unpacked(rows), folded_bytes))
        done = Progress(
            done.text_bytes + sum(record.bytes for record in packed.records),
            done.stored_bytes + sum(record.stored_bytes for record in packed.records),
            done.segments + len(packed.runs),
            done.reused + packed.reused,
        )
        if progress:
            progress(done)
    if written.columns and written.columns.frames < written.columns.least_frames:
        written.columns = None
    if written.columns:
        written.columns.finish()
    return written


def _batches(frames: Iterable[bytes], columns: Columns | None) -> Iterator[Batch]:
    """Each batch goes out when what follows it is known."""
    reach = columns.reach if columns else 0
    waiting: list[list[bytes]] = [[]]
    for frame in frames:
        if columns and len(columns.head) < reach:
            columns.head += folded_head([frame], reach - len(columns.head))
        if sum(map(len, waiting[-1])) + len(frame) > BATCH_BYTES and waiting[-1]:
            waiting.append([])
        waiting[-1].append(frame)
        if len(waiting) > 1:
            behind = folded_head((one for batch in waiting[1:] for one in batch), reach)
            if len(behind) == reach:
                yield Batch(waiting.pop(0), behind)
    while waiting:
        first = waiting.pop(0)
        if first:
            yield Batch(first, folded_head((one for batch in waiting for one in batch), reach))


def pack(batch: Batch, *, url: str | Store, options: dict[str, Any], layout: Layout, reach: int) -> Packed:
    """Encode a batch and store its segments. Runs in any thread or process."""
    packed = Packed(final_newline=batch.frames[-1].endswith(b"\n"))
    segment = Segment()
    with closing(open_store(url, **options)) if isinstance(url, str) else nullcontext(url) as store:

        def seal() -> None:
            key, size = segment.key, segment.stored_bytes
            if _is_there(store, key, size):
                packed.reused += 1
            else:
                store.put(key, segment.body())
            packed.runs.append(Run(key, 0, len(segment.records), layout.codec))
            packed.records.extend(segment.records)

        for frame in batch.frames:
            stored, record = encode(frame, layout.codec)
            if segment.records and segment.stored_bytes + len(stored) > layout.segment_bytes:
                seal()
                segment = Segment()
            segment.add(stored, record)
        seal()
    if reach:
        packed.columns = list(_columns(batch, reach))
    return packed


def _columns(batch: Batch, reach: int) -> Iterator[tuple[bytes, int]]:
    import numpy as np

    for number, frame in enumerate(batch.frames):
        behind = folded_head(batch.frames[number + 1 :], reach)
        made = column(frame, (behind + batch.behind)[:reach])
        yield np.packbits(made.rows, bitorder="little").tobytes(), made.folded_bytes


def _unpacked(rows: bytes) -> Any:
    import numpy as np

    return np.unpackbits(np.frombuffer(rows, np.uint8), count=1 << MAX_BITS, bitorder="little")


def _is_there(store: Store, key: str, size_bytes: int) -> bool:
    """Whether a killed run has left this segment, not long ago."""
    try:
        info = store.head(key)
    except NotFound:
        return False
    return (
        info.size_bytes == size_bytes and info.modified_seconds >= seconds_now(store, info.now_seconds) - REUSE_SECONDS
    )
