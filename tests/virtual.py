"""A context of any size of one repeated frame and a few planted ones; its filters are computed when they are read."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import google_crc32c

from monocontext.errors import AccessDenied
from monocontext.format import inline
from monocontext.format.codec import describe
from monocontext.format.directories import use_directories
from monocontext.format.filters.building import GROUP_FRAMES, OVERLAP_BYTES, fold_head
from monocontext.format.filters.grams import TABLES, height, shrink_rows
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.index import FRAMES_PER_PAGE, FrameRecord, FrameRun, encode_page, flags_of_text, page_ref
from monocontext.format.manifest import ROOT_KEY, Manifest, generation_key
from monocontext.format.refs import FILTER_KIND, GRAM_BYTES, DocumentsRef, FilterRef, FilterRun, PageRef
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import (
    Blob,
    ObjectInfo,
    Store,
    StoreBase,
    check_key,
    check_part,
    check_range,
    check_size,
    not_found_error,
)
from monocontext.writing.documents import DocumentRows, join_documents
from monocontext.writing.pages import moved_page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FRAMES_PER_SEGMENT = 64
_BITS = 16

Objects = dict[str, tuple[int, Callable[[int, int], bytes]]]
"""The size of each object, and the function that returns its bytes [start, stop)."""


class VirtualStore(StoreBase):
    """A read-only store of objects of any size, whose bytes are computed when they are read."""

    is_near = True
    """Round trips cost nothing."""

    def __init__(self, objects: Objects) -> None:
        self._objects = dict(objects)
        self.url = "virtual://"
        """No store can be opened at this URL: the objects exist in this process only."""

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        size_bytes = self.head(key).size_bytes
        check_size(f"{self.url}/{key}", most_bytes, size_bytes)
        return self.get_range(key, 0, size_bytes)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        check_range(start, length)
        info, url = self.head(key), f"{self.url}/{key}"
        check_part(url, etag, info.etag, start, length, info.size_bytes)
        data = self._objects[key][1](start, start + length) if length else b""
        if len(data) != length:
            raise AssertionError(f"the function of {url} returned {len(data)} bytes for [{start}, {start + length})")
        return Blob(data, info.etag, info.size_bytes)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> NoReturn:
        raise AccessDenied(f"{self.url}/{key} is computed and cannot be written")

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return (self.head(key) for key in sorted(self._objects) if key.startswith(prefix))

    def head(self, key: str) -> ObjectInfo:
        if check_key(key) not in self._objects:
            raise not_found_error(f"{self.url}/{key}")
        size_bytes = self._objects[key][0]
        return ObjectInfo(key, size_bytes, f"virtual-{size_bytes}")

    def delete(self, key: str, *, if_match: str | None = None) -> NoReturn:
        raise AccessDenied(f"{self.url}/{key} is computed and cannot be deleted")

    def close(self) -> None:
        """There are no connections."""


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

    - `distinct`: store each segment as a separate object, as in a real text; by default equal segments are one
    - `documents`: make each frame a document, named `frame 17`
    """
    plants = {number: text.encode() for number, text in (planted or {}).items()}
    plain = filler.encode()
    record = describe(plain, plain)
    special = {number: describe(data, data) for number, data in plants.items()}
    objects: Objects = {}
    pages: list[PageRef] = []
    repeated: dict[int, PageRef] = {}
    store = MemoryStore(name := uuid.uuid4().hex)
    forget(name)  # the store keeps its objects
    for first in range(0, frames, FRAMES_PER_PAGE):
        size = min(FRAMES_PER_PAGE, frames - first)
        here = {n - first: special[n] for n in special if first <= n < first + size}
        own = None if here or distinct else repeated.get(size)
        if own is None:
            records = [here.get(i, record) for i in range(size)]
            data = encode_page(_runs(first, size, plain, plants, objects, distinct), records)
            own = page_ref(data, records, None)
            store.put(own.key, data)
            if not here and not distinct:
                repeated[size] = own
        pages.append(moved_page(own, None, pages[-1] if pages else None))
    copies = inline.end_copies(plants.get(0, plain), plants.get(frames - 1, plain))
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
        filters=_filters(frames, plain, plants, objects) if filters else (),
        documents=_one_each(store, [special.get(n, record) for n in range(frames)]) if documents else None,
    )
    root = use_directories(manifest, store.put, lambda ref: store.get(ref.key).data).to_bytes()
    for key in (ROOT_KEY, generation_key(1)):
        store.put(key, root)
    for info in store.list():
        objects[info.key] = info.size_bytes, partial(_joined, [store.get(info.key).data])
    return VirtualStore(objects)


