"""Read plain text objects, whole or in ranges, as frames; every read is pinned to the ETag of the listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from urllib.parse import quote

from monocontext.format.codec import encode
from monocontext.format.filters.building import Columns
from monocontext.format.index import FrameRun
from monocontext.records import dataclass, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.writing.decoding import HEAD_BYTES, Decoder, NotText, kind_of_file, packed_by, unexpected_utf_16
from monocontext.writing.input_options import InputOptions
from monocontext.writing.segments import Progress, Written, cut_frames

READ_BYTES = 8 << 20
"""The length of a read of an object."""
READS_AHEAD = 4
"""The reads at once."""

_BORDER_BYTES = 8
"""The bytes around the end of a range that tell where a character begins."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ObjectRange:
    """Bytes [start, stop) of a text object. An end inside the object moves on to where a character begins."""

    place: str
    """URL of the store that holds it."""
    info: ObjectInfo
    start: int
    stop: int

    @property
    def url(self) -> str:
        """The URL of the object."""
        key = quote(self.info.key) if self.place.startswith("file:") else self.info.key
        return f"{self.place.rstrip('/')}/{key}"

    def between_characters(self, store: Store) -> ObjectRange:
        """The range with ends where the text may be cut (1 GET for each end inside the object)."""

        def border(offset: int) -> int:
            if offset in (0, self.info.size_bytes):
                return offset
            size = min(_BORDER_BYTES, self.info.size_bytes - offset + 1)
            near = store.get_range(self.info.key, offset - 1, size, etag=self.info.etag).data
            step = 1  # to the first byte that begins a character and is not the LF of a CR LF
            while step < len(near) - 1 and (near[step] & 0xC0 == 0x80 or near[step - 1 : step + 1] == b"\r\n"):
                step += 1
            return offset - 1 + step

        return replace(self, start=border(self.start), stop=border(self.stop))


def index_objects(
    ranges: Sequence[ObjectRange],
    store_of: Callable[[str], Store],
    frame_bytes: int,
    columns: Columns | None,
    put: Callable[[str, bytes], object],
    note: Callable[[str], None],
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Written:
    """Cut ranges of objects into frames (1 GET for 8 MiB, a few ahead), and store their filters by `put`. `store_of`
    returns the store at a URL. `note` is called if a byte order mark is skipped, `progress` after each range.

    Raises `NotText`, with the offset in the object, in bytes.
    """
    written = Written()
    text_bytes = 0
    ranges = [source.between_characters(store_of(source.place)) for source in ranges]

    def read(part: tuple[ObjectRange, int]) -> bytes:
        source, first = part
        size = min(READ_BYTES, source.stop - first)
        return store_of(source.place).get_range(source.info.key, first, size, etag=source.info.etag).data

    with ThreadPoolExecutor(READS_AHEAD) as pool:
        parts = ((source, first) for source in ranges for first in range(source.start, source.stop, READ_BYTES))
        with closing(in_order(pool, read, parts, READS_AHEAD)) as data:
            for source in ranges:
                reads = islice(data, len(range(source.start, source.stop, READ_BYTES)))
                text_bytes += _index(source, reads, written, frame_bytes, columns, note)
                progress(Progress(text_bytes, text_bytes, len(written.runs)))
    if columns:
        columns.finish()
        written.filters = columns.store(put)
    return written


def _index(
    source: ObjectRange,
    reads: Iterator[bytes],
    written: Written,
    frame_bytes: int,
    columns: Columns | None,
    note: Callable[[str], None],
) -> int:
    """Add the frames of a range, of which `reads` yields the bytes. Returns the length of their text in bytes."""
    start, before = source.start, len(written.records)
    head = next(reads, b"")
    if start == 0:
        _refuse(source, head[:HEAD_BYTES])
        if head.startswith(_BOM):
            note(f"{source.url}: skipped a byte order mark")
            start, head = len(_BOM), head[len(_BOM) :]

    def pieces() -> Iterator[bytes]:
        decoder = Decoder(source.url, InputOptions(), start, has_begun=True)
        try:
            yield decoder.feed(head)[0]
            for data in reads:
                yield decoder.feed(data)[0]
            yield decoder.finish()[0]
        except NotText as error:
            reason = error.reason.replace("utf-8", "UTF-8")
            raise NotText(source.url, f"{reason}: `monocontext sync --encoding ...` stores it") from None

    for frame in cut_frames(pieces(), frame_bytes):
        written.records.append(encode(frame, "raw")[1])
        if columns:
            columns.feed(frame)
        written.final_newline = frame.endswith(b"\n")
    if frames := len(written.records) - before:
        written.runs.append(FrameRun(source.url, start, frames, "raw", source.info.etag))
    return sum(record.bytes for record in written.records[before:])


def _refuse(source: ObjectRange, head: bytes) -> None:
    """Raise `NotText` for an object that begins as no plain text in UTF-8 does."""
    if packing := packed_by(head):
        raise NotText(source.url, f"compressed ({packing})", f"`monocontext sync {source.url} URL` stores its text")
    if kind := kind_of_file(head):
        raise NotText(source.url, kind, "convert it to text first")
    if wide := unexpected_utf_16(head, "utf-8"):
        raise NotText(
            source.url, "looks like UTF-16, not UTF-8", f"`monocontext sync --encoding {wide}` stores its text"
        )
