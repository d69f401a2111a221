"""Append a text to a context. Short texts are merged as they accumulate; a byte is stored again at most six times.

An append stores a piece: an object with some frames. Sizes of pieces form tiers, each `TIER_FACTOR` times the one
before. If the last `TIER_FACTOR` pieces are in the tier of the newest or below, they are merged. Pieces as long as
`FULL_FRAMES` full frames together become a full piece, which is never merged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, groupby

from monocontext.format import inline
from monocontext.format.codec import encode
from monocontext.format.filters.joining import FrameChange, append_filters, apply_changes
from monocontext.format.index import Frame
from monocontext.format.inline import Gathered, copies_for
from monocontext.format.manifest import Manifest
from monocontext.records import replace
from monocontext.writing.documents import join_documents
from monocontext.writing.segments import SegmentLayout, Segments, Written, cut_frames
from monocontext.writing.splice import Stretch, add_filter, find_gaps, has_all_records, splice, wants_filters
from monocontext.writing.stored_text import StoredText

FULL_FRAMES = 16  # a piece with as much text as so many full frames (4 MiB) is full
TIER_FACTOR = 4  # pieces of one tier that are merged into a piece of the next
_LOWEST_TIER_DIVISOR = 256  # pieces of up to one 256th of a frame (1 KiB) are in the lowest tier
_HISTORY_BYTES = 400  # the most bytes that the commit adds to a root, as its history
ROOT_BYTES = 8 << 10  # above this size, without its documents, a root after a short append gets shorter copies of text


def full_piece_bytes(layout: SegmentLayout) -> int:
    """The least text, in bytes, that is stored on its own, as a full piece."""
    return FULL_FRAMES * layout.frame_bytes


def append_written(text: StoredText, new: Written) -> Manifest:
    """The root of `text` followed by a new text and its documents. A short text is stored now, others are already."""
    root = _append_stored(text, new) if new.text is None else _append_short(text, new.text, new.layout)
    return replace(root, documents=join_documents(text.store, text.root, new.documents))


def _append_stored(text: StoredText, new: Written) -> Manifest:
    """The root of `text` followed by the frames of `new`."""
    base, layout = text.root, new.layout
    stretch = Stretch(base.frames, base.frames, len(new.records))
    sources = tuple(dict.fromkeys([*base.sources, *new.sources]))
    root = splice(text, [stretch], new, sources=sources, frame_bytes=layout.frame_bytes, codec=layout.codec)
    if layout.filters and new.records and wants_filters(root):
        renumbered = apply_changes(new.filters, [FrameChange(stale=0, first=0, stop=0, grown=base.frames)])
        root = replace(root, filters=append_filters(root.filters, renumbered, text.get, text.store.put))
        root = _add_last_filter(text, root, base.frames)
    root = replace(root, **copies_for(base if base.frames else None, new.gathered, may_be_whole=has_all_records(root)))
    return _shrink_copies(root) if base.frames else root


def _append_short(text: StoredText, new: bytes, layout: SegmentLayout) -> Manifest:
    """The root of `text` followed by a short text, merged with the last pieces (1 PUT, and 1 GET per 8 MiB of them)."""
    base = text.root
    first, is_full = _first_merged(text, len(new), layout)
    old = b"".join(text.texts(text.frames(first, base.frames)))
    segments, stored = Segments(text.store.put, layout), b""
    for frame in cut_frames([old + new], layout.frame_bytes):
        data, record = encode(frame, layout.codec)
        segments.add(data, record)
        stored += data
    written = segments.finish()
    stretch = Stretch(first, base.frames, len(written.records))
    root = splice(text, [stretch], written, frame_bytes=layout.frame_bytes, codec=layout.codec)
    if is_full and layout.filters:
        root = _add_last_filter(text, root, first)
    old_is_copied = base.frames == 0 or base.text != ""  # the root of the old text has a copy of all of it
    if old_is_copied and has_all_records(root) and root.stored_bytes <= inline.MOST_GROWN_BYTES:
        kept_bytes = root.stored_bytes - len(stored)
        return replace(root, **inline.whole_copy(inline.text_in(base)[:kept_bytes] + stored))
    gathered = Gathered(stored=None)
    if new:
        gathered.add(new, b"")
    return _shrink_copies(replace(root, **copies_for(base, gathered, may_be_whole=False)))


def _first_merged(text: StoredText, new_bytes: int, layout: SegmentLayout) -> tuple[int, bool]:
    """The number of the first frame to merge with a new text of `new_bytes`, which is the number of all frames if none
    is; and whether the merged text makes a full piece (at most 1 GET)."""
    pieces = _last_pieces(text, full_piece_bytes(layout))
    sizes = [sum(frame.bytes for frame in piece) for piece in pieces]
    is_full = sum(sizes) + new_bytes >= full_piece_bytes(layout)
    lowest_tier_bytes = max(layout.frame_bytes // _LOWEST_TIER_DIVISOR, 1)
    number = len(pieces) if is_full else pieces_to_merge(sizes, new_bytes, lowest_tier_bytes)
    return pieces[-number][0].number if number else text.root.frames, is_full


def _last_pieces(text: StoredText, most_bytes: int) -> list[list[Frame]]:
    """The last pieces of a text, in order, that have less than `most_bytes` of text together (at most 1 GET)."""
    pages = text.root.pages
    first = pages[-2].frames if len(pages) > 1 else 0
    frames = list(text.frames(first, text.root.frames))
    pieces: list[list[Frame]] = []
    size_bytes = 0
    for name, piece in groupby(reversed(frames), key=lambda frame: frame.object):
        frames_in_order = list(piece)[::-1]
        size_bytes += sum(frame.bytes for frame in frames_in_order)
        if size_bytes >= most_bytes or "://" in name:
            break
        pieces.insert(0, frames_in_order)
    return pieces


def _add_last_filter(text: StoredText, root: Manifest, first: int) -> Manifest:
    """The root with a filter for the frames from `first` on, and a few before it, that are in no filter yet."""
    earliest = max(first - 2 * FULL_FRAMES, 0)  # columns of earlier frames may be in directories, which are not read
    gaps = find_gaps(root.filters, root.frames)
    gaps = [range(max(gap.start, earliest), gap.stop) for gap in gaps if gap.stop >= first]
    return add_filter(text.after(root), gaps) if gaps and wants_filters(root) else root


def pieces_to_merge(sizes: Sequence[int], new_bytes: int, lowest_tier_bytes: int) -> int:
    """How many of the last pieces, whose `sizes` are in bytes, to merge with a piece of `new_bytes`.
    `pieces_to_merge([900, 1000, 800], 1000, 1024)` is 3, since all four are in the lowest tier."""
    kept = len(sizes)  # pieces before those to merge
    while True:
        tier, first = _tier(new_bytes, lowest_tier_bytes), kept
        while first and _tier(sizes[first - 1], lowest_tier_bytes) <= tier:
            first -= 1
        if kept - first + 1 < TIER_FACTOR:
            return len(sizes) - kept
        new_bytes += sum(sizes[first:kept])
        kept = first


def _tier(size_bytes: int, lowest_tier_bytes: int) -> int:
    """The tier of a piece: 0 up to `lowest_tier_bytes`, then one more for each factor of `TIER_FACTOR`."""
    return next(tier for tier in count() if size_bytes <= lowest_tier_bytes * TIER_FACTOR**tier)


def _shrink_copies(root: Manifest) -> Manifest:
    """The root with shorter copies, or with none, so that it has at most `ROOT_BYTES`. A copy of a whole text stays."""
    if root.text:
        return root
    # From the least loss to the greatest. An index page that is not in the root costs a reader one GET.
    for changes in ({}, inline.shorter_end_copies(root), {"head": "", "tail": ""}, {"last_page": None}):
        root = replace(root, **changes)
        if len(replace(root, documents=None).to_bytes()) + _HISTORY_BYTES <= ROOT_BYTES:
            break
    return root
