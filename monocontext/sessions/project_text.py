"""Sessions as one lazy text.

What is known of each session holds the frame records of its pieces, so the index is made of that alone, in this
process: the text's frames are the pieces where they lie, and between them lines that name the sessions.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from monocontext.codec import Framer, encode
from monocontext.errors import ForeignObject
from monocontext.index import ENDS_LINE, FrameRecord, Run
from monocontext.manifest import Manifest
from monocontext.namespace import Kit
from monocontext.opening import Opened
from monocontext.sessions.session_info import Piece
from monocontext.source import Span, Stored
from monocontext.store import Blob, RangeReader, Store
from monocontext.stores.memory import MemoryStore, forget
from monocontext.text import CACHE_BYTES, MATERIALIZE_LIMIT, Monocontext
from monocontext.writer import write_pages

FRAME_BYTES = 256 << 10


class ProjectText(Monocontext):
    """A text over sessions, that brings names for a REPL along: `list_sessions`, `read_turn` and the rest."""

    __slots__ = ("_helpers",)

    _helpers: Mapping[str, Callable[..., object]]

    def repl_tools(self) -> Mapping[str, Callable[..., object]]:
        """The functions over its sessions, by name, for a REPL whose cells run elsewhere (no GET)."""
        return getattr(self, "_helpers", {})

    def repl_namespace(self) -> Kit:
        """As any text's, with the functions over its sessions (no GET)."""
        kit = super().repl_namespace()
        kit.names.update(getattr(self, "_helpers", {}))
        return kit


class _Archive(Opened):
    """Reads pieces from the archive's own store."""

    def __init__(self, archive: Store, **options: Any) -> None:
        name = f"sessions-{uuid.uuid4().hex}"
        super().__init__(MemoryStore(name), **options)
        forget(name)  # the objects go with this text
        self.archive = archive

    def place(self, url: str, manifest: Manifest) -> tuple[RangeReader, str]:
        root = self.archive.url.rstrip("/") + "/"
        if not url.startswith(root):
            raise ForeignObject(f"{url} is no session of {self.archive.url}")
        return _Pieces(self.archive), url.removeprefix(root)


class _Pieces:
    """Pieces never change and their frames are checked, so they are known by their content and not by an ETag, which
    a copy of the archive at another place would not have."""

    def __init__(self, archive: Store) -> None:
        self._archive = archive

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        blob = self._archive.get_range(key, start, length)
        return replace(blob, etag=etag) if etag is not None else blob


def text_of(
    store: Store,
    items: Iterable[str | tuple[str, Piece]],
    helpers: Mapping[str, Callable[..., object]],
    *,
    cache_bytes: int = CACHE_BYTES,
    materialize_limit: int = MATERIALIZE_LIMIT,
    **options: Any,
) -> ProjectText:
    """Text at hand and pieces by their key, one after another (no request). `options` as of `Monocontext.open`."""
    opened = _Archive(store, cache_bytes=cache_bytes, **options)
    root = store.url.rstrip("/")
    segment = f"segments/{uuid.uuid4().hex}.seg"  # in this process
    ours, runs, records = bytearray(), list[Run](), list[FrameRecord]()
    for item in items:
        if isinstance(item, str):
            data = item.encode("utf-8", "replace")
            frames = frames_of(data)
            if frames:
                runs.append(Run(segment, len(ours), len(frames), "raw"))
                ours.extend(data)
        else:
            key, piece = item
            frames = piece.frames
            if frames:
                runs.append(Run(f"{root}/{key}", 0, len(frames), "raw", piece.sha256))
        records.extend(frames)
    opened.store.put(segment, bytes(ours))
    pages, last_page = write_pages(opened.store.put, (), runs, records)
    manifest = Manifest(
        generation=1,
        write_id=uuid.uuid4().hex,
        created="",
        pages=pages,
        final_newline=bool(records) and bool(records[-1].flags & ENDS_LINE),
        stored_bytes=sum(record.stored_bytes for record in records),
        frame_bytes=FRAME_BYTES,
        codec="raw",
        last_page=last_page,
    )
    reader = opened.read(manifest)
    reader.url = store.url  # as the text is known; the index lies in this process
    text = ProjectText._of(Span(Stored(reader), 0, reader.characters), materialize_limit, opened)
    assert isinstance(text, ProjectText)
    text._helpers = helpers
    return text


def frames_of(data: bytes) -> tuple[FrameRecord, ...]:
    """Text in UTF-8 as frames of an object that holds nothing else."""
    framer = Framer(FRAME_BYTES)
    return tuple(encode(frame, "raw")[1] for part in (framer.feed(data), framer.finish()) for frame in part)
