"""Text into a context: segments, index pages, and a commit.

Segments and pages are named by content and written first; the commit is one conditional PUT (`generations.commit`). A
crash before it leaves the old generation, one after it the new; what was stored meanwhile is found again by its name.
"""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from monocontext.batches import write_batches
from monocontext.codec import decode
from monocontext.errors import AlreadyExists, ForeignObject, NotFound
from monocontext.generations import commit, newest
from monocontext.index import FRAMES_PER_PAGE, FrameRecord, Page, Run, encode_page, page_ref
from monocontext.manifest import INLINE_PAGE_BYTES, FilterRef, Manifest, PageRef
from monocontext.segments import FRAME_BYTES, SEGMENT_BYTES, Layout, Progress, Written, write_segments
from monocontext.sources import Reading, Source, read_pieces
from monocontext.store import Store
from monocontext.stores import open_store

Place = str | os.PathLike[str] | Store


def publish(
    sources: Source | Iterable[Source],
    url: Place,
    *,
    frame_bytes: int = FRAME_BYTES,
    segment_bytes: int = SEGMENT_BYTES,
    codec: str = "zstd",
    filters: bool = True,
    replace: bool = False,
    progress: Callable[[Progress], None] | None = None,
    store_options: dict[str, Any] | None = None,
    executor: Executor | None = None,
    **reading: Any,
) -> Manifest:
    """Store a text as a context at `url` and return the committed root.

    `sources` is a `str` (the text), or an iterable of `str` pieces, `bytes` pieces (encoded text, one stream) and paths
    (files; directories, each file under a header line). It is read once, in memory bounded by about 8 segments.
    `reading` takes `encoding`, `errors`, `header`, `include`, `exclude` and `note` (see `sources.Reading`).
    `filters`: write search filters too, some 3 to 12 % of the text; a text of fewer than 9 frames, or with frames below
    512 bytes, gets none. `executor`: any `concurrent.futures.Executor`, whose workers then encode and store batches of
    32 MiB of text; the text is still read, and the context committed, here.

    Raises `AlreadyExists` where a context is already, unless `replace` (earlier generations stay readable), and
    `InvalidText` for what is not text. Cost: 1 PUT a segment and a page, 2 for the commit, about 6 requests to look;
    segments that an earlier, killed run left are found again and not sent.
    """
    layout = Layout(frame_bytes, segment_bytes, codec, filters)
    pieces = read_pieces(sources, Reading(**reading))
    with opened(url, store_options) as store:

        def write() -> Written:
            if executor is None:
                return write_segments(store, pieces, layout, progress)
            return write_batches(portable(url), store_options or {}, pieces, layout, executor, progress)

        return publish_written(store, write, layout, replace)


def publish_written(store: Store, write: Callable[[], Written], layout: Layout, replace: bool) -> Manifest:
    """Commit what `write` stores as the whole text of a context that is new, or whose text is to be replaced."""
    before = newest(store)
    if before is not None and not replace:
        raise AlreadyExists(
            f"{store.url} already holds a context (generation {before.generation}, {before.characters:,} characters): "
            f"add to it with `append`, or replace its text (`--replace`, replace=True)"
        )
    written = write()

    def root(base: Manifest | None) -> Manifest:
        if base is not None and not replace:
            raise AlreadyExists(f"{store.url}: another writer has just published generation {base.generation} there")
        return _grown(store, base, (), written, layout)

    return commit(store, newest(store), root)  # `before` may be old by now, and its successor collected


def append(
    sources: Source | Iterable[Source],
    url: Place,
    *,
    frame_bytes: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    codec: str | None = None,
    filters: bool = True,
    progress: Callable[[Progress], None] | None = None,
    store_options: dict[str, Any] | None = None,
    executor: Executor | None = None,
    **reading: Any,
) -> Manifest:
    """Add text at the end of the context at `url`: a new generation, nothing rewritten but the short tail page.

    Parameters as for `publish`; frame size and codec are those of the context unless given. Two appenders at once both
    succeed, and their texts follow each other in the order of their commits. Raises `NotFound` where no context is.
    """
    pieces = read_pieces(sources, Reading(**reading))
    with opened(url, store_options) as store:
        before = newest(store)
        if before is None:
            raise NotFound(f"{store.url}: no context to append to: `upload` makes one")
        layout = Layout(frame_bytes or before.frame_bytes, segment_bytes, codec or before.codec, filters)
        if executor is None:
            written = write_segments(store, pieces, layout, progress, before.frames)
        else:
            options = store_options or {}
            written = write_batches(portable(url), options, pieces, layout, executor, progress, before.frames)
        if not written.records:
            return before

        def root(base: Manifest | None) -> Manifest:
            assert base is not None  # generations are never taken back
            return _grown(store, base, base.pages, written, layout)

        return commit(store, newest(store), root)  # `before` may be old by now, and its successor collected


