"""Name index pages, filters and directories of them: the entries of a root and of a directory. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from monocontext.records import dataclass

CODECS = ("zstd", "raw")
MAX_FRAME_BYTES = 16 << 20
"""The most that a reader holds for one frame, whatever a manifest says."""

FILTER_KIND = "grams-5"
"""The kind of search filter that writers make."""
FILTER_KINDS = ("grams-1", "grams-2", "grams-3", "grams-4", FILTER_KIND)
EDITED = "edited "
"""Before the kind of a filter with `columns` in a root: readers that do not know these skip it, and read more text."""
UNKNOWN = -1
"""In place of a column: these frames may hold anything."""
MOST_COLUMN_RUNS = 4096
"""Entries of `columns`, at most."""
"""The kinds that readers use; they skip others.

Checksums of `grams-1` do not cover the place of a block, `grams-2` has no rows of words, grams of `grams-3` have 5
bytes, and `grams-4` has no grams of 3 bytes and more spans (`filters/grams.py`).
"""
LONGEST_GRAM = dict.fromkeys(FILTER_KINDS[:3], 5) | dict.fromkeys(FILTER_KINDS[3:], 8)
"""In bytes, of each kind."""
FILTER_BITS = range(8, 19)
"""The allowed values of `bits`: a filter has 2 ** bits rows of grams."""
MOST_PAGE_BYTES = 64 << 20
"""The most frames of a page: they take 90 KB, and up to 1.5 KB each for names if each is in an object of its own."""
MOST_LEVELS = 4
"""Directories above each other: three name more pages than 2^62 bytes of text have."""

ID = re.compile(r"[0-9a-f]{32}")
LIMIT = 1 << 62


def fresh_id() -> str:
    """An id that no object had before: an object that `gc` may be about to remove has another name."""
    return os.urandom(16).hex()


def directory_key(id: str) -> str:
    return f"index/{id}.dir"


def filter_key(part: str) -> str:
    return f"filters/{part}.flt"


@dataclass(frozen=True, slots=True)
class PageRef:
    """One index page, with the counts of the text up to and including its last frame."""

    id: str
    """Truncated SHA-256 of the page's bytes; the object is `index/<id>.idx`."""
    size_bytes: int
    """Length of the page object."""
    crc32c: int
    """Checksum of the page object."""
    frames: int
    bytes: int
    characters: int
    newlines: int

    @property
    def key(self) -> str:
        return f"index/{self.id}.idx"


@dataclass(frozen=True, slots=True)
class PageDirectory(PageRef):
    """Neighbouring index pages, named by an object (`directories`); counts as of its last page."""

    entries: int
    """Pages that it names, or directories of them."""
    level: int
    """1: it names pages; 2: directories of pages; and so on."""
    pages: int
    """Index pages below it."""

    @property
    def key(self) -> str:
        return directory_key(self.id)


@dataclass(frozen=True, slots=True)
class FilterRef:
    """A search filter over neighbouring frames (`filters`)."""

    kind: str
    """How rows are computed and laid out; readers skip kinds that they do not know."""
    fold: str
    """The tables that case was folded by (`filters.case_folding.TABLES`)."""
    first_frame: int
    frames: int
    bits: int
    """There are 2 ** bits rows."""
    overlap_bytes: int
    """Folded text after each frame that the frame's column covers too."""
    tail_frames: int
    """Number of last frames of the group in which a match can begin that ends after the group."""
    border_frames: int
    """The number of frames before the group that its border column covers; 0 without a border column."""
    parts: tuple[str, ...]
    """Ids of the objects, in order: truncated SHA-256 of their bytes."""
    seed: int | None = None
    """Part of the checksum of each block, so that a block of another filter does not pass; None in `grams-1`."""
    columns: tuple[tuple[int, int], ...] | None = None
    """The columns of the group's frames, if documents were replaced or deleted since the filter was made.

    In the order of the frames, as pairs of the first column, or `UNKNOWN`, and a number of frames. None: column i
    belongs to frame i.
    """
    width: int | None = None
    """With `columns`: columns that are stored, the border's included."""

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.frames

    @property
    def reach_bytes(self) -> int:
        """Folded text after each frame that its column is made of."""
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
    """Neighbouring filters, named by an object (`directories`)."""

    id: str
    size_bytes: int
    crc32c: int
    first_frame: int
    frames: int
    """From the first frame of its first filter to the last of its last."""
    entries: int
    level: int

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.frames

    @property
    def key(self) -> str:
        return directory_key(self.id)


# -- parsing and checking ----------------------------------------------------------------------------------------------


def counted(kind: type[Any], row: dict[str, Any]) -> Any:
    """An entry of an id and counts."""
    return kind(str(row["id"]), *(count_of(row[name]) for name in kind.__match_args__[1:]))


