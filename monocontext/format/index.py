"""Encode and decode index pages, which record the location, lengths, checksum and flags of each frame.

A page is a small JSON table of *runs* (adjacent frames in one object), followed by fixed-width columns, little endian,
with one entry per frame. `docs/format.md` describes the layout byte by byte, and what is checked on every load.
"""

from __future__ import annotations

import json
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import accumulate, compress, repeat
from operator import and_, gt, itemgetter, lt, ne, not_
from typing import Any

import google_crc32c

from monocontext.errors import DamagedData
from monocontext.format.refs import CODECS, MAX_FRAME_BYTES, NO_PAGE, PageRef, as_object, count_of, id_of, require
from monocontext.records import NamedTuple, dataclass

FRAMES_PER_PAGE = 4096
"""A full page has about 90 KB, which one GET reads in a few milliseconds. A text of 1 TB has 1024 pages."""

ASCII = 1  # all characters of the frame are ASCII
HAS_CR = 2  # the frame has a `\r`
HAS_OTHER_BREAKS = 4  # the frame has one of \v \f \x1c \x1d \x1e \x85 U+2028 U+2029, as `str.splitlines` cuts
LOWER_KEEPS_LENGTH = 8  # the frame has no U+0130, the one character whose `lower()` is longer
HAS_SIGMA = 16  # the frame has U+03A3, the one character whose `lower()` depends on its neighbours
ENDS_LINE = 32  # the frame ends in `\n`; not set in contexts of versions without filters

WHOLE_TEXT_FLAGS = ASCII | LOWER_KEEPS_LENGTH
"""The flags that a text has if all its frames have them, wherever it is cut."""

Columns = tuple[tuple[str, str], ...]  # the name of each column of a table, and its type code in `array`
_MAGIC = b"MCPAGE\x00\x01"
_COUNTS = ("stored_bytes", "bytes", "characters", "newlines", "crc32c")
_COLUMNS = (*((name, "I") for name in _COUNTS), ("flags", "H"))
_BYTES_PER_FRAME = 22


class FrameRecord(NamedTuple):
    """The row of one frame in a page."""

    stored_bytes: int
    bytes: int
    characters: int
    newlines: int
    crc32c: int
    """Checksum of the stored bytes."""
    flags: int


@dataclass(frozen=True, slots=True)
class FrameRun:
    """Adjacent frames in one object."""

    object: str
    """A key below the context's URL (`segments/...`), or the URL of a foreign object (a virtual segment)."""
    offset: int
    """The offset of the first frame in the object, in bytes."""
    frames: int
    """The number of frames."""
    codec: str
    """One of `CODECS`, for all frames of the run."""
    etag: str | None = None
    """The version of a foreign object. Our own objects need none, since their names are never used again."""

    @property
    def is_virtual(self) -> bool:
        return "://" in self.object


class Frame(NamedTuple):
    """A frame: where it is stored, its record, and its place in the text."""

    number: int
    object: str
    offset: int
    stored_bytes: int
    bytes: int
    characters: int
    newlines: int
    crc32c: int
    flags: int
    codec: str
    etag: str | None
    start: int
    """The offset of its first character in the text."""
    start_byte: int
    """The offset of its first byte in the UTF-8 form of the text."""
    start_newline: int
    """The number of newlines before the frame."""

    @property
    def stop(self) -> int:
        return self.start + self.characters


def encode_columns(kinds: Columns, columns: Iterable[Iterable[int]]) -> bytes:
    """The columns of a table end to end, little endian."""
    arrays = [array(kind, column) for (_, kind), column in zip(kinds, columns, strict=True)]
    if sys.byteorder == "big":
        for column in arrays:
            column.byteswap()
    return b"".join(column.tobytes() for column in arrays)


def decode_columns(kinds: Columns, count: int, data: bytes, offset: int) -> tuple[list[array[int]], int]:
    """The columns of a table of `count` rows that begins at byte `offset` of `data`, and the byte after the table."""
    columns = []
    for _, kind in kinds:
        column = array(kind)
        column.frombytes(data[offset : offset + count * column.itemsize])
        if sys.byteorder == "big":
            column.byteswap()
        columns.append(column)
        offset += count * column.itemsize
    return columns, offset


