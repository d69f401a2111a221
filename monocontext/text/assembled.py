"""Assemble one lazy text from pieces in a store and `str` between them.

The writer of a piece records the frames of that piece. This process makes the index from these records; the frames stay
where they lie.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from monocontext.engine.open import ContextHandle, TextOptions
from monocontext.errors import ForeignObject
from monocontext.format.codec import RAW_FRAME_BYTES, raw_frames
from monocontext.format.document_refs import DocumentsRef
from monocontext.format.documents import encode_metadata, encode_name
from monocontext.format.filters.query import Query
from monocontext.format.index import ENDS_LINE, FrameRecord, FrameRun
from monocontext.format.manifest import Manifest
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import RangeReader
from monocontext.text.monocontext import CACHE_BYTES, MATERIALIZE_LIMIT, Monocontext
from monocontext.text.source import Span, Stored
from monocontext.writing.documents import DocumentRows
from monocontext.writing.joined_documents import join_documents
from monocontext.writing.pages import write_pages

MayHold = Callable[[Query, bool], Iterable[bool] | None]
"""Takes a query, and whether its matches stay within a line. Returns, for each item, whether a match may begin
there."""


@dataclass(frozen=True, slots=True)
class FramePiece:
    """Raw frames, back to back in an object."""

    key: str
    """The key of the object in the store that holds all pieces."""
    offset: int
    """Bytes of the object before the first frame."""
    frames: Sequence[FrameRecord]
    version: str
    """The ETag that readers of the object get."""


class _PieceStore(ContextHandle):
    """Reads pieces from one store and nothing else."""

    def __init__(self, url: str, pieces: RangeReader, cache_bytes: int, options: dict[str, Any]) -> None:
        name = f"assembled-{uuid.uuid4().hex}"
        super().__init__(MemoryStore(name), cache_bytes=cache_bytes, **options)
        forget(name)  # the objects go with this text
        self.pieces_url = url.rstrip("/") + "/"
        self.pieces = pieces

    def place(self, url: str, sources: Iterable[str]) -> tuple[RangeReader, str]:
        if not url.startswith(self.pieces_url):
            raise ForeignObject(f"{url} does not lie in {self.pieces_url}")
        return self.pieces, url.removeprefix(self.pieces_url)


@dataclass(frozen=True, slots=True)
class DocumentStart:
    """The texts and pieces from here to the next mark are one document."""

    name: str
    metadata: Mapping[str, Any]


def assemble(
    url: str,
    pieces: RangeReader,
    items: Iterable[str | FramePiece | DocumentStart],
    *,
    kind: type[Monocontext] = Monocontext,
    may_hold: MayHold | None = None,
    **options: Unpack[TextOptions],
) -> Monocontext:
    """Join texts and pieces into one text of this kind (no request).

    `pieces` reads the objects below `url`, the URL of the text. `may_hold` names the items in which a match may begin;
    a search asks it before it reads an item. `options` are those options of `Monocontext.open` that need no place.
    """
    given: dict[str, Any] = {**options}
    limit = given.pop("materialize_limit", MATERIALIZE_LIMIT)
    opened = _PieceStore(url, pieces, given.pop("cache_bytes", CACHE_BYTES), given)
    counts, documents = [], list[tuple[DocumentStart, list[FrameRecord]]]()
    segment = f"segments/{uuid.uuid4().hex}.seg"  # in memory
    at_hand, runs, records = bytearray(), list[FrameRun](), list[FrameRecord]()
    for item in items:
        if isinstance(item, DocumentStart):
            documents.append((item, []))
            counts.append(0)
            continue
        if isinstance(item, str):
            data = item.encode("utf-8", "replace")
            frames: Sequence[FrameRecord] = raw_frames(data)
            run = FrameRun(segment, len(at_hand), len(frames), "raw")
            at_hand.extend(data)
        else:
            frames = item.frames
            run = FrameRun(f"{opened.pieces_url}{item.key}", item.offset, len(frames), "raw", item.version)
        counts.append(len(frames))
        if frames:
            runs.append(run)
            records.extend(frames)
            if documents:
                documents[-1][1].extend(frames)
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
        documents=_documents(opened, documents),
    )
    reader = opened.read(manifest)
    if may_hold is not None:
        reader.ask_filters_elsewhere(lambda query, within_line: _runs(may_hold(query, within_line), counts))
    reader.fetcher.url = url  # the URL of the text; its index lies in this process
    return kind._of(Span(Stored(reader), 0, reader.characters), limit, opened)


def _documents(opened: _PieceStore, found: Iterable[tuple[DocumentStart, list[FrameRecord]]]) -> DocumentsRef | None:
    rows = DocumentRows(opened.store)
    rows.add_documents(
        (
            encode_name(start.name, number),
            encode_metadata(start.metadata, number),
            sum(frame.characters for frame in frames),
            sum(frame.bytes for frame in frames),
            sum(frame.newlines for frame in frames),
            0,
        )
        for number, (start, frames) in enumerate(found)
    )
    rows.finish()
    return join_documents(opened.store, None, rows)


def _runs(holding: Iterable[bool] | None, counts: Iterable[int]) -> tuple[tuple[int, int], ...] | None:
    """The frames of the items that may hold something, as half-open runs."""
    if holding is None:
        return None
    found: list[tuple[int, int]] = []
    at = 0
    for held, count in zip(holding, counts, strict=True):
        if held and count:
            start = found.pop()[0] if found and found[-1][1] == at else at
            found.append((start, at + count))
        at += count
    return tuple(found)


def ends_line(frames: Sequence[FrameRecord]) -> bool:
    """Whether the last frame ends with a newline."""
    return bool(frames[-1].flags & ENDS_LINE)
