"""The entries of a root and of its directories: references to index pages, filters, and directories of them. No I/O."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from monocontext.records import dataclass

CODECS = ("zstd", "raw")
MAX_FRAME_BYTES = 16 << 20
"""The largest frame that a reader accepts."""

FILTER_KIND = "grams-7"
"""The kind of search filter that writers make and readers use. Other kinds are read as absent."""
GRAM_BYTES = 5
"""The length of a gram."""
MOST_FILTER_RUNS = 4096
"""The most entries of `FilterRef.runs`."""
FILTER_BITS = range(8, 19)
"""The allowed values of `bits`: a filter has 2 ** bits rows of grams."""
MOST_PAGE_BYTES = 64 << 20
"""The largest page: 4096 frames take 90 KB, and up to 1.5 KB more for each frame that is in another object."""
MOST_LEVELS = 4
"""The most levels of directories: three name more pages than 2^62 bytes of text have."""

ID = re.compile(r"[0-9a-f]{32}")
LIMIT = 1 << 62


def fresh_id() -> str:
    """A random id, so that no new object has the name of one that `gc` may be about to remove."""
    return os.urandom(16).hex()


def index_key(id: str) -> str:
    return f"index/{id}.idx"


def directory_key(id: str) -> str:
    return f"index/{id}.dir"


def filter_key(part: str) -> str:
    return f"filters/{part}.flt"


@dataclass(frozen=True, slots=True)
class PageRef:
    """An index page, with the counts of the text up to and including its last frame."""

    id: str
    """The truncated SHA-256 of the page; the object is `index/<id>.idx`."""
    size_bytes: int
    crc32c: int
    frames: int
    bytes: int
    characters: int
    newlines: int

    @property
    def key(self) -> str:
        return index_key(self.id)


@dataclass(frozen=True, slots=True)
class PageDirectory(PageRef):
    """A directory of neighbouring index pages (`directories`). Its counts are those of its last page."""

    entries: int
    """The number of pages or directories that it names."""
    level: int
    """1 for a directory of pages, 2 for a directory of such directories, and so on."""
    pages: int
    """The number of index pages below it, at all levels."""

    @property
    def key(self) -> str:
        return directory_key(self.id)


@dataclass(frozen=True, slots=True)
class FilterRef:
    """A search filter: a table of bits with a row for each hash value, and a column for each of some frames.

    A frame has a column in at most one filter of a text; a frame without one may contain anything. An edit changes
    `runs`, never the stored columns: those of frames that are gone belong to no run.
    """

    kind: str
    """`FILTER_KIND`: how rows are computed and stored."""
    fold: str
    """The tables by which case was folded (`filters.case_folding.TABLES`)."""
    bits: int
    """The filter has 2 ** bits rows of grams."""
    overlap_bytes: int
    """The length of the folded text after each frame that the frame's column covers too."""
    width: int
    """The number of stored columns."""
    runs: tuple[tuple[int, int, int], ...]
    """The frames of the columns: runs of (first frame of the text, first column, number of frames), which rise in
    both."""
    parts: tuple[str, ...]
    """The ids of the objects, in order: the truncated SHA-256 of each."""
    seed: int
    """A part of each block's checksum, so that a block of another filter is refused."""

    @property
    def first_frame(self) -> int:
        return self.runs[0][0]

    @property
    def stop_frame(self) -> int:
        """The number after its last frame. Frames before it may belong to other filters, or to none."""
        first, _, frames = self.runs[-1]
        return first + frames

    @property
    def frames(self) -> int:
        """The number of frames with a column here."""
        return sum(frames for _, _, frames in self.runs)

    @property
    def reach_bytes(self) -> int:
        """The number of folded bytes after a frame from which its column is computed."""
        return self.overlap_bytes + GRAM_BYTES - 1

    def key(self, part: int) -> str:
        return filter_key(self.parts[part])

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(map(filter_key, self.parts))


@dataclass(frozen=True, slots=True)
class FilterDirectory:
    """A directory of neighbouring filters (`directories`)."""

    id: str
    size_bytes: int
    crc32c: int
    first_frame: int
    frames: int
    """The number of frames from the first one of its first filter to the last one of its last. No other directory has
    filters of these; filters in the root may."""
    entries: int
    level: int

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.frames

    @property
    def key(self) -> str:
        return directory_key(self.id)


# -- parsing and checking ----------------------------------------------------------------------------------------------


def parse_entry(kind: type[Any], row: dict[str, Any]) -> Any:
    """The record of a class whose fields are an id and counts, from its JSON form."""
    return kind(str(row["id"]), *(count_of(row[name]) for name in kind.__match_args__[1:]))


def page_refs(rows: Sequence[dict[str, Any]]) -> tuple[PageRef, ...]:
    """The entries of `pages`, in a root or a directory."""
    return tuple(parse_entry(PageDirectory if "level" in row else PageRef, row) for row in rows)


def filter_refs(rows: Sequence[dict[str, Any]]) -> tuple[FilterRef, ...]:
    """The entries of `filters`, without those of other kinds."""
    return tuple(_filter_ref(row) for row in rows if row["kind"] == FILTER_KIND)


