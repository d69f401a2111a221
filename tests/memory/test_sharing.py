"""Many writers, lifetimes, clocks and crashes: what a memory promises, and what its stores must for it."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest

from monocontext.errors import AlreadyExists, NotFound, StoreFailure
from monocontext.memory import Memory, MemoryTool
from monocontext.memory.entry import Entry, round_to_clock
from monocontext.stores import open_store
from monocontext.stores.protocol import Blob, ObjectInfo, Store
from monocontext.testing import CountingStore, SeaweedServer, WrappedStore

R = TypeVar("R")


def at_once(count: int, work: Callable[[int], R]) -> list[R]:
    barrier = threading.Barrier(count)
    with ThreadPoolExecutor(count, initializer=barrier.wait) as threads:
        return list(threads.map(work, range(count)))


class Faulty(WrappedStore):
    """Puts that happen twice, are answered as a conflict, or fail before or after they landed; then all goes well."""

    def __init__(self, store: Store, *faults: str) -> None:
        super().__init__(store)
        self.faults = [*faults]

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        fault = self.faults.pop(0) if self.faults else ""
        if fault in ("twice", "landed"):
            super().put(key, data, if_absent=if_absent, if_match=if_match)
        if fault == "conflict":
            raise AlreadyExists("ConditionalRequestConflict")
        if fault in ("landed", "lost"):
            raise StoreFailure("no answer")
        return super().put(key, data, if_absent=if_absent, if_match=if_match)


def test_eight_writers_of_five_keys_lose_nothing_and_ask_once_a_put(any_store: Store) -> None:
    counted = CountingStore(any_store)

    def write(writer: int) -> None:
        memory = Memory(counted)
        for number in range(5):
            memory.put(f"writer {writer}: key {number}", f"value {number} of {writer}", 3600)

    at_once(8, write)
    assert counted.counts == {"put": 40}
    memory = Memory(any_store)
    assert [memory[key] for key in memory] == [f"value {n} of {w}" for w in range(8) for n in range(5)]
    assert memory.total().entries == 40


def test_one_of_32_claimants_wins(any_store: Store) -> None:
    words = "the same words from all"
    assert sum(at_once(32, lambda _: Memory(any_store).put_new("claimed: task 1", words))) == 1
    tools = [MemoryTool(Memory(any_store)) for _ in range(4)]
    calls = at_once(4, lambda n: tools[n].execute({"command": f"P claimed:2 agent_{n}", "if_absent": True}))
    assert sorted(call["error"] or "" for call in calls) == ["", "ERR:EXISTS", "ERR:EXISTS", "ERR:EXISTS"]


def test_one_of_many_swappers_wins_and_none_is_lost(any_store: Store) -> None:
    memory = Memory(any_store)
    swap = {"command": "P", "key": "n", "value": "the same words from all", "if_match": memory.put("n", "0")}
    replies = at_once(8, lambda _: MemoryTool(Memory(any_store)).execute(swap))
    assert sorted(reply["error"] or "" for reply in replies) == [""] + ["ERR:CONFLICT"] * 7
    with pytest.raises(AlreadyExists):
        memory.put("n", "later", if_match=swap["if_match"])
    memory.delete("n")
    with pytest.raises(NotFound):
        memory.put("n", "later", if_match=swap["if_match"])


@pytest.mark.slow
def test_the_end_of_an_old_life_ends_no_new_one(any_store: Store) -> None:
    """Overwritten with no lifetime, with a longer one, deleted and put again: four times the old one's time passes.
    What has expired is free to claim once, and a purge spares what was put since: the same value again, which on S3
    would have the same ETag but for the token."""

    class Meeting(WrappedStore):
        """Before the first removal a writer comes along."""

        def delete(self, key: str, *, if_match: str | None = None) -> None:
            Memory(any_store).put("purged", "old", 1000)
            super().delete(key, if_match=if_match)

    memory = Memory(any_store)
    etags = {key: memory.put(key, "old", 0.5) for key in ("replaced", "prolonged", "deleted", "gone", "task", "purged")}
    memory.put("replaced", "new")
    memory.put("prolonged", "new", 1000)
    assert memory.delete("deleted")
    memory.put("deleted", "new")
    time.sleep(2.6)
    assert "task" not in memory
    with pytest.raises(NotFound):
        memory.put("task", "second", if_match=etags["task"])
    assert sum(at_once(4, lambda _: Memory(any_store).put_new("task", "new", 1000))) == 1
    assert Memory(Meeting(any_store)).purge() == 1
    assert {entry.key: entry.value for entry in memory.read_entries()} == {
        "deleted": "new", "prolonged": "new", "purged": "old", "replaced": "new", "task": "new",
    }  # fmt: skip
    with pytest.raises(NotFound, match="no key 'gone' in "):
        memory.entry("gone")
    assert not memory.delete("gone")


@pytest.mark.slow
@pytest.mark.parametrize("hours", [-5, 5])
@pytest.mark.parametrize("any_store", ["directory", "moto", "seaweedfs"], indirect=True)
def test_a_client_whose_clock_is_wrong(any_store: Store, hours: int) -> None:
    """It writes and reads beside one whose clock is right, and both see the same: only the store's clock counts."""
    right, wrong = Memory(any_store), Memory(any_store)
    off = hours * 3600.0
    real = time.time
    skewed = SimpleNamespace(time=lambda: real() + off, time_ns=lambda: time.time_ns() + int(off * 1e9))

    def askew(work: Callable[[], R]) -> R:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("monocontext.stores.local.time", skewed)
            patch.setattr("monocontext.memory.objects.time", skewed)
            return work()

    right.put("theirs", "of the right", 600)
    askew(lambda: (wrong.put("own", "of the wrong", 600), wrong.put("short", "of the wrong", 0.5)))
    assert right.get("own") == askew(lambda: wrong.get("own")) == "of the wrong"
    assert right.get("theirs") == askew(lambda: wrong.get("theirs")) == "of the right"
    assert abs(right.entry("own").added_seconds - real()) < 60
    assert abs((askew(lambda: wrong.entry("theirs")).remaining_seconds or 0) - 600) < 60
    time.sleep(2.6)
    assert right.list() == askew(wrong.list) == ["own", "theirs"]
    assert right.get("short") is None
    assert askew(lambda: wrong.get("short")) is None


