"""Compact a context: store its small segments again as full segments, frames and filters, as a new generation.

A hundred appends can leave a hundred short segments, frames and filters. Reading such a text takes as many requests as
a text a hundred times as long. `plan` decides, without a request, which neighbouring frames are stored again; others
keep their segments and records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from functools import partial
from itertools import groupby

from monocontext.engine.open import ContextHandle
from monocontext.engine.reader import Reader
from monocontext.errors import ForeignObject, NotFound
from monocontext.format.filters import building
from monocontext.format.filters.case_folding import TABLES
from monocontext.format.filters.layout import FilterLayout as FilterLayout
from monocontext.format.generations import fence_seconds, read_newest
from monocontext.format.index import Frame, FrameRecord, FrameRun
from monocontext.format.manifest import Manifest
from monocontext.format.refs import FilterRef
from monocontext.options import StoreOptions
from monocontext.records import dataclass, replace
from monocontext.stores.parallel import in_order
from monocontext.writing.batches import PARTS_AHEAD
from monocontext.writing.pages import as_runs, follows, write_pages
from monocontext.writing.place import Place, open_store_at, portable_place
from monocontext.writing.segments import SEGMENT_BYTES, SegmentLayout, write_segments
from monocontext.writing.upkeep.commit_rewrite import commit_rewrite
from monocontext.writing.upkeep.filter_parts import Part, WorkerContext, cut_part
from monocontext.writing.upkeep.rewrite import (
    Rewrite,
    conflict_if_replaced,
    fill_filters,
    first_byte,
    gaps,
    move_filter,
    records,
    wants_filters,
)

_SEGMENTS_OF_WORKER = 8
"""The segments that a worker of an executor makes in one task."""


def compact(
    url: Place,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    frame_bytes: int | None = None,
    filters: bool = True,
    allow: Iterable[str | os.PathLike[str]] = (),
    progress: Callable[[int], None] | None = None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
) -> Manifest:
    """Store the text of the context at `url` in few full objects, as a new generation, and return its root.

    Neighbouring segments of less than half `segment_bytes`, or with frames of less than half `frame_bytes` (by default
    the context's), are stored again if that makes fewer of them. Fuller ones, and objects outside the context, keep
    their place and records: their text is read only to make filters for it. A filter over text that stays is kept if it
    covers at least as much text as follows it; after the last such filter, filters are made again. Text up to the last
    frame that may not be read (`allow`, as for `Monocontext.open`) keeps its filters. Without `filters`, none is made,
    and those whose frames stay are kept.

    `executor`: any `concurrent.futures.Executor`, whose workers then read the text and store it, 8 segments each, and
    make the filters. Each begins a frame and a segment.

    If there is nothing to do, it writes nothing and returns the newest root. `progress` takes the bytes of text read so
    far, in both passes. Takes as much memory as `publish`, and some 400 bytes for each frame after the first one that
    is stored again.

    Cost: 1 GET for each index page and for some 8 MiB of text that is stored again, once to store it and once for
    filters; 1 PUT for each segment, page and 16 MiB of filter; 1 LIST a thousand segments for each range of frames;
    about 6 requests for the commit. Safe while readers and appenders run: readers keep their generation, appended text
    is included. Raises `AlreadyExists` if another writer replaced the text meanwhile, or `gc` removed objects that are
    read, and `NotFound` if there is no context.
    """
    with open_store_at(url, store_options) as store:
        newest = read_newest(store)
        if newest is None:
            raise NotFound(f"{store.url}: no context there to compact")
        work = Rewrite(
            store,
            allow=allow,
            store_options=store_options,
            progress=progress,
            executor=executor,
            url=portable_place(url),
        )
        with closing(work), conflict_if_replaced(store, newest):
            base = work.expand(newest)
            since = fence_seconds(store, base)
            layout = SegmentLayout(frame_bytes or base.frame_bytes, segment_bytes, base.codec, False, since)
            root = _compact(work, base, layout, filters)
            return newest if root is base else commit_rewrite(work, base, root, filters=filters)


def _compact(work: Rewrite, base: Manifest, layout: SegmentLayout, filters: bool) -> Manifest:
    """The root to commit, or `base` itself if there is nothing to do."""
    with work.text(base) as old:
        stretches = list(_stretches(records(old, 0, base.frames)))
        fence = _keep_until(old, stretches, layout, _unreadable_until(work.context, base, stretches))
        loose = plan([stretch for stretch in stretches if stretch.first_frame >= fence], layout)
        if not loose and (not filters or not wants_filters(base) or _has_tidy_filters(base, fence)):
            return base
        root = _repack(work, old, loose, layout) if loose else base
        if filters:
            carried = tuple(ref for ref in base.filters if ref.stop_frame <= fence)
            return fill_filters(work, replace(root, filters=carried), fence)
        with work.text(root) as new:
            return replace(root, filters=tuple(move_filter(ref, old, new) for ref in _untouched_filters(base, loose)))


# -- what to store again -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """Adjacent frames in one object."""

    object: str
    first_frame: int
    frames: int
    stored_bytes: int
    text_bytes: int

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.frames

    @property
    def is_virtual(self) -> bool:
        return "://" in self.object

    def is_packed(self, layout: SegmentLayout) -> bool:
        """Whether it is not stored again: it is outside the context, or it and its frames are at least half full."""
        full = 2 * self.stored_bytes >= layout.segment_bytes
        return self.is_virtual or (full and 2 * self.text_bytes >= self.frames * layout.frame_bytes)


def _stretches(frames: Iterable[Frame]) -> Iterator[Stretch]:
    """Join adjacent frames of one object."""
    first = count = stored_bytes = text_bytes = end = 0
    name = ""
    for frame in frames:
        if count and not follows(frame, name, end):
            yield Stretch(name, first, count, stored_bytes, text_bytes)
            count = 0
        if not count:
            name, first, stored_bytes, text_bytes = frame.object, frame.number, 0, 0
        count += 1
        stored_bytes += frame.stored_bytes
        text_bytes += frame.bytes
        end = frame.offset + frame.stored_bytes
    if count:
        yield Stretch(name, first, count, stored_bytes, text_bytes)


def plan(stretches: Iterable[Stretch], layout: SegmentLayout) -> list[tuple[int, int]]:
    """The ranges [first, stop) of frames to store again: neighbours that become fewer segments, or half the frames.

    A compacted text has none: a writer begins a segment only if a frame does not fit into the one before, so one of two
    neighbours is at least half full.
    """
    found = []
    for packed, neighbours in groupby(stretches, key=lambda stretch: stretch.is_packed(layout)):
        if packed:
            continue
        group = list(neighbours)
        frames = sum(stretch.frames for stretch in group)
        segments = -(-sum(stretch.stored_bytes for stretch in group) // layout.segment_bytes)
        fewest = -(-sum(stretch.text_bytes for stretch in group) // layout.frame_bytes)
        if segments < len(group) or 2 * fewest <= frames:
            found.append((group[0].first_frame, group[-1].stop_frame))
    return found


# -- storing it --------------------------------------------------------------------------------------------------------


def _repack(work: Rewrite, old: Reader, loose: list[tuple[int, int]], layout: SegmentLayout) -> Manifest:
    """Store the frames of the ranges `loose` in new segments, and new pages. Returns a root of the same text, without
    filters."""
    base = old.manifest
    kept = tuple(page for page in base.pages if page.frames <= loose[0][0])
    at = kept[-1].frames if kept else 0
    stored_bytes = base.stored_bytes
    runs: list[FrameRun] = []
    rows: list[FrameRecord] = []

    def add(new_runs: list[FrameRun], new_rows: list[FrameRecord]) -> None:
        runs.extend(new_runs)
        rows.extend(new_rows)

    for first, stop in loose:
        add(*as_runs(records(old, at, first)))
        for new_runs, new_rows in _store(work, old, first, stop, layout):
            add(new_runs, new_rows)
            stored_bytes += sum(row.stored_bytes for row in new_rows)
        stored_bytes -= sum(frame.stored_bytes for frame in records(old, first, stop))
        at = stop
    add(*as_runs(records(old, at, base.frames)))
    pages, last_page = write_pages(work.put, kept, runs, rows)
    return replace(
        base,
        pages=pages,
        last_page=last_page,
        text=b"",
        stored_bytes=stored_bytes,
        frame_bytes=layout.frame_bytes,
        filters=(),
    )


_Stored = tuple[list[FrameRun], list[FrameRecord]]


def _store(work: Rewrite, old: Reader, first: int, stop: int, layout: SegmentLayout) -> Iterator[_Stored]:
    """Store the text of frames [first, stop), here or by workers."""
    if not work.executor:
        written = write_segments(work.store, work.pieces(old, first, stop), layout)
        yield written.runs, written.records
        return
    parts = (cut_part(old.manifest, *bounds) for bounds in _bounds(records(old, first, stop), layout))
    store = partial(_store_part, place=work.place, layout=layout)
    for runs, rows in in_order(work.executor, store, parts, PARTS_AHEAD):
        work.report(sum(row.bytes for row in rows))
        yield runs, rows


def _bounds(frames: Iterable[Frame], layout: SegmentLayout) -> Iterator[tuple[int, int]]:
    """Cut neighbouring frames into parts of several segments each, so few segments are less than half full."""
    first = stop = size = 0
    for frame in frames:
        first = first if size else frame.number
        stop, size = frame.number + 1, size + frame.stored_bytes
        if size >= _SEGMENTS_OF_WORKER * layout.segment_bytes:
            yield first, stop
            size = 0
    if size:
        yield first, stop


def _store_part(part: Part, *, place: WorkerContext, layout: SegmentLayout) -> _Stored:
    with place.open(part.root) as (store, text):
        written = write_segments(store, (piece.data for piece in part.frames(text)), layout)
        return written.runs, written.records


# -- which filters to keep ---------------------------------------------------------------------------------------------


def _keep_until(old: Reader, stretches: list[Stretch], layout: SegmentLayout, unreadable: int) -> int:
    """The frame before which all text and filters stay as they are.

    A change in the frames of a filter means that all its text is read again. So a filter stays if it is too large for
    an append to merge, none of its frames is to be stored again, and it covers at least as much text as follows it, or
    as much as filters can. Then only the rest is read, and the number of filters grows with the logarithm of the text.
    """

    def stays(ref: FilterRef) -> bool:
        first, stop = first_byte(old, ref.first_frame), first_byte(old, ref.stop_frame)
        return (
            ref.fold == TABLES
            and ref.columns is None
            and FilterLayout(ref).size_bytes > building.MERGED_BYTES
            and (ref.frames == building.GROUP_FRAMES or stop - first >= old.manifest.text_bytes - stop)
            and not plan([one for one in stretches if ref.first_frame <= one.first_frame < ref.stop_frame], layout)
        )

    fence = unreadable
    for ref in old.manifest.filters:
        if ref.first_frame < fence:
            fence = max(fence, ref.stop_frame)  # its text may not be read, so the filter cannot be made again
        elif ref.first_frame == fence and stays(ref):
            fence = ref.stop_frame
        else:
            break
    return fence


def _unreadable_until(context: ContextHandle, base: Manifest, stretches: list[Stretch]) -> int:
    """The frame after the last one that may not be read, or 0 if all may be read."""
    for stretch in reversed(stretches):
        if stretch.is_virtual:
            try:
                context.place(stretch.object, base.sources)
            except ForeignObject:
                return stretch.stop_frame
    return 0


def _has_tidy_filters(base: Manifest, fence: int) -> bool:
    """Whether the filters from frame `fence` on are those that one pass over their text would make."""
    refs = [ref for ref in base.filters if ref.first_frame >= fence]
    full = all(ref.frames == building.GROUP_FRAMES for ref in refs[:-1])
    current = all(ref.fold == TABLES and ref.columns is None for ref in refs)
    return full and current and not any(gaps(refs, fence, base.frames))


def _untouched_filters(base: Manifest, loose: list[tuple[int, int]]) -> Iterator[FilterRef]:
    """The filters none of whose frames is stored again."""
    return (
        ref for ref in base.filters if all(ref.stop_frame <= first or stop <= ref.first_frame for first, stop in loose)
    )
