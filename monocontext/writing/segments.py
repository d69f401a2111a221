"""Cut text into frames, encode them, and store them in segments, in parallel and in bounded memory."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from io import BytesIO

from monocontext.engine.malloc import give_back_memory
from monocontext.format.codec import Framer, encode
from monocontext.format.filters.building import LEAST_FRAME_BYTES, LEAST_FRAMES, Columns, overlap_for
from monocontext.format.index import FrameRecord, FrameRun
from monocontext.format.inline import Gathered
from monocontext.format.refs import CODECS, MAX_FRAME_BYTES, FilterRef
from monocontext.options import check_int
from monocontext.records import dataclass, field
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.documents import DocumentRows

FRAME_BYTES = 256 << 10
"""Frames of 256 KiB compress 4-5 % worse than frames of 1 MiB, but a small read fetches a quarter of the bytes."""
SEGMENT_BYTES = 16 << 20
SALT_BYTES = 16
"""The length of the random line at the end of a segment. It makes the hash of the segment, its name, unique."""
ENCODERS = 2  # the threads that compress frames
_UPLOADS = 4  # the PUTs at once. Each has a segment in memory, and the HTTP client a copy of it
_SEGMENTS_PER_TRIM = 4
"""After so many segments, free memory is returned to the system. Otherwise 140 MB stay in heaps for each GB of text."""


@dataclass(frozen=True, slots=True)
class SegmentLayout:
    """The sizes of frames and segments, their encoding, and whether they get search filters."""

    frame_bytes: int = FRAME_BYTES  # the most bytes of text in a frame, unless one character or CR LF is longer
    segment_bytes: int = SEGMENT_BYTES  # the most stored bytes in a segment, unless one frame is larger
    codec: str = "zstd"  # or `raw`: then segments are plain text, with a line of 16 random characters at the end
    filters: bool = True  # whether to make search filters, if frames are large enough for them

    def columns(self, frames_before: int = 0) -> Columns | None:
        """A collector of filter columns for frames that follow `frames_before` others, or None without filters."""
        if not self.filters or self.frame_bytes < LEAST_FRAME_BYTES:
            return None
        return Columns(overlap_for(self.frame_bytes), LEAST_FRAMES - frames_before)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame_bytes", check_int("frame_bytes", self.frame_bytes, 1, MAX_FRAME_BYTES - 4))
        object.__setattr__(self, "segment_bytes", check_int("segment_bytes", self.segment_bytes, 1))
        if self.codec not in CODECS:
            raise ValueError(f"codec must be one of {', '.join(CODECS)}, not {self.codec!r}")


@dataclass(slots=True)
class Written:
    """A text that is stored but not committed."""

    runs: list[FrameRun] = field(default_factory=list)  # where its frames are stored
    records: list[FrameRecord] = field(default_factory=list)  # its frames, in order
    sources: tuple[str, ...] = ()  # the URLs of stores outside the context that hold frames
    filters: tuple[FilterRef, ...] = ()  # the search filters of these frames, numbered from 0
    text: bytes | None = None
    """The text itself if it is too short to be stored alone: an append stores it with the end of the context."""
    documents: DocumentRows | None = None
    layout: SegmentLayout = field(default_factory=SegmentLayout)  # of these frames, or for `text`
    notes: list[str] = field(default_factory=list)  # from a worker, for the user
    gathered: Gathered = field(default_factory=Gathered)
    """The text that may be copied into the root: that of these frames unless they are outside the context."""

    def extend(self, other: Written) -> None:
        """Add the frames of `other` after these, without its filters."""
        self.runs += other.runs
        self.records += other.records
        self.gathered.extend(other.gathered)

    @property
    def keys(self) -> set[str]:
        """The keys of the segments and filters."""
        return {run.object for run in self.runs if not run.is_virtual} | {k for ref in self.filters for k in ref.keys}


def write_segments(
    store: Store,
    pieces: Iterable[bytes],
    layout: SegmentLayout,
    progress: Callable[[int], None] = lambda text_bytes: None,
    frames_before: int = 0,
) -> Written:
    """Store a text, given as UTF-8 in pieces that end between characters, and its filters (1 PUT per segment)."""
    columns = layout.columns(frames_before)
    full: list[tuple[str, bytes]] = []  # the key and body of the segment that was filled last, until it is yielded
    segments = Segments(lambda key, body: full.append((key, body)), layout)

    def encoded(frame: bytes) -> tuple[bytes, bytes, FrameRecord]:
        return frame, *encode(frame, layout.codec)

    def full_segments(encoders: Executor) -> Iterator[tuple[str, bytes]]:
        """Encode all frames, and yield the segments that they fill."""
        text_bytes = 0
        for frame, stored, record in in_order(encoders, encoded, cut_frames(pieces, layout.frame_bytes), 4 * ENCODERS):
            if columns:
                columns.feed(frame)
            segments.add(stored, record)
            segments.written.gathered.add(frame, stored)
            text_bytes += record.bytes
            progress(text_bytes)
            if full:
                yield full.pop()
        segments.finish()
        yield from full

    with ThreadPoolExecutor(ENCODERS) as encoders, ThreadPoolExecutor(_UPLOADS) as uploads:
        # One segment more than there are uploads, so that the next one is filled meanwhile.
        puts = in_order(uploads, lambda segment: store.put(*segment), full_segments(encoders), _UPLOADS + 1)
        for number, _ in enumerate(puts, 1):
            if number % _SEGMENTS_PER_TRIM == 0:
                give_back_memory()
    give_back_memory()  # segments were large, and filters follow
    if columns:
        columns.finish()
        segments.written.filters = columns.store(store.put)
    return segments.written


def cut_frames(pieces: Iterable[bytes], frame_bytes: int) -> Iterator[bytes]:
    """Yield the text of each frame, given pieces of UTF-8 that end between characters."""
    framer = Framer(frame_bytes)
    for piece in pieces:
        yield from framer.feed(piece)
    yield from framer.finish()


class Segments:
    """Joins encoded frames into new segments, and passes each full one to `put`."""

    def __init__(self, put: Callable[[str, bytes], object], layout: SegmentLayout):
        self.written = Written()  # the frames so far; those of the segment that is being filled have no run yet
        self._put, self._layout, self._codec = put, layout, layout.codec
        self._first = 0  # the number of the first frame in this segment
        self._body = BytesIO()  # one block, so that frames are freed one by one in the heaps of the threads that encode

    def add(self, stored: bytes, record: FrameRecord, codec: str | None = None) -> None:
        """Add an encoded frame. `codec`: None for that of the layout. A frame of another codec begins a segment."""
        codec = codec or self._layout.codec
        if self._body.tell() + len(stored) > self._layout.segment_bytes or codec != self._codec:
            self.finish()
        self._codec = codec
        self._body.write(stored)
        self.written.records.append(record)

    def finish(self) -> Written:
        """End the segment that is being filled, and return all frames."""
        if frames := len(self.written.records) - self._first:
            self._body.write(f"{secrets.token_urlsafe(11)}\n".encode())
            body = self._body.getvalue()
            key = f"segments/{hashlib.sha256(body).hexdigest()[:32]}.seg"
            self.written.runs.append(FrameRun(key, 0, frames, self._codec))
            self._put(key, body)
            self._first, self._body = len(self.written.records), BytesIO()
        return self.written
