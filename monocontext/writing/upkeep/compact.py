"""Compact a context: store its small segments again as full segments, frames and filters, as a new generation."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby

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
from monocontext.writing.splice import Stretch, covered, gaps, splice, wants_filters, with_copies
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

    Neighbouring segments of less than half `segment_bytes`, with frames of less than half `frame_bytes` (by default the
    context's), or with dead bytes of half a segment or more, are stored again if that makes fewer of them. Frames
    without a search filter get one, and small filters become one, unless `filters` is false. Text outside the context
    stays, without filters if it may not be read (`allow`, as for `Monocontext.open`). If there is nothing to do,
    returns the newest root. `progress` takes the bytes of text read so far. Raises `NotFound` if there is no context.

    Cost: 1 GET for each index page and for 8 MiB of text that is stored again, once more for its filters; 1 PUT for
    each segment, page and 16 MiB of filter; 1 LIST a thousand segments; 6 requests for the commit; 400 bytes a frame.
    """

    def change(base: Manifest, store: Staged) -> Manifest | None:
        layout = SegmentLayout(frame_bytes or base.frame_bytes, segment_bytes, base.codec, False)
        old = expanded(store, base)
        with StoredText(store, old, allow=allow, store_options=store_options, progress=progress) as text:
            root = _with_full_segments(text, store, layout)
            if filters:
                root = _with_filters(text.after(root))
            return None if root is old else with_copies(text.after(root), old)

    return commit_at(url, store_options, "compact", change)


def _with_full_segments(text: StoredText, store: Staged, layout: SegmentLayout) -> Manifest:
    """The root after its small segments are stored again as full ones; the same if `plan` finds none."""
    stretches: list[Stretch] = []
    new = Written()
    for first, stop in plan(text.frames(0, text.root.frames), layout, dead_bytes(text)):
        places = tuple((frame.object, frame.offset) for frame in text.frames(first, stop))
        write = partial(write_segments, store, text.texts(text.frames(first, stop)), layout)
        written = store.once(places, write, repeatable=True)
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
    """Make search filters for those frames of the context at `url` that have none, as a new generation of the text.

    Where there is nothing to do, as in a text of fewer than 9 frames or with frames below 512 bytes, returns the newest
    root. `rebuild` makes all filters again. `progress` takes the bytes of text read so far. `allow`: as for
    `Monocontext.open`; raises `ForeignObject` where a place is missing.

    Cost: 1 GET for some 8 MiB of text and each index page, 1 PUT for 16 MiB of filter, about 6 for the commit.
    """

    def change(base: Manifest, store: Staged) -> Manifest | None:
        root = expanded(store, base)
        if rebuild:
            root = replace(root, filters=())
        missing = gaps(root.filters, root.frames)
        if not wants_filters(root) or not missing:
            return None
        with StoredText(store, root, allow=allow, store_options=store_options, progress=progress) as text:
            return covered(text, missing, strict=True)

    return commit_at(url, store_options, "add filters to", change)


def _with_filters(text: StoredText) -> Manifest:
    """The root with a filter column for every frame that may be read, in few filters; the same if it has these."""
    root = text.root
    if not wants_filters(root):
        return root
    current = tuple(ref for ref in root.filters if ref.fold == TABLES)
    if current != root.filters:
        root = replace(root, filters=current)
    if missing := gaps(root.filters, root.frames):
        filled = covered(text.after(root), missing)
        root = filled if filled.filters != root.filters else root
    small = [ref for ref in root.filters if 2 * ref.frames < GROUP_FRAMES]
    is_spread = len(small) > 1 or any(ref.frames < ref.width for ref in small)
    if is_spread and sum(ref.frames for ref in small) <= GROUP_FRAMES and can_join(small):
        large = [ref for ref in root.filters if ref not in small]
        root = replace(root, filters=(*large, join(small, text.get, text.store.put)))
    return root


def plan(frames: Iterable[Frame], layout: SegmentLayout, dead: Mapping[str, int]) -> list[tuple[int, int]]:
    """The ranges of frames whose segments would become fewer or half as many frames, or have many `dead` bytes."""

    def is_packed(run: list[Frame]) -> bool:
        """Whether a run is outside of the context, or at least half full, in such an object with few dead bytes."""
        name, stored_bytes = run[0].object, sum(frame.stored_bytes for frame in run)
        is_full = 2 * stored_bytes >= layout.segment_bytes and 2 * dead.get(name, 0) < layout.segment_bytes
        return "://" in name or (is_full and 2 * sum(frame.bytes for frame in run) >= len(run) * layout.frame_bytes)

    results = []
    for packed, adjacent in groupby(neighbours(frames, sys.maxsize), key=is_packed):
        if packed:
            continue
        runs = list(adjacent)
        among = [frame for run in runs for frame in run]
        segments = -(-sum(frame.stored_bytes for frame in among) // layout.segment_bytes)
        fewest = -(-sum(frame.bytes for frame in among) // layout.frame_bytes)
        wasted = sum(dead.get(name, 0) for name in {frame.object for frame in among})
        if segments < len(runs) or 2 * fewest <= len(among) or 2 * wasted >= layout.segment_bytes:
            results.append((among[0].number, among[-1].number + 1))
    return results