def page_refs(rows: Sequence[dict[str, Any]]) -> tuple[PageRef, ...]:
    """The entries of `pages`, in a root or a directory."""
    return tuple(counted(PageDirectory if "level" in row else PageRef, row) for row in rows)


def filter_refs(rows: Sequence[dict[str, Any]]) -> tuple[FilterRef, ...]:
    """The filters of kinds that are known here."""
    return tuple(_filter_ref(row) for row in rows if row["kind"].removeprefix(EDITED) in FILTER_KINDS)


def filter_directories(rows: Sequence[dict[str, Any]]) -> tuple[FilterDirectory, ...]:
    return tuple(counted(FilterDirectory, row) for row in rows)


def _filter_ref(row: dict[str, Any]) -> FilterRef:
    kind = str(row["kind"])
    is_edited = kind.startswith(EDITED)
    return FilterRef(
        kind=kind.removeprefix(EDITED),
        fold=str(row["fold"]),
        first_frame=count_of(row["first_frame"]),
        frames=count_of(row["frames"]),
        bits=count_of(row["bits"]),
        overlap_bytes=count_of(row["overlap_bytes"]),
        tail_frames=count_of(row["tail_frames"]),
        border_frames=count_of(row["border_frames"]),
        parts=tuple(str(part) for part in row["parts"]),
        seed=count_of(row["seed"]) if kind.removeprefix(EDITED) != FILTER_KINDS[0] else None,
        columns=tuple((_column(first), count_of(frames)) for first, frames in row["columns"]) if is_edited else None,
        width=count_of(row["width"]) if is_edited else None,
    )


def _column(value: object) -> int:
    return UNKNOWN if value == UNKNOWN else count_of(value)


def count_of(value: object) -> int:
    """An integer that counts something. Raises `ValueError` for negative and huge ones, floats and bools."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LIMIT:
        raise ValueError(f"not a count: {value!r}")
    return value


def require(condition: bool, message: str) -> None:
    """Raise `ValueError` unless a condition is true."""
    if not condition:
        raise ValueError(message)


def check_pages(pages: Sequence[PageRef], before: PageRef | None = None) -> None:
    """Raise `ValueError` where entries for index pages cannot follow each other, and the entry `before` them."""
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
        grown = (page.bytes - before.bytes, page.characters - before.characters, page.newlines - before.newlines)
        least = max(grown[2], page.frames - before.frames, 1)
        if not (grown[0] >= grown[1] >= least and grown[2] >= 0):
            raise ValueError(f"{where}: impossible counts (bytes, characters, newlines): {grown}")
        before = page


def check_filters(refs: Sequence[FilterRef | FilterDirectory], covered: int) -> int:
    """Raise `ValueError` for filters that cannot follow each other after this many frames; returns the frame after
    them."""
    for number, ref in enumerate(refs):
        where = f"filter {number}"
        if not (covered <= ref.first_frame and ref.frames > 0):
            raise ValueError(f"{where}: frames {ref.first_frame} to {ref.stop_frame}, after {covered}")
        if isinstance(ref, FilterDirectory):
            check_object(where, ref.id, ref.size_bytes)
            check_directory(where, ref, refs[number - 1] if number else None)
        else:
            sane = ref.tail_frames <= ref.frames and ref.border_frames <= ref.first_frame and ref.overlap_bytes > 0
            if not sane or ref.bits not in FILTER_BITS or not _has_sane_columns(ref):
                raise ValueError(f"{where}: impossible record")
            if not ref.parts or not all(ID.fullmatch(part) for part in ref.parts):
                raise ValueError(f"{where}: parts without a name")
        covered = ref.stop_frame
    return covered


def _has_sane_columns(ref: FilterRef) -> bool:
    """Whether `columns` rise, are stored, and cover all frames of the group."""
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
    if not ID.fullmatch(id):
        raise ValueError(f"{where}: {id!r} is not a page id")
    if not 0 < size_bytes <= MOST_PAGE_BYTES:
        raise ValueError(f"{where}: an object of {size_bytes:,} bytes")


def check_directory(where: str, ref: Any, before: object) -> None:
    """Whether directories come first, higher levels before lower ones."""
    if not (0 < ref.level <= MOST_LEVELS and ref.entries > 0):
        raise ValueError(f"{where}: a directory of level {ref.level} with {ref.entries} entries")
    if before is not None and getattr(before, "level", 0) < ref.level:
        raise ValueError(f"{where}: a directory of level {ref.level} after a lower one")


def as_object(ref: Any) -> dict[str, Any]:
    """The JSON form of an entry."""
    found = {name: value for name in ref.__match_args__ if (value := getattr(ref, name)) is not None}
    if "columns" in found:
        found["kind"] = EDITED + found["kind"]
    return found
