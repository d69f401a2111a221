"""Keep of search filters the columns of frames whose text, and the text right after them, did not change."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from monocontext.engine.reader import Reader
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import UNKNOWN, FilterRef
from monocontext.records import replace as changed
from monocontext.writing.upkeep.edited_text import Stretch

MOST_RUNS = 512
"""A filter whose columns changes have cut into more runs is made again."""


def keep_filters(text: Reader, stretches: Sequence[Stretch]) -> tuple[tuple[FilterRef, ...], bool]:
    """The filters of the new text, and whether one is lost that could be made again.

    A column also covers some text after its frame. So frames right before a stretch lose theirs, too.
    """
    refs = text.manifest.filters
    if not refs:
        return (), False
    margin = 3 * max(ref.reach_bytes for ref in refs)  # folding makes a third of some characters' bytes
    touched = [(_first_touched(text, stretch.first, margin), stretch) for stretch in stretches]
    found, is_lost = [], False
    for ref in refs:
        kept = _keep_filter(ref, touched)
        is_lost = is_lost or kept is None
        if kept is not None:
            found.append(kept)
    return tuple(found), is_lost


def _first_touched(text: Reader, frame: int, margin: int) -> int:
    """The first frame whose column may cover text of `frame`."""
    between = 0
    while frame and between < margin:
        frame -= 1
        between += text.frame(frame).bytes
    return frame


def _keep_filter(ref: FilterRef, touched: Sequence[tuple[int, Stretch]]) -> FilterRef | None:
    """A filter without the columns of frames that changed; None: too few are left."""
    grown = [stretch.grown for _, stretch in touched]
    stops = [stretch.stop for _, stretch in touched]

    def moved(frame: int) -> int:
        """The new number of a frame that stays."""
        return frame + sum(grown[: bisect_right(stops, frame)])

    near = [(low, stretch) for low, stretch in touched if low < ref.stop_frame and stretch.stop > ref.first_frame]
    border = ref.border_frames
    if any(low < ref.first_frame and stretch.stop > ref.first_frame - border for low, stretch in touched):
        border = 0
    if not near and border == ref.border_frames:
        return changed(ref, first_frame=moved(ref.first_frame))
    runs: list[tuple[int, int]] = []
    """Column and number of frames of each run, from the first frame with a known column on."""
    first_known, at = -1, ref.first_frame

    def know(first: int, stop: int) -> None:
        nonlocal first_known
        for column, frames in _columns_of(ref, first, stop):
            if first_known < 0:
                if column == UNKNOWN:
                    first += frames
                    continue
                first_known = first
            _add(runs, column, frames)

    for low, stretch in near:
        stale = max(low, at)
        know(at, stale)
        if first_known >= 0:
            _add(runs, UNKNOWN, max(stretch.first - stale, 0) + len(stretch.frames))
        at = max(at, stretch.stop)
    know(at, ref.stop_frame)
    is_cut = at >= ref.stop_frame
    if runs and runs[-1][0] == UNKNOWN:
        runs.pop()
    known = sum(frames for column, frames in runs if column != UNKNOWN)
    if 2 * known < ref.frames or len(runs) > MOST_RUNS:
        return None
    frames = sum(count for _, count in runs)
    first = moved(first_known)
    return changed(
        ref,
        first_frame=first,
        frames=frames,
        tail_frames=0 if is_cut else min(ref.tail_frames, frames),
        border_frames=border if first_known == ref.first_frame else 0,
        columns=tuple(runs),
        width=FilterLayout(ref).columns,
    )


def _columns_of(ref: FilterRef, first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Columns of frames [first, stop) of a group, as `FilterRef.columns` has them."""
    at = ref.first_frame
    for column, frames in ref.columns or ((0, ref.frames),):
        low, high = max(first, at), min(stop, at + frames)
        if low < high:
            yield (UNKNOWN if column == UNKNOWN else column + low - at), high - low
        at += frames


def _add(runs: list[tuple[int, int]], column: int, frames: int) -> None:
    if frames <= 0:
        return
    if runs and ((column == UNKNOWN == runs[-1][0]) or (column != UNKNOWN != runs[-1][0] and sum(runs[-1]) == column)):
        runs[-1] = (runs[-1][0], runs[-1][1] + frames)
    else:
        runs.append((column, frames))
