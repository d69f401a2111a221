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

FILTER_KIND = "grams-5"
"""The kind of search filter that writers make."""
FILTER_KINDS = ("grams-1", "grams-2", "grams-3", "grams-4", FILTER_KIND)
"""The kinds that readers use; they skip others.

Checksums of `grams-1` do not cover the place of a block, `grams-2` has no rows of words, grams of `grams-3` have 5
bytes, and `grams-4` has no grams of 3 bytes and more spans (`filters/grams.py`).
"""
LONGEST_GRAM = dict.fromkeys(FILTER_KINDS[:3], 5) | dict.fromkeys(FILTER_KINDS[3:], 8)
"""The length of the longest gram of each kind, in bytes."""
EDITED = "edited "
"""The prefix of the kind of a filter with `columns`: readers of older versions skip such a filter."""
UNKNOWN = -1
"""The column of frames that may contain anything."""
MOST_COLUMN_RUNS = 4096
"""The most entries of `columns`."""
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
        return f"index/{self.id}.idx"


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
    """A search filter over neighbouring frames (`filters`)."""

    kind: str
    """One of `FILTER_KINDS`: how rows are computed and stored."""
    fold: str
    """The tables by which case was folded (`filters.case_folding.TABLES`)."""
    first_frame: int
    frames: int
    bits: int
    """The filter has 2 ** bits rows of grams."""
    overlap_bytes: int
    """The length of the folded text after each frame that the frame's column covers too."""
    tail_frames: int
    """The number of last frames in which a match can begin that ends after the filter's frames."""
    border_frames: int
    """The number of frames before the first that the border column covers; 0 if there is no border column."""
    parts: tuple[str, ...]
    """The ids of the objects, in order: the truncated SHA-256 of each."""
    seed: int | None = None
    """A part of each block's checksum, so that a block of another filter is refused; `None` in `grams-1`."""
    columns: tuple[tuple[int, int], ...] | None = None
    """The columns of the frames, if documents were replaced or deleted since the filter was made; else column i belongs
    to frame i.

    In the order of the frames, as pairs of a first column, or `UNKNOWN`, and a number of frames.
    """
    width: int | None = None
    """The number of stored columns, the border column included; only with `columns`."""

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.frames

    @property
    def reach_bytes(self) -> int:
        """The number of folded bytes after a frame from which its column is computed."""
        return self.overlap_bytes + LONGEST_GRAM[self.kind] - 1

    @property
    def has_words(self) -> bool:
        """Whether rows of words follow those of grams."""
        return self.kind in FILTER_KINDS[2:]

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
    """The number of frames from the first one of its first filter to the last one of its last."""
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
    """The entries of `filters`, without those of unknown kinds."""
    return tuple(_filter_ref(row) for row in rows if row["kind"].removeprefix(EDITED) in FILTER_KINDS)


def filter_directories(rows: Sequence[dict[str, Any]]) -> tuple[FilterDirectory, ...]:
    """The entries of `filter_directories`."""
    return tuple(parse_entry(FilterDirectory, row) for row in rows)


def _filter_ref(row: dict[str, Any]) -> FilterRef:
    kind = str(row["kind"]).removeprefix(EDITED)
    is_edited = kind != row["kind"]
    return FilterRef(
        kind=kind,
        fold=str(row["fold"]),
        first_frame=count_of(row["first_frame"]),
        frames=count_of(row["frames"]),
        bits=count_of(row["bits"]),
        overlap_bytes=count_of(row["overlap_bytes"]),
        tail_frames=count_of(row["tail_frames"]),
        border_frames=count_of(row["border_frames"]),
        parts=tuple(str(part) for part in row["parts"]),
        seed=count_of(row["seed"]) if kind != FILTER_KINDS[0] else None,
        columns=tuple(map(_column_run, row["columns"])) if is_edited else None,
        width=count_of(row["width"]) if is_edited else None,
    )


def _column_run(row: Sequence[object]) -> tuple[int, int]:
    first, frames = row
    return UNKNOWN if first == UNKNOWN else count_of(first), count_of(frames)


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


def check_filters(refs: Sequence[FilterRef | FilterDirectory], covered: int) -> int:
    """Raise `ValueError` unless these filters can follow each other and filters of the first `covered` frames.

    Returns the number of frames up to the end of the last filter.
    """
    for number, ref in enumerate(refs):
        where = f"filter {number}"
        if not (covered <= ref.first_frame and ref.frames > 0):
            raise ValueError(f"{where}: frames {ref.first_frame} to {ref.stop_frame}, after {covered}")
        if isinstance(ref, FilterDirectory):
            check_object(where, ref.id, ref.size_bytes)
            check_directory(where, ref, refs[number - 1] if number else None)
        else:
            possible = ref.tail_frames <= ref.frames and ref.border_frames <= ref.first_frame and ref.overlap_bytes > 0
            require(possible and ref.bits in FILTER_BITS and _has_possible_columns(ref), f"{where}: impossible record")
            if not ref.parts or not all(ID.fullmatch(part) for part in ref.parts):
                raise ValueError(f"{where}: parts without a name")
        covered = ref.stop_frame
    return covered


def _has_possible_columns(ref: FilterRef) -> bool:
    """Whether `columns` rise, are stored, and cover all frames of the filter."""
    if ref.columns is None or ref.width is None:
        return ref.columns is None and ref.width is None
    stored = ref.width - (1 if ref.border_frames else 0)
    free = 0
    for first, frames in ref.columns:
        if first != UNKNOWN:
            if first < free or first + frames > stored:
                return False
            free = first + frames
        if not frames:
            return False
    counts = len(ref.columns) <= MOST_COLUMN_RUNS and sum(frames for _, frames in ref.columns) == ref.frames
    return counts and ref.width <= LIMIT


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
    found = {name: value for name in ref.__match_args__ if (value := getattr(ref, name)) is not None}
    if "columns" in found:
        found["kind"] = EDITED + found["kind"]
    return found