def _grown(
    store: Store, base: Manifest | None, kept: tuple[PageRef, ...], written: Written, layout: Layout
) -> Manifest:
    """The root that follows `base`, with the pages `kept` and the frames `written` after them; stores its new pages."""
    keeps_text = bool(kept)
    runs, records = list(written.runs), list(written.records)
    stored_bytes = sum(record.stored_bytes for record in records) + (base.stored_bytes if base and keeps_text else 0)
    if records and kept and _frames_of(kept, -1) < FRAMES_PER_PAGE:
        tail = load_page(store, kept, len(kept) - 1)
        runs, records, kept = [*tail.runs, *runs], [*tail.records(), *records], kept[:-1]
    pages, last_page = write_pages(store.put, kept, runs, records)
    if base and keeps_text and not records:
        last_page = base.last_page
    before = base if base and keeps_text else None
    sources = dict.fromkeys([*(before.sources if before else ()), *written.sources])
    root = Manifest(
        generation=base.generation + 1 if base else 1,
        write_id=uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        pages=pages,
        final_newline=written.final_newline if written.records else bool(base and keeps_text and base.final_newline),
        stored_bytes=stored_bytes,
        frame_bytes=layout.frame_bytes,
        codec=layout.codec,
        last_page=last_page,
        sources=tuple(sources),
        filters=_filters(store, before, written),
    )
    root.check()
    return root


def write_pages(
    put: Callable[[str, bytes], object], kept: tuple[PageRef, ...], runs: list[Run], records: list[FrameRecord]
) -> tuple[tuple[PageRef, ...], bytes | None]:
    """Store pages of the frames that follow those of `kept` (1 PUT each).

    Returns the pages of the whole text, and a copy of the last one where it is new and small enough for the root.
    """
    pages = list(kept)
    last_page = None
    for page_runs, page_records in _paged(runs, records):
        data = encode_page(page_runs, page_records)
        ref = page_ref(data, page_records, pages[-1] if pages else None)
        put(ref.key, data)
        pages.append(ref)
        last_page = data if len(data) <= INLINE_PAGE_BYTES else None
    return tuple(pages), last_page


def _filters(store: Store, before: Manifest | None, written: Written) -> tuple[FilterRef, ...]:
    """Those of the text before, and of what was written after it; stores the latter."""
    if written.columns is None:
        return before.filters if before else ()
    return written.columns.store(
        store.put, lambda key: store.get(key).data, before, lambda: _backwards(store, before.pages if before else ())
    )


def _backwards(store: Store, pages: tuple[PageRef, ...]) -> Iterator[bytes]:
    """The frames of a text, decoded, from its end (1 GET each). Raises `ForeignObject` for virtual ones."""
    for number in range(len(pages) - 1, -1, -1):
        page = load_page(store, pages, number)
        for i in range(len(page) - 1, -1, -1):
            frame = page[i]
            if "://" in frame.object:
                raise ForeignObject(f"{frame.object} lies outside the context")
            yield decode(store.get_range(frame.object, frame.offset, frame.stored_bytes).data, frame)


def _frames_of(pages: tuple[PageRef, ...], number: int) -> int:
    number %= len(pages)
    return pages[number].frames - (pages[number - 1].frames if number else 0)


def load_page(store: Store, pages: tuple[PageRef, ...], number: int) -> Page:
    """One index page, checked (1 GET)."""
    return Page(store.get(pages[number].key).data, pages[number], pages[number - 1] if number else None)


def _paged(runs: list[Run], records: list[FrameRecord]) -> Iterator[tuple[list[Run], list[FrameRecord]]]:
    """Cut runs and records into pages, splitting a run that reaches over a page's end."""
    queue = list(reversed(runs))
    for start in range(0, len(records), FRAMES_PER_PAGE):
        page = records[start : start + FRAMES_PER_PAGE]
        page_runs: list[Run] = []
        filled = 0
        while filled < len(page):
            run = queue.pop()
            taken = min(run.frames, len(page) - filled)
            page_runs.append(dataclasses.replace(run, frames=taken))
            if taken < run.frames:
                used = sum(record.stored_bytes for record in page[filled : filled + taken])
                queue.append(dataclasses.replace(run, offset=run.offset + used, frames=run.frames - taken))
            filled += taken
        yield page_runs, page


def portable(url: Place) -> str | Store:
    """What a worker elsewhere can open."""
    if not isinstance(url, str | os.PathLike):
        return url
    place = os.fspath(url)
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))


@contextmanager
def opened(url: Place, options: dict[str, Any] | None = None) -> Iterator[Store]:
    """The store at a URL for the length of one call; a store that is handed in stays open."""
    if not isinstance(url, str | os.PathLike):
        yield url
        return
    store = open_store(url, **(options or {}))
    try:
        yield store
    finally:
        store.close()
