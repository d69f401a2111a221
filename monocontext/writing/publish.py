"""Publish a text as a context, or append to one: store segments and index pages, then commit.

Segments and pages are stored first, under names that no object had before. The commit is one conditional PUT
(`generations.commit`): a crash before it leaves the old generation, a crash after it the new one. A later run of the
same upload reuses the segments of a killed one (`reuse`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Unpack

from monocontext import records
from monocontext.errors import AlreadyExists, NotFound
from monocontext.format.generations import fence_seconds, read_newest
from monocontext.format.index import FRAMES_PER_PAGE, OF_TEXT, flags_of_text
from monocontext.format.inline import copies
from monocontext.format.manifest import History, Manifest
from monocontext.format.refs import FilterRef, PageRef
from monocontext.options import StoreOptions, check_seconds, validate_options
from monocontext.stores.protocol import Store
from monocontext.writing import expire_generations, tail
from monocontext.writing.batches import write_batches
from monocontext.writing.commit import check_fence, commit
from monocontext.writing.documents import DocumentRows, documents
from monocontext.writing.file_parts import can_read_apart, write_parts
from monocontext.writing.input_options import InputOptions, ReadingOptions
from monocontext.writing.inputs import Source, read_pieces
from monocontext.writing.joined_documents import join_documents
from monocontext.writing.pages import frames_backwards, frames_in_page, load_page, write_pages
from monocontext.writing.place import Place, check_order, open_store_at, portable_place
from monocontext.writing.reuse import ReusableSegments
from monocontext.writing.segments import FRAME_BYTES, SEGMENT_BYTES, Progress, SegmentLayout, Written, write_segments


@validate_options(ReadingOptions)
def publish(
    sources: Source | Iterable[Source] | Mapping[str, str],
    url: Place,
    *,
    frame_bytes: int = FRAME_BYTES,
    segment_bytes: int = SEGMENT_BYTES,
    codec: str = "zstd",
    filters: bool = True,
    replace: bool = False,
    progress: Callable[[Progress], None] | None = None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
    **reading: Unpack[ReadingOptions],
) -> Manifest:
    """Store a text as a context at `url` and return the committed root.

    `sources` is a `str` (the text), or an iterable of `str` pieces, `bytes` pieces (encoded text, one stream) and paths
    (files; directories, each file under a header line), or documents: a mapping of name to text, or `documents(...)`.
    Each file is a document too. Sources are read once, in memory bounded by about 8 segments and 50 bytes a document.
    `reading` takes `encoding`, `errors`, `header`, `include`, `exclude` and `note` (see `input_options.InputOptions`).
    `filters`: write search filters too, some 3 to 12 % of the text; a text of fewer than 9 frames, or with frames below
    512 bytes, gets none. `executor`: any `concurrent.futures.Executor`, whose workers then encode and store batches of
    32 MiB of text. Workers also read files in UTF-8, if they find them under the same paths; this process reads the
    rest.

    Raises `AlreadyExists` if there is a context already, unless `replace` (earlier generations stay readable), and
    `InvalidText` for a source that is not text. Cost: 1 PUT for each segment and page, 2 for the commit, and about 6
    other requests. Segments that an earlier, killed run stored are not stored again.
    """
    check_order(sources, url)
    layout, reads = SegmentLayout(frame_bytes, segment_bytes, codec, filters), InputOptions(**reading)
    with open_store_at(url, store_options) as store:

        def write(since_seconds: float) -> Written:
            ours = records.replace(layout, reuse_after_seconds=since_seconds)
            rows, place, options = DocumentRows(store), portable_place(url), store_options or {}
            pieces = read_pieces(_as_sources(sources), reads, rows)
            if executor is None:
                written = write_segments(store, pieces, ours, progress, counted=rows.set_newlines)
            elif can_read_apart(sources, reads):
                reusable = ReusableSegments(store, ours.reuse_after_seconds)
                written = write_parts(place, options, reusable, sources, reads, rows, ours, executor, progress)
            else:
                written = write_batches(place, options, pieces, ours, executor, progress)
            rows.finish()
            written.documents = rows
            return written

        return publish_written(store, write, layout, replace)


def publish_written(store: Store, write: Callable[[float], Written], layout: SegmentLayout, replace: bool) -> Manifest:
    """Call `write` to store frames, and commit them as the whole text of a context. Returns the committed root.

    `write` takes a time by the store's clock: segments stored up to then may not be reused. Raises `AlreadyExists` if
    there is a context, unless `replace`.
    """
    before = read_newest(store)
    if before is not None and not replace:
        raise AlreadyExists(
            f"{store.url} already holds a context ({before.characters:,} characters): "
            f"add to it with `append`, or replace its text (replace=True)"
        )
    written = write(fence_seconds(store, before))

    def root(base: Manifest | None, _: Store) -> Manifest:
        check_fence(store, before, base)
        if base is not None and not replace:
            raise AlreadyExists(
                f"{store.url}: another writer has just published generation {base.generation} there: start again"
            )
        return _with_documents(store, None, written.documents, _build_root(store, base, (), written, layout))

    return _some(commit(store, root))


@validate_options(ReadingOptions)
def append(
    sources: Source | Iterable[Source] | Mapping[str, str],
    url: Place,
    *,
    frame_bytes: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    codec: str | None = None,
    filters: bool = True,
    drop_older_than_seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
    **reading: Unpack[ReadingOptions],
) -> Manifest:
    """Add text at the end of the context at `url`, as a new generation.

    A text of fewer than 16 frames (4 MiB) is merged with short ones before it once these have become many
    (`merge_policy`): the work of each append is bounded, a root takes at most 8 KB, and each byte is stored again six
    times in all. Parameters as for `publish`; frame size and codec are those of the context unless given. Two appenders
    at once both succeed, and their texts follow each other in the order of their commits. Raises `NotFound` if there is
    no context.

    `drop_older_than_seconds`: with each 32nd append, remove up to 64 earlier generations whose successor is older than
    that, and the objects that only they name (`expire_generations`). By default they stay until `gc` removes them.

    Cost: 4 PUTs, 4 other requests, and a few GETs if short texts are merged; a longer text costs as much as with
    `publish`.
    """
    check_seconds("drop_older_than_seconds", drop_older_than_seconds)
    reads = InputOptions(**reading)
    with open_store_at(url, store_options) as store:
        before = read_newest(store)
        if before is None:
            raise NotFound(f"{store.url}: no context to append to: `upload` makes one")
        layout = SegmentLayout(frame_bytes or before.frame_bytes, segment_bytes, codec or before.codec, filters)
        rows = DocumentRows(store)
        pieces = read_pieces(_as_sources(sources), reads, rows)
        text = _read_up_to(pieces, tail.short_bytes(layout))
        if not text and not rows.count:
            rows.finish()
            return before
        if len(text) < tail.short_bytes(layout):
            rows.finish()
            floor = 0

            def grow(base: Manifest | None, _: Store) -> Manifest:
                nonlocal floor
                if rows.pages:  # stored before, so `gc` may have removed them; everything else is stored in `grow`
                    check_fence(store, before, base)
                root = _with_documents(store, base, rows, tail.grow(store, _some(base), text, layout))
                floor = _some(base).history.floor
                if drop_older_than_seconds is None:
                    return root
                return root.with_floor(expire_generations.next_floor(store, _some(base), drop_older_than_seconds))

            root = _some(commit(store, grow))
            expire_generations.clear(store, floor, root)
            if progress:
                progress(Progress(len(text), root.stored_bytes - before.stored_bytes, 1))
            return root
        return _append_long(url, store, chain([text], pieces), rows, layout, before, progress, store_options, executor)


def _append_long(
    url: Place,
    store: Store,
    pieces: Iterable[bytes],
    rows: DocumentRows,
    layout: SegmentLayout,
    before: Manifest,
    progress: Callable[[Progress], None] | None,
    store_options: StoreOptions | None,
    executor: Executor | None,
) -> Manifest:
    """Store a text of 16 frames or more while it is read, and commit it after texts that others append meanwhile."""
    first = before.frames
    layout = records.replace(layout, reuse_after_seconds=fence_seconds(store, before))
    if executor is None:
        written = write_segments(store, pieces, layout, progress, first, rows.set_newlines)
    else:
        options = store_options or {}
        written = write_batches(portable_place(url), options, pieces, layout, executor, progress, first)
    rows.finish()

    def root(base: Manifest | None, _: Store) -> Manifest:
        check_fence(store, before, base)
        closed = tail.close(store, _some(base), layout)
        new = _build_root(store, closed, closed.pages, written, layout)
        return _with_documents(store, base, rows, tail.fitted(new))

    return _some(commit(store, root))


def _read_up_to(pieces: Iterator[bytes], size: int) -> bytes:
    """Join the first pieces of a text, until they have `size` bytes or more."""
    text = bytearray()
    for piece in pieces:
        text += piece
        if len(text) >= size:
            break
    return bytes(text)


def _with_documents(store: Store, base: Manifest | None, rows: DocumentRows | None, root: Manifest) -> Manifest:
    """`root` with the documents of `base` and of the text after it (`join_documents`)."""
    return records.replace(root, documents=join_documents(store, base, rows))


def _some(base: Manifest | None) -> Manifest:
    assert base is not None  # a context keeps its newest generation
    return base


def _as_sources(sources: Any) -> Any:
    return documents(sources) if isinstance(sources, Mapping) else sources


def _build_root(
    store: Store, base: Manifest | None, kept: tuple[PageRef, ...], written: Written, layout: SegmentLayout
) -> Manifest:
    """Store the pages of the frames in `written`, which follow the pages `kept`, and return the root after `base`."""
    keeps_text = bool(kept)
    runs, records = list(written.runs), list(written.records)
    stored_bytes = sum(record.stored_bytes for record in records) + (base.stored_bytes if base and keeps_text else 0)
    if records and kept and frames_in_page(kept, -1) < FRAMES_PER_PAGE:
        short = load_page(store, kept, len(kept) - 1)
        runs, records, kept = [*short.runs, *runs], [*short.records(), *records], kept[:-1]
    pages, last_page = write_pages(store.put, kept, runs, records)
    if base and keeps_text and not records:
        last_page = base.last_page
    before = base if base and keeps_text else None
    copied = copies(before, written.gathered, may_be_whole=len(pages) == 1 and last_page is not None)
    sources = dict.fromkeys([*(before.sources if before else ()), *written.sources])
    write_id = uuid.uuid4().hex
    root = Manifest(
        generation=base.generation + 1 if base else 1,
        write_id=write_id,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        pages=pages,
        final_newline=written.final_newline if written.records else bool(base and keeps_text and base.final_newline),
        stored_bytes=stored_bytes,
        frame_bytes=layout.frame_bytes,
        codec=layout.codec,
        last_page=last_page,
        flags=flags_of_text(written.records, before.flags if before else OF_TEXT),
        text=copied.text,
        head=copied.head,
        tail=copied.tail,
        sources=tuple(sources),
        filters=_store_filters(store, before, written),
        history=History(before.history.lineage or write_id if before else write_id),
    )
    root.check()
    return root


def _store_filters(store: Store, before: Manifest | None, written: Written) -> tuple[FilterRef, ...]:
    """Store the filters of the new frames, and return all filters of the text."""
    if written.filters is not None:
        return written.filters
    if written.columns is None:
        return before.filters if before else ()
    pages = before.pages if before else ()
    return written.columns.store(
        store.put,
        lambda key: store.get(key).data,
        before,
        lambda: frames_backwards(store, pages, pages[-1].frames if pages else 0),
    )
