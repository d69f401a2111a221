"""Assemble one lazy text from pieces in a store and `str` between them.

The writer of each piece recorded its frames. From these records, this process builds the index of the text in memory,
without reading or copying a piece.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from monocontext.engine.open import ContextHandle, TextOptions
from monocontext.errors import ForeignObject
from monocontext.format.codec import RAW_FRAME_BYTES, raw_frames
from monocontext.format.index import ENDS_LINE, FrameRecord, FrameRun
from monocontext.format.manifest import Manifest
from monocontext.format.refs import DocumentsRef
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import RangeReader
from monocontext.text.monocontext import CACHE_BYTES, MATERIALIZE_LIMIT, Monocontext
from monocontext.text.source import Span, StoredSource
from monocontext.writing.documents import DocumentRows, join_documents
from monocontext.writing.pages import IndexWriter, rows_of


@dataclass(frozen=True, slots=True)
class FramePiece:
    """A part of an object in a store: uncompressed frames, one after another."""

    key: str
    """The key of the object, below the URL of the text."""
    offset: int
    """Bytes of the object before the first frame."""
    frames: Sequence[FrameRecord]
    version: str
    """The ETag that readers of the object get."""


class _PieceHandle(ContextHandle):
    """The handle of an assembled text: its pieces are read from one store, everything else from memory."""

    def __init__(self, url: str, pieces: RangeReader, cache_bytes: int, options: dict[str, Any]) -> None:
        name = f"assembled-{uuid.uuid4().hex}"
        super().__init__(MemoryStore(name), cache_bytes=cache_bytes, **options)
        forget(name)  # the objects go with this text
        self.pieces_url = url.rstrip("/") + "/"
        self.pieces = pieces

    def find_foreign(self, url: str, sources: Iterable[str]) -> tuple[RangeReader, str]:
        if not url.startswith(self.pieces_url):
            raise ForeignObject(f"{url} is not below {self.pieces_url}")
        return self.pieces, url.removeprefix(self.pieces_url)


@dataclass(frozen=True, slots=True)
class DocumentStart:
    """Begins a document, which consists of the texts and pieces up to the next `DocumentStart`."""

    name: str
    metadata: Mapping[str, Any]


def assemble(
    url: str,
    pieces: RangeReader,
    items: Iterable[str | FramePiece | DocumentStart],
    **options: Unpack[TextOptions],
) -> Monocontext:
    """Join texts and pieces into one text (no request).

    `pieces` reads the objects below `url`, the URL of the text. `options`: the options of `Monocontext.open` that do
    not say where the text is stored.
    """
    handle_options: dict[str, Any] = {**options}
    limit = handle_options.pop("materialize_limit", MATERIALIZE_LIMIT)
    handle = _PieceHandle(url, pieces, handle_options.pop("cache_bytes", CACHE_BYTES), handle_options)
    runs: list[FrameRun] = []
    records: list[FrameRecord] = []
    documents: list[tuple[DocumentStart, list[FrameRecord]]] = []
    segment_key = f"segments/{uuid.uuid4().hex}.seg"
    segment = bytearray()  # the object in memory that has the frames of all `str`
    for item in items:
        if isinstance(item, DocumentStart):
            documents.append((item, []))
            continue
        if isinstance(item, str):
            data = item.encode("utf-8", "replace")
            frames: Sequence[FrameRecord] = raw_frames(data)
            run = FrameRun(segment_key, len(segment), len(frames), "raw")
            segment.extend(data)
        else:
            frames = item.frames
            run = FrameRun(f"{handle.pieces_url}{item.key}", item.offset, len(frames), "raw", item.version)
        if frames:
            runs.append(run)
            records.extend(frames)
            if documents:
                documents[-1][1].extend(frames)
    handle.store.put(segment_key, bytes(segment))
    index = IndexWriter(handle.store.put)
    index.add(rows_of(runs, records))
    index.end_page()
    manifest = Manifest(
        generation=1,
        write_id=uuid.uuid4().hex,
        created="",
        pages=tuple(index.pages),
        final_newline=bool(records) and ends_line(records),
        stored_bytes=sum(record.stored_bytes for record in records),
        frame_bytes=RAW_FRAME_BYTES,
        codec="raw",
        last_page=index.last_page,
        documents=_documents(handle, documents),
    )
    reader = handle.reader_of(manifest)
    reader.fetcher.url = url  # for errors and `text.url`, instead of the store in memory
    return Monocontext._over_span(Span(StoredSource(reader), 0, reader.characters), limit, handle)


def _documents(
    handle: _PieceHandle, documents: Iterable[tuple[DocumentStart, list[FrameRecord]]]
) -> DocumentsRef | None:
    """Write the table of documents to the store in memory. Returns None if there are no documents."""
    rows = DocumentRows(handle.store)
    for start, frames in documents:
        rows.begin(start.name, start.metadata)
        for frame in frames:
            rows.add_counts(frame.characters, frame.bytes, frame.newlines)
        rows.end_document()
    rows.close()
    return join_documents(handle.store, None, rows)


def ends_line(frames: Sequence[FrameRecord]) -> bool:
    """Whether the last frame ends with a newline."""
    return bool(frames[-1].flags & ENDS_LINE)
