"""Read plain text objects, whole or in ranges, as frames; every read is pinned to the ETag of the listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from urllib.parse import quote

from monocontext.errors import InvalidText
from monocontext.format.codec import encode
from monocontext.format.filters.building import Columns
from monocontext.format.index import FrameRecord, FrameRun
from monocontext.records import dataclass
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.writing.decoding import HEAD_BYTES, NotText, kind_of_file, packed_by, unexpected_utf_16
from monocontext.writing.segments import Written, cut_frames
from monocontext.writing.sources import BORDER_BYTES, border_in

READ_BYTES = 8 << 20
"""The length of a read of an object."""
READS_AHEAD = 4
"""The reads at once."""

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

    @property
    def is_last(self) -> bool:
        """Whether the range ends where the object does."""
        return self.stop == self.info.size_bytes

    def reads(self) -> list[tuple[ObjectRange, int, int]]:
        """The reads that fetch this range, each as (this range, first byte, length).

        They include some bytes around its ends, so that neighbouring ranges find the same border.
        """
        first = max(self.start - 1, 0)
        stop = min(self.stop - 1 + BORDER_BYTES, self.info.size_bytes)
        room = 0 if self.is_last else BORDER_BYTES  # the bytes around the end are in one read
        results = []
        while first < stop:
            size = stop - first if stop - first <= READ_BYTES + room else READ_BYTES
            results.append((self, first, size))
            first += size
        return results


class ObjectText:
    """The text of one range of an object."""

    def __init__(self, source: ObjectRange, data: Iterator[bytes], note: Callable[[str], None]):
        """`data` yields the results of `source.reads()`. `note` is called if a byte order mark is skipped."""
        self.source = source
        self.offset = source.start
        """The byte of the object at which the text begins, known after the first frame."""
        self._data = data
        self._note = note

    def frames(self, frame_bytes: int) -> Iterator[tuple[bytes, FrameRecord]]:
        """Yield the frames and their records. Raises `InvalidText`, with the offset in the object, in bytes."""
        read = 0
        for frame in cut_frames(self._pieces(), frame_bytes):
            try:
                _, record = encode(frame, "raw")
            except UnicodeDecodeError as error:
                raise InvalidText(
                    f"{self.source.url}: not UTF-8 at byte {self.offset + read + error.start}: {error.reason}; "
                    f"`monocontext sync --encoding ...` stores it"
                ) from None
            read += record.bytes
            yield frame, record

    def _pieces(self) -> Iterator[bytes]:
        """Yield text in pieces that end between characters. The last piece may not, if the text is not UTF-8."""
        rest = b""
        for (source, first, size), data in zip(self.source.reads(), self._data, strict=True):
            if first + size > source.stop:
                border = source.stop - 1 - first
                data = data[: border + border_in(data[border:])]
            if first < source.start:
                near = border_in(data[:BORDER_BYTES])
                self.offset, data = first + near, data[near:]
            elif first == 0:
                _refuse(source, data[:HEAD_BYTES])
                if data.startswith(_BOM):
                    self._note(f"{source.url}: skipped a byte order mark")
                    self.offset, data = len(_BOM), data[len(_BOM) :]
            data = rest + data
            whole = _whole_characters(data)
            rest = data[whole:]
            yield data[:whole]
        yield rest


def read_objects(
    ranges: Sequence[ObjectRange], store_of: Callable[[str], Store], note: Callable[[str], None] = lambda text: None
) -> Iterator[ObjectText]:
    """Yield the text of each range (1 GET for 8 MiB, a few ahead). Callers take all its frames before the next text.

    `store_of` returns the store at a URL.
    """

    def read(one: tuple[ObjectRange, int, int]) -> bytes:
        source, first, size = one
        return store_of(source.place).get_range(source.info.key, first, size, etag=source.info.etag).data

    with ThreadPoolExecutor(READS_AHEAD) as pool:
        reads = (item for source in ranges for item in source.reads())
        with closing(in_order(pool, read, reads, READS_AHEAD)) as data:
            for source in ranges:
                yield ObjectText(source, islice(data, len(source.reads())), note)


def index_objects(
    ranges: Sequence[ObjectRange],
    store_of: Callable[[str], Store],
    frame_bytes: int,
    columns: Columns | None,
    note: Callable[[str], None],
    report: Callable[[Sequence[FrameRecord], int], None] = lambda records, objects: None,
) -> Written:
    """Cut ranges of objects into frames. `report` is called after each range, with its records and whether it ends its
    object."""
    written = Written(columns=columns)
    for text in read_objects(ranges, store_of, note):
        before = len(written.records)
        for frame, record in text.frames(frame_bytes):
            written.records.append(record)
            if columns:
                columns.feed(frame)
            written.final_newline = frame.endswith(b"\n")
        if frames := len(written.records) - before:
            written.runs.append(FrameRun(text.source.url, text.offset, frames, "raw", text.source.info.etag))
        report(written.records[before:], int(text.source.is_last))
    if columns:
        columns.finish()
    return written


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


def _whole_characters(data: bytes) -> int:
    """The length of the longest prefix of `data` that does not end inside a character."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return len(data) - back if needed > back else len(data)
    return len(data)
