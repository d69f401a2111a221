"""Put a text after that of a context. A short one is stored together with short ones before it, with bounded work.

Each append stores a piece: an object with some frames. When the last `TIER_FACTOR` pieces are in the newest one's tier
of sizes or below, they become one. Pieces with the text of `FULL_FRAMES` full frames become one that stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, groupby

from monocontext.format import inline
from monocontext.format.codec import encode
from monocontext.format.filters.joining import Moved, added, moved
from monocontext.format.index import Frame
from monocontext.format.inline import Gathered, copies
from monocontext.format.manifest import Manifest
from monocontext.records import replace
from monocontext.writing.segments import SegmentLayout, Segments, Written, cut_frames
from monocontext.writing.splice import Stretch, covered, gaps, splice, wants_filters
from monocontext.writing.stored_text import StoredText

FULL_FRAMES = 16  # a piece with as much text as this many full frames, 4 MiB, is full
TIER_FACTOR = 4  # the pieces of one tier that become one of the next
LEAST_SHARE = 256  # texts of up to this fraction of a frame, 1 KiB, count as equally small
ROOT_BYTES = 8 << 10  # a root after a short append has no copies of text above this size, documents not counted


def short_bytes(layout: SegmentLayout) -> int:
    """The length in bytes below which a text counts as short."""
    return FULL_FRAMES * layout.frame_bytes


def appended(text: StoredText, new: Written) -> Manifest:
    """The root of a text with a new one after it, which is stored already unless it is short."""
    return _with_stored(text, new) if new.text is None else _with_short(text, new.text, new.layout)


def _with_stored(text: StoredText, new: Written) -> Manifest:
    base, layout = text.root, new.layout
    root = splice(
        text,
        [Stretch(base.frames, base.frames, len(new.records))],
        new,
        sources=tuple(dict.fromkeys([*base.sources, *new.sources])),
        frame_bytes=layout.frame_bytes,
        codec=layout.codec,
    )
    if layout.filters and new.records and wants_filters(root):
        added_to = moved(new.filters, [Moved(0, 0, 0, base.frames)])
        root = replace(root, filters=added(root.filters, added_to, text.get, text.store.put))
        root = _cover_end(text, root, base.frames)
    may_be_whole = len(root.pages) == 1 and root.last_page is not None
    root = replace(root, **copies(base if base.frames else None, new.gathered, may_be_whole=may_be_whole))
    return _fitted(root) if base.frames else root


def _with_short(text: StoredText, new: bytes, layout: SegmentLayout) -> Manifest:
    base = text.root
    first, is_full = _first_stored_again(text, len(new), layout)
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
        root = _cover_end(text, root, first)
    kept_bytes = root.stored_bytes - len(stored)
    is_whole = len(root.pages) == 1 and root.last_page is not None and (base.text or not base.frames)
    if is_whole and root.stored_bytes <= inline.MOST_GROWN_BYTES:
        return _fitted(replace(root, **inline.whole(inline.text_in(base)[:kept_bytes] + stored)))
    gathered = Gathered(stored=None)
    if new:
        gathered.add(new, b"")
    return _fitted(replace(root, **copies(base, gathered, may_be_whole=False)))


def _first_stored_again(text: StoredText, new_bytes: int, layout: SegmentLayout) -> tuple[int, bool]:
    """The first frame that becomes a piece with a text of so many bytes, and whether that piece is full."""
    pieces = _last_pieces(text, short_bytes(layout))
    sizes = [sum(frame.bytes for frame in piece) for piece in pieces]
    is_full = sum(sizes) + new_bytes >= short_bytes(layout)
    count_merged = len(pieces) if is_full else merged(sizes, new_bytes, max(layout.frame_bytes // LEAST_SHARE, 1))
    return pieces[-count_merged][0].number if count_merged else text.root.frames, is_full


def _last_pieces(text: StoredText, most_bytes: int) -> list[list[Frame]]:
    """The last pieces of a text that together are shorter than a full one, in order (at most 1 GET)."""
    pages = text.root.pages
    first = pages[-2].frames if len(pages) > 1 else 0
    frames = list(text.frames(first, text.root.frames))
    pieces: list[list[Frame]] = []
    size = 0
    for name, piece in groupby(reversed(frames), key=lambda frame: frame.object):
        result = list(piece)[::-1]
        size += sum(frame.bytes for frame in result)
        if size >= most_bytes or "://" in name:
            break
        pieces.insert(0, result)
    return pieces


def _cover_end(text: StoredText, root: Manifest, first: int) -> Manifest:
    """The root with a filter for the frames from about frame `first` on that have none."""
    least = max(first - 2 * FULL_FRAMES, 0)  # columns before may be in directories, which are not read
    missing = [(max(start, least), stop) for start, stop in gaps(root.filters, root.frames) if stop >= first]
    return covered(text.after(root), missing) if missing and wants_filters(root) else root


def merged(sizes: Sequence[int], new: int, least: int) -> int:
    """How many of the last pieces, of `sizes`, to merge with one of size `new`. Sizes up to `least` count as equal."""
    kept = len(sizes)  # the pieces before those to merge
    while True:
        tier, first = _tier(new, least), kept
        while first and _tier(sizes[first - 1], least) <= tier:
            first -= 1
        if kept - first + 1 < TIER_FACTOR:
            return len(sizes) - kept
        new += sum(sizes[first:kept])
        kept = first


def _tier(size: int, least: int) -> int:
    """The tier of a size: 0 up to `least`, then one more for each factor of `TIER_FACTOR`."""
    return next(tier for tier in count() if size <= least * TIER_FACTOR**tier)


def _fitted(root: Manifest) -> Manifest:
    """Shorten, then drop copies in a root until it takes `ROOT_BYTES`, unless it has a copy of its whole text."""
    if root.text:
        return root
    for less in ({}, inline.shorter(root), {"head": "", "tail": ""}, {"last_page": None}):
        root = replace(root, **less)
        if len(replace(root, documents=None).to_bytes()) + 400 <= ROOT_BYTES:  # the commit adds its ancestors
            break
    return root
