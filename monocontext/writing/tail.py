"""Append a short text: store it, merged with texts of about its length at the end of the context, with bounded work.

Each append stores a piece: one object with some frames. The frames of the last pieces are *open*: later appends may
store them again, merged into fewer pieces (`merge_policy`). Once they have as much text as `FULL_FRAMES` full frames,
they are closed: stored as one piece, which gets a search filter and stays. Each piece begins with random bytes, so no
object is stored twice, and it may be removed as soon as no root names it.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from monocontext.engine.fetch.threads import in_threads
from monocontext.errors import DamagedData, NotFound
from monocontext.format import inline
from monocontext.format.codec import decode, encode
from monocontext.format.filters.building import Columns
from monocontext.format.filters.joining import can_join, join
from monocontext.format.index import FRAMES_PER_PAGE, OF_TEXT, Frame, FrameRecord, FrameRun, Page, flags_of_text
from monocontext.format.inline import Copies, Gathered, copies
from monocontext.format.manifest import History, Manifest
from monocontext.format.refs import FilterRef, PageRef
from monocontext.records import replace
from monocontext.stores.protocol import Store
from monocontext.writing.merge_policy import merged
from monocontext.writing.pages import (
    add_pages,
    as_runs,
    frames_backwards,
    frames_in_page,
    load_page,
    record_of,
    write_pages,
)
from monocontext.writing.reuse import SALT_BYTES, segment_key
from monocontext.writing.segments import SegmentLayout, cut_frames

FULL_FRAMES = 16
"""Open frames are closed once they hold as much text as this many full frames, 4 MiB."""
PAGE_FRAMES = 48
"""A last page with more closed frames than this is closed too. With a copy of such a page, a root takes some 5 KB."""
ROOT_BYTES = 8 << 10
"""A root above this size has no copy of the last page."""
LEAST_SHARE = 256
"""Texts of up to this fraction of a frame, 1 KiB, count as equally small to `merge_policy`."""
JOINED_FRAMES = FRAMES_PER_PAGE
"""A filter of more than half as many frames is not joined with others: joining takes some 60 MB of memory then."""
_REQUESTS = 8
"""The most GETs at once."""


def short_bytes(layout: SegmentLayout) -> int:
    """The length in bytes below which a text counts as short."""
    return FULL_FRAMES * layout.frame_bytes


def grow(store: Store, base: Manifest, text: bytes, layout: SegmentLayout) -> Manifest:
    """Store a short text after that of `base`, and return the root to commit.

    Costs 1 PUT for the text and 1 for the last page, 1 GET for each piece that is merged (at most 3 a tier), and about
    once in 4 MiB of text the requests that close the open frames.
    """
    tail = _Tail(store, base, layout)
    size = tail.text_bytes + len(text)
    if size >= short_bytes(layout):
        return _close(tail, text)
    taken = merged(tail.sizes, len(text), max(layout.frame_bytes // LEAST_SHARE, 1))
    stays = len(tail.pieces) - taken
    runs, records = as_runs(frame for piece in tail.pieces[:stays] for frame in piece)
    new = _merge(tail, tail.pieces[stays:], text, None)
    runs, records = [*runs, *new.runs], [*records, *new.records]
    closed_runs, closed = as_runs(tail.closed)
    if len(closed) > PAGE_FRAMES:
        pages, last_page = write_pages(store.put, add_pages(store, tail.pages, closed_runs, closed), runs, records)
    else:
        pages, last_page = write_pages(store.put, tail.pages, [*closed_runs, *runs], [*closed, *records])
    return tail.root(pages, last_page, base.filters, len(records), new, tail.pieces[stays:], text)


def close(store: Store, base: Manifest, layout: SegmentLayout) -> Manifest:
    """Close the open frames of `base` (1 GET a piece). Returns a root of the same text, which is not committed."""
    if not base.open_frames:
        return base
    root = _close(_Tail(store, base, layout), b"")
    return replace(root, generation=base.generation, write_id=base.write_id)


def _close(tail: _Tail, text: bytes) -> Manifest:
    """Store all open frames and `text` as one closed piece, with a filter if the context has enough frames for one."""
    store, base, layout = tail.store, tail.base, tail.layout
    first = base.frames - base.open_frames
    columns = layout.columns(first)
    new = _merge(tail, tail.pieces, text, columns)
    runs, records = as_runs(tail.closed)
    runs, records = [*runs, *new.runs], [*records, *new.records]
    if len(records) > PAGE_FRAMES:
        pages, last_page = add_pages(store, tail.pages, runs, records), None
    else:
        pages, last_page = write_pages(store.put, tail.pages, runs, records)
    filters = base.filters
    if columns:
        columns.finish()
        filters = _filters(store, base, columns, first, pages)
    return tail.root(pages, last_page, filters, 0, new, tail.pieces, text)


def _merge(tail: _Tail, pieces: Sequence[Sequence[Frame]], text: bytes, columns: Columns | None) -> Pieces:
    """Store some pieces again, together with `text` after them. Adds the columns of the new frames to `columns`."""
    new = Pieces(tail.store, tail.layout, gathers=True)
    for data, stored, record in _repack(_fetch(tail.store, pieces), text, tail.layout):
        new.add(stored, record)
        if columns:
            columns.feed(data)
    new.finish()
    return new


def _filters(
    store: Store, base: Manifest, columns: Columns, first: int, pages: tuple[PageRef, ...]
) -> tuple[FilterRef, ...]:
    """Store the filter of the frames from `first` on, joined with earlier ones if these are many.

    Returns all filters of the text.
    """
    head = replace(base, pages=(PageRef("", 0, 0, first, 0, 0, 0),) if first else ())

    def get(key: str) -> bytes:
        return store.get(key).data

    refs = columns.store(store.put, get, head, lambda: frames_backwards(store, pages, first))
    near = 1
    while near < len(refs) and 2 * refs[-1 - near].frames < JOINED_FRAMES and can_join(refs[-1 - near], refs[-near]):
        near += 1
    sizes = [ref.frames for ref in refs[-near:]]
    taken = merged(sizes[:-1], sizes[-1], FULL_FRAMES) if sizes else 0
    if not taken:
        return refs
    try:
        return (*refs[: -1 - taken], join(refs[-1 - taken :], get, store.put))
    except (DamagedData, NotFound):
        return refs  # a lost filter prevents no write


class _Tail:
    """The end of a text that an append may change: its last index page and its open frames."""

    def __init__(self, store: Store, base: Manifest, layout: SegmentLayout):
        self.store, self.base, self.layout = store, base, layout
        pages = base.pages
        joins = bool(pages) and (base.open_frames > 0 or frames_in_page(pages, -1) <= PAGE_FRAMES)
        self.pages = pages[:-1] if joins else pages
        """Pages that stay."""
        frames = _last_frames(store, base) if joins else []
        opened = len(frames) - base.open_frames
        self.closed = frames[:opened]
        """Frames of the last page that stay as they are."""
        self.pieces = [list(piece) for _, piece in groupby(frames[opened:], key=lambda frame: frame.object)]
        self.sizes = [sum(frame.bytes for frame in piece) for piece in self.pieces]
        self.text_bytes = sum(self.sizes)

    def root(
        self,
        pages: tuple[PageRef, ...],
        last_page: bytes | None,
        filters: tuple[FilterRef, ...],
        open_frames: int,
        new: Pieces,
        taken: Sequence[Sequence[Frame]],
        text: bytes,
    ) -> Manifest:
        """The root to commit, in which `new` replaces the pieces `taken` and also has the text after them."""
        base, write_id = self.base, uuid.uuid4().hex
        copied = self._copies(last_page if len(pages) == 1 else None, bytes(new.stored), taken, text)
        replaced = [piece[0].object for piece in taken]
        if base.open_frames:
            replaced.append(base.pages[-1].key)
        root = replace(
            base,
            generation=base.generation + 1,
            write_id=write_id,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            pages=pages,
            last_page=last_page,
            filters=filters,
            open_frames=open_frames,
            final_newline=text.endswith(b"\n") if text else base.final_newline,
            flags=flags_of_text(new.records, base.flags if base.frames else OF_TEXT),
            text=copied.text,
            head=copied.head,
            tail=copied.tail,
            stored_bytes=base.stored_bytes
            + sum(record.stored_bytes for record in new.records)
            - sum(frame.stored_bytes for piece in taken for frame in piece),
            frame_bytes=self.layout.frame_bytes,
            codec=self.layout.codec,
            history=History(base.history.lineage or write_id, replaced=tuple(replaced)),
            extra={},
        )
        root.check()
        return fitted(root)

    def _copies(self, one_page: bytes | None, stored: bytes, taken: Sequence[Sequence[Frame]], text: bytes) -> Copies:
        """The copies of text in that root, with the same parameters."""
        base = self.base
        if one_page is not None and (base.text or not base.frames):
            kept = base.stored_bytes - sum(frame.stored_bytes for piece in taken for frame in piece)
            if kept + len(stored) <= inline.MOST_GROWN_BYTES:
                return inline.whole(inline.text_in(base)[:kept] + stored)
        added = Gathered(stored=None)
        if text:
            added.add(text, b"")
        return copies(base, added, may_be_whole=False)


def fitted(root: Manifest) -> Manifest:
    """Drop copies from a root until it takes at most `ROOT_BYTES`, documents not counted.

    First the copies of the ends of its text become short, then they go, then the copy of the last page goes. A root
    with a copy of its whole text stays as it is.
    """
    if root.text:
        return root
    ends = inline.shorter(root.head, root.tail)
    for less in ({}, {"head": ends.head, "tail": ends.tail}, {"head": "", "tail": ""}, {"last_page": None}):
        root = replace(root, **less)
        if len(replace(root, documents=None).to_bytes()) + 400 <= ROOT_BYTES:  # the commit adds its ancestors
            break
    return root


def _last_frames(store: Store, base: Manifest) -> list[Frame]:
    """The frames of the last page (1 GET, none if the root has a copy of the page)."""
    pages = base.pages
    before = pages[-2] if len(pages) > 1 else None
    page = Page(base.last_page, pages[-1], before) if base.last_page else load_page(store, pages, len(pages) - 1)
    return [page[i] for i in range(len(page))]


def _fetch(store: Store, pieces: Sequence[Sequence[Frame]]) -> list[tuple[Frame, bytes]]:
    """The frames of some pieces, each with its stored bytes (1 GET a piece)."""

    def get(piece: Sequence[Frame]) -> list[tuple[Frame, bytes]]:
        start = piece[0].offset
        size = piece[-1].offset + piece[-1].stored_bytes - start
        data = store.get_range(piece[0].object, start, size).data
        return [(one, data[one.offset - start : one.offset - start + one.stored_bytes]) for one in piece]

    if len(pieces) < 2:
        return [one for piece in pieces for one in get(piece)]
    return [one for piece in in_threads(get, pieces, _REQUESTS, "monocontext-tail") for one in piece]


def _repack(
    old: Sequence[tuple[Frame, bytes]], text: bytes, layout: SegmentLayout
) -> Iterator[tuple[bytes, bytes, FrameRecord]]:
    """Yield frames of the text of the old ones and, after it, `text`: text, stored form and record of each.

    Frames that are at least half full stay. Shorter ones are joined with their neighbours.
    """
    short: list[bytes] = []

    def cut() -> Iterator[tuple[bytes, bytes, FrameRecord]]:
        for data in cut_frames([b"".join(short)], layout.frame_bytes):
            yield (data, *encode(data, layout.codec))
        short.clear()

    for frame, stored in old:
        data = decode(stored, frame)
        if 2 * frame.bytes >= layout.frame_bytes and frame.codec == layout.codec:
            yield from cut()
            yield data, stored, record_of(frame)
        else:
            short.append(data)
    short.append(text)
    yield from cut()


class Pieces:
    """Stores frames in new objects, up to the size of a segment each (1 PUT). Each begins with random bytes."""

    def __init__(self, store: Store, layout: SegmentLayout, *, gathers: bool = False):
        self.runs: list[FrameRun] = []
        self.records: list[FrameRecord] = []
        self.stored = bytearray()
        """The stored form of all frames, one after the other, if `gathers`."""
        self._store, self._layout, self._gathers = store, layout, gathers
        self._codec = layout.codec
        self._parts: list[bytes] = []
        self._stored_bytes = 0

    def add(self, stored: bytes, record: FrameRecord, codec: str | None = None) -> None:
        """Add an encoded frame. `codec` is that of the layout unless given."""
        codec = codec or self._layout.codec
        if self._stored_bytes + len(stored) > self._layout.segment_bytes or codec != self._codec:
            self.finish()
        self._codec = codec
        self._parts.append(stored)
        if self._gathers:
            self.stored += stored
        self._stored_bytes += len(stored)
        self.records.append(record)

    def finish(self) -> None:
        """Store the frames that were added since the last object."""
        if self._parts:
            body = b"".join([os.urandom(SALT_BYTES), *self._parts])
            key = segment_key(hashlib.sha256(body).hexdigest())
            self._store.put(key, body)
            self.runs.append(FrameRun(key, SALT_BYTES, len(self._parts), self._codec))
            self._parts, self._stored_bytes = [], 0
