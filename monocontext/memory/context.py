"""Join the values of a memory into one lazy text. No value is read for that: headers have the frame records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Unpack

from monocontext.engine.open import TextOptions
from monocontext.memory.encoding import EntryHeader
from monocontext.memory.entry import Entry
from monocontext.stores.protocol import Store
from monocontext.text.assembled import DocumentStart, FramePiece, assemble, ends_line
from monocontext.text.monocontext import Monocontext


def context_of(
    store: Store,
    entries: Sequence[tuple[str, Entry, EntryHeader]],
    documents: bool = False,
    **options: Unpack[TextOptions],
) -> Monocontext:
    """The text of some entries, given with the names of their objects (no request): values below lines with their keys,
    or `documents`, in which case a value should end with a newline.

    The text has the values of these ETags. `options` are those of `Monocontext.open`.
    """
    return assemble(store.url, store, _documents(entries) if documents else _items(entries), **options)


def _documents(entries: Sequence[tuple[str, Entry, EntryHeader]]) -> Iterator[DocumentStart | FramePiece]:
    for name, entry, header in entries:
        yield DocumentStart(entry.key, {})
        yield FramePiece(name, header.header_bytes, header.frames, entry.etag)


def _items(entries: Sequence[tuple[str, Entry, EntryHeader]]) -> Iterator[str | FramePiece]:
    between = ""
    for name, entry, header in entries:
        yield f"{between}=== KEY: {_one_line(entry.key)} ===\n"
        yield FramePiece(name, header.header_bytes, header.frames, entry.etag)
        between = "" if not header.frames or ends_line(header.frames) else "\n"
    if between:
        yield between


def _one_line(key: str) -> str:
    """A key as it is if it is one line of text, else as a Python literal."""
    return key if key.isprintable() else repr(key)
