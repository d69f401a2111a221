"""Store the index pages of a text, new and old ones, and find the objects that index pages and a root name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from monocontext.format.directories import Directory, expand, rows_text
from monocontext.format.index import FRAMES_PER_PAGE, Frame, FrameRecord, FrameRun, Page, encode_page, page_ref
from monocontext.format.manifest import INLINE_PAGE_BYTES, Manifest
from monocontext.format.refs import ID, MOST_PAGE_BYTES, NO_PAGE, PageRef, fresh_id
from monocontext.records import NamedTuple, replace
from monocontext.stores.protocol import Store


class NamedPage(NamedTuple):
    """An index page that a root names."""

    ref: PageRef
    before: PageRef | None  # the entry of the page before it
    copy: bytes | None  # the page itself if it is in the root


class Row(NamedTuple):
    """A frame as an index page describes it: where it is stored, and its record."""

    object: str  # the key of the object, or the URL of one outside the context
    offset: int  # in the object, in bytes
    codec: str
    etag: str | None  # the version of an object outside the context
    record: FrameRecord


def rows_of(runs: Iterable[FrameRun], records: Iterable[FrameRecord]) -> Iterator[Row]:
    """Yield the rows of frames, given their runs and, in the same order, their records."""
    remaining = iter(records)
    for run in runs:
        offset = run.offset
        for _ in range(run.frames):
            record = next(remaining)
            yield Row(run.object, offset, run.codec, run.etag, record)
            offset += record.stored_bytes


def row_of(frame: Frame) -> Row:
    """The row for a frame of an existing text."""
    return Row(frame.object, frame.offset, frame.codec, frame.etag, record_of(frame))


def record_of(frame: Frame) -> FrameRecord:
    """The record of a frame of an existing text."""
    return FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields))


class IndexWriter:
    """Makes the index pages of a text from old pages and rows of frames, which are added in the order of the text."""

    def __init__(self, put: Callable[[str, bytes], object]) -> None:
        self.pages: list[PageRef] = []
        self.last_page: bytes | None = None  # the last page if it is small enough for a root
        self._put = put
        self._rows: list[Row] = []  # the frames after these pages

    def add(self, rows: Iterable[Row]) -> None:
        """Add the next frames (1 PUT for each full page)."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) == FRAMES_PER_PAGE:
                self.end_page()

    def keep(self, page: PageRef, before: PageRef | None, copy: bytes | None) -> None:
        """Add an old page, which followed the page `before` in the old text. `copy`: its bytes if in the root."""
        self.end_page()
        self.pages.append(moved_page(page, before, self.pages[-1] if self.pages else None))
        self.last_page = copy

    def end_page(self, least_frames: int = 1) -> None:
        """Store the frames after the last page as another page if there are at least `least_frames` of them (1 PUT)."""
        if len(self._rows) >= least_frames:
            records = [row.record for row in self._rows]
            data = encode_page(_runs(self._rows), records)
            before = self.pages[-1] if self.pages else None
            self.pages.append(replace(page_ref(data, records, before), id=fresh_id()))
            self._put(self.pages[-1].key, data)
            self.last_page = data if len(data) <= INLINE_PAGE_BYTES else None
            self._rows = []


def _runs(rows: Sequence[Row]) -> list[FrameRun]:
    """The runs of frames that are adjacent in one object."""
    ends = [(row.object, row.offset + row.record.stored_bytes, row.codec, row.etag) for row in rows]
    starts = [i for i, row in enumerate(rows) if i == 0 or row[:4] != ends[i - 1]]  # `row[:4]`: all but the record
    firsts = [(rows[start], stop - start) for start, stop in pairwise([*starts, len(rows)])]
    return [FrameRun(row.object, row.offset, frames, row.codec, row.etag) for row, frames in firsts]


def moved_page(page: PageRef, before: PageRef | None, new_before: PageRef | None) -> PageRef:
    """The entry of an index page that followed the page `before` and now follows `new_before` (None: it is first)."""
    old, new = before or NO_PAGE, new_before or NO_PAGE
    counts = ("frames", "bytes", "characters", "newlines")
    return replace(page, **{name: getattr(new, name) + getattr(page, name) - getattr(old, name) for name in counts})


def ids_in_root(store: Store, root: Manifest, data: bytes) -> tuple[set[str], list[NamedPage]]:
    """The ids of objects in the JSON of a root and in its directories (1 GET each), and its index pages. Ids are found
    by their form, since a root of a later version may name objects in other fields."""
    named = set(ID.findall(data.decode()))

    def get(directory: Directory) -> bytes:
        stored = store.get(directory.key, most_bytes=MOST_PAGE_BYTES).data
        named.update(ID.findall(rows_text(stored, directory.key).decode()))
        return stored

    pages = expand(root, get).pages
    copies: list[bytes | None] = [*[None] * (len(pages) - 1), root.last_page]
    return named, list(map(NamedPage, pages, (None, *pages), copies))


def ids_in_page(store: Store, page: NamedPage) -> set[str]:
    """The ids of the segments that an index page names (1 GET if it is not in the root)."""
    data = page.copy or store.get(page.ref.key, most_bytes=MOST_PAGE_BYTES).data
    return {name for run in Page(data, page.ref, page.before).runs for name in ID.findall(run.object)}


def named_objects(store: Store, root: Manifest) -> set[str]:
    """The ids of all objects that a root, its directories and its index pages name (1 GET per directory and page)."""
    named, pages = ids_in_root(store, root, root.to_bytes())
    return named.union(*(ids_in_page(store, page) for page in pages))
