"""The values of a memory as one lazy text.

Heads hold the frame records of their values, so the index is made of heads alone, in this process: the text's frames
are the values where they lie, pinned to their ETags, and between them lines that name the keys.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from monocontext.codec import encode
from monocontext.errors import ForeignObject
from monocontext.hedging import Hedge
from monocontext.index import ENDS_LINE, FrameRecord, Run
from monocontext.manifest import Manifest
from monocontext.memory.entry import Entry
from monocontext.memory.envelope import FRAME_BYTES, Head
from monocontext.opening import Opened
from monocontext.source import Span, Stored
from monocontext.store import RangeReader, Store
from monocontext.stores.memory import MemoryStore, forget
from monocontext.text import CACHE_BYTES, MATERIALIZE_LIMIT, Monocontext
from monocontext.writer import write_pages


class _Values(Opened):
    """Reads values from the memory's own store, whatever their number."""

    def __init__(self, values: Store, **options: Any) -> None:
        name = f"context-{uuid.uuid4().hex}"
        super().__init__(MemoryStore(name), **options)
        forget(name)  # the objects go with this context
        self.values = values

    def place(self, url: str, manifest: Manifest) -> tuple[RangeReader, str]:
        root = self.values.url.rstrip("/") + "/"
        if not url.startswith(root):
            raise ForeignObject(f"{url} is no value of {self.values.url}")
        return self.values, url.removeprefix(root)


def context_of(
    store: Store,
    entries: Sequence[tuple[str, Entry, Head]],
    *,
    cache_bytes: int = CACHE_BYTES,
    materialize_limit: int = MATERIALIZE_LIMIT,
    threads: bool = True,
    hedge: Hedge | None = "p99",
) -> Monocontext:
    """The text of some entries, given the names of their objects (no request)."""
    opened = _Values(store, cache_bytes=cache_bytes, threads=threads, hedge=hedge)
    root = store.url.rstrip("/")
    segment = f"segments/{uuid.uuid4().hex}.seg"  # in this process, with the lines between values
    lines, runs, records = bytearray(), [], []
    between = ""

    def tell(text: str) -> None:
        data = text.encode()
        runs.append(Run(segment, len(lines), 1, "raw"))
        records.append(encode(data, "raw")[1])
        lines.extend(data)

    for name, entry, head in entries:
        tell(f"{between}=== KEY: {_one_line(entry.key)} ===\n")
        if head.frames:
            runs.append(Run(f"{root}/{name}", head.head_bytes, len(head.frames), "raw", entry.etag))
            records.extend(head.frames)
        between = "" if not head.frames or _ends_line(head.frames[-1]) else "\n"
    if between:
        tell(between)
    opened.store.put(segment, bytes(lines))
    pages, last_page = write_pages(opened.store.put, (), runs, records)
    manifest = Manifest(
        generation=1,
        write_id=uuid.uuid4().hex,
        created="",
        pages=pages,
        final_newline=bool(records),
        stored_bytes=sum(record.stored_bytes for record in records),
        frame_bytes=FRAME_BYTES,
        codec="raw",
        last_page=last_page,
    )
    reader = opened.read(manifest)
    reader.url = store.url  # as the text is known; the index lies in this process
    return Monocontext._of(Span(Stored(reader), 0, reader.characters), materialize_limit, opened)


def _ends_line(frame: FrameRecord) -> bool:
    return bool(frame.flags & ENDS_LINE)


def _one_line(key: str) -> str:
    """A key as its line shows it: as it is where it is one line of text, else as a Python literal."""
    return key if key.isprintable() else repr(key)