def check_stored(key: str, data: bytes, ref: Any) -> None:
    """Raise `DamagedData` unless a stored object has the length and the checksum that its entry `ref` records."""
    if len(data) != ref.size_bytes:
        raise DamagedData(f"{key}: length differs: expected {ref.size_bytes} bytes, found {len(data)}")
    if (computed := google_crc32c.value(data)) != ref.crc32c:
        raise DamagedData(f"{key}: crc32c differs: expected {ref.crc32c:08x}, found {computed:08x}")


def encode_page(runs: Sequence[FrameRun], records: Sequence[FrameRecord]) -> bytes:
    """The bytes of a page object. Raises `ValueError` if the runs do not add up to the records."""
    if sum(run.frames for run in runs) != len(records) or not records:
        raise ValueError(f"{len(records)} records, but runs of {[run.frames for run in runs]} frames")
    rows = [as_object(run) for run in runs]
    table = json.dumps(rows, separators=(",", ":")).encode()
    table += b" " * (-len(table) % 8)
    head = _MAGIC + len(records).to_bytes(4, "little") + len(table).to_bytes(4, "little") + table
    return head + encode_columns(_COLUMNS, zip(*records, strict=True))


def flags_of_text(records: Iterable[FrameRecord], before: int = WHOLE_TEXT_FLAGS) -> int:
    """The flags of `WHOLE_TEXT_FLAGS` that `before` and all these frames have."""
    return reduce(and_, (record.flags for record in records), before) & WHOLE_TEXT_FLAGS


def page_ref(data: bytes, records: Iterable[FrameRecord], before: PageRef | None) -> PageRef:
    """The root's entry for a page. Its counts include all of the text before, so they start from the page `before`."""
    rows, base = list(records), before or NO_PAGE
    return PageRef(
        id_of(data), len(data), google_crc32c.value(data),
        base.frames + len(rows),
        base.bytes + sum(row.bytes for row in rows),
        base.characters + sum(row.characters for row in rows),
        base.newlines + sum(row.newlines for row in rows),
    )  # fmt: skip