def _runs(
    first: int, size: int, plain: bytes, planted: Mapping[int, bytes], objects: Objects, distinct: bool
) -> list[FrameRun]:
    """The runs of one page. Adds their segments to `objects`."""
    runs, digest = [], hashlib.sha256(plain).digest()
    for start in range(first, first + size, FRAMES_PER_SEGMENT):
        count = min(FRAMES_PER_SEGMENT, first + size - start)
        pieces = {n - start: planted[n] for n in planted if start <= n < start + count}
        content = (start if distinct else count, count, digest, sorted(pieces.items()))
        if (key := f"segments/{hashlib.sha256(repr(content).encode()).hexdigest()[:32]}.seg") not in objects:
            body = [pieces.get(i, plain) for i in range(count)]
            objects[key] = sum(map(len, body)), partial(_joined, body)
        runs.append(FrameRun(key, 0, count, "raw"))
    return runs


def _joined(pieces: list[bytes], start: int, stop: int) -> bytes:
    """The bytes [start, stop) of pieces one after another."""
    taken, offset = [], 0
    for piece in pieces:
        if offset + len(piece) > start and offset < stop:
            taken.append(piece[max(start - offset, 0) : stop - offset])
        offset += len(piece)
    return b"".join(taken)


def _one_each(store: Store, frames: Sequence[FrameRecord]) -> DocumentsRef | None:
    """A document for each frame. Stores their pages and tables of names."""
    rows = DocumentRows(store)
    for number, item in enumerate(frames):
        rows.begin(f"frame {number}")
        rows.add_counts(item.characters, item.bytes, item.newlines)
        rows.end_document()
    rows.close()
    return join_documents(store, None, rows)


def _filters(frames: int, plain: bytes, planted: Mapping[int, bytes], objects: Objects) -> tuple[FilterRef, ...]:
    """The filters of `frames` frames with the text `plain` or a planted one. Adds their parts to `objects`."""
    reach = OVERLAP_BYTES + GRAM_BYTES - 1

    def column_of(frame: bytes, following: Iterable[bytes]) -> NDArray[np.uint8]:
        from monocontext.format.filters.columns import compute_column  # imports numpy

        return shrink_rows(compute_column(frame, fold_head(following, reach)), height(_BITS), axis=0)

    usual = column_of(plain, [plain] * reach)
    near = -(-reach // len(plain))
    changed = {n for number in planted for n in range(max(number - near, 0), number + 1)}
    changed |= set(range(max(frames - near, 0), frames))  # these have no frame after them
    special = {
        number: column_of(
            planted.get(number, plain),
            (planted.get(n, plain) for n in range(number + 1, min(frames, number + 1 + reach))),
        )
        for number in changed
    }
    refs = []
    for first in range(0, frames, GROUP_FRAMES):
        size = min(GROUP_FRAMES, frames - first)
        here = {number - first: special[number] for number in special if first <= number < first + size}
        seed = google_crc32c.value(f"{first} {size}".encode())
        ref = FilterRef(FILTER_KIND, TABLES, _BITS, OVERLAP_BYTES, size, (FilterRun(first, 0, size),), (), seed)
        layout = FilterLayout(ref)
        names = [f"virtual filter {first} {size} {part}".encode() for part in range(layout.parts)]
        refs.append(replace(ref, parts=tuple(hashlib.sha256(name).hexdigest()[:32] for name in names)))
        for key, (start, stop) in zip(refs[-1].keys, layout.row_ranges(), strict=True):
            size_bytes = (stop - start) // layout.rows_per_block * layout.block_bytes
            size_bytes += layout.sparsity_bytes if stop == layout.rows else 0
            objects[key] = size_bytes, partial(_filter_bytes, layout, usual, here, start)
    return tuple(refs)


def _filter_bytes(
    layout: FilterLayout,
    usual: NDArray[np.uint8],
    special: Mapping[int, NDArray[np.uint8]],
    first_row: int,
    start: int,
    stop: int,
) -> bytes:
    """The bytes [start, stop) of the part of a filter that begins with a row. `special`: columns by number."""
    import numpy as np

    blocks = layout.blocks - first_row // layout.rows_per_block
    low, high = min(start // layout.block_bytes, blocks), -(-stop // layout.block_bytes)
    rows = slice(first_row + low * layout.rows_per_block, first_row + high * layout.rows_per_block)
    packed = usual[rows, None] * np.packbits(np.ones(layout.columns, np.uint8), bitorder="little")
    for column, own in special.items():
        byte, bit = divmod(column, 8)
        packed[:, byte] = packed[:, byte] & 255 - (1 << bit) | own[rows] << bit
    stored = layout.encode(packed, rows.start)
    if high > blocks:
        counts = usual.astype(np.uint32) * (layout.columns - len(special)) + sum(special.values())
        stored += layout.encode_sparsity(counts[: 1 << _BITS].tolist())
    return stored[start - low * layout.block_bytes : stop - low * layout.block_bytes]
