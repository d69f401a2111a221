"""Parse and check the entries of a root and of its directories: references to pages, filters and documents."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from typing import Any

from monocontext.records import NamedTuple, dataclass

CODECS = ("zstd", "raw")
MAX_FRAME_BYTES = 16 << 20  # the largest frame that a reader accepts

FILTER_KIND = "grams-8"
"""The kind of search filter that writers make and readers use. Other kinds are read as absent."""
GRAM_BYTES = 5  # the length of a gram
MOST_FILTER_RUNS = 4096  # the most entries of `FilterRef.runs`
FILTER_BITS = range(8, 19)  # the allowed values of `bits`: a filter has 2 ** bits rows of grams
MOST_PAGE_BYTES = 64 << 20
"""The largest page: 4096 frames take 90 KB, and up to 1.5 KB more for each frame that is in another object."""
MOST_LEVELS = 4  # the most levels of directories: three name more pages than 2^62 bytes of text have

ID = re.compile(r"[0-9a-f]{32}")
FOLDERS = ("segments/", "index/", "filters/", "documents/")
OBJECT = re.compile(
    r"segments/[0-9a-f]{32}\.seg|index/[0-9a-f]{32}\.(?:idx|dir)|filters/[0-9a-f]{32}\.flt|documents/[0-9a-f]{32}\.doc"
)
"""The keys of all objects that roots name."""
LIMIT = 1 << 62  # all counts are below it, so that sums of two fit 63 bits


def fresh_id() -> str:
    """A random id, so that no new object has the name of one that `gc` may be about to remove."""
    return os.urandom(16).hex()


def id_of(data: bytes) -> str:
    """The id of an object that is named by its content."""
    import hashlib  # 2 ms that readers of a directory need not pay

    return hashlib.sha256(data).hexdigest()[:32]


def id_in(key: str) -> str:
    """The id in the key of an object."""
    return key.partition("/")[2][:32]


def directory_key(id: str) -> str:
    return f"index/{id}.dir"


def filter_key(part: str) -> str:
    return f"filters/{part}.flt"


def documents_key(id: str) -> str:
    return f"documents/{id}.doc"


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


NO_PAGE = PageRef("", 0, 0, 0, 0, 0, 0)  # the counts before the first page


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


class FilterRun(NamedTuple):
    """Neighbouring frames of a text, whose columns in a filter are neighbours too."""

    first_frame: int
    first_column: int
    frames: int

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.frames


@dataclass(frozen=True, slots=True)
class FilterRef:
    """A search filter: a table of bits, with a row for each hash value and a column for each of its frames. A frame has
    a column in at most one filter of a text. An edit changes `runs`, never the stored columns."""

    kind: str
    """How rows are computed and stored: `FILTER_KIND`."""
    fold: str
    """The tables by which case was folded (`filters.grams.TABLES`)."""
    bits: int
    """The filter has 2 ** bits rows of grams."""
    overlap_bytes: int
    """The length of the folded text after each frame that the frame's column covers too."""
    width: int
    """The number of stored columns."""
    runs: tuple[FilterRun, ...]
    """The frames of the columns, in rising order. Columns outside the runs belong to no frame."""
    parts: tuple[str, ...]
    """The ids of the objects, in order: the truncated SHA-256 of each."""
    seed: int
    """A part of each block's checksum, so that a block of another filter is refused."""

    @property
    def first_frame(self) -> int:
        return self.runs[0].first_frame

    @property
    def stop_frame(self) -> int:
        """The number after its last frame. Frames between its runs belong to other filters, or to none."""
        return self.runs[-1].stop_frame

    @property
    def frames(self) -> int:
        """The number of frames with a column here."""
        return sum(run.frames for run in self.runs)

    @property
    def reach_bytes(self) -> int:
        """The number of folded bytes after a frame that its column is computed from, besides those of the frame."""
        return self.overlap_bytes + GRAM_BYTES - 1

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
    """The number of frames from the first frame of its first filter to the last frame of its last filter."""
    entries: int
    level: int

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.frames

    @property
    def key(self) -> str:
        return directory_key(self.id)


@dataclass(frozen=True, slots=True)
class DocumentPageRef:
    """A page of documents (`documents`), with the counts up to and including its last document."""

    id: str
    """The truncated SHA-256 of the page; the object is `documents/<id>.doc`, unless the page is in the root."""
    size_bytes: int
    crc32c: int
    documents: int
    start: int
    """The character of the text from which the gap of its first document is counted."""
    start_newline: int
    """The number of newlines before that character."""
    characters: int
    """The end of the last document in the text, in characters."""
    newlines: int
    """The number of newlines before that end."""
    bytes: int
    """The length of all documents up to the last one, in bytes of UTF-8."""


NO_DOCUMENTS = DocumentPageRef("", 0, 0, 0, 0, 0, 0, 0, 0)  # the counts before the first page of documents


