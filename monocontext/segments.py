"""Frames into objects: cut, encode, pack into segments named by content, and store; in parallel, in bounded memory."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from monocontext.codec import Framer, encode
from monocontext.filters.building import LEAST_FRAME_BYTES, LEAST_FRAMES, Columns, overlap_of
from monocontext.index import FrameRecord, Run
from monocontext.manifest import CODECS, MAX_FRAME_BYTES
from monocontext.store import Store, seconds_now

FRAME_BYTES = 256 << 10
"""4-5 % worse in ratio than 1 MiB, and a quarter of the bytes for a zoom."""
SEGMENT_BYTES = 16 << 20
ENCODERS = 2
REUSE_SECONDS = 24 * 3600
"""Segments that were stored longer ago are sent again: `gc` may be about to remove what no generation names, and takes
nothing younger than its grace."""
UPLOADS = 4
"""PUTs at once. An upload holds about this many segments, and the HTTP client a copy of each."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How text is cut and stored."""

    frame_bytes: int = FRAME_BYTES
    """Bytes of text in a frame, at most; a single character or CR LF pair may reach past it."""
    segment_bytes: int = SEGMENT_BYTES
    """Stored bytes in an object, at most, unless one frame is larger."""
    codec: str = "zstd"
    """`zstd`, or `raw`, which leaves segments plain text."""
    filters: bool = True
    """Whether search filters are made, where frames are large enough for them."""

    def columns(self, frames_before: int = 0) -> Columns | None:
        """The filters to be of frames that follow so many others; None: there will be none."""
        if not self.filters or self.frame_bytes < LEAST_FRAME_BYTES:
            return None
        return Columns(overlap_of(self.frame_bytes), LEAST_FRAMES - frames_before)

    def __post_init__(self) -> None:
        if not 1 <= self.frame_bytes <= MAX_FRAME_BYTES - 4:
            raise ValueError(f"frame_bytes is between 1 and {MAX_FRAME_BYTES - 4:,}, not {self.frame_bytes}")
        if self.segment_bytes < 1:
            raise ValueError(f"segment_bytes is at least 1, not {self.segment_bytes}")
        if self.codec not in CODECS:
            raise ValueError(f"codec is one of {', '.join(CODECS)}, not {self.codec!r}")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an upload has come."""

    text_bytes: int = 0
    """UTF-8 in sealed segments."""
    stored_bytes: int = 0
    """What that takes in the store."""
    segments: int = 0
    reused: int = 0
    """Segments that were in the store already and were not sent."""


@dataclass(slots=True)
class Written:
    """Frames that are stored, but belong to no generation yet."""

    runs: list[Run] = field(default_factory=list)
    records: list[FrameRecord] = field(default_factory=list)
    final_newline: bool = False
    sources: tuple[str, ...] = ()
    columns: Columns | None = None
    """What filters will know of these frames."""


def write_segments(
    store: Store,
    pieces: Iterable[bytes],
    layout: Layout,
    progress: Callable[[Progress], None] | None = None,
    frames_before: int = 0,
) -> Written:
    """Store a text, given as UTF-8 in pieces that end between characters (1 PUT a segment, 1 LIST a thousand).

    The same text in the same layout gives the same objects, so what an earlier run left behind is not sent again.
    """
    listed = list(store.list("segments/"))
    oldest = seconds_now(store, listed[0].now_seconds) - REUSE_SECONDS if listed else 0.0
    there = {info.key: info.size_bytes for info in listed if info.modified_seconds >= oldest}
    written = Written()
    done = Progress()
    segment = Segment()
    with ThreadPoolExecutor(ENCODERS) as encoders, ThreadPoolExecutor(UPLOADS) as uploads:
        pending: deque[Future[str]] = deque()

        def seal() -> None:
            nonlocal done, segment
            key, size = segment.key, segment.stored_bytes
            reused = there.get(key) == size
            if not reused:
                while len(pending) >= UPLOADS:
                    pending.popleft().result()
                pending.append(uploads.submit(store.put, key, segment.body()))
                there[key] = size
            written.runs.append(Run(key, 0, len(segment.records), layout.codec))
            written.records.extend(segment.records)
            text_bytes = sum(record.bytes for record in segment.records)
            done = Progress(
                done.text_bytes + text_bytes, done.stored_bytes + size, done.segments + 1, done.reused + reused
            )
            segment = Segment()
            if progress:
                progress(done)

        columns = written.columns = layout.columns(frames_before)
        for frame, stored, record in _encoded(framed(pieces, layout.frame_bytes), layout.codec, encoders):
            if columns:
                columns.feed(frame)
            if segment.records and segment.stored_bytes + len(stored) > layout.segment_bytes:
                seal()
            segment.add(stored, record)
            written.final_newline = frame.endswith(b"\n")
        if segment.records:
            seal()
        if columns:
            columns.finish()
        for upload in pending:
            upload.result()
    return written


def framed(pieces: Iterable[bytes], frame_bytes: int) -> Iterator[bytes]:
    framer = Framer(frame_bytes)
    for piece in pieces:
        yield from framer.feed(piece)
    yield from framer.finish()


def _encoded(
    frames: Iterable[bytes], codec: str, encoders: ThreadPoolExecutor
) -> Iterator[tuple[bytes, bytes, FrameRecord]]:
    """Each frame with its stored form and record, in order, encoded a few frames ahead."""
    ahead: deque[tuple[bytes, Future[tuple[bytes, FrameRecord]]]] = deque()
    for frame in frames:
        ahead.append((frame, encoders.submit(encode, frame, codec)))
        if len(ahead) > 4 * ENCODERS:
            first, encoded = ahead.popleft()
            yield (first, *encoded.result())
    for first, encoded in ahead:
        yield (first, *encoded.result())


class Segment:
    """An object in the making."""

    def __init__(self) -> None:
        self.records: list[FrameRecord] = []
        self.stored_bytes = 0
        self._parts: list[bytes] = []
        self._hash = hashlib.sha256()

    def add(self, stored: bytes, record: FrameRecord) -> None:
        self._parts.append(stored)
        self._hash.update(stored)
        self.records.append(record)
        self.stored_bytes += len(stored)

    @property
    def key(self) -> str:
        return segment_key(self._hash.hexdigest())

    def body(self) -> bytes:
        return b"".join(self._parts)


def segment_key(sha256: str) -> str:
    """The key of a segment, from the SHA-256 of its bytes in hex."""
    return f"segments/{sha256[:32]}.seg"
