"""Replace neighbouring frames of a text by others: write the index pages that change, and make the next root.

All writers change a text so: an upload puts frames into an empty text, an append after its last frames, an edit in the
place of those with changed documents, and `compact` puts fuller ones in the place of small ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from monocontext.format import inline
from monocontext.format.filters.joining import Moved, moved
from monocontext.format.index import (
    ENDS_LINE,
    FRAMES_PER_PAGE,
    OF_TEXT,
    FrameRecord,
    FrameRun,
    Page,
    flags_of_text,
)
from monocontext.format.manifest import Manifest
from monocontext.format.refs import PageRef
from monocontext.records import dataclass, replace
from monocontext.writing.pages import as_runs, moved_page, single_runs, write_pages
from monocontext.writing.stored_text import StoredText

EMPTY_ROOT = Manifest(generation=0, write_id="", created="")
"""The root before the first one: a text without frames."""
_SPLIT_FRAMES = 256
"""A page with at least this many frames is not stored again because text is appended after them: they become a page,
and the last frames another, so an append writes some 6 KB of index."""


@dataclass(slots=True)
class Stretch:
    """Neighbouring frames [first, stop) of a text, which new ones replace."""

    first: int
    stop: int
    runs: list[FrameRun]
    records: list[FrameRecord]
    """The records of the new frames, whose places `runs` tells."""
    keeps_text: bool = False
    """Whether each new frame has the text of the old one in its place: then filters keep their columns."""

    @property
    def grown(self) -> int:
        """How many more frames there are afterwards; negative if fewer."""
        return len(self.records) - (self.stop - self.first)


def splice(text: StoredText, stretches: Sequence[Stretch], **changes: Any) -> Manifest:
    """Write the index pages of a text in which `stretches`, in order, have new frames (1 PUT each), and return its root
    with these other changes of fields.

    The root has no copies of its text, and filters without columns of the new frames (`uncovered` tells which).
    """
    base = text.root
    pages, last_page, dropped_bytes = _write_index(text, stretches)
    new = [record for stretch in stretches for record in stretch.records]
    fields = {
        "pages": pages,
        "last_page": last_page,
        "text": "",
        "head": "",
        "tail": "",
        "final_newline": _ends_line(text, stretches),
        "stored_bytes": base.stored_bytes - dropped_bytes + sum(record.stored_bytes for record in new),
        "flags": flags_of_text(new, base.flags if base.pages else OF_TEXT),
        "filters": moved(base.filters, [move for move, stretch in _moves(text, stretches) if not stretch.keeps_text]),
    }
    return replace(base, **(fields | changes))


def uncovered(text: StoredText, stretches: Sequence[Stretch]) -> list[tuple[int, int]]:
    """The frames of the spliced text that lost their filter columns, as ranges: new ones, and those before them whose
    columns cover text of these."""
    ranges: list[tuple[int, int]] = []
    shift = 0
    for move, stretch in _moves(text, stretches):
        first, stop = move.stale + shift, stretch.first + shift + len(stretch.records)
        shift += move.grown
        if stretch.keeps_text or first == stop:
            continue
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], stop)
        else:
            ranges.append((first, stop))
    return ranges


def _moves(text: StoredText, stretches: Sequence[Stretch]) -> Iterator[tuple[Moved, Stretch]]:
    """Yield the effect of each stretch on filters."""
    reach = max((ref.reach_bytes for ref in text.root.filters), default=0)
    before = 0
    for stretch in stretches:
        stale, between = stretch.first, 0
        # Case folding can shrink a character to a third of its bytes.
        while stale > before and between < 3 * reach:
            stale -= 1
            between += text.frame(stale).bytes
        yield Moved(stale, stretch.first, stretch.stop, stretch.grown), stretch
        before = stretch.stop


def _ends_line(text: StoredText, stretches: Sequence[Stretch]) -> bool:
    """Whether the changed text ends in a newline."""
    stop = text.root.frames
    for stretch in reversed(stretches):
        if stretch.stop < stop:
            break
        if stretch.records:
            return bool(stretch.records[-1].flags & ENDS_LINE)
        stop = stretch.first
    if stop == text.root.frames:
        return text.root.final_newline
    return stop > 0 and bool(text.frame(stop - 1).flags & ENDS_LINE)


def _write_index(text: StoredText, stretches: Sequence[Stretch]) -> tuple[tuple[PageRef, ...], bytes | None, int]:
    """The pages of the changed text, a copy of the last one, and the stored bytes of the frames that are gone."""
    base = text.root
    index = _IndexWriter(text.store.put)
    remaining = deque(stretches)
    next_frame = dropped_bytes = 0  # the first frame of the old text that is not in the new index yet
    before: PageRef | None = None
    for page in base.pages:
        first = before.frames if before else 0
        is_last = page.frames == base.frames
        takes_more = is_last and page.frames - first < FRAMES_PER_PAGE  # frames added at the end go into a short page
        if next_frame == first and not (remaining and remaining[0].first < page.frames + takes_more):
            index.keep(page, before, base.last_page if is_last else None)
            next_frame = page.frames
        while remaining and remaining[0].first < page.frames + takes_more:
            stretch = remaining.popleft()
            index.add(*as_runs(text.frames(next_frame, stretch.first)))
            if stretch.stop == base.frames:
                index.split()
            index.add(single_runs(stretch.runs, stretch.records), stretch.records)
            dropped_bytes += sum(frame.stored_bytes for frame in text.frames(stretch.first, stretch.stop))
            next_frame = stretch.stop
        index.add(*as_runs(text.frames(next_frame, page.frames)))
        next_frame = max(next_frame, page.frames)
        before = page
    for stretch in remaining:  # after all old frames
        index.add(single_runs(stretch.runs, stretch.records), stretch.records)
    index.flush()
    return index.pages, index.last_page, dropped_bytes


class _IndexWriter:
    """Makes the pages of a text from old pages and single frames, which are given in their order."""

    def __init__(self, put: Callable[[str, bytes], object]) -> None:
        self.pages: tuple[PageRef, ...] = ()
        self.last_page: bytes | None = None
        """A copy of the last page, if it is small enough for a root."""
        self._put = put
        self._runs: list[FrameRun] = []
        self._rows: list[FrameRecord] = []

    def add(self, runs: Iterable[FrameRun], rows: Sequence[FrameRecord]) -> None:
        """The next frames."""
        self._runs += runs
        self._rows += rows

    def keep(self, page: PageRef, before: PageRef | None, copy: bytes | None) -> None:
        """The next page is an old one, which followed `before` in the old text."""
        self.flush()
        self.pages = (*self.pages, moved_page(page, before, self.pages[-1] if self.pages else None))
        self.last_page = copy

    def split(self) -> None:
        """End the page if it has many frames."""
        if len(self._rows) >= _SPLIT_FRAMES:
            self.flush()

    def flush(self) -> None:
        """Store the frames that were added since the last page."""
        if self._rows:
            self.pages, self.last_page = write_pages(self._put, self.pages, _joined(self._runs, self._rows), self._rows)
            self._runs, self._rows = [], []


def _joined(runs: Sequence[FrameRun], rows: Sequence[FrameRecord]) -> list[FrameRun]:
    """The runs, with adjacent runs of one object joined."""
    joined: list[FrameRun] = []
    end = row = 0
    for run in runs:
        size = sum(record.stored_bytes for record in rows[row : row + run.frames])
        last = joined[-1] if joined else None
        if last and (last.object, last.codec, last.etag) == (run.object, run.codec, run.etag) and run.offset == end:
            joined[-1] = replace(last, frames=last.frames + run.frames)
        else:
            joined.append(run)
        end = run.offset + size
        row += run.frames
    return joined


def with_copies(text: StoredText, ends: Manifest | None = None) -> Manifest:
    """The root of a text with copies of its own text: of all of a small text (1 GET a run), else of its two ends.

    `ends` is a root that begins and ends in the same text: its copies are used. Else the ends are read (2 GETs).
    """
    root = replace(text.root, text="", head="", tail="")
    if root.last_page is not None and len(root.pages) == 1 and root.stored_bytes <= inline.MOST_TEXT_BYTES:
        page, first, stored = Page(root.last_page, root.pages[0], None), 0, b""
        if not any(run.is_virtual for run in page.runs):
            for run in page.runs:
                size = page.stored_starts[first + run.frames] - page.stored_starts[first]
                stored += text.store.get_range(run.object, run.offset, size).data
                first += run.frames
            return replace(root, **inline.whole(stored))
    size = min(inline.END_BYTES, root.characters)
    head, tail = (ends.head, ends.tail) if ends else ("", "")
    read = inline.ends(
        b"" if head else _own_text(text, 0, size),
        b"" if tail else _own_text(text, root.characters - size, root.characters),
    )
    return replace(root, head=head or read["head"], tail=tail or read["tail"])


def _own_text(text: StoredText, start: int, stop: int) -> bytes:
    """Characters [start, stop) in UTF-8; empty if any of them is in a foreign object, which may be replaced."""
    if stop <= start:
        return b""
    numbers = text.reader.table.numbers(start, stop)
    if any("://" in frame.object for frame in text.frames(numbers.start, numbers.stop)):
        return b""
    return text.reader.read(start, stop).encode()
