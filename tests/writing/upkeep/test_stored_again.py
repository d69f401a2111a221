"""A text is published, replaced, and published again while `gc` removes what nothing names: what is stored again stays.

Each test forces one order of the requests of both. It holds on every kind of store, whatever its ETags and conditions
are, since no name is stored twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from monocontext import Monocontext
from monocontext.errors import AlreadyExists
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import WrappedStore
from monocontext.writing import document_table, documents
from monocontext.writing.index_in_place import index
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.compact import add_filters, compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify

from .upkept import FRAME_BYTES, SEGMENT_BYTES, Aging, Overtaken, memory, text_of, words

DAY = 86400.0
LAYOUT = {"frame_bytes": FRAME_BYTES, "segment_bytes": SEGMENT_BYTES}
DOCUMENTS = {f"{n}.txt": words(Random(n), 12) + "\n" for n in range(40)}
TEXT = words(Random(1), 400)
FOLDERS = ("segments/", "index/", "filters/", "documents/")


@pytest.fixture(autouse=True)
def documents_lie_in_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also pages of few documents, and tables of few names."""
    monkeypatch.setattr(documents, "INLINE_BYTES", 100)
    for module in (documents, document_table):
        monkeypatch.setattr(module, "DOCUMENTS_PER_PAGE", 16)


class Racing(WrappedStore):
    """The store of a `gc`: another writer acts once, at one point of the removal of an object."""

    def __init__(self, store: Store, point: str, act: Callable[[], object]) -> None:
        super().__init__(store)
        self._point, self._act, self._lock = point, act, threading.Lock()
        self._is_done = False
        self.late: list[Callable[[], None]] = []

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        def remove() -> None:
            with suppress(AlreadyExists):
                super(Racing, self).delete(key, if_match=if_match)

        self._act_at("before DELETE", key)
        if key.startswith(FOLDERS) and self._point == "DELETE lands late":
            self.late.append(remove)
            return
        remove()
        if key.startswith(FOLDERS) and self._point == "DELETE is sent twice":
            self.late.append(remove)  # its first answer was lost

    def finish(self) -> None:
        """Let the writer act who has not, and then what is under way land."""
        if not self._is_done:
            self._act()
        for remove in self.late:
            remove()

    def _act_at(self, point: str, key: str) -> None:
        if self._point == point and key.startswith(FOLDERS):
            with self._lock:
                if not self._is_done:
                    self._is_done = True
                    self._act()


POINTS = ["before DELETE", "DELETE lands late", "DELETE is sent twice"]
GRACES = {"seven days": 7 * DAY, "none": 0.0}


def race(store: Aging, point: str, grace: float, act: Callable[[], object]) -> None:
    """Run `gc` on a store all of whose objects are old, with `act` at one point of it."""
    store.turn(9 * DAY)
    racing = Racing(store, point, act)
    assert gc(racing, older_than_seconds=grace).segments > 0
    racing.finish()


def is_text(store: Store, text: str) -> None:
    assert verify(store).problems == []
    assert text_of(store) == text


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
    is_text(store, "first\nsecond\n")


@pytest.mark.slow
@pytest.mark.parametrize("grace", GRACES)
@pytest.mark.parametrize("point", POINTS)
def test_published_again(any_store: Store, point: str, grace: str) -> None:
    store = Aging(any_store)
    publish(DOCUMENTS, store, **LAYOUT)  # type: ignore[arg-type]
    publish("other\n", store, replace=True)
    kinds = {info.key.partition("/")[0] for info in store.list()}
    assert {folder.rstrip("/") for folder in FOLDERS} < kinds
    race(store, point, GRACES[grace], lambda: publish(DOCUMENTS, store, replace=True, **LAYOUT))  # type: ignore[arg-type]
    is_text(store, "".join(DOCUMENTS.values()))
    with Monocontext.open(store, shape="dict") as context:
        assert context == DOCUMENTS


def test_no_name_is_stored_twice(tmp_path: Path) -> None:
    """Whatever is done again: not by any writer, not by one who builds on another's root."""
    source = tmp_path / "source.txt"
    source.write_text(TEXT)
    stored = Stored(memory())
    for _ in range(2):
        publish(DOCUMENTS, stored, replace=True, **LAYOUT)  # type: ignore[arg-type]
        append(TEXT, Overtaken(stored, lambda: append("short\n", stored)), segment_bytes=SEGMENT_BYTES)
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