WRITER = """
import sys
from monocontext.memory import Memory
memory = Memory.open(sys.argv[1], **({"endpoint": sys.argv[2]} if sys.argv[2] else {}))
for number in range(100_000):
    memory.put(f"key {number:05}", f"value {number} " * 1000, 3600)
    memory.put("last", str(number) * 500)
    print(number, flush=True)
"""


@pytest.mark.parametrize("any_store", ["directory", "seaweedfs"], indirect=True)
def test_a_writer_that_is_killed(any_store: Store, request: pytest.FixtureRequest) -> None:
    """By SIGKILL, between two puts or within one: what was acknowledged is there, and nothing is half there."""
    endpoint = request.getfixturevalue("seaweed").endpoint if any_store.url.startswith("s3:") else ""
    command = [sys.executable, "-c", WRITER, any_store.url, endpoint]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(20)]
        process.kill()
        acknowledged += [int(line) for line in process.stdout.read().splitlines() if line]
    memory = Memory(any_store)
    keys = memory.list("key ")
    assert len(acknowledged) <= len(keys) <= len(acknowledged) + 1
    assert [memory[key] for key in keys] == [f"value {number} " * 1000 for number in range(len(keys))]
    assert memory["last"] in {str(number) * 500 for number in range(len(keys) - 2, len(keys))}


def test_a_put_whose_answer_was_lost_is_recognised(any_store: Store) -> None:
    """The client repeats it and meets its own object: that is no conflict, even where another said the same words."""
    memory, lossy = Memory(any_store), Memory(Faulty(any_store, *["twice"] * 3))
    etag = lossy.put("k", "words", create=True)
    assert not memory.put_new("k", "words")
    assert not lossy.put_new("k", "words")
    assert memory.entry("k").etag == etag
    etag = lossy.put("k", "words", if_match=etag)
    assert memory.entry("k").etag == etag


@pytest.mark.slow
@pytest.mark.parametrize("etag", ["", "x", "*", "é", "a\nb", "\0", '"', "\ud800", "W/x"])
def test_versions_that_never_were(any_store: Store, etag: str) -> None:
    tool = MemoryTool(Memory(any_store))
    for _ in range(2):
        reply = tool.execute({"command": "P", "key": "k", "value": "new", "if_match": etag})
        assert reply["error"] == "ERR:CONFLICT"
        tool.execute({"command": "P k old"})
    assert tool.memory.get("k") == "old"
    with pytest.raises(AlreadyExists):
        tool.memory.delete("k", if_match=etag)
    assert tool.memory.get("k") == "old"


def test_a_conflict_that_was_none() -> None:
    """S3 may answer 409 to one of two writers at once, and neither has written yet."""
    memory = Memory(Faulty(open_store("memory://busy"), "conflict", "conflict"))
    assert memory.put_new("k", "v")
    assert memory.get("k") == "v"


@pytest.mark.parametrize("fault", ["lost", "landed"])
def test_a_store_that_fails_in_the_middle(fault: str) -> None:
    store, is_landed = open_store(f"memory://failing-{fault}"), fault == "landed"
    memory = Memory(Faulty(store, fault, fault, fault))
    with nullcontext() if is_landed else pytest.raises(StoreFailure, match="no answer"):
        assert memory.put_new("k", "v")
    with pytest.raises(StoreFailure, match="no answer"):
        memory.put("k", "v")
    assert Memory(store).get("k") == ("v" if is_landed else None)
    assert MemoryTool(memory).execute({"command": "P k v"})["error"] == "ERR:no answer"


def test_lists_beside_writers_and_removers(any_store: Store) -> None:
    """Between the LIST and a look at an entry the entry goes, or changes."""

    class Moving(WrappedStore):
        def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
            found = [*super().list(prefix)]
            Memory(any_store).put("changes", "a longer value than it was before, and a lifetime", 1000)
            Memory(any_store).delete("goes")
            return iter(found)

    memory = Memory(any_store)
    for key in ("changes", "goes", "stays"):
        memory.put(key, "v")
    assert Memory(Moving(any_store)).list() == ["changes", "stays"]


