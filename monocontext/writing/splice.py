"""Replace neighbouring frames of a text by others: write the index pages that change, and make the next root.

All writers change a text so: an upload puts frames into an empty text, an append after its last frames, an edit in the
place of those with changed documents, and `compact` puts fuller ones in the place of small ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from monocontext.format import inline
from monocontext.format.filters.joining import Moved, moved
from monocontext.format.index import ENDS_LINE, FRAMES_PER_PAGE, OF_TEXT, Frame, FrameRecord, flags_of_text
from monocontext.format.manifest import Manifest
from monocontext.format.refs import PageRef
from monocontext.records import dataclass, replace
from monocontext.writing.pages import IndexWriter, record_of, row_of, rows_of
from monocontext.writing.segments import SegmentLayout, Segments, Written
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
    frames: int
    """The number of new frames."""
    keeps_text: bool = False
    """Whether each new frame has the text of the old one in its place: then filters keep their columns."""

    @property
    def grown(self) -> int:
        """How many more frames there are afterwards; negative if fewer."""
        return self.frames - (self.stop - self.first)


def splice(text: StoredText, stretches: Sequence[Stretch], new: Written, **changes: Any) -> Manifest:
    """Write the index pages of a text in which `stretches`, in order, have the new frames (1 PUT each), and return its
    root with these other changes of fields.

    The root has no copies of its text, and filters without columns of the new frames (`uncovered` tells which).
    """
    base = text.root
    pages, last_page, dropped_bytes = _write_index(text, stretches, new)
    fields = {
        "pages": pages,
        "last_page": last_page,
        "text": "",
        "head": "",
        "tail": "",
        "final_newline": _ends_line(text, stretches, new.records),
        "stored_bytes": base.stored_bytes - dropped_bytes + sum(record.stored_bytes for record in new.records),
        "flags": flags_of_text(new.records, base.flags if base.pages else OF_TEXT),
        "filters": moved(base.filters, [move for move, stretch in _moves(text, stretches) if not stretch.keeps_text]),
    }
    return replace(base, **(fields | changes))


def uncovered(text: StoredText, stretches: Sequence[Stretch]) -> list[tuple[int, int]]:
    """The frames of the spliced text that lost their filter columns, as ranges: new ones, and those before them whose
    columns cover text of these."""
    ranges: list[tuple[int, int]] = []
    shift = 0
    for move, stretch in _moves(text, stretches):
        first, stop = move.stale + shift, stretch.first + shift + stretch.frames
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


def _ends_line(text: StoredText, stretches: Sequence[Stretch], records: Sequence[FrameRecord]) -> bool:
    """Whether the changed text ends in a newline."""
    stop = text.root.frames
    for stretch in reversed(stretches):
        if stretch.stop < stop:
            break
        if stretch.frames:
            return bool(records[-1].flags & ENDS_LINE)
        stop = stretch.first
    if stop == text.root.frames:
        return text.root.final_newline
    return stop > 0 and bool(text.frame(stop - 1).flags & ENDS_LINE)


def _write_index(
    text: StoredText, stretches: Sequence[Stretch], new: Written
) -> tuple[tuple[PageRef, ...], bytes | None, int]:
    """The pages of the changed text, a copy of the last one, and the stored bytes of the frames that are gone."""
    base = text.root
    index = IndexWriter(text.store.put)
    remaining, rows = deque(stretches), rows_of(new.runs, new.records)
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
            index.add(map(row_of, text.frames(next_frame, stretch.first)))
            if stretch.stop == base.frames:
                index.end_page(_SPLIT_FRAMES)
            index.add(islice(rows, stretch.frames))
            dropped_bytes += sum(frame.stored_bytes for frame in text.frames(stretch.first, stretch.stop))
            next_frame = stretch.stop
        index.add(map(row_of, text.frames(next_frame, page.frames)))
        next_frame = max(next_frame, page.frames)
        before = page
    index.add(rows)  # after all old frames
    index.end_page()
    return tuple(index.pages), index.last_page, dropped_bytes


def moved_frames(text: StoredText, wanted: Callable[[Frame], bool]) -> tuple[list[Stretch], Written]:
    """Store the wanted frames of a text in new segments as they are (1 GET for some 8 MiB of neighbours, 1 PUT for 16
    MiB)."""
    segments = Segments(text.store.put, SegmentLayout(text.root.frame_bytes, codec=text.root.codec))
    stretches: list[Stretch] = []
    for frame, stored in text.stored(frame for frame in text.frames(0, text.root.frames) if wanted(frame)):
        segments.add(stored, record_of(frame), frame.codec)
        if stretches and stretches[-1].stop == frame.number:
            stretches[-1].stop += 1
            stretches[-1].frames += 1
        else:
            stretches.append(Stretch(frame.number, frame.number + 1, 1, keeps_text=True))
    return stretches, segments.finish()


def with_copies(text: StoredText, ends: Manifest | None = None) -> Manifest:
    """The root of a text with copies of its own text: of all of a small text (1 GET a run), else of its two ends.

    `ends` is a root that begins and ends in the same text: its copies are used. Else the ends are read (2 GETs).
    """
    root = replace(text.root, text="", head="", tail="")
    if root.last_page is not None and len(root.pages) == 1 and root.stored_bytes <= inline.MOST_TEXT_BYTES:
        frames = list(text.frames(0, root.frames))
        if not any("://" in frame.object for frame in frames):
            return replace(root, **inline.whole(b"".join(stored for _, stored in text.stored(frames))))
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
    frames = text.frames(text.locate(start).number, text.locate(stop - 1).number + 1)
    return b"" if any("://" in frame.object for frame in frames) else text.read(start, stop).encode()
