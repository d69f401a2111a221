"""Many small objects into few: the same text in full segments, full frames and large filters, as a new generation.

A hundred appends leave a hundred segments and frames, each as long as its text, and filters with a border each. Reading
that text takes as many requests as a text a hundred times as long. Decided here and purely (`plan`): which neighbours
are stored anew; well packed ones keep their segments and records.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from monocontext.errors import ForeignObject, NotFound
from monocontext.filters import building
from monocontext.filters.fold import TABLES
from monocontext.filters.layout import Layout as FilterLayout
from monocontext.generations import newest
from monocontext.index import Frame, FrameRecord, Run
from monocontext.manifest import FilterRef, Manifest
from monocontext.opening import Opened
from monocontext.reader import Reader
from monocontext.rework import (
    Rework,
    commit_reworked,
    filled,
    first_byte,
    follows,
    gaps,
    moved,
    records,
    table,
    wants_filters,
)
from monocontext.segments import SEGMENT_BYTES, Layout, write_segments
from monocontext.writer import Place, opened, write_pages


def compact(
    url: Place,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    frame_bytes: int | None = None,
    filters: bool = True,
    allow: Iterable[str | os.PathLike[str]] = (),
    progress: Callable[[int], None] | None = None,
    store_options: dict[str, Any] | None = None,
) -> Manifest:
    """Store the text of the context at `url` in few full objects, as a new generation, and return its root.

    Neighbouring segments of less than half `segment_bytes`, or with frames of less than half `frame_bytes` (the
    context's unless given), are stored anew where that makes fewer. Well packed ones, and objects elsewhere that the
    context points at, keep their place and records: their text is read only where `filters` are made for it. A filter
    over packed text stays while it covers as much as follows it, with all that it covers; behind the last such one
    filters are made anew. Text up to the last virtual frame that may not be read (`allow`, as for `Monocontext.open`)
    keeps those that it has. Without `filters` the ones that still fit are kept, and none is made.

    With nothing to do this is the newest root, and nothing is written. `progress` takes the bytes of text read so far,
    in both passes. Memory as for `publish`, and some 400 bytes a frame from the first one on that is stored anew.

    Cost: 1 GET for each index page and for some 8 MiB of what is stored anew, once to store it and once for filters;
    1 PUT a segment, a page and 16 MiB of filter; 1 LIST a thousand segments for each stretch; about 6 requests for the
    commit. Safe beside readers, who keep their generation, and beside appenders, whose text is taken over. Raises
    `AlreadyExists` when another writer replaced the text meanwhile, `NotFound` where no context is.
    """
    with opened(url, store_options) as store:
        base = newest(store)
        if base is None:
            raise NotFound(f"{store.url}: no context there to compact")
        layout = Layout(frame_bytes or base.frame_bytes, segment_bytes, base.codec, filters=False)
        context = Opened(store, cache_bytes=0, allow=allow, store_options=store_options, owns_store=False)
        try:
            work = Rework(context, base, progress)
            root = _compacted(work, base, layout, filters)
            return base if root is base else commit_reworked(work, base, root, filters=filters)
        finally:
            context.close()


def _compacted(work: Rework, base: Manifest, layout: Layout, filters: bool) -> Manifest:
    """The root to commit; `base` itself when there is nothing to do."""
    with work.text(base) as old:
        stretches = list(_stretches(records(old, 0, base.frames)))
        fence = _fence(old, stretches, layout, _unreadable_until(work.opened, base, stretches))
        loose = plan([stretch for stretch in stretches if stretch.first_frame >= fence], layout)
        if not loose and (not filters or not wants_filters(base) or _are_tidy(base, fence)):
            return base
        root = _repacked(work, old, loose, layout) if loose else base
        if filters:
            carried = tuple(ref for ref in base.filters if ref.stop_frame <= fence)
            return filled(work, dataclasses.replace(root, filters=carried), fence)
        with work.text(root) as new:
            return dataclasses.replace(root, filters=tuple(moved(ref, old, new) for ref in _untouched(base, loose)))


# -- what to store anew ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """Frames that lie back to back in one object."""

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

    def is_packed(self, layout: Layout) -> bool:
        """Whether it stays as it is: elsewhere, or more than half full, of frames that are."""
        full = 2 * self.stored_bytes >= layout.segment_bytes
        return self.is_virtual or (full and 2 * self.text_bytes >= self.frames * layout.frame_bytes)


def _stretches(frames: Iterable[Frame]) -> Iterator[Stretch]:
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


def plan(stretches: Iterable[Stretch], layout: Layout) -> list[tuple[int, int]]:
    """Frames [first, stop) to store anew: loose neighbours that become fewer segments, or half as many frames.

    A text that was compacted has none: of two segments that a writer fills one after the other the first is at least
    half full, or both together would have been one.
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


def _repacked(work: Rework, old: Reader, loose: list[tuple[int, int]], layout: Layout) -> Manifest:
    """A root of the same text, with the frames of `loose` in new segments; stores these and pages, no filters."""
    base = old.manifest
    kept = tuple(page for page in base.pages if page.frames <= loose[0][0])
    at = kept[-1].frames if kept else 0
    stored_bytes = base.stored_bytes
    runs: list[Run] = []
    rows: list[FrameRecord] = []

    def add(new_runs: list[Run], new_rows: list[FrameRecord]) -> None:
        runs.extend(new_runs)
        rows.extend(new_rows)

    for first, stop in loose:
        add(*table(records(old, at, first)))
        written = write_segments(work.opened.store, work.pieces(old, first, stop), layout)
        add(written.runs, written.records)
        stored_bytes += sum(row.stored_bytes for row in written.records)
        stored_bytes -= sum(frame.stored_bytes for frame in records(old, first, stop))
        at = stop
    add(*table(records(old, at, base.frames)))
    pages, last_page = write_pages(work.put, kept, runs, rows)
    return dataclasses.replace(
        base,
        pages=pages,
        last_page=last_page,
        stored_bytes=stored_bytes,
        frame_bytes=layout.frame_bytes,
        filters=(),
    )


# -- which filters to keep ---------------------------------------------------------------------------------------------


def _fence(old: Reader, stretches: list[Stretch], layout: Layout, unreadable: int) -> int:
    """The frame up to which text and filters stay as they are.

    To break into the frames of a filter is to read all its text again. One stays that is larger than what an append
    would write anew, well packed inside, and covers as much text as follows it, or as much as filters can: what is read
    again and again is then the short rest, and filters grow in number with the logarithm of the text.
    """

    def stands(ref: FilterRef) -> bool:
        first, stop = first_byte(old, ref.first_frame), first_byte(old, ref.stop_frame)
        return (
            ref.fold == TABLES
            and FilterLayout(ref).size_bytes > building.MERGED_BYTES
            and (ref.frames == building.GROUP_FRAMES or stop - first >= old.manifest.text_bytes - stop)
            and not plan([one for one in stretches if ref.first_frame <= one.first_frame < ref.stop_frame], layout)
        )

    fence = unreadable
    for ref in old.manifest.filters:
        if ref.first_frame < fence:
            fence = max(fence, ref.stop_frame)  # nobody could make another one
        elif ref.first_frame == fence and stands(ref):
            fence = ref.stop_frame
        else:
            break
    return fence


def _unreadable_until(context: Opened, base: Manifest, stretches: list[Stretch]) -> int:
    """The frame behind the last one that lies where nobody allowed to read; 0: all may be read."""
    for stretch in reversed(stretches):
        if stretch.is_virtual:
            try:
                context.place(stretch.object, base)
            except ForeignObject:
                return stretch.stop_frame
    return 0


def _are_tidy(base: Manifest, fence: int) -> bool:
    """Whether the filters behind the fence are those that one pass over their text would make."""
    refs = [ref for ref in base.filters if ref.first_frame >= fence]
    full = all(ref.frames == building.GROUP_FRAMES for ref in refs[:-1])
    current = all(ref.fold == TABLES for ref in refs)
    return full and current and not any(gaps(refs, fence, base.frames))


def _untouched(base: Manifest, loose: list[tuple[int, int]]) -> Iterator[FilterRef]:
    """Filters none of whose frames is stored anew."""
    return (
        ref for ref in base.filters if all(ref.stop_frame <= first or stop <= ref.first_frame for first, stop in loose)
    )
