"""Keep the search filters of a text when some of its frames are replaced.

A filter is a table with a column for each frame, which also covers the first `reach_bytes` of the text after it.
Columns of changed frames, and of those that reach into them, become `UNKNOWN`; the others are kept and renumbered.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from monocontext.engine.reader import Reader
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import UNKNOWN, FilterRef
from monocontext.records import replace as changed
from monocontext.writing.upkeep.edited_text import Stretch

MOST_RUNS = 512
"""The most runs of columns in a kept filter. If changes have cut it into more, it is made again."""


def keep_filters(text: Reader, stretches: Sequence[Stretch]) -> tuple[tuple[FilterRef, ...], bool]:
    """The filters that still fit the changed text, and whether one was dropped, so that it must be made again.

    Frames right before a stretch lose their columns too: these cover text of the stretch.
    """
    refs = text.manifest.filters
    if not refs:
        return (), False
    # Case folding can shrink a character to a third of its bytes, so the reach is up to three times as much text.
    margin = 3 * max(ref.reach_bytes for ref in refs)
    touched = [(_first_touched(text, stretch.first_frame, margin), stretch) for stretch in stretches]
    found, is_lost = [], False
    for ref in refs:
        kept = _keep_filter(ref, touched)
        is_lost = is_lost or kept is None
        if kept is not None:
            found.append(kept)
    return tuple(found), is_lost


def _first_touched(text: Reader, frame: int, margin: int) -> int:
    """The first frame whose column may cover text of `frame`. `margin` is in bytes."""
    between = 0
    while frame and between < margin:
        frame -= 1
        between += text.frame(frame).bytes
    return frame


def _keep_filter(ref: FilterRef, touched: Sequence[tuple[int, Stretch]]) -> FilterRef | None:
    """The filter with changed columns unknown; None if fewer than half are left, or in more than `MOST_RUNS` runs.

    `touched`: each stretch, and the first frame whose column may cover text of it.
    """
    grown = [stretch.grown for _, stretch in touched]
    stops = [stretch.stop_frame for _, stretch in touched]

    def moved(frame: int) -> int:
        """The new number of a frame that stays."""
        return frame + sum(grown[: bisect_right(stops, frame)])

    # Stretches that take columns from this filter.
    near = [(low, stretch) for low, stretch in touched if low < ref.stop_frame and stretch.stop_frame > ref.first_frame]
    # The frames right before the filter, whose border column a change there makes useless.
    border = ref.border_frames
    if any(low < ref.first_frame and stretch.stop_frame > ref.first_frame - border for low, stretch in touched):
        border = 0
    if not near and border == ref.border_frames:
        return changed(ref, first_frame=moved(ref.first_frame))
    columns = _ColumnRuns()
    at = ref.first_frame
    for low, stretch in near:
        stale = max(low, at)
        columns.keep(ref, at, stale)
        columns.add(UNKNOWN, max(stretch.first_frame - stale, 0) + len(stretch.frames))
        at = max(at, stretch.stop_frame)
    columns.keep(ref, at, ref.stop_frame)
    runs = columns.runs
    is_cut = at >= ref.stop_frame  # a change reaches the end of the filter
    if runs and runs[-1][0] == UNKNOWN:
        runs.pop()  # unknown columns at the end are dropped
    known = sum(frames for column, frames in runs if column != UNKNOWN)
    if 2 * known < ref.frames or len(runs) > MOST_RUNS:
        return None
    frames = sum(count for _, count in runs)
    return changed(
        ref,
        first_frame=moved(columns.first_frame),
        frames=frames,
        tail_frames=0 if is_cut else min(ref.tail_frames, frames),
        border_frames=border if columns.first_frame == ref.first_frame else 0,
        columns=tuple(runs),
        width=FilterLayout(ref).columns,
    )


class _ColumnRuns:
    """Columns of a changed filter as runs (first column, number of frames); `UNKNOWN` columns too, but never at the
    beginning."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self.first_frame = -1
        """The old number of the frame of the first column."""

    def keep(self, ref: FilterRef, first: int, stop: int) -> None:
        """Append the columns that a filter has for frames [first, stop)."""
        for column, frames in _columns_of(ref, first, stop):
            if not self.runs:
                self.first_frame = first
            self.add(column, frames)
            first += frames

    def add(self, column: int, frames: int) -> None:
        """Append a run. If it continues the last one, extend that. Unknown columns are never the first."""
        if not frames or (column == UNKNOWN and not self.runs):
            return
        last, count = self.runs[-1] if self.runs else (UNKNOWN, 0)
        if self.runs and column == (UNKNOWN if last == UNKNOWN else last + count):
            self.runs[-1] = (last, count + frames)
        else:
            self.runs.append((column, frames))


def _columns_of(ref: FilterRef, first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the old columns of frames [first, stop) as runs (first column or `UNKNOWN`, number of frames)."""
    at = ref.first_frame
    for column, frames in ref.columns or ((0, ref.frames),):
        low, high = max(first, at), min(stop, at + frames)
        if low < high:
            yield (UNKNOWN if column == UNKNOWN else column + low - at), high - low
        at += frames