class Page:
    """A loaded page, which finds the frame of a character by bisection. It takes 54 bytes a frame in memory."""

    def __init__(self, data: bytes, ref: PageRef, before: PageRef | None):
        """Parse and check a page. Raises `DamagedData`, whose message names the object."""
        self.ref = ref
        check_stored(ref.key, data, ref)
        try:
            self._parse(data, before or NO_PAGE)
            self._check(before or NO_PAGE)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise DamagedData(f"{ref.key}: not a page of this context: {error}") from None

    def _parse(self, data: bytes, before: PageRef) -> None:
        """Decode the page, and compute the offset of each frame: in characters, bytes, newlines and stored bytes."""
        require(data[:8] == _MAGIC, f"expected to begin with {_MAGIC!r}, found {data[:8]!r}")
        count = int.from_bytes(data[8:12], "little")
        offset = 16 + int.from_bytes(data[12:16], "little")
        size = offset + count * _BYTES_PER_FRAME
        require(size == len(data), f"{count} frames need a page of {size:,} bytes, found {len(data):,}")
        self.runs = tuple(
            FrameRun(
                str(row["object"]), count_of(row["offset"]), count_of(row["frames"]), str(row["codec"]), row.get("etag")
            )
            for row in json.loads(data[16:offset])
        )
        columns, _ = decode_columns(_COLUMNS, count, data, offset)
        self._columns = {name: column for (name, _), column in zip(_COLUMNS, columns, strict=True)}
        self._run_starts = list(accumulate((run.frames for run in self.runs), initial=0))
        self.first_frame = self.ref.frames - count
        self.size_bytes = count * 64 + len(self.runs) * 200
        """An estimate of the page's memory, for the cache."""
        by_name = self._columns
        self.starts = array("Q", accumulate(by_name["characters"], initial=before.characters))
        self.byte_starts = array("Q", accumulate(by_name["bytes"], initial=before.bytes))
        self.newline_starts = array("Q", accumulate(by_name["newlines"], initial=before.newlines))
        self.stored_starts = array("Q", accumulate(by_name["stored_bytes"], initial=0))  # from the page's first frame

    def _check(self, before: PageRef) -> None:
        """Raise `ValueError` unless the page is possible and agrees with the root."""
        stored_bytes, sizes, characters, newlines, _, flags = self._columns.values()
        count, in_runs, in_root = len(flags), self._run_starts[-1], self.ref.frames - before.frames
        require(count == in_runs == in_root, f"frames: {count} in the page, {in_runs} in runs, {in_root} in the root")
        for run in self.runs:
            if run.frames < 1 or run.codec not in CODECS:
                raise ValueError(f"a run has an impossible number of frames or codec: {run}")
            is_own = not run.is_virtual and run.etag is None and run.object.startswith("segments/")
            is_foreign = run.is_virtual and isinstance(run.etag, str)
            if not is_own and not is_foreign:
                raise ValueError(f"expected a segment, or a URL with an ETag, found {run.object!r}")
        is_ascii = map(bool, map(and_, flags, repeat(ASCII)))
        checks = (
            ("is empty", map(not_, characters)),
            ("is too large", map(gt, sizes, repeat(MAX_FRAME_BYTES))),
            ("is too large", map(gt, stored_bytes, repeat(2 * MAX_FRAME_BYTES))),
            ("is ASCII, but has more bytes than characters", map(and_, is_ascii, map(ne, sizes, characters))),
            ("has fewer bytes than characters", map(lt, sizes, characters)),
            ("has more newlines than characters", map(lt, characters, newlines)),
        )
        for problem, is_wrong in checks:
            wrong = next(compress(range(count), is_wrong), None)
            if wrong is not None:
                record = FrameRecord(*map(itemgetter(wrong), self._columns.values()))
                raise ValueError(f"frame {self.first_frame + wrong} {problem}: {record}")
        for run, start in zip(self.runs, self._run_starts, strict=False):
            part = slice(start, start + run.frames)
            is_possible = run.codec != "raw" or stored_bytes[part] == sizes[part]
            require(is_possible, "a raw frame must take as many stored bytes as text bytes")
        sums = (self.byte_starts[-1], self.starts[-1], self.newline_starts[-1])
        expected = (self.ref.bytes, self.ref.characters, self.ref.newlines)
        require(sums == expected, f"sums differ: expected {expected}, found {sums}")

    def __len__(self) -> int:
        return len(self._columns["flags"])

    def __getitem__(self, i: int) -> Frame:
        run_number = bisect_right(self._run_starts, i) - 1 if len(self.runs) > 1 else 0
        run = self.runs[run_number]
        fields: Any = (
            self.first_frame + i,
            run.object,
            run.offset + self.stored_starts[i] - self.stored_starts[self._run_starts[run_number]],
            *map(itemgetter(i), self._columns.values()),  # the fields of a `FrameRecord`
            run.codec,
            run.etag,
            self.starts[i],
            self.byte_starts[i],
            self.newline_starts[i],
        )
        return Frame(*fields)

    def numbers_between(self, start: int, stop: int, backward: bool = False) -> range:
        """The numbers, in the page, of the frames with characters [start, stop); the last one first if `backward`."""
        first, last = self.number_at(max(start, self.starts[0])), self.number_at(min(stop, self.starts[-1]) - 1)
        return range(last, first - 1, -1) if backward else range(first, last + 1)

    def all_frames_have(self, flag: int, start: int, stop: int) -> bool:
        """Whether frames [start, stop) of the page, counted from 0, all have `flag`, which is one bit."""
        return all(item & flag for item in self._columns["flags"][start:stop])

    def number_at(self, character: int) -> int:
        """The number, in the page, of the frame that contains a character of the text."""
        return bisect_right(self.starts, character) - 1