def test_a_store_that_tells_no_times() -> None:
    """A store of a user's, without the fields that ours fill: one look more, and our own clock."""

    class Terse(WrappedStore):
        def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
            blob = super().get(key, most_bytes=most_bytes)
            return Blob(blob.data, blob.etag, blob.total_bytes)

        def head(self, key: str) -> ObjectInfo:
            info = super().head(key)
            return ObjectInfo(info.key, info.size_bytes, info.etag, info.modified_seconds)

        def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
            return (ObjectInfo(i.key, i.size_bytes, i.etag, i.modified_seconds) for i in super().list(prefix))

    memory = Memory(Terse(Memory.open("memory://terse").store))
    memory.put("k", "v", 1000)
    assert memory.get("k") == "v"
    assert memory.list() == ["k"]
    memory.put("k", "v", 0.2)
    time.sleep(0.4)
    assert memory.get("k") is None
    assert memory.list() == []


def test_requests(any_store: Store) -> None:
    """What each call asks for, on stores that tell their time with every answer."""
    counted = CountingStore(any_store)
    memory, fresh = Memory(counted), partial(Memory, counted)

    def count_requests(work: Callable[[], object]) -> dict[str, int]:
        counted.reset()
        work()
        return dict(counted.counts)

    assert count_requests(lambda: memory.put("k", "v", create=True)) == {"put": 1}
    assert count_requests(lambda: memory.get("k")) == {"get": 1}
    assert count_requests(lambda: fresh().get("k")) == {"get": 1}
    assert count_requests(lambda: memory.put("k", "w", if_match=memory.entry("k").etag)) == {"get": 1, "put": 1}
    assert count_requests(memory.list) == {"list": 1}
    assert count_requests(lambda: fresh().list()) == {"list": 1, "get_range": 1}
    assert count_requests(lambda: fresh().delete("k")) == {"head": 1, "get_range": 1, "delete": 1}


def test_one_version_is_removed(any_store: Store) -> None:
    first, second = any_store.put("a", b"1"), any_store.put("a", b"2")
    with pytest.raises(AlreadyExists, match=f"{any_store.url}/a"):
        any_store.delete("a", if_match=first)
    assert any_store.get("a").data == b"2"
    any_store.delete("a", if_match=second)
    with pytest.raises(NotFound):
        any_store.get("a")
    any_store.delete("a", if_match=second)
    CountingStore(any_store).delete("a", if_match=second)


@pytest.mark.parametrize("transport", ["own", "boto3"])
def test_by_either_way(seaweed: SeaweedServer, transport: str) -> None:
    store = open_store(seaweed.url("clocks"), endpoint=seaweed.endpoint, transport=transport)
    store.put("a", b"1")
    for told in (store.get("a"), store.head("a"), *store.list()):
        assert 0 <= told.now_seconds - told.modified_seconds < 30
    store.close()


@pytest.mark.parametrize("hours", [-5, 5])
def test_files_are_stamped_by_the_file_systems_clock(
    tmp_path: Path, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no two versions share an ETag for it. Where nothing can be written, nothing is."""
    real = time.time_ns
    skewed = SimpleNamespace(time=lambda: real() / 1e9 + hours * 3600, time_ns=lambda: real() + hours * 3600 * 10**9)
    assert abs(open_store(tmp_path / "none").now() - real() / 1e9) < 5  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("monocontext.stores.local.time", skewed)
    store = open_store(tmp_path)
    assert len({store.put("a", b"same size") for _ in range(200)}) == 200
    assert abs(store.head("a").modified_seconds - real() / 1e9) < 30
    assert abs(store.now() - real() / 1e9) < 30  # type: ignore[attr-defined]
    assert [info.key for info in store.list()] == ["a"]


@pytest.mark.parametrize("phase", [0.01, 0.3, 0.95])
@pytest.mark.parametrize("clock", ["whole", "whole writes", "fine"])
@pytest.mark.parametrize("ttl", [0.1, 1.0, 1.5, 2.0])
def test_how_long_an_entry_lives(ttl: float, clock: str, phase: float) -> None:
    """Never shorter than its lifetime, and up to a second longer than what is rounded up where seconds are whole."""
    written = 1000 + phase
    lived = 0.0
    for step in range(500):
        now = written + step / 100
        added = written if clock == "fine" else math.floor(written)
        told = round_to_clock(ttl, float(added), float(math.floor(now)) if clock == "whole" else now)
        if Entry("k", None, "e", 0, added, told[0], told[1], {}).is_expired:
            break
        lived = step / 100
    assert ttl - 0.011 <= lived <= (ttl if clock == "fine" else math.ceil(ttl) + 1) + 0.011


def test_the_lifetime_that_counts_is_told(any_store: Store) -> None:
    memory = Memory(any_store)
    memory.put("k", "v", 5.5)
    (listed,) = memory.entries()
    expected = 6.0 if any_store.url.startswith("s3:") else 5.5
    assert memory.entry("k").ttl_seconds == listed.ttl_seconds == expected
