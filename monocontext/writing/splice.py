"""Replace frames of a text with new ones: write the index pages that change, and make the root. All writers use it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import Any

from monocontext.errors import ForeignObject
from monocontext.format import inline
from monocontext.format.filters import building
from monocontext.format.filters.joining import FrameChange, apply_changes
from monocontext.format.index import ENDS_LINE, FRAMES_PER_PAGE, WHOLE_TEXT_FLAGS, Frame, FrameRecord, flags_of_text
from monocontext.format.manifest import Manifest
from monocontext.format.refs import FilterRef, PageRef
from monocontext.records import dataclass, replace
from monocontext.writing.pages import IndexWriter, record_of, row_of, rows_of
from monocontext.writing.segments import SegmentLayout, Segments, Written
from monocontext.writing.stored_text import StoredText

FOLDING = 3  # case folding shrinks a character at most to a third of its bytes
EMPTY_ROOT = Manifest(generation=0, write_id="", created="")  # the root before the first one, without frames
_SPLIT_FRAMES = 256
"""An append to a last page of at least so many frames begins another page, so that some 6 KB are not stored again."""


@dataclass(slots=True)
class Stretch:
    """Neighbouring frames [first, stop) of a text, which an edit replaces with new frames."""

    first: int
    stop: int
    new_frames: int  # how many frames replace these
    keeps_text: bool = False  # whether each new frame has the text of the old one, so that filters keep their columns
    kept_bytes: int = 0  # at least this many bytes at the start of frame `first` do not change


def splice(
    text: StoredText, stretches: Sequence[Stretch], new: Written, *, all_pages: bool = False, **changes: Any
) -> Manifest:
    """Replace `stretches` of a text, in order, with new frames. Returns the root with `changes` of other fields. Index
    pages that change, or all with `all_pages`, are stored (1 PUT each). The root has no copies of its text, and its
    filters have the gaps that `find_new_gaps` returns."""
    base = text.root
    index, dropped_bytes = _write_index(text, stretches, new, all_pages)
    fields: dict[str, Any] = {
        "pages": tuple(index.pages),
        "last_page": index.last_page,
        "text": "",
        "head": "",
        "tail": "",
        "final_newline": _ends_line(text, stretches, new.records),
        "stored_bytes": base.stored_bytes - dropped_bytes + sum(record.stored_bytes for record in new.records),
        "flags": flags_of_text(new.records, base.flags if base.pages else WHOLE_TEXT_FLAGS),
    }
    if base.filters:
        moves = [move for move, stretch in _filter_moves(text, stretches) if not stretch.keeps_text]
        fields["filters"] = apply_changes(base.filters, moves)
    return replace(base, **(fields | changes))


def find_new_gaps(text: StoredText, stretches: Sequence[Stretch]) -> list[range]:
    """The gaps that stretches make in the filters, in frames of the changed text: new frames, and frames before them
    whose columns covered text that was replaced."""
    gaps: list[range] = []
    shift = 0  # the number of frames that were added so far, less those that were removed
    for move, stretch in _filter_moves(text, stretches):
        first, stop = move.stale + shift, stretch.first + shift + stretch.new_frames
        shift += move.grown
        if stretch.keeps_text or first == stop:
            continue
        if gaps and first <= gaps[-1].stop:
            first = gaps.pop().start
        gaps.append(range(first, stop))
    return gaps


def _filter_moves(text: StoredText, stretches: Sequence[Stretch]) -> Iterator[tuple[FrameChange, Stretch]]:
    """Yield each stretch after the change that it makes to the columns of the filters."""
    reach_bytes = FOLDING * max((ref.reach_bytes for ref in text.root.filters), default=0)
    previous_stop = 0
    for stretch in stretches:
        stale, unchanged_bytes = stretch.first, stretch.kept_bytes  # between frame `stale` and the change
        while stale > previous_stop and unchanged_bytes < reach_bytes:
            stale -= 1
            unchanged_bytes += text.frame(stale).bytes
        grown = stretch.new_frames - (stretch.stop - stretch.first)
        yield FrameChange(stale, stretch.first, stretch.stop, grown), stretch
        previous_stop = stretch.stop


def _ends_line(text: StoredText, stretches: Sequence[Stretch], records: Sequence[FrameRecord]) -> bool:
    """Whether the changed text ends in a newline. `records` are the new frames."""
    stop = text.root.frames  # the end of the old frames that stay, if no new frame is the last one
    for stretch in reversed(stretches):
        if stretch.stop < stop:
            break
        if stretch.new_frames:
            return bool(records[-1].flags & ENDS_LINE)
        stop = stretch.first
    if stop == text.root.frames:
        return text.root.final_newline
    return stop > 0 and bool(text.frame(stop - 1).flags & ENDS_LINE)


def _write_index(
    text: StoredText, stretches: Sequence[Stretch], new: Written, all_pages: bool
) -> tuple[IndexWriter, int]:
    """Write the index pages of the changed text. Returns them, and the stored bytes of the frames that it replaces."""
    base = text.root
    index = IndexWriter(text.store.put)
    remaining, new_rows = deque(stretches), rows_of(new.runs, new.records)
    dropped_bytes = 0
    next_frame = 0  # the first frame of the old text that is neither in the new index nor replaced
    before: PageRef | None = None
    for page in base.pages:
        first, is_last = before.frames if before else 0, page.frames == base.frames
        # A stretch that begins before `limit` changes the page; new frames at the end fill up a last page with room.
        limit = page.frames + 1 if is_last and page.frames - first < FRAMES_PER_PAGE else page.frames
        if not all_pages and next_frame == first and not (remaining and remaining[0].first < limit):
            index.keep(page, before, base.last_page if is_last else None)
            next_frame = page.frames
        while remaining and remaining[0].first < limit:
            stretch = remaining.popleft()
            index.add(map(row_of, text.frames(next_frame, stretch.first)))
            if stretch.stop == base.frames:
                index.end_page(_SPLIT_FRAMES)
            index.add(islice(new_rows, stretch.new_frames))
            dropped_bytes += sum(frame.stored_bytes for frame in text.frames(stretch.first, stretch.stop))
            next_frame = stretch.stop
        index.add(map(row_of, text.frames(next_frame, page.frames)))
        next_frame = max(next_frame, page.frames)
        before = page
    index.add(new_rows)  # after all old frames
    index.end_page()
    return index, dropped_bytes


def copy_frames(text: StoredText, is_copied: Callable[[Frame], bool]) -> tuple[list[Stretch], Written]:
    """Copy the frames that `is_copied` selects to new segments, for `splice` (1 GET per 8 MiB, 1 PUT per 16 MiB)."""
    segments = Segments(text.store.put, SegmentLayout(text.root.frame_bytes, codec=text.root.codec))
    stretches: list[Stretch] = []
    for frame, stored in text.stored(frame for frame in text.frames(0, text.root.frames) if is_copied(frame)):
        segments.add(stored, record_of(frame), frame.codec)
        if stretches and stretches[-1].stop == frame.number:
            stretches[-1].stop += 1
            stretches[-1].new_frames += 1
        else:
            stretches.append(Stretch(frame.number, frame.number + 1, 1, keeps_text=True))
    return stretches, segments.finish()


def add_copies(text: StoredText, ends: Manifest | None = None) -> Manifest:
    """The root of a text with a copy of a small text, or of the two ends of a large one (at most 2 GETs). `ends`: a
    root with the same ends, whose copies are used, so that no end is read."""

    def own_text(start: int, stop: int) -> bytes:
        """Characters [start, stop) in UTF-8; empty if some are in an object outside the context, which may change."""
        frames = text.frames(text.locate(start).number, text.locate(stop - 1).number + 1) if start < stop else ()
        return b"" if any("://" in frame.object for frame in frames) else text.read(start, stop).encode()

    root = replace(text.root, text="", head="", tail="")
    if has_all_records(root) and root.stored_bytes <= inline.MOST_TEXT_BYTES:
        frames = list(text.frames(0, root.frames))
        if not any("://" in frame.object for frame in frames):
            return replace(root, **inline.whole_copy(b"".join(stored for _, stored in text.stored(frames))))
    size = min(inline.END_BYTES, root.characters)
    head, tail = (ends.head, ends.tail) if ends else ("", "")
    read = inline.end_copies(
        own_text(0, 0 if head else size),
        own_text(root.characters if tail else root.characters - size, root.characters),
    )
    return replace(root, head=head or read["head"], tail=tail or read["tail"])


def has_all_records(root: Manifest) -> bool:
    """Whether a root contains the records of all frames, which readers need for a copy of the whole text in it."""
    return len(root.pages) == 1 and root.last_page is not None


def wants_filters(root: Manifest) -> bool:
    """Whether a text has enough frames, and large enough ones, for filters."""
    return root.frames >= building.LEAST_FRAMES and root.frame_bytes >= building.LEAST_FRAME_BYTES


def find_gaps(refs: Sequence[FilterRef], frames: int) -> list[range]:
    """The gaps in the filters of a text of `frames` frames: the ranges of frames that have no column."""
    gaps, start = [], 0
    for first, _, count in sorted(run for ref in refs for run in ref.runs):
        if start < first:
            gaps.append(range(start, first))
        start = first + count
    return [*gaps, range(start, frames)] if start < frames else gaps


def add_filter(text: StoredText, gaps: Sequence[range], *, strict: bool = False, most_times: int = 2) -> Manifest:
    """The root of a text with a new filter for the frames in `gaps` (1 GET per 8 MiB of text). Frames in an object that
    may not be read get no column; with `strict`, they raise `ForeignObject`. The filter is joined with older filters
    that have at most `most_times` as many frames."""
    root = text.root
    columns = building.Columns(building.overlap_for(root.frame_bytes), 1)
    after_bytes = FOLDING * columns.reach_bytes  # the text after a frame that its column covers too
    if root.sources and not strict:
        gaps = list(_readable(text, gaps, after_bytes))
    ends = [_end_after(text, gap.stop, after_bytes) for gap in gaps]
    texts = text.texts(frame for gap, end in zip(gaps, ends, strict=True) for frame in text.frames(gap.start, end))
    for gap, end in zip(gaps, ends, strict=True):
        for frame in islice(texts, len(gap)):
            columns.feed(frame)
        columns.end(building.fold_head(list(islice(texts, end - gap.stop)), columns.reach_bytes))
    columns.finish()
    filters = building.add_columns(root.filters, columns, gaps, text.get, text.store.put, most_times=most_times)
    return replace(root, filters=filters)


def _end_after(text: StoredText, number: int, least_bytes: int) -> int:
    """The first frame that is at least `least_bytes` after the start of frame `number`, or the end."""
    size_bytes = 0
    while size_bytes < least_bytes and number < text.root.frames:
        size_bytes += text.frame(number).bytes
        number += 1
    return number


def _readable(text: StoredText, gaps: Iterable[range], overlap_bytes: int) -> Iterator[range]:
    """Yield the parts of gaps in which each frame, and `overlap_bytes` after it, may be read."""

    def may_read(number: int) -> bool:
        with suppress(ForeignObject):
            for frame in text.frames(number, _end_after(text, number + 1, overlap_bytes)):
                if "://" in frame.object:
                    text.locate_foreign(frame)
            return True
        return False

    for gap in gaps:
        for is_readable, numbers in groupby(gap, key=may_read):
            if is_readable:
                readable = list(numbers)
                yield range(readable[0], readable[-1] + 1)
