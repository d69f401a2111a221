"""A context of any size out of one repeated frame and a few planted ones, in a few megabytes of memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from monocontext.codec import describe
from monocontext.index import FRAMES_PER_PAGE, FrameRecord, Run, encode_page, page_ref
from monocontext.manifest import ROOT_KEY, Manifest, PageRef, generation_key
from monocontext.segments import segment_key
from monocontext.testing.stores import VirtualStore
from monocontext.testing.virtual_filters import virtual_filters

FRAMES_PER_SEGMENT = 64


def virtual_context(
    frames: int,
    filler: str,
    planted: Mapping[int, str] | None = None,
    *,
    filters: bool = False,
    distinct: bool = False,
) -> VirtualStore:
    """A store that holds a context of `frames` frames: `filler` in each, except where `planted` has another text.

    The text is `filler * frames` with those pieces replaced. Frames are stored raw; 16 million of them (4 TiB at
    256 KiB) take seconds and some megabytes. `filters`: with search filters, as `publish` would write. `distinct`: each
    segment is an object of its own, as in a real text; equal ones are one object otherwise, and a request for one is a
    request for all. A terabyte of distinct ones takes some 200 MB.
    """
    plants = {number: text.encode() for number, text in (planted or {}).items()}
    if not filler or frames < 1 or not all(plants.values()) or any(not 0 <= n < frames for n in plants):
        raise ValueError("a virtual context has frames, none of them empty, and plants only inside itself")
    plain = filler.encode()
    record = describe(plain, plain)
    special = {number: describe(data, data) for number, data in plants.items()}
    objects: dict[str, tuple[int, Callable[[int, int], bytes]]] = {}
    pages: list[PageRef] = []
    repeated: dict[int, tuple[bytes, list[FrameRecord]]] = {}
    for first in range(0, frames, FRAMES_PER_PAGE):
        size = min(FRAMES_PER_PAGE, frames - first)
        here = {n - first: special[n] for n in special if first <= n < first + size}
        if here or distinct or size not in repeated:
            records = [here.get(i, record) for i in range(size)]
            runs = _runs(first, size, plain, plants, objects, distinct)
            page = (encode_page(runs, records), records)
            if not here and not distinct:
                repeated[size] = page
        else:
            page = repeated[size]
        data, records = page
        ref = page_ref(data, records, pages[-1] if pages else None)
        objects[ref.key] = (len(data), lambda start, stop, data=data: data[start:stop])  # type: ignore[misc]
        pages.append(ref)
    root = Manifest(
        generation=1,
        write_id="virtual",
        created="2026-01-01T00:00:00+00:00",
        pages=tuple(pages),
        final_newline=plants.get(frames - 1, plain).endswith(b"\n"),
        stored_bytes=pages[-1].bytes,
        codec="raw",
        filters=virtual_filters(frames, plain, plants, objects) if filters else (),
    ).to_bytes()
    for key in (ROOT_KEY, generation_key(1)):
        objects[key] = (len(root), lambda start, stop: root[start:stop])
    return VirtualStore(objects)


def _runs(
    first: int,
    size: int,
    plain: bytes,
    planted: Mapping[int, bytes],
    objects: dict[str, tuple[int, Callable[[int, int], bytes]]],
    distinct: bool,
) -> list[Run]:
    """Segments for the frames of one page, added to `objects`."""
    runs, digest = [], hashlib.sha256(plain).digest()
    for start in range(first, first + size, FRAMES_PER_SEGMENT):
        count = min(FRAMES_PER_SEGMENT, first + size - start)
        pieces = {n - start: planted[n] for n in planted if start <= n < start + count}
        content = (start if distinct else count, count, digest, sorted(pieces.items()))
        name = hashlib.sha256(repr(content).encode()).hexdigest()
        if (key := segment_key(name)) not in objects:
            body = _Pieces([pieces.get(i, plain) for i in range(count)])
            objects[key] = (body.size, body)
        runs.append(Run(key, 0, count, "raw"))
    return runs


class _Pieces:
    """The bytes of a segment, joined only where they are read."""

    def __init__(self, pieces: list[bytes]):
        self._pieces = pieces
        self.size = sum(map(len, pieces))

    def __call__(self, start: int, stop: int) -> bytes:
        taken, at = [], 0
        for piece in self._pieces:
            if at + len(piece) > start and at < stop:
                taken.append(piece[max(start - at, 0) : stop - at])
            at += len(piece)
        return b"".join(taken)
