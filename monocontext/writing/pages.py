"""Store index pages, of new frames and of an old text that stay, and find the objects that they and a root name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from monocontext.format.directories import Directory, expand, rows_text
from monocontext.format.index import FRAMES_PER_PAGE, Frame, FrameRecord, FrameRun, Page, encode_page, page_ref
from monocontext.format.manifest import INLINE_PAGE_BYTES, Manifest
from monocontext.format.refs import ID, MOST_PAGE_BYTES, NO_PAGE, PageRef, fresh_id
from monocontext.records import NamedTuple, replace
from monocontext.stores.protocol import Store, get_bounded


class NamedPage(NamedTuple):
    """An index page that a root names."""

    ref: PageRef
    before: PageRef | None  # the entry of the page before it
    copy: bytes | None  # the page itself, if the root has a copy


class Row(NamedTuple):
    """The place of a frame in an object, and its record."""

    object: str
    offset: int
    codec: str
    etag: str | None
    record: FrameRecord


def rows_of(runs: Iterable[FrameRun], records: Iterable[FrameRecord]) -> Iterator[Row]:
    """Yield the rows of the frames in runs, whose records follow each other."""
    following = iter(records)
    for run in runs:
        offset = run.offset
        for _ in range(run.frames):
            record = next(following)
            yield Row(run.object, offset, run.codec, run.etag, record)
            offset += record.stored_bytes


def row_of(frame: Frame) -> Row:
    """The row of a frame of a text."""
    return Row(frame.object, frame.offset, frame.codec, frame.etag, record_of(frame))


def record_of(frame: Frame) -> FrameRecord:
    """The record of a frame, as its index page has it."""
    return FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields))


class IndexWriter:
    """Makes the pages of a text from old pages and rows of frames, which are given in their order."""

    def __init__(self, put: Callable[[str, bytes], object]) -> None:
        self.pages: list[PageRef] = []
        self.last_page: bytes | None = None  # a copy of the last page, if it is small enough for a root
        self._put = put
        self._rows: list[Row] = []

    def add(self, rows: Iterable[Row]) -> None:
        """Add the next frames (1 PUT for each full page)."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) == FRAMES_PER_PAGE:
                self.end_page()

    def keep(self, page: PageRef, before: PageRef | None, copy: bytes | None) -> None:
        """Add an old page as the next one. It followed `before` in the old text."""
        self.end_page()
        self.pages.append(moved_page(page, before, self.pages[-1] if self.pages else None))
        self.last_page = copy

    def end_page(self, least: int = 1) -> None:
        """Store the frames that were added since the last page, if there are at least `least` of them."""
        if len(self._rows) >= least:
            records = [row.record for row in self._rows]
            data = encode_page(list(_joined(self._rows)), records)
            before = self.pages[-1] if self.pages else None
            self.pages.append(replace(page_ref(data, records, before), id=fresh_id()))
            self._put(self.pages[-1].key, data)
            self.last_page = data if len(data) <= INLINE_PAGE_BYTES else None
            self._rows = []


def _joined(rows: Iterable[Row]) -> Iterator[FrameRun]:
    """Yield the runs of rows: frames that follow each other in an object."""
    first: Row | None = None
    count = end = 0
    for row in rows:
        if first is not None and (row.object, row.offset, *row[2:4]) == (first.object, end, *first[2:4]):
            count += 1
        else:
            if first is not None:
                yield FrameRun(first.object, first.offset, count, first.codec, first.etag)
            first, count = row, 1
        end = row.offset + row.record.stored_bytes
    if first is not None:
        yield FrameRun(first.object, first.offset, count, first.codec, first.etag)


def moved_page(page: PageRef, before: PageRef | None, new_before: PageRef | None) -> PageRef:
    """The entry of an unchanged index page that followed `before`, or none, and now follows `new_before`."""
    old, new = before or NO_PAGE, new_before or NO_PAGE
    counts = ("frames", "bytes", "characters", "newlines")
    return replace(page, **{name: getattr(new, name) + getattr(page, name) - getattr(old, name) for name in counts})


def ids_in_root(store: Store, root: Manifest, data: bytes) -> tuple[set[str], list[NamedPage]]:
    """The ids that the JSON of a root and its directories name (1 GET each), and its index pages. Ids are found by
    their form, since a root of a later version may name objects in other fields."""
    named = set(ID.findall(data.decode()))

    def get(directory: Directory) -> bytes:
        stored = get_bounded(store, directory.key, MOST_PAGE_BYTES).data
        named.update(ID.findall(rows_text(stored, directory.key).decode()))
        return stored

    pages = expand(root, get).pages
    copies: list[bytes | None] = [*[None] * (len(pages) - 1), root.last_page]
    return named, list(map(NamedPage, pages, (None, *pages), copies))


def ids_in_page(store: Store, page: NamedPage) -> set[str]:
    """The ids of the segments that an index page names (1 GET without a copy)."""
    data = page.copy or get_bounded(store, page.ref.key, MOST_PAGE_BYTES).data
    return {name for run in Page(data, page.ref, page.before).runs for name in ID.findall(run.object)}


def named_objects(store: Store, root: Manifest) -> set[str]:
    """The ids of all objects that one root names (1 GET for each directory and index page)."""
    named, pages = ids_in_root(store, root, root.to_bytes())
    return named.union(*(ids_in_page(store, page) for page in pages))
