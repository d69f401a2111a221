"""A text is published, replaced, and published again while `gc` runs: no name is stored twice."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from monocontext.stores.protocol import Blob, Store
from monocontext.testing import WrappedStore
from monocontext.writing import documents
from monocontext.writing.index_in_place import index
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.compact import add_filters, compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify

from .upkept import FRAME_BYTES, SEGMENT_BYTES, Aging, Overtaken, memory, text_of, words

LAYOUT = {"frame_bytes": FRAME_BYTES, "segment_bytes": SEGMENT_BYTES}
DOCUMENTS = {f"{n}.txt": words(Random(n), 12) + "\n" for n in range(40)}
FOLDERS = ("segments/", "index/", "filters/", "documents/")


def test_a_generation_that_another_collector_removes_meanwhile() -> None:
    """It was to stay for the one, not for the other."""

    class Late(WrappedStore):
        def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
            if key.startswith("generations/") and others:
                others.pop()()
            return super().get(key, most_bytes=most_bytes)

    store = Aging(memory())
    publish("first\n", store)
    append("second\n", store)
    store.turn(60)
    others = [lambda: gc(store, older_than_seconds=0)]
    assert gc(Late(store), older_than_seconds=3600).generations == 0
    assert not others
    assert verify(store).problems == []
    assert text_of(store) == "first\nsecond\n"


def test_no_name_is_stored_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is done again: not by any writer, not by one who builds on another's root."""
    monkeypatch.setattr(documents, "INLINE_BYTES", 100)
    monkeypatch.setattr(documents, "DOCUMENTS_PER_PAGE", 16)
    source, text = tmp_path / "source.txt", words(Random(1), 400)
    source.write_text(text)
    stored = Stored(memory())
    for _ in range(2):
        publish(DOCUMENTS, stored, replace=True, **LAYOUT)  # type: ignore[arg-type]
        append(text, Overtaken(stored, lambda: append("short\n", stored)), segment_bytes=SEGMENT_BYTES)
        compact(Overtaken(stored, lambda: append("short\n", stored)), segment_bytes=2 * SEGMENT_BYTES)
        add_filters(stored, rebuild=True)
        index([source], stored, frame_bytes=FRAME_BYTES, replace=True)
        append("more\n", stored)
        compact(stored, segment_bytes=2 * SEGMENT_BYTES)
    assert {folder for folder in FOLDERS if any(key.startswith(folder) for key in stored.keys)} == set(FOLDERS)
    assert stored.twice == []


class Stored(WrappedStore):
    """Notes keys that are stored a second time; a root's copy is meant to be."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.keys: set[str] = set()
        self.twice: list[str] = []

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        if key in self.keys and key.startswith(FOLDERS):
            self.twice.append(key)
        self.keys.add(key)
        return super().put(key, data, if_absent=if_absent, if_match=if_match)
