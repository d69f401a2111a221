"""Encode and decode index pages, which record the place, the length and the contents of each frame.

A page is a small JSON table of *runs* (adjacent frames in one object), followed by fixed-width columns, little endian,
with one entry per frame. `docs/format.md` describes the layout byte by byte. Invariants, checked on every load:

- the page has the length and checksum in the root, and its sums are the root's counts
- the runs' frame counts add up to the number of frames
- a frame has at least one character, and bytes >= characters >= newlines; an ASCII frame has as many bytes as
  characters; a raw frame is stored as it is
"""

from __future__ import annotations

import json
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import accumulate
from operator import and_, lt

import google_crc32c

from monocontext.errors import DamagedData
from monocontext.format.refs import CODECS, MAX_FRAME_BYTES, PageRef, count_of
from monocontext.records import NamedTuple, dataclass

FRAMES_PER_PAGE = 4096
"""About 90 KB a page: one GET takes a few milliseconds, and the root of 1 TB, with 1024 pages, still fits one GET."""

ASCII = 1
HAS_CR = 2
HAS_OTHER_BREAKS = 4
r"""Holds one of \v \f \x1c \x1d \x1e \x85 U+2028 U+2029, at which `str.splitlines` cuts too."""
LOWER_KEEPS_LENGTH = 8
"""Holds no U+0130, the one character whose `lower()` is longer."""
HAS_SIGMA = 16
"""Holds U+03A3, the one character whose `lower()` depends on its neighbours."""
ENDS_LINE = 32
r"""Ends in `\n`. Not set in contexts written before filters were."""

OF_TEXT = ASCII | LOWER_KEEPS_LENGTH
"""Flags that all frames of a text have however it is cut, or not all of them."""

_MAGIC = b"MCPAGE\x00\x01"
_COLUMNS = (
    ("stored_bytes", "I"),
    ("bytes", "I"),
    ("characters", "I"),
    ("newlines", "I"),
    ("crc32c", "I"),
    ("flags", "H"),
)
_BYTES_PER_FRAME = 22


class FrameRecord(NamedTuple):
    """The entry of one frame in a page."""

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
    """A key below the context's place (`segments/...`), or the URL of a foreign object (a virtual segment)."""
    offset: int
    """First byte of the first frame in the object."""
    frames: int
    codec: str
    etag: str | None = None
    """Version of a foreign object; our own have names that are never used again."""

    @property
    def is_virtual(self) -> bool:
        return "://" in self.object


class Frame(NamedTuple):
    """One frame with its address in storage and its place in the text."""

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
    """First character in the text."""
    start_byte: int
    """First byte in the UTF-8 form of the text."""
    start_newline: int
    """Newlines before the frame."""

    @property
    def stop(self) -> int:
        return self.start + self.characters