@dataclass(frozen=True, slots=True)
class DocumentDirectory(DocumentPageRef):
    """A directory of neighbouring document pages (`directories`). Its counts are those of its last page."""

    entries: int
    level: int

    @property
    def key(self) -> str:
        return directory_key(self.id)


@dataclass(frozen=True, slots=True)
class NameTableRef:
    """A table of the names of neighbouring documents (`document_names`)."""

    id: str
    documents: int
    """The number of documents up to the last one that it covers. A table begins where the previous one ends."""
    names: int
    """The number of distinct names."""
    buckets: int
    """The number of buckets, a power of two."""
    stride: int
    """The number of entries in each bucket."""


@dataclass(frozen=True, slots=True)
class DocumentsRef:
    """The documents of a text."""

    pages: tuple[DocumentPageRef, ...]
    last_page: bytes | None = None
    """The last page if it is small: then it is in the root instead of an object."""
    names: tuple[NameTableRef, ...] = ()
    """The tables of names. Names of documents after the last table are looked up in pages."""
    doubled: int | None = None
    """The number of the first document that has the name of an earlier one of the same upload; `None` if none has."""

    @property
    def documents(self) -> int:
        return self.pages[-1].documents

    @property
    def named(self) -> int:
        """The number of documents that tables of names cover."""
        return self.names[-1].documents if self.names else 0

    def as_object(self) -> dict[str, Any]:
        """The JSON form."""
        fields = {
            "pages": [as_object(page) for page in self.pages],
            "last_page": None if self.last_page is None else base64.b64encode(self.last_page).decode(),
            "names": [as_object(table) for table in self.names] or None,
            "doubled": self.doubled,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def check(self, text_bytes: int, characters: int, newlines: int) -> None:
        """Raise `ValueError` unless these can be the documents of a text with these counts."""
        require(bool(self.pages), "documents need at least one page")
        check_document_pages(self.pages)
        last, copy = self.pages[-1], self.last_page
        require(not isinstance(last, DocumentDirectory), "the last page of documents is a directory")
        is_within = last.characters <= characters and last.newlines <= newlines and last.bytes <= text_bytes
        require(is_within, "documents end after the text")
        require(copy is None or len(copy) == last.size_bytes, "last_page and the last page of documents differ")
        require((self.doubled or 0) < last.documents, f"doubled is document {self.doubled} of {last.documents}")
        covered = 0
        for number, table in enumerate(self.names):
            where = f"table {number} of names"
            require(ID.fullmatch(table.id) is not None, f"{where}: {table.id!r} is not an id")
            follows = covered < table.documents <= last.documents
            require(follows, f"{where}: covers {table.documents} documents of {last.documents}, after {covered}")
            is_possible = table.buckets.bit_count() == 1 and table.stride > 0
            require(is_possible and table.names <= table.documents - covered, f"{where}: impossible counts: {table}")
            covered = table.documents


# -- parsing and checking ----------------------------------------------------------------------------------------------


def parse_entry(entry_type: type[Any], row: dict[str, Any]) -> Any:
    """An entry of a type whose fields are an id and counts, from its JSON form. Raises `KeyError`, `ValueError`."""
    _, *counts = entry_type.__match_args__  # the names of its fields
    return entry_type(str(row["id"]), *(count_of(row[name]) for name in counts))


def parse_entries(rows: Sequence[dict[str, Any]], entry_type: type[Any], directory: type[Any]) -> tuple[Any, ...]:
    """The entries in a list of a root or a directory: those with a level are of the type `directory`."""
    return tuple(parse_entry(directory if "level" in row else entry_type, row) for row in rows)


def parse_filters(rows: Sequence[dict[str, Any]]) -> tuple[FilterRef, ...]:
    """The entries of `filters`, except those of another kind than `FILTER_KIND`."""
    results = []
    for row in rows:
        if row["kind"] == FILTER_KIND:
            bits, overlap, width, seed = (count_of(row[name]) for name in ("bits", "overlap_bytes", "width", "seed"))
            runs = tuple(FilterRun(*map(count_of, (first, column, frames))) for first, column, frames in row["runs"])
            parts = tuple(map(str, row["parts"]))
            results.append(FilterRef(FILTER_KIND, str(row["fold"]), bits, overlap, width, runs, parts, seed))
    return tuple(results)


def count_of(value: object) -> int:
    """Return `value`. Raises `ValueError` unless it is an int from 0 to below `LIMIT`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LIMIT:
        raise ValueError(f"expected a count, found {value!r}")
    return value


def require(condition: bool, message: str) -> None:
    """Raise `ValueError` with a message unless a condition is true."""
    if not condition:
        raise ValueError(message)


def check_pages(pages: Sequence[PageRef], before: PageRef | None = None) -> None:
    """Raise `ValueError` unless these entries for index pages can follow each other and the entry `before` them."""
    before = before or NO_PAGE
    for number, page in enumerate(pages):
        where = f"page {number}"
        check_entry(where, page, pages[number - 1] if number else None)
        if isinstance(page, PageDirectory):
            require(page.pages >= page.entries, f"{where}: fewer pages ({page.pages}) than entries ({page.entries})")
        require(page.frames > before.frames, f"{where}: frames do not rise: {before.frames}, {page.frames}")
        size, newlines = page.bytes - before.bytes, page.newlines - before.newlines
        characters = page.characters - before.characters
        is_possible = size >= characters >= max(newlines, page.frames - before.frames, 1) and newlines >= 0
        require(is_possible, f"{where}: {size} bytes, {characters} characters and {newlines} newlines are impossible")
        before = page


def check_filters(refs: Sequence[FilterRef], frames: int) -> None:
    """Raise `ValueError` unless a text of `frames` frames can have these filters: each frame in at most one of them."""
    for number, ref in enumerate(refs):
        where = f"filter {number}"
        is_possible = ref.bits in FILTER_BITS and 0 < ref.overlap_bytes < 1 << 32 and ref.seed < 1 << 32
        require(is_possible, f"{where}: bits {ref.bits}, overlap_bytes {ref.overlap_bytes} or seed is impossible")
        require(0 < len(ref.runs) <= MOST_FILTER_RUNS, f"{where}: {len(ref.runs)} runs, not 1 to {MOST_FILTER_RUNS}")
        columns = 0
        for run in ref.runs:
            require(columns <= run.first_column and run.frames > 0, f"{where}: columns do not rise")
            columns = run.first_column + run.frames
        require(columns <= ref.width < 1 << 32, f"{where}: {columns} columns do not fit a width of {ref.width}")
        require(bool(ref.parts) and all(map(ID.fullmatch, ref.parts)), f"{where}: {ref.parts} are not all ids")
    stop = 0
    for run in sorted(run for ref in refs for run in ref.runs):
        require(stop <= run.first_frame, f"filters: frame {run.first_frame} has two columns")
        stop = run.first_frame + run.frames
    require(stop <= frames, f"filters cover {stop} frames of {frames}")


def check_filter_directories(refs: Sequence[FilterDirectory], covered: int = 0) -> int:
    """The number of frames up to the end of the last directory. Raises `ValueError` if the directories are invalid, or
    cannot follow `covered` frames."""
    for number, ref in enumerate(refs):
        where = f"filter directory {number}"
        check_entry(where, ref, refs[number - 1] if number else None)
        follows = covered <= ref.first_frame and ref.frames > 0
        require(follows, f"{where}: frames {ref.first_frame} to {ref.stop_frame} cannot follow frame {covered}")
        covered = ref.stop_frame
    return covered


def check_entry(where: str, entry: Any, before: object) -> None:
    """Raise `ValueError` for an invalid entry, or for a directory after an entry of a lower level (`before`)."""
    require(ID.fullmatch(entry.id) is not None, f"{where}: {entry.id!r} is not an id")
    require(0 < entry.size_bytes <= MOST_PAGE_BYTES, f"{where}: size_bytes {entry.size_bytes:,} is impossible")
    if hasattr(entry, "level"):
        is_possible = 0 < entry.level <= MOST_LEVELS and entry.entries > 0
        require(is_possible, f"{where}: level {entry.level} with {entry.entries} entries is impossible")
        follows = before is None or level_of(before) >= entry.level
        require(follows, f"{where}: a directory of level {entry.level} after one of level {level_of(before)}")


def level_of(entry: object) -> int:
    """The level of a directory; 0 for a page or a filter."""
    return getattr(entry, "level", 0)


def as_object(ref: Any) -> dict[str, Any]:
    """The JSON form of an entry, without fields that are `None`."""
    return {name: value for name in ref.__match_args__ if (value := getattr(ref, name)) is not None}


def check_document_pages(pages: Sequence[DocumentPageRef], before: DocumentPageRef | None = None) -> None:
    """Raise `ValueError` unless these entries for pages of documents can follow each other and the entry `before`."""
    before = before or NO_DOCUMENTS
    for number, page in enumerate(pages):
        where = f"page {number} of documents"
        check_entry(where, page, pages[number - 1] if number else None)
        rises = page.documents > before.documents and page.characters >= page.start >= before.characters
        rises = rises and page.newlines >= page.start_newline >= before.newlines and page.bytes >= before.bytes
        if not rises:
            raise ValueError(f"{where}: counts do not rise: {before}, {page}")
        before = page


def parse_documents(row: dict[str, Any]) -> DocumentsRef:
    """The documents of a root, from its field `documents`. Raises `ValueError`, `TypeError` or `KeyError`."""
    return DocumentsRef(
        parse_entries(row["pages"], DocumentPageRef, DocumentDirectory),
        base64.b64decode(row["last_page"], validate=True) if row.get("last_page") else None,
        tuple(parse_entry(NameTableRef, table) for table in row.get("names", [])),
        None if row.get("doubled") is None else count_of(row["doubled"]),
    )
