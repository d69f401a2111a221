"""A context of any size, made of one repeated frame and a few planted ones, in a few megabytes of memory."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from monocontext.format import inline
from monocontext.format.codec import describe
from monocontext.format.directories import Directory, use_directories
from monocontext.format.document_refs import DocumentsRef
from monocontext.format.index import FRAMES_PER_PAGE, FrameRecord, FrameRun, encode_page, flags_of_text, page_ref
from monocontext.format.manifest import ROOT_KEY, Manifest, generation_key
from monocontext.format.refs import PageRef
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing.stores import VirtualStore
from monocontext.testing.virtual_filters import virtual_filters
from monocontext.writing.document_table import join_documents
from monocontext.writing.documents import DocumentRows
from monocontext.writing.pages import moved_page
from monocontext.writing.segments import segment_key

FRAMES_PER_SEGMENT = 64


def virtual_context(
    frames: int,
    filler: str,
    planted: Mapping[int, str] | None = None,
    *,
    filters: bool = False,
    distinct: bool = False,
    documents: bool = False,
) -> VirtualStore:
    """Make a store with a context of `frames` frames. The text of each is `filler`, or that of `planted` by its number.

    Frames are stored raw. 16 million of them (4 TiB at 256 KiB) take seconds and some megabytes; 400 million (100 TB)
    take about ten seconds and 300 MB.

    - `filters`: add the search filters that `publish` would write
    - `distinct`: store each segment as a separate object, as in a real text; a terabyte takes about 200 MB. By default
      equal segments are one object, so a request for one is a request for all
    - `documents`: make each frame a document, with names such as `frame 17`; each takes some microseconds and 100 bytes
    """
    plants = {number: text.encode() for number, text in (planted or {}).items()}
    if not filler or frames < 1 or not all(plants.values()) or any(not 0 <= n < frames for n in plants):
        raise ValueError("frames must be at least 1, no text may be empty, and planted must name frames below frames")
    plain = filler.encode()
    record = describe(plain, plain)
    special = {number: describe(data, data) for number, data in plants.items()}
    objects: dict[str, tuple[int, Callable[[int, int], bytes]]] = {}
    pages: list[PageRef] = []
    repeated: dict[int, PageRef] = {}
    for first in range(0, frames, FRAMES_PER_PAGE):
        size = min(FRAMES_PER_PAGE, frames - first)
        here = {n - first: special[n] for n in special if first <= n < first + size}
        own = None if here or distinct else repeated.get(size)
        if own is None:
            records = [here.get(i, record) for i in range(size)]
            data = encode_page(_runs(first, size, plain, plants, objects, distinct), records)
            own = page_ref(data, records, None)
            objects[own.key] = _bytes(data)
            if not here and not distinct:
                repeated[size] = own
        pages.append(moved_page(own, None, pages[-1] if pages else None))
    copies = inline.ends(plants.get(0, plain), plants.get(frames - 1, plain))
    manifest = Manifest(
        generation=1,
        write_id="virtual",
        created="2026-01-01T00:00:00+00:00",
        pages=tuple(pages),
        final_newline=plants.get(frames - 1, plain).endswith(b"\n"),
        stored_bytes=pages[-1].bytes,
        codec="raw",
        flags=flags_of_text([record, *special.values()]),
        head=copies["head"],
        tail=copies["tail"],
        filters=virtual_filters(frames, plain, plants, objects) if filters else (),
        documents=_one_each(frames, record, special, objects) if documents else None,
    )

    def put(key: str, data: bytes) -> None:
        objects[key] = _bytes(data)

    def get(ref: Directory) -> bytes:
        size, read = objects[ref.key]
        return read(0, size)

    root = use_directories(manifest, put, get).to_bytes()
    for key in (ROOT_KEY, generation_key(1)):
        put(key, root)
    return VirtualStore(objects)


def _bytes(data: bytes) -> tuple[int, Callable[[int, int], bytes]]:
    return len(data), lambda start, stop: data[start:stop]


def _runs(
    first: int,
    size: int,
    plain: bytes,
    planted: Mapping[int, bytes],
    objects: dict[str, tuple[int, Callable[[int, int], bytes]]],
    distinct: bool,
) -> list[FrameRun]:
    """The runs of one page. Adds their segments to `objects`."""
    runs, digest = [], hashlib.sha256(plain).digest()
    for start in range(first, first + size, FRAMES_PER_SEGMENT):
        count = min(FRAMES_PER_SEGMENT, first + size - start)
        pieces = {n - start: planted[n] for n in planted if start <= n < start + count}
        content = (start if distinct else count, count, digest, sorted(pieces.items()))
        name = hashlib.sha256(repr(content).encode()).hexdigest()
        if (key := segment_key(name)) not in objects:
            body = _SegmentBytes([pieces.get(i, plain) for i in range(count)])
            objects[key] = (body.size, body)
        runs.append(FrameRun(key, 0, count, "raw"))
    return runs


def _one_each(
    frames: int, record: FrameRecord, special: Mapping[int, FrameRecord], objects: dict[str, Any]
) -> DocumentsRef | None:
    """A document for each frame. Adds their pages and tables of names to `objects`."""
    store = MemoryStore(f"virtual-{uuid.uuid4().hex}")
    try:
        rows = DocumentRows(store)
        for number in range(frames):
            item = special.get(number, record)
            rows.begin(f"frame {number}")
            rows.add_counts(item.characters, item.bytes, item.newlines)
            rows.end_document()
        rows.close()
        ref = join_documents(store, None, rows)
        for info in store.list():
            data = store.get(info.key).data
            objects[info.key] = (len(data), lambda start, stop, data=data: data[start:stop])
        return ref
    finally:
        forget(store.url.removeprefix("memory://"))


class _SegmentBytes:
    """The bytes of a segment, which are joined only when they are read."""

    def __init__(self, pieces: list[bytes]):
        self._pieces = pieces
        self.size = sum(map(len, pieces))

    def __call__(self, start: int, stop: int) -> bytes:
        taken, offset = [], 0
        for piece in self._pieces:
            if offset + len(piece) > start and offset < stop:
                taken.append(piece[max(start - offset, 0) : stop - offset])
            offset += len(piece)
        return b"".join(taken)
