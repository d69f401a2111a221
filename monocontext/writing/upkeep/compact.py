"""Compact a context: merge its small segments, frames and filters into full ones, as a new generation."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from math import ceil

from monocontext.format.filters.building import GROUP_FRAMES
from monocontext.format.filters.grams import TABLES
from monocontext.format.filters.joining import can_join, join
from monocontext.format.index import Frame
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores import Place
from monocontext.writing.commit import Staged, commit_at
from monocontext.writing.segments import SEGMENT_BYTES, SegmentLayout, Written, write_segments
from monocontext.writing.splice import Stretch, add_copies, add_filter, find_gaps, splice, wants_filters
from monocontext.writing.stored_text import StoredText, expanded, neighbours
from monocontext.writing.upkeep.forget import dead_bytes


def compact(
    url: Place,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    frame_bytes: int | None = None,
    filters: bool = True,
    allow: Iterable[str | os.PathLike[str]] = (),
    progress: Callable[[int], None] = lambda read_bytes: None,
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Store the text of the context at `url` in few full objects, as a new generation, and return its root.

    Neighbouring segments are stored again if that makes fewer of them: those below half of `segment_bytes`, with frames
    below half of `frame_bytes` (by default the context's), or with half a segment of dead bytes. Frames
    without a search filter get one, and small filters are joined, unless `filters` is false. Text outside the context
    stays, without filters if it may not be read (`allow`, as for `Monocontext.open`). If there is nothing to do, the
    newest root is returned. `progress` is called with the bytes of text read so far. Raises `NotFound`.

    Cost: 1 GET per index page; per 8 MiB of text that is stored again, 1 GET, and 1 more for its filters; 1 PUT per
    segment, page and 16 MiB of filter; 1 LIST per 1,000 segments; 6 requests to commit; 400 bytes of memory per frame.
    """

    def change(base: Manifest, store: Staged) -> Manifest | None:
        layout = SegmentLayout(frame_bytes or base.frame_bytes, segment_bytes, base.codec, filters=False)
        old = expanded(store, base)
        with StoredText(store, old, allow=allow, store_options=store_options, progress=progress) as text:
            root = _fill_segments(text, store, layout)
            if filters:
                root = _complete_filters(text.after(root))
            return None if root == old else add_copies(text.after(root), old)

    return commit_at(url, store_options, "compact", change)


def _fill_segments(text: StoredText, store: Staged, layout: SegmentLayout) -> Manifest:
    """The root of the text in full segments; the same root if `plan` finds nothing to store again."""
    stretches: list[Stretch] = []
    new = Written()
    for first, stop in plan(text.frames(0, text.root.frames), layout, dead_bytes(text)):
        sources = tuple((frame.object, frame.offset) for frame in text.frames(first, stop))
        write = partial(write_segments, store, text.texts(text.frames(first, stop)), layout)
        written = store.once(sources, write, repeatable=True)
        stretches.append(Stretch(first, stop, len(written.records)))
        new.runs += written.runs
        new.records += written.records
    return splice(text, stretches, new, frame_bytes=layout.frame_bytes) if stretches else text.root


def add_filters(
    url: Place,
    *,
    rebuild: bool = False,
    allow: Iterable[str | os.PathLike[str]] = (),
    progress: Callable[[int], None] = lambda read_bytes: None,
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Make search filters for those frames of the context at `url` that have none, and return the newest root.

    Does nothing for a text of fewer than 9 frames, or with frames below 512 bytes. `rebuild`: make all filters again.
    `progress` is called with the bytes of text read so far. `allow`: as for `Monocontext.open`; raises `ForeignObject`
    for text elsewhere that it does not name.

    Cost: 1 GET per 8 MiB of text and index page, 1 PUT per 16 MiB of filter, about 6 requests for the commit.
    """

    def change(base: Manifest, store: Staged) -> Manifest | None:
        root = expanded(store, base)
        if rebuild:
            root = replace(root, filters=())
        missing = find_gaps(root.filters, root.frames)
        if not wants_filters(root) or not missing:
            return None
        with StoredText(store, root, allow=allow, store_options=store_options, progress=progress) as text:
            return add_filter(text, missing, strict=True)

    return commit_at(url, store_options, "add filters to", change)


def _complete_filters(text: StoredText) -> Manifest:
    """The root with few filters that cover every frame that may be read, without those with other folding tables."""
    if not wants_filters(text.root):
        return text.root
    root = replace(text.root, filters=tuple(ref for ref in text.root.filters if ref.fold == TABLES))
    if missing := find_gaps(root.filters, root.frames):
        root = add_filter(text.after(root), missing)
    small = [ref for ref in root.filters if 2 * ref.frames < GROUP_FRAMES]
    is_spread = len(small) > 1 or any(ref.frames < ref.width for ref in small)
    if is_spread and sum(ref.frames for ref in small) <= GROUP_FRAMES and can_join(small):
        large = [ref for ref in root.filters if ref not in small]
        root = replace(root, filters=(*large, join(small, text.get, text.store.put)))
    return root


def plan(frames: Iterable[Frame], layout: SegmentLayout, dead: Mapping[str, int]) -> list[tuple[int, int]]:
    """The ranges of frames to store again: it makes fewer segments, or half the frames, or frees many `dead` bytes."""

    def stays(run: list[Frame]) -> bool:
        """Whether a run is outside the context, or its segment and its frames are half full and few bytes are dead."""
        name, stored_bytes = run[0].object, sum(frame.stored_bytes for frame in run)
        is_full = 2 * stored_bytes >= layout.segment_bytes and 2 * dead.get(name, 0) < layout.segment_bytes
        return "://" in name or (is_full and 2 * sum(frame.bytes for frame in run) >= len(run) * layout.frame_bytes)

    ranges = []
    for is_kept, adjacent in groupby(neighbours(frames, sys.maxsize), key=stays):
        if is_kept:
            continue
        runs = list(adjacent)
        small = [frame for run in runs for frame in run]
        fewest_segments = ceil(sum(frame.stored_bytes for frame in small) / layout.segment_bytes)
        fewest_frames = ceil(sum(frame.bytes for frame in small) / layout.frame_bytes)
        wasted_bytes = sum(dead.get(name, 0) for name in {frame.object for frame in small})
        frees_much = 2 * fewest_frames <= len(small) or 2 * wasted_bytes >= layout.segment_bytes
        if fewest_segments < len(runs) or frees_much:
            ranges.append((small[0].number, small[-1].number + 1))
    return ranges