def _little_endian(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column


def encode_page(runs: Sequence[FrameRun], records: Sequence[FrameRecord]) -> bytes:
    """The bytes of a page object."""
    if sum(run.frames for run in runs) != len(records) or not records:
        raise ValueError(f"{len(records)} frames in runs of {[run.frames for run in runs]}")
    rows = []
    for run in runs:
        row: dict[str, object] = {"object": run.object, "offset": run.offset, "frames": run.frames, "codec": run.codec}
        rows.append(row if run.etag is None else {**row, "etag": run.etag})
    table = json.dumps(rows, separators=(",", ":")).encode()
    table += b" " * (-len(table) % 8)
    columns = zip(*records, strict=True)
    head = _MAGIC + len(records).to_bytes(4, "little") + len(table).to_bytes(4, "little") + table
    return head + b"".join(
        _little_endian(array(kind, column)).tobytes() for (_, kind), column in zip(_COLUMNS, columns, strict=True)
    )


def flags_of_text(records: Iterable[FrameRecord], before: int = OF_TEXT) -> int:
    """The flags of `OF_TEXT` that all these frames and all frames before them have."""
    return reduce(and_, (record.flags for record in records), before) & OF_TEXT


def page_ref(data: bytes, records: Iterable[FrameRecord], before: PageRef | None) -> PageRef:
    """The entry of a page in the root, given the entry of the page before it."""
    import hashlib  # 2 ms that readers of a directory need not pay

    rows = list(records)
    sums = [sum(column) for column in zip(*((r.bytes, r.characters, r.newlines) for r in rows), strict=True)]
    base = (before.frames, before.bytes, before.characters, before.newlines) if before else (0, 0, 0, 0)
    return PageRef(
        hashlib.sha256(data).hexdigest()[:32],
        len(data),
        google_crc32c.value(data),
        base[0] + len(rows),
        base[1] + sums[0],
        base[2] + sums[1],
        base[3] + sums[2],
    )


class Page:
    """A loaded page: finds the frame of a character or a newline by one bisection. About 46 bytes a frame."""

    __slots__ = (
        "_columns",
        "_common_flags",
        "_run_starts",
        "byte_starts",
        "first_frame",
        "newline_starts",
        "ref",
        "runs",
        "size_bytes",
        "starts",
        "stored_starts",
    )

    def __init__(self, data: bytes, ref: PageRef, before: PageRef | None):
        """Parse and check a page object. Raises `DamagedData`, naming the object."""
        self.ref = ref
        if len(data) != ref.size_bytes:
            raise DamagedData(f"{ref.key}: length differs: expected {ref.size_bytes} bytes, found {len(data)}")
        if (found := google_crc32c.value(data)) != ref.crc32c:
            raise DamagedData(f"{ref.key}: crc32c differs: expected {ref.crc32c:08x}, found {found:08x}")
        try:
            self._parse(data)
            self._check(before)
            self.size_bytes = len(self) * 64 + len(self.runs) * 200
            """The page's size in memory, near enough for a budget."""
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise DamagedData(f"{ref.key}: not a page of this context: {error}") from None

    def _parse(self, data: bytes) -> None:
        if data[:8] != _MAGIC:
            raise ValueError(f"expected to begin with {_MAGIC!r}, found {data[:8]!r}")
        count = int.from_bytes(data[8:12], "little")
        body = 16 + int.from_bytes(data[12:16], "little")
        if body + count * _BYTES_PER_FRAME != len(data):
            raise ValueError(f"{count} frames do not fill {len(data)} bytes")
        self.runs = tuple(
            FrameRun(
                str(row["object"]), count_of(row["offset"]), count_of(row["frames"]), str(row["codec"]), row.get("etag")
            )
            for row in json.loads(data[16:body])
        )
        self._common_flags: int | None = None
        self._columns: dict[str, array[int]] = {}
        for name, kind in _COLUMNS:
            column = array(kind)
            stop = body + count * column.itemsize
            column.frombytes(data[body:stop])
            self._columns[name], body = _little_endian(column), stop

    def _check(self, before: PageRef | None) -> None:
        columns, ref = self._columns, self.ref
        count = len(columns["flags"])
        base = before or PageRef("", 0, 0, 0, 0, 0, 0)
        in_runs, in_root = sum(run.frames for run in self.runs), ref.frames - base.frames
        if count != in_runs or count != in_root:
            raise ValueError(f"{count} frames, {in_runs} in its runs, {in_root} in the root")
        for run in self.runs:
            if run.frames < 1 or run.offset < 0 or run.codec not in CODECS:
                raise ValueError(f"impossible run {run}")
            if run.is_virtual != isinstance(run.etag, str) or not (
                run.is_virtual or run.object.startswith("segments/")
            ):
                raise ValueError(f"neither one of our segments nor a foreign object with an ETag: {run.object!r}")
        if (
            min(columns["characters"]) < 1
            or max(columns["bytes"]) > MAX_FRAME_BYTES
            or max(columns["stored_bytes"]) > 2 * MAX_FRAME_BYTES
        ):
            raise ValueError("a frame is empty or too large")
        if any(
            b != c
            for b, c, f in zip(columns["bytes"], columns["characters"], columns["flags"], strict=True)
            if f & ASCII
        ):
            raise ValueError("an ASCII frame has more bytes than characters")
        if any(map(lt, columns["bytes"], columns["characters"])):
            raise ValueError("a frame has fewer bytes than characters")
        if any(map(lt, columns["characters"], columns["newlines"])):
            raise ValueError("a frame has more newlines than characters")
        self.starts = array("Q", accumulate(columns["characters"], initial=base.characters))
        self.byte_starts = array("Q", accumulate(columns["bytes"], initial=base.bytes))
        self.newline_starts = array("Q", accumulate(columns["newlines"], initial=base.newlines))
        self.stored_starts = array("Q", accumulate(columns["stored_bytes"], initial=0))
        sums = (self.byte_starts[-1], self.starts[-1], self.newline_starts[-1])
        if sums != (ref.bytes, ref.characters, ref.newlines):
            raise ValueError(f"sums differ: expected {(ref.bytes, ref.characters, ref.newlines)}, found {sums}")
        self.first_frame = ref.frames - count
        self._run_starts = list(accumulate((run.frames for run in self.runs), initial=0))
        for run, at in zip(self.runs, self._run_starts, strict=False):
            part = slice(at, at + run.frames)
            if run.codec == "raw" and columns["stored_bytes"][part] != columns["bytes"][part]:
                raise ValueError("a raw frame must take as many stored bytes as text bytes")

    def __len__(self) -> int:
        return len(self._columns["flags"])

    def __getitem__(self, i: int) -> Frame:
        """Frame `i` of the page."""
        columns = self._columns
        r = bisect_right(self._run_starts, i) - 1 if len(self.runs) > 1 else 0
        run = self.runs[r]
        return Frame(
            self.first_frame + i,
            run.object,
            run.offset + self.stored_starts[i] - self.stored_starts[self._run_starts[r]],
            columns["stored_bytes"][i],
            columns["bytes"][i],
            columns["characters"][i],
            columns["newlines"][i],
            columns["crc32c"][i],
            columns["flags"][i],
            run.codec,
            run.etag,
            self.starts[i],
            self.byte_starts[i],
            self.newline_starts[i],
        )

    def between(self, start: int, stop: int, backward: bool = False) -> range:
        """The frames of the page that hold characters [start, stop), in order or from the end."""
        low, high = self.at_character(max(start, self.starts[0])), self.at_character(min(stop, self.starts[-1]) - 1)
        return range(high, low - 1, -1) if backward else range(low, high + 1)

    def frames(self, numbers: range) -> list[Frame]:
        """Some frames of the page, in the order of `numbers`."""
        return [self[i] for i in numbers]

    def all_frames_have(self, flag: int, start: int, stop: int) -> bool:
        """Whether frames [start, stop) of the page have a flag."""
        flags = self._columns["flags"]
        if stop - start == len(flags):
            if self._common_flags is None:
                self._common_flags = reduce(and_, flags)
            return bool(self._common_flags & flag)
        return all(each & flag for each in flags[start:stop])

    def records(self) -> list[FrameRecord]:
        """All records; a writer merges those of a short page with new frames."""
        return [FrameRecord(*row) for row in zip(*(self._columns[name] for name, _ in _COLUMNS), strict=True)]

    def at_character(self, character: int) -> int:
        """The frame that holds a character."""
        return bisect_right(self.starts, character) - 1

    def at_byte(self, byte: int) -> int:
        """The frame that holds a byte of the text."""
        return bisect_right(self.byte_starts, byte) - 1

    def at_newline(self, newline: int) -> int:
        """The frame that holds newline number `newline` (from 0)."""
        return bisect_right(self.newline_starts, newline) - 1
