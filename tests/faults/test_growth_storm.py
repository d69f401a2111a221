"""Appenders, compactions, collections without any grace and readers at once, some killed: nothing acknowledged is lost
or doubled, and readers get a text that was committed, or a typed error."""

from __future__ import annotations

import threading
import uuid
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from monocontext import Monocontext
from monocontext.errors import MonocontextError
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import Store
from monocontext.testing import Crash, WrappedStore
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.compact import compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify

WRITERS = 8


class Dying(WrappedStore):
    """Dies at a random write, before or after it lands."""

    def __init__(self, store: Store, random: Random, every: int) -> None:
        super().__init__(store)
        self.random, self.every, self.is_dead = random, every, False

    def _live(self, act: Callable[[], str]) -> str:
        if self.is_dead:
            raise Crash("dead")
        dies, lands = not self.random.randrange(self.every), self.random.random() < 0.5
        if not dies:
            return act()
        self.is_dead = True
        if lands:
            act()
        raise Crash("died")

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        return self._live(lambda: self.store.put(key, data, if_absent=if_absent, if_match=if_match))

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        self._live(lambda: self.store.delete(key, if_match=if_match) or "")


def storm(store: Store, appends: int, seed: int) -> None:
    publish("begin\n", store, frame_bytes=512)
    acknowledged: list[str] = []
    unknown: list[str] = []
    wrong: list[str] = []
    errors: dict[str, int] = {}
    working = threading.Event()
    lock = threading.Lock()

    def note(error: BaseException) -> None:
        with lock:
            errors[type(error).__name__] = errors.get(type(error).__name__, 0) + 1

    def write(number: int) -> None:
        random = Random(seed * 100 + number)
        for turn in range(appends):
            line = f"<writer {number}, append {turn}, {'x' * random.choice([1, 30, 30, 300, 20_000])}>\n"
            try:
                append(line, Dying(store, random, 60), segment_bytes=4096)
                with lock:
                    acknowledged.append(line)
            except (Crash, MonocontextError) as error:
                note(error)
                with lock:
                    unknown.append(line)

    def look_after(number: int) -> None:
        random = Random(seed * 100 + 50 + number)
        while not working.wait(0.01):
            task = random.choice([compact, gc, gc])
            try:
                dying = Dying(store, random, 100)
                task(dying, segment_bytes=4096) if task is compact else gc(dying, older_than_seconds=0)
            except (Crash, MonocontextError) as error:
                note(error)

    def read() -> None:
        before = 0
        while not working.wait(0.005):
            try:
                with Monocontext.open(store) as context:
                    text = str(context)
                    lines = text.splitlines()
                    if lines[0] != "begin" or len(set(lines)) != len(lines) or len(text) < before:
                        wrong.append(text)
                    if any(not line.endswith("x>") for line in lines[1:]):
                        wrong.append(text)
                    before = len(text)
            except MonocontextError as error:
                note(error)

    with warnings.catch_warnings(), ThreadPoolExecutor(WRITERS + 4) as threads:
        warnings.simplefilter("ignore")
        others = [*(threads.submit(look_after, number) for number in range(2)), *(threads.submit(read) for _ in "ab")]
        try:
            list(threads.map(write, range(WRITERS)))
        finally:
            working.set()
        for other in others:
            other.result()
    assert verify(store).problems == []
    assert not wrong
    with Monocontext.open(store) as context:
        answer = str(context).splitlines(keepends=True)
    assert answer[0] == "begin\n"
    assert len(answer) == len(set(answer)), "doubled"
    assert set(acknowledged) <= set(answer), "lost"
    assert set(answer) <= {"begin\n", *acknowledged, *unknown}
    for number in range(WRITERS):
        own = [line for line in acknowledged if line.startswith(f"<writer {number},")]
        assert [line for line in answer if line in set(own)] == own
    assert len(acknowledged) >= appends * WRITERS / 2, errors
    print(len(acknowledged), len(unknown), errors)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_storm_without_grace(seed: int) -> None:
    storm(MemoryStore(uuid.uuid4().hex, "prefix"), 12, seed)


@pytest.mark.fuzz
@pytest.mark.timeout(600)
def test_a_long_storm_without_grace() -> None:
    storm(MemoryStore(uuid.uuid4().hex, "prefix"), 200, 7)


@pytest.mark.slow
def test_a_storm_in_a_directory(tmp_path: Path) -> None:
    storm(open_store(tmp_path / "context"), 15, 8)
