"""Compact a context: merge its small segments, frames and filters into full ones, as a new generation."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
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

    Segments below half of `segment_bytes`, with frames below half of `frame_bytes` (by default the context's), or with
    half a segment of dead bytes are stored again if that makes fewer segments, halves the number of frames, or frees
    half a segment. Frames without a search filter get one, and small filters are joined, unless `filters` is false.
    Text outside the context stays, without filters if it may not be read (`allow`, as for `Monocontext.open`). Returns
    the newest root if nothing is to do. `progress` is called with the bytes of text read so far. Raises `NotFound`.

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
    """The root of the text in full segments; the same root if there is nothing to store again."""
    stretches: list[Stretch] = []
    new = Written()
    for frames in ranges_to_rewrite(text.frames(0, text.root.frames), layout, dead_bytes(text)):
        sources = tuple((frame.object, frame.offset) for frame in frames)
        write = partial(write_segments, store, text.texts(frames), layout)
        written = store.once(sources, write, repeatable=True)
        stretches.append(Stretch(frames[0].number, frames[-1].number + 1, len(written.records)))
        new.extend(written)
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
    needs_joining = len(small) > 1 or any(ref.frames < ref.width for ref in small)  # `width` counts unused columns too
    if needs_joining and sum(ref.frames for ref in small) <= GROUP_FRAMES and can_join(small):
        large = [ref for ref in root.filters if ref not in small]
        root = replace(root, filters=(*large, join(small, text.get, text.store.put)))
    return root


def ranges_to_rewrite(frames: Iterable[Frame], layout: SegmentLayout, dead: Mapping[str, int]) -> Iterator[list[Frame]]:
    """Yield ranges of frames to store in new segments, which are fewer, have at most half as many frames, or free half
    a segment of dead bytes. `dead`: the number of dead bytes by segment."""

    def is_good(segment: list[Frame]) -> bool:
        """Whether a segment is outside the context, or half full, with half full frames and few dead bytes."""
        name, stored_bytes = segment[0].object, sum(frame.stored_bytes for frame in segment)
        is_full = 2 * stored_bytes >= layout.segment_bytes and 2 * dead.get(name, 0) < layout.segment_bytes
        has_full_frames = 2 * sum(frame.bytes for frame in segment) >= len(segment) * layout.frame_bytes
        return "://" in name or (is_full and has_full_frames)

    for stays, segments in groupby(neighbours(frames, sys.maxsize), key=is_good):
        if stays:
            continue
        old_segments = list(segments)
        stored_again = [frame for segment in old_segments for frame in segment]
        new_segments = ceil(sum(frame.stored_bytes for frame in stored_again) / layout.segment_bytes)
        new_frames = ceil(sum(frame.bytes for frame in stored_again) / layout.frame_bytes)
        freed_bytes = sum(dead.get(name, 0) for name in {frame.object for frame in stored_again})
        has_fewer = new_segments < len(old_segments) or 2 * new_frames <= len(stored_again)
        if has_fewer or 2 * freed_bytes >= layout.segment_bytes:
            yield stored_again
