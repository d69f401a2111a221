"""What LangGraph's `BaseStore` promises, kept by its own store in memory and by ours. Run by `test_bridges.py`."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, Item, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from monocontext.errors import InvalidEntry
from monocontext.memory import Memory
from monocontext.memory.langgraph_store import LangGraphStore
from monocontext.stores import open_store
from monocontext.testing import CountingStore


@pytest.fixture(params=["theirs", "memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BaseStore:
    if request.param == "theirs":
        return InMemoryStore()
    return LangGraphStore(Memory.open(tmp_path if request.param == "directory" else f"memory://{tmp_path.name}"))


def got(store: BaseStore, namespace: tuple[str, ...], key: str) -> Item:
    item = store.get(namespace, key)
    assert isinstance(item, Item), key
    return item


def test_items_come_back(store: BaseStore) -> None:
    value = {"text": "ünï\n", "n": 1, "nested": {"list": [1, None, True]}}
    store.put(("users", "ann"), "likes", value)
    item = got(store, ("users", "ann"), "likes")
    assert (item.namespace, item.key, item.value) == (("users", "ann"), "likes", value)
    assert abs(item.updated_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert item.created_at.tzinfo is not None
    assert store.get(("users", "ann"), "none") is None
    assert store.get(("users",), "likes") is None
    store.put(("users", "ann"), "likes", {"n": 2})
    assert got(store, ("users", "ann"), "likes").value == {"n": 2}
    for _ in range(2):
        store.delete(("users", "ann"), "likes")
        assert store.get(("users", "ann"), "likes") is None


def test_keys_are_any_text(store: BaseStore) -> None:
    keys = ["", "..", "a..b", ".x", "a/b", "../up", "ключ", "a b\n", "store:", "🔑"]
    for number, key in enumerate(keys):
        store.put(("odd", "k:"), key, {"n": number})
    found = store.search(("odd",), limit=100)
    assert sorted((item.key, item.value["n"]) for item in found) == sorted(zip(keys, range(len(keys)), strict=True))
    for number, key in enumerate(keys):
        assert got(store, ("odd", "k:"), key).value == {"n": number}, key


def test_searches_narrow(store: BaseStore) -> None:
    for number in range(15):
        kind = "odd" if number % 2 else "even"
        store.put(("docs", f"team{number % 3}"), f"{number:02}", {"n": number, "kind": kind})
    store.put(("docsy",), "other", {"n": 99})

    def keys(*args: object, **options: object) -> list[str]:
        return sorted(item.key for item in store.search(*args, **options))  # type: ignore[arg-type]

    assert len(store.search(("docs",))) == 10
    assert keys(("docs",), limit=100) == [f"{number:02}" for number in range(15)]
    assert keys(("docs", "team1"), limit=100) == ["01", "04", "07", "10", "13"]
    assert len(store.search(("docs",), filter={"kind": "odd"}, limit=3)) == 3
    assert keys(("docs",), filter={"n": {"$gte": 10, "$lt": 12}}) == ["10", "11"]
    assert keys(("docs",), filter={"n": {"$ne": 3}, "kind": {"$eq": "odd"}}) == ["01", "05", "07", "09", "11", "13"]
    assert keys(("docs",), filter={"n": {"$gt": 12}}) == ["13", "14"]
    assert keys(("docs",), filter={"n": {"$lte": 1}}) == ["00", "01"]
    for narrowed, step, expected in ({}, 4, range(15)), ({"kind": "odd"}, 4, range(1, 15, 2)):
        pages = [store.search(("docs",), filter=narrowed, limit=step, offset=at) for at in range(0, 15, step)]
        assert sorted(item.value["n"] for page in pages for item in page) == [*expected]
    assert store.search(("nowhere",)) == []
    with pytest.raises(ValueError, match="like"):
        store.search(("docs",), filter={"n": {"$like": 1}})


def test_namespaces_are_listed(store: BaseStore) -> None:
    for namespace in (("ns", "b", "y"), ("ns", "a"), ("ns", "b", "x"), ("ns", "b", "x", "deep"), ("nsx",)):
        store.put(namespace, "k", {})
    every = [("ns", "a"), ("ns", "b", "x"), ("ns", "b", "x", "deep"), ("ns", "b", "y")]
    assert store.list_namespaces(prefix=("ns",)) == every
    assert store.list_namespaces(prefix=("ns",), max_depth=2) == [("ns", "a"), ("ns", "b")]
    assert store.list_namespaces(prefix=("ns", "*", "x")) == every[1:3]
    assert store.list_namespaces(suffix=("x",)) == [("ns", "b", "x")]
    assert store.list_namespaces(prefix=("ns",), limit=2, offset=1) == every[1:3]


def test_batches_keep_their_order(store: BaseStore) -> None:
    store.put(("batch",), "a", {"n": 0})
    space = ("batch",)
    ends = [PutOp(space, "gone", {"n": 3}), PutOp(space, "gone", None)]
    results = store.batch(
        [PutOp(space, "a", {"n": 1}), GetOp(space, "a"), PutOp(space, "a", {"n": 2}), SearchOp(space), *ends]
    )
    assert results[0] is results[2] is results[4] is results[5] is None
    assert results[1].value == {"n": 0}
    assert [item.key for item in results[3]] == ["a"]
    assert got(store, ("batch",), "a").value == {"n": 2}
    assert store.get(("batch",), "gone") is None


def test_works_from_async_code(store: BaseStore) -> None:
    async def run() -> None:
        await asyncio.gather(*(store.aput(("async",), str(n), {"n": n}) for n in range(8)))
        items = await asyncio.gather(*(store.aget(("async",), str(n)) for n in range(8)))
        assert [item.value["n"] for item in items if item] == list(range(8))
        assert len(await store.asearch(("async",), limit=100)) == 8
        await store.adelete(("async",), "0")
        assert await store.alist_namespaces(prefix=("async",)) == [("async",)]
        assert await store.aget(("async",), "0") is None

    asyncio.run(run())


def test_namespaces_are_checked(store: BaseStore) -> None:
    for namespace in ((), ("langgraph", "x"), ("a.b",), ("",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})


def test_searches_read_what_they_return() -> None:
    counted = CountingStore(open_store("memory://contract-reads"))
    store = LangGraphStore(Memory(counted))
    for number in range(60):
        store.put(("docs",), f"{number:02}", {"n": number})
    for options, gets in (({}, 5), ({"offset": 7}, 12), ({"filter": {"n": {"$gte": 2}}}, 10)):
        counted.reset()
        assert len(store.search(("docs",), limit=5, **options)) == 5  # type: ignore[arg-type]
        assert counted.counts == {"list": 1, "get": gets}, options


def test_lifetimes_are_minutes_and_begin_anew(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path)
    store = LangGraphStore(memory, ttl={"default_ttl": 2, "refresh_on_read": True})
    store.put(("ttl",), "default", {})
    store.put(("ttl",), "given", {"n": 1}, ttl=0.05)
    store.put(("ttl",), "none", {}, ttl=None)
    lives = {entry.key.rsplit(".", 1)[1]: entry.ttl_seconds for entry in memory.entries("store:ttl.")}
    assert lives == {"default": 120, "given": 3, "none": None}
    first, added = got(store, ("ttl",), "given"), memory.entry("store:ttl..given").added_seconds
    time.sleep(1.2)
    assert got(store, ("ttl",), "given").updated_at == first.updated_at
    kept = memory.entry("store:ttl..given").added_seconds
    assert kept >= added + 1
    time.sleep(1.2)
    store.get(("ttl",), "given", refresh_ttl=False)
    assert memory.entry("store:ttl..given").added_seconds == kept
    time.sleep(3.5)
    assert store.get(("ttl",), "given") is None
    assert store.get(("ttl",), "default") is not None
    for value, ttl in (({}, -1), ({"x": object()}, None)):
        with pytest.raises(InvalidEntry):
            store.put(("ttl",), "bad", value, ttl=ttl)
