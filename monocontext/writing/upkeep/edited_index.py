"""Write the index of a changed text: pages without a change keep their objects, and the others are stored again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from monocontext.engine.reader import Reader
from monocontext.format.index import FRAMES_PER_PAGE, OF_TEXT, FrameRecord, FrameRun, flags_of_text
from monocontext.format.manifest import Manifest
from monocontext.format.refs import PageRef
from monocontext.records import replace
from monocontext.writing.next_root import as_generation
from monocontext.writing.pages import as_runs, moved_page, write_pages
from monocontext.writing.upkeep.edited_text import Stretch
from monocontext.writing.upkeep.rewrite import Rewrite, records


def changed_root(
    work: Rewrite, text: Reader, stretches: Sequence[Stretch], new_runs: Sequence[FrameRun], **changes: Any
) -> Manifest:
    """Store the index pages of a text in which `stretches` have new frames, and return the root after that of `text`.

    `new_runs` has one run for each new frame. The root has no copies of its text. Costs 1 PUT for each page with a
    change, and 1 GET to see whether the text ends in a newline.
    """
    base = text.manifest
    pages, last_page, dropped_bytes = _write_index(work, text, stretches, new_runs)
    rows = [row for stretch in stretches for row in stretch.frames]
    root = as_generation(
        base,
        base.generation + 1,
        pages=pages,
        last_page=last_page,
        text=b"",
        head="",
        tail="",
        stored_bytes=base.stored_bytes - dropped_bytes + sum(row.stored_bytes for row in rows),
        flags=flags_of_text(rows, base.flags if pages else OF_TEXT),
        open_frames=0,
        **changes,
    )
    return replace(root, final_newline=_ends_line(work, root))


def _ends_line(work: Rewrite, root: Manifest) -> bool:
    """Whether the text of a root, committed or not, ends in a newline (1 GET)."""
    if not root.characters:
        return False
    with work.text(root) as text:
        return text.read(root.characters - 1, root.characters) == "\n"


def _write_index(
    work: Rewrite, text: Reader, stretches: Sequence[Stretch], new_runs: Sequence[FrameRun]
) -> tuple[tuple[PageRef, ...], bytes | None, int]:
    """The pages of the changed text, a copy of the last one, and the stored bytes of the frames that are gone."""
    base = text.manifest
    index = _IndexWriter(work.put)
    left = deque(stretches)
    unused_runs = iter(new_runs)
    next_frame = dropped_bytes = 0  # the first frame of the old text that is not in the new index yet
    before: PageRef | None = None
    for page in base.pages:
        first = before.frames if before else 0
        is_last = page.frames == base.frames
        takes_more = is_last and page.frames - first < FRAMES_PER_PAGE  # frames added at the end go into a short page
        if next_frame == first and not (left and left[0].first_frame < page.frames + takes_more):
            index.keep(page, before, base.last_page if is_last else None)
            next_frame = page.frames
        while left and left[0].first_frame < page.frames:
            stretch = left.popleft()
            index.add(*as_runs(records(text, next_frame, stretch.first_frame)))
            index.add(islice(unused_runs, len(stretch.frames)), stretch.frames)
            dropped_bytes += sum(frame.stored_bytes for frame in records(text, stretch.first_frame, stretch.stop_frame))
            next_frame = stretch.stop_frame
        index.add(*as_runs(records(text, next_frame, page.frames)))
        next_frame = max(next_frame, page.frames)
        before = page
    for stretch in left:  # after all old frames
        index.add(islice(unused_runs, len(stretch.frames)), stretch.frames)
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

    def add(self, runs: Iterator[FrameRun] | list[FrameRun], rows: Sequence[FrameRecord]) -> None:
        """The next frames."""
        self._runs += runs
        self._rows += rows

    def keep(self, page: PageRef, before: PageRef | None, copy: bytes | None) -> None:
        """The next page is an old one, which followed `before` in the old text."""
        self.flush()
        self.pages = (*self.pages, moved_page(page, before, self.pages[-1] if self.pages else None))
        self.last_page = copy

    def flush(self) -> None:
        """Store the frames that were added since the last page."""
        if self._rows:
            self.pages, self.last_page = write_pages(self._put, self.pages, _joined(self._runs, self._rows), self._rows)
            self._runs, self._rows = [], []


def _joined(runs: Sequence[FrameRun], rows: Sequence[FrameRecord]) -> list[FrameRun]:
    """The runs, with adjacent runs of one object joined."""
    found: list[FrameRun] = []
    end = at = 0
    for run in runs:
        size = sum(row.stored_bytes for row in rows[at : at + run.frames])
        last = found[-1] if found else None
        if last and (last.object, last.codec, last.etag) == (run.object, run.codec, run.etag) and run.offset == end:
            found[-1] = replace(last, frames=last.frames + run.frames)
        else:
            found.append(run)
        end = run.offset + size
        at += run.frames
    return found
