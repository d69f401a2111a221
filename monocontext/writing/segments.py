"""Cut text into frames, encode them and store them in segments; in parallel, in bounded memory."""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
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
"""A frame of 256 KiB compresses 4-5 % worse than one of 1 MiB, and a small read fetches a quarter of the bytes."""
SEGMENT_BYTES = 16 << 20
SALT_BYTES = 16
"""The random end of a segment, so that no name is stored twice. It is a line of text, as raw segments are."""
ENCODERS = 2  # the threads that compress frames
_UPLOADS = 4  # the PUTs at once: about this many segments are in memory, and the HTTP client has a copy of each

_SEGMENTS_PER_TRIM = 4  # freed memory is returned to the system: else 140 MB stay in heaps for each GB of text


@dataclass(frozen=True, slots=True)
class SegmentLayout:
    """The sizes of frames and segments, their encoding, and whether they get search filters."""

    frame_bytes: int = FRAME_BYTES
    """The most bytes of text in a frame. A single character or CR LF may be longer."""
    segment_bytes: int = SEGMENT_BYTES  # the most stored bytes in a segment, unless one frame is larger
    codec: str = "zstd"
    """`zstd`, or `raw`: then segments are plain text, with a line of 16 random characters at the end."""
    filters: bool = True  # whether to make search filters, where frames are large enough for them

    def columns(self, frames_before: int = 0) -> Columns | None:
        """A collector of filter columns for frames that follow `frames_before` others, or None for no filters."""
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

    runs: list[FrameRun] = field(default_factory=list)
    records: list[FrameRecord] = field(default_factory=list)
    sources: tuple[str, ...] = ()
    filters: tuple[FilterRef, ...] = ()
    """The filters of these frames, numbered from 0."""
    text: bytes | None = None
    """The text, if it is too short to have been stored: an append stores it together with the end of the context."""
    documents: DocumentRows | None = None
    layout: SegmentLayout = field(default_factory=SegmentLayout)
    """The layout of these frames, or the one for `text`."""
    notes: list[str] = field(default_factory=list)  # of a worker, for the user
    gathered: Gathered = field(default_factory=Gathered)
    """The text of these frames that may be copied into the root, without text in foreign objects."""

    @property
    def keys(self) -> set[str]:
        """The objects of segments and filters."""
        return {run.object for run in self.runs if not run.is_virtual} | {k for ref in self.filters for k in ref.keys}


def write_segments(
    store: Store,
    pieces: Iterable[bytes],
    layout: SegmentLayout,
    progress: Callable[[int], None] = lambda text_bytes: None,
    frames_before: int = 0,
) -> Written:
    """Store a text, given as UTF-8 in pieces that end between characters, and its filters (1 PUT a segment)."""

    def encoded(frame: bytes) -> tuple[bytes, bytes, FrameRecord]:
        return frame, *encode(frame, layout.codec)

    columns = layout.columns(frames_before)
    text_bytes = 0
    with ThreadPoolExecutor(ENCODERS) as encoders, ThreadPoolExecutor(_UPLOADS) as threads:
        uploads = _Uploads(store, threads)
        segments = Segments(uploads.put, layout)
        written = segments.written
        frames = cut_frames(pieces, layout.frame_bytes)
        for frame, stored, record in in_order(encoders, encoded, frames, 4 * ENCODERS):
            if columns:
                columns.feed(frame)
            segments.add(stored, record)
            written.gathered.add(frame, stored)
            text_bytes += record.bytes
            progress(text_bytes)
        segments.finish()
        uploads.finish()
    give_back_memory()  # segments were large, and filters follow
    if columns:
        columns.finish()
        written.filters = columns.store(store.put)
    return written


class _Uploads:
    """Stores segments by threads, of which at most `_UPLOADS` are in memory."""

    def __init__(self, store: Store, threads: Executor):
        self._store, self._threads = store, threads
        self._pending: deque[Future[str]] = deque()
        self._begun = 0

    def put(self, key: str, body: bytes) -> None:
        """Begin to store a segment, once there is room in memory. Raises the error of an earlier one."""
        while len(self._pending) >= _UPLOADS:
            self._pending.popleft().result()
        self._pending.append(self._threads.submit(self._store.put, key, body))
        self._begun += 1
        if self._begun % _SEGMENTS_PER_TRIM == 0:
            give_back_memory()

    def finish(self) -> None:
        """Wait until all segments are stored."""
        for upload in self._pending:
            upload.result()


def cut_frames(pieces: Iterable[bytes], frame_bytes: int) -> Iterator[bytes]:
    """Yield the text of each frame, given pieces of UTF-8 that end between characters."""
    framer = Framer(frame_bytes)
    for piece in pieces:
        yield from framer.feed(piece)
    yield from framer.finish()


class Segments:
    """Stores encoded frames in new segments (1 PUT each)."""

    def __init__(self, put: Callable[[str, bytes], object], layout: SegmentLayout):
        self.written = Written()  # the frames so far; those of a segment that is not full yet have records, but no run
        self._put, self._layout, self._codec = put, layout, layout.codec
        self._first = 0
        self._body = BytesIO()  # one block, so that frames are freed one by one in the heaps of the threads that encode

    def add(self, stored: bytes, record: FrameRecord, codec: str | None = None) -> None:
        """Add a frame. `codec` is that of the layout unless given."""
        codec = codec or self._layout.codec
        if self._body.tell() + len(stored) > self._layout.segment_bytes or codec != self._codec:
            self.finish()
        self._codec = codec
        self._body.write(stored)
        self.written.records.append(record)

    def finish(self) -> Written:
        """Store the frames that were added since the last segment, and return all."""
        if frames := len(self.written.records) - self._first:
            self._body.write(f"{secrets.token_urlsafe(11)}\n".encode())
            body = self._body.getvalue()
            key = f"segments/{hashlib.sha256(body).hexdigest()[:32]}.seg"
            self.written.runs.append(FrameRun(key, 0, frames, self._codec))
            self._put(key, body)
            self._first, self._body = len(self.written.records), BytesIO()
        return self.written
