"""List the versions of a context, and make an earlier one the newest again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice

from monocontext.engine.fetch.threads import in_threads
from monocontext.engine.reader import Reader
from monocontext.errors import NotFound
from monocontext.format.document_refs import DocumentsRef, documents_key
from monocontext.format.generations import listed_generations, read_generation, read_newest
from monocontext.format.index import Frame
from monocontext.format.manifest import Manifest
from monocontext.format.refs import fresh_id
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores.protocol import Store
from monocontext.writing.commit import commit
from monocontext.writing.next_root import as_generation
from monocontext.writing.pages import as_runs, record_of, write_pages
from monocontext.writing.place import Place, open_store_at
from monocontext.writing.segments import SegmentLayout
from monocontext.writing.tail import Pieces
from monocontext.writing.upkeep.commit_rewrite import with_copies
from monocontext.writing.upkeep.rewrite import Rewrite, fill_filters, records

_REQUESTS = 8
"""The most GETs at once."""
_AT_ONCE_BYTES = 8 << 20
"""The longest range of frames in one GET."""


def list_versions(
    url: Place, *, newest: int | None = None, store_options: StoreOptions | None = None
) -> list[Manifest]:
    """The roots of all versions that `gc` has not removed, or of the last `newest`, the oldest first.

    Costs 1 LIST for each thousand versions, and 1 GET for each one. Raises `NotFound` if there is no context.
    """
    with open_store_at(url, store_options) as store:
        last = read_newest(store)
        if last is None:
            raise NotFound(f"{store.url}: no context there")
        numbers = sorted({*listed_generations(store), last.generation})[-newest if newest else 0 :]

        def read(number: int) -> Manifest | None:
            try:
                return last if number == last.generation else read_generation(store, number)
            except NotFound:  # `gc` has removed it since
                return None

        return [root for root in in_threads(read, numbers, _REQUESTS, "monocontext-versions") if root is not None]


def restore(
    url: Place,
    generation: int,
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Make the text of an earlier version, with its documents, the newest one, and return the root that was committed.

    The versions in between stay, so a restore can be undone. Frames that the newest version has too keep their objects.
    Others are stored again as they are, since `gc` may be about to remove their objects. Search filters that the newest
    version does not have are made again, which reads their text. `allow`: as for `Monocontext.open`.

    Cost: 1 GET for each index page of both versions, each page of documents, and 8 MiB of frames that are stored again;
    1 PUT for 16 MiB of these and for each page; some 6 requests for the commit. Raises `NotFound` if there is no such
    version, or no longer.
    """
    with open_store_at(url, store_options) as store:
        newest = read_newest(store)
        if newest is None:
            raise NotFound(f"{store.url}: no context there")
        try:
            wanted = read_generation(store, generation)
        except NotFound:
            raise NotFound(f"{store.url}: no version {generation}: `history` lists the versions") from None
        with closing(Rewrite(store, allow=allow, store_options=store_options)) as work:

            def build(base: Manifest | None, _: Store) -> Manifest:
                assert base is not None  # generations are never taken back
                return _restored(work, work.expand(base), work.expand(wanted))

            root = commit(store, build)
            assert root is not None
            return root


def _restored(work: Rewrite, base: Manifest, wanted: Manifest) -> Manifest:
    """The root that follows `base` and has the text of `wanted`."""
    store = work.store
    with work.text(base) as now, work.text(wanted) as then:
        shared = {frame.object for frame in records(now, 0, base.frames)}
        pieces = Pieces(store, SegmentLayout(wanted.frame_bytes, codec=wanted.codec))
        again = _store_again(store, then, shared, pieces)
        frames = [again.get(frame.number, frame) for frame in records(then, 0, wanted.frames)]
    pages, last_page = write_pages(work.put, (), *as_runs(frames))
    named = {part for ref in base.filters for part in ref.parts}
    kept = tuple(ref for ref in wanted.filters if named.issuperset(ref.parts))
    root = as_generation(
        wanted,
        base.generation + 1,
        pages=pages,
        last_page=last_page,
        filters=kept,
        documents=_copy_documents(store, wanted.documents),
        open_frames=0,
    )
    if len(kept) < len(wanted.filters):
        root = fill_filters(work, root)
    root = with_copies(work, root, wanted)
    root.check()
    return root


def _store_again(store: Store, text: Reader, shared: set[str], pieces: Pieces) -> dict[int, Frame]:
    """Store again the frames of a text whose objects are not `shared`. Returns them with new places, by number."""
    frames: list[Frame] = []
    for run in _runs(text, shared):
        start = run[0].offset
        data = store.get_range(run[0].object, start, run[-1].offset + run[-1].stored_bytes - start).data
        for frame in run:
            stored = data[frame.offset - start : frame.offset - start + frame.stored_bytes]
            pieces.add(bytes(stored), record_of(frame), frame.codec)
            frames.append(frame)
    pieces.finish()
    found: dict[int, Frame] = {}
    waiting = iter(frames)
    for piece in pieces.runs:
        offset = piece.offset
        for frame in islice(waiting, piece.frames):
            found[frame.number] = frame._replace(object=piece.object, offset=offset, etag=None)
            offset += frame.stored_bytes
    return found


def _runs(text: Reader, shared: set[str]) -> Iterator[list[Frame]]:
    """Yield the frames to store again, as runs of adjacent ones with about 8 MiB at most."""
    run: list[Frame] = []
    size = 0
    for frame in records(text, 0, text.manifest.frames):
        if frame.object in shared or "://" in frame.object:
            continue
        last = run[-1] if run else None
        follows = last and (last.object, last.offset + last.stored_bytes) == (frame.object, frame.offset)
        if last and (not follows or size >= _AT_ONCE_BYTES):
            yield run
            run, size = [], 0
        run.append(frame)
        size += frame.stored_bytes
    if run:
        yield run


def _copy_documents(store: Store, ref: DocumentsRef | None) -> DocumentsRef | None:
    """Copy pages of documents and tables of names to new objects (1 GET and 1 PUT each): `gc` may be about to remove
    the old ones."""
    if ref is None:
        return None

    def copy(id: str) -> str:
        new = fresh_id()
        store.put(documents_key(new), store.get(documents_key(id)).data)
        return new

    held = len(ref.pages) - 1 if ref.last_page is not None else len(ref.pages)
    pages = [replace(page, id=copy(page.id)) if at < held else page for at, page in enumerate(ref.pages)]
    names = [replace(table, id=copy(table.id)) for table in ref.names]
    return DocumentsRef(tuple(pages), ref.last_page, tuple(names), ref.doubled)