def filter_directories(rows: Sequence[dict[str, Any]]) -> tuple[FilterDirectory, ...]:
    """The entries of `filter_directories`."""
    return tuple(parse_entry(FilterDirectory, row) for row in rows)


def _filter_ref(row: dict[str, Any]) -> FilterRef:
    return FilterRef(
        FILTER_KIND,
        str(row["fold"]),
        count_of(row["bits"]),
        count_of(row["overlap_bytes"]),
        count_of(row["width"]),
        tuple(_filter_run(*run) for run in row["runs"]),
        tuple(str(part) for part in row["parts"]),
        count_of(row["seed"]),
    )


def _filter_run(first: object, column: object, frames: object) -> tuple[int, int, int]:
    return count_of(first), count_of(column), count_of(frames)


def count_of(value: object) -> int:
    """Return `value` if it is an int from 0 to below `LIMIT`, else raise `ValueError`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LIMIT:
        raise ValueError(f"expected a count, found {value!r}")
    return value


def require(condition: bool, message: str) -> None:
    """Raise `ValueError` unless a condition is true."""
    if not condition:
        raise ValueError(message)


def check_pages(pages: Sequence[PageRef], before: PageRef | None = None) -> None:
    """Raise `ValueError` unless these entries for index pages can follow each other and the entry `before` them."""
    before = before or PageRef("", 0, 0, 0, 0, 0, 0)
    for number, page in enumerate(pages):
        where = f"page {number}"
        check_object(where, page.id, page.size_bytes)
        if isinstance(page, PageDirectory):
            check_directory(where, page, pages[number - 1] if number else None)
            if page.pages < page.entries:
                raise ValueError(f"{where}: {page.pages} pages in {page.entries} entries")
        elif page.frames <= before.frames:
            raise ValueError(f"{where}: frames do not rise: {before.frames}, {page.frames}")
        size, newlines = page.bytes - before.bytes, page.newlines - before.newlines
        characters = page.characters - before.characters
        if not (size >= characters >= max(newlines, page.frames - before.frames, 1) and newlines >= 0):
            raise ValueError(f"{where}: {size} bytes, {characters} characters and {newlines} newlines are impossible")
        before = page


def check_filters(refs: Sequence[FilterRef], frames: int) -> None:
    """Raise `ValueError` unless these can be filters of a text of so many frames, each frame in one of them at most."""
    for number, ref in enumerate(refs):
        where = f"filter {number}"
        possible = ref.bits in FILTER_BITS and 0 < ref.overlap_bytes < 1 << 32 and ref.seed < 1 << 32
        require(possible and 0 < len(ref.runs) <= MOST_FILTER_RUNS, f"{where}: impossible record")
        column = 0
        for _, first, count in ref.runs:
            require(column <= first and count > 0, f"{where}: columns do not rise")
            column = first + count
        require(column <= ref.width < 1 << 32, f"{where}: {column} columns of {ref.width}")
        if not ref.parts or not all(ID.fullmatch(part) for part in ref.parts):
            raise ValueError(f"{where}: parts without a name")
    stop = 0
    for first, _, count in sorted(run for ref in refs for run in ref.runs):
        require(stop <= first, f"filters: frame {first} has two columns")
        stop = first + count
    require(stop <= frames, f"filters cover more than {frames} frames")


def check_filter_directories(refs: Sequence[FilterDirectory], covered: int = 0) -> int:
    """Raise `ValueError` unless these directories can follow each other and filters of the first `covered` frames.

    Returns the number of frames up to the end of the last one.
    """
    for number, ref in enumerate(refs):
        where = f"filter directory {number}"
        if not (covered <= ref.first_frame and ref.frames > 0):
            raise ValueError(f"{where}: frames {ref.first_frame} to {ref.stop_frame}, after {covered}")
        check_object(where, ref.id, ref.size_bytes)
        check_directory(where, ref, refs[number - 1] if number else None)
        covered = ref.stop_frame
    return covered


def check_object(where: str, id: str, size_bytes: int) -> None:
    """Raise `ValueError` for an invalid id or size of an object."""
    require(ID.fullmatch(id) is not None, f"{where}: {id!r} is not a page id")
    require(0 < size_bytes <= MOST_PAGE_BYTES, f"{where}: an object of {size_bytes:,} bytes")


def check_directory(where: str, ref: Any, before: object) -> None:
    """Raise `ValueError` for an impossible directory, or one that follows an entry of a lower level."""
    is_possible = 0 < ref.level <= MOST_LEVELS and ref.entries > 0
    require(is_possible, f"{where}: a directory of level {ref.level} with {ref.entries} entries")
    follows = before is None or level_of(before) >= ref.level
    require(follows, f"{where}: a directory of level {ref.level} after a lower one")


def level_of(entry: object) -> int:
    """The level of a directory; 0 for a page or a filter."""
    return getattr(entry, "level", 0)


def as_object(ref: Any) -> dict[str, Any]:
    """The JSON form of an entry, without fields that are `None`."""
    return {name: value for name in ref.__match_args__ if (value := getattr(ref, name)) is not None}
