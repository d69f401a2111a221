"""Texts that grew by appends, stores whose objects age on demand, and what must hold of a context after any upkeep."""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from monocontext import Monocontext
from monocontext.format.manifest import Manifest, find_root
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.testing import WrappedStore
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.verify import verify

FRAME_BYTES = 512
"""The smallest frames that get filters."""
SEGMENT_BYTES = 4096


def memory() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "prefix")


def root(store: Store) -> Manifest:
    return find_root(store).manifest


def text_of(store: Store) -> str:
    with Monocontext.open(store, cache_bytes=0) as context:
        return str(context)


def documents_of(store: Store | Path) -> dict[str, str]:
    """The documents of the newest version; each name must occur once."""
    root = find_root(open_store(store) if isinstance(store, Path) else store).manifest
    with Monocontext.open(store, generation=root.generation) as context:
        names = [record.name for record in context.documents.records()]
        assert len(names) == len(set(names)), "doubled"
        return {name: str(context.documents[name]) for name in names}


def words(random: Random, lines: int) -> str:
    """Lines of which each holds something that occurs nowhere else."""
    ends = ["\n", "\n", "\n", "\r\n", " ", "é\n", "漢字\n"]
    return "".join(f"the {random.randrange(10**9):09d} quick fox{random.choice(ends)}" for _ in range(lines))


def grow_context(store: Store, random: Random, lines: int, appends: int, lines_each: int = 3) -> str:
    """Publish a text, then append to it again and again; returns the whole."""
    pieces = [words(random, lines), *(words(random, random.randrange(1, 2 * lines_each)) for _ in range(appends))]
    publish(pieces[0], store, frame_bytes=FRAME_BYTES, segment_bytes=SEGMENT_BYTES)
    for piece in pieces[1:]:
        append(piece, store, segment_bytes=SEGMENT_BYTES)
    return "".join(pieces)


def check(store: Store, text: str, random: Random) -> None:
    """The newest generation is this text, sound, its filters too, and searches find what `str` finds."""
    assert verify(store).problems == []
    with Monocontext.open(store, cache_bytes=0) as context:
        assert str(context) == text
    with Monocontext.open(store) as context:
        reader = context._source.reader  # type: ignore[attr-defined]
        borders = [max(0, reader.frame(number).start - 5) for number in range(reader.manifest.frames)]
        for at in [*random.sample(borders, min(10, len(borders))), *(random.randrange(len(text)) for _ in text[:10])]:
            needle = text[at : at + random.choice([6, 9, 14, 30])]
            assert (context.find(needle), context.rfind(needle)) == (text.find(needle), text.rfind(needle))
        assert "nowhere-4711" not in context


class Overtaken(WrappedStore):
    """Before the root of a writer is put, others commit."""

    def __init__(self, store: Store, *others: Callable[[], object]) -> None:
        super().__init__(store)
        self.others = list(others)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        if key.startswith("generations/") and self.others:
            self.others.pop(0)()
        return super().put(key, data, if_absent=if_absent, if_match=if_match)


class Aging(WrappedStore):
    """A store with a clock to turn: what lies there grows older by as much."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.stored: dict[str, float] = {}

    def turn(self, seconds: float) -> None:
        self.stored = {key: at - seconds for key, at in self.stored.items()}

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        etag = super().put(key, data, if_absent=if_absent, if_match=if_match)
        self.stored[key] = time.time()
        return etag

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return (self._aged(info) for info in super().list(prefix))

    def head(self, key: str) -> ObjectInfo:
        return self._aged(super().head(key))

    def _aged(self, info: ObjectInfo) -> ObjectInfo:
        return dataclasses.replace(info, modified_seconds=self.stored[info.key])
