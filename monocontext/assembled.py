"""One lazy text out of pieces that lie in a store, and texts at hand between them.

Whoever stores the pieces records their frames with them, so the index is made of that alone, in this process: the
text's frames are the pieces where they lie.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from monocontext.codec import RAW_FRAME_BYTES, raw_frames
from monocontext.errors import ForeignObject
from monocontext.index import ENDS_LINE, FrameRecord, Run
from monocontext.manifest import Manifest
from monocontext.opening import Opened
from monocontext.source import Span, Stored
from monocontext.store import RangeReader
from monocontext.stores.memory import MemoryStore, forget
from monocontext.text import CACHE_BYTES, MATERIALIZE_LIMIT, Monocontext
from monocontext.writer import write_pages


@dataclass(frozen=True, slots=True)
class Piece:
    """Raw frames, back to back in an object."""

    key: str
    """The object, within the store of all pieces."""
    offset: int
    """Bytes of the object before the first frame."""
    frames: Sequence[FrameRecord]
    version: str
    """What the reader of the pieces is asked for by as their ETag."""


class _Pieces(Opened):
    """Reads pieces from one store, whatever their number, and nothing else."""

    def __init__(self, url: str, pieces: RangeReader, **options: Any) -> None:
        name = f"assembled-{uuid.uuid4().hex}"
        super().__init__(MemoryStore(name), **options)
        forget(name)  # the objects go with this text
        self.pieces_url = url.rstrip("/") + "/"
        self.pieces = pieces

    def place(self, url: str, manifest: Manifest) -> tuple[RangeReader, str]:
        if not url.startswith(self.pieces_url):
            raise ForeignObject(f"{url} does not lie in {self.pieces_url}")
        return self.pieces, url.removeprefix(self.pieces_url)


def assembled(
    url: str,
    pieces: RangeReader,
    items: Iterable[str | Piece],
    *,
    kind: type[Monocontext] = Monocontext,
    cache_bytes: int = CACHE_BYTES,
    materialize_limit: int = MATERIALIZE_LIMIT,
    **options: Any,
) -> Monocontext:
    """Texts and pieces one after another, as a text of this kind (no request).

    `pieces` reads the objects below `url`, by which the text is known; `options` are those of `Monocontext.open`.
    """
    opened = _Pieces(url, pieces, cache_bytes=cache_bytes, **options)
    segment = f"segments/{uuid.uuid4().hex}.seg"  # in this process
    at_hand, runs, records = bytearray(), list[Run](), list[FrameRecord]()
    for item in items:
        if isinstance(item, str):
            data = item.encode("utf-8", "replace")
            frames: Sequence[FrameRecord] = raw_frames(data)
            run = Run(segment, len(at_hand), len(frames), "raw")
            at_hand.extend(data)
        else:
            frames = item.frames
            run = Run(f"{opened.pieces_url}{item.key}", item.offset, len(frames), "raw", item.version)
        if frames:
            runs.append(run)
            records.extend(frames)
    opened.store.put(segment, bytes(at_hand))
    pages, last_page = write_pages(opened.store.put, (), runs, records)
    manifest = Manifest(
        generation=1,
        write_id=uuid.uuid4().hex,
        created="",
        pages=pages,
        final_newline=bool(records) and ends_line(records),
        stored_bytes=sum(record.stored_bytes for record in records),
        frame_bytes=RAW_FRAME_BYTES,
        codec="raw",
        last_page=last_page,
    )
    reader = opened.read(manifest)
    reader.url = url  # as the text is known; the index lies in this process
    return kind._of(Span(Stored(reader), 0, reader.characters), materialize_limit, opened)


def ends_line(frames: Sequence[FrameRecord]) -> bool:
    """Whether the last of them ends with a newline."""
    return bool(frames[-1].flags & ENDS_LINE)
