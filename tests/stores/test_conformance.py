"""One suite for every kind of store: what reader and writer rely on, whatever is behind it."""

from __future__ import annotations

import itertools
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from monocontext import Monocontext
from monocontext.errors import AlreadyExists, ContextChanged, DamagedData, InvalidUrl, NotFound
from monocontext.stores.protocol import Store
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.compact import compact
from monocontext.writing.upkeep.verify import verify

WRITERS = 8
# SeaweedFS lets writers of one key wait for each other in steps of a second: 3 s a round.
ROUNDS = 2


ODD_KEYS = [
    *("ünï/cødé/文.txt", "with space/and+plus", "percent%20/%2e%2e", "question?a=b&c#d", "..hidden/...", ".dot"),
    *("quote'\"", "x" * 200, "tilde~/~", "a:b@c!$()*,;=[]{}|^`", "C:/windows"),
]
HOSTILE_KEYS = ["", "/", "/etc/passwd", "../x", "a/../b", "a/..", "a//b", "./a", "a/.", "a\0b", "a/", "bad\udc80"]

# moto closes the old bytes of an object under whoever reads them, and looks for a key before it stores: it can play
# neither readers beside writers nor a race.
real_threads = pytest.mark.parametrize("any_store", ["memory", "directory", "seaweedfs"], indirect=True)


@pytest.mark.slow
def test_a_context_lives_there(any_store: Store) -> None:
    text = "".join(f"{n:06d} a line, ä, of a text that lies in some store\n" for n in range(5_000))
    publish(text, any_store, segment_bytes=50_000)
    with Monocontext.open(any_store) as context:
        assert context[:100] == text[:100]
        assert context.find("004999") == text.find("004999")
        append("and more\n", any_store)
        assert str(context.refresh()) == text + "and more\n"
    compact(any_store)
    assert verify(any_store).problems == []


def test_what_is_put_comes_back(any_store: Store) -> None:
    etag = any_store.put("a", b"0123456789")
    blob = any_store.get("a")
    assert (blob.data, blob.etag, blob.total_bytes) == (b"0123456789", etag, 10)
    for start, length in [(0, 10), (0, 1), (9, 1), (3, 4), (0, 0), (10, 0)]:
        blob = any_store.get_range("a", start, length, etag=etag)
        assert (blob.data, blob.etag, blob.total_bytes) == (b"0123456789"[start : start + length], etag, 10)


def test_range_past_the_end_is_damage(any_store: Store) -> None:
    any_store.put("a", b"0123456789")
    for start, length in [(0, 11), (9, 2), (10, 1), (500, 3), (11, 0)]:
        with pytest.raises(DamagedData, match=f"{re.escape(any_store.url)}/a "):
            any_store.get_range("a", start, length)


def test_pinned_range_of_a_replaced_object(any_store: Store) -> None:
    old = any_store.put("a", b"one version")
    new = any_store.put("a", b"one another")
    assert old != new
    with pytest.raises(ContextChanged, match=f"{re.escape(any_store.url)}/a was replaced"):
        any_store.get_range("a", 0, 3, etag=old)
    with pytest.raises(ContextChanged):
        any_store.get_range("a", 0, 0, etag=old)
    assert any_store.get_range("a", 4, 7, etag=new).data == b"another"


def test_empty_object(any_store: Store) -> None:
    etag = any_store.put("empty", b"")
    assert any_store.get("empty").data == b""
    assert any_store.head("empty").size_bytes == 0
    assert any_store.get_range("empty", 0, 0, etag=etag).total_bytes == 0
    with pytest.raises(DamagedData):
        any_store.get_range("empty", 0, 1)


def test_nothing_there(any_store: Store) -> None:
    any_store.put("folder/inside", b"x")
    for key in ("absent", "folder", "folder/absent", "no/such/folder/absent"):
        for ask in (any_store.get, any_store.head, lambda key: any_store.get_range(key, 0, 1)):
            with pytest.raises(NotFound, match=f"{re.escape(any_store.url)}/{key}"):
                ask(key)
    with pytest.raises((NotFound, InvalidUrl), match=r"/a\\nb\\x1b\[31m"):  # in one line
        any_store.get("a\nb\x1b[31m")
    any_store.delete("absent")
    any_store.delete("folder")
    assert any_store.get("folder/inside").data == b"x"


@pytest.mark.slow
def test_head_agrees_with_put_and_list(any_store: Store) -> None:
    before = time.time()
    etag = any_store.put("a/b", b"12345")
    info = any_store.head("a/b")
    assert (info.key, info.size_bytes, info.etag) == ("a/b", 5, etag)
    # S3 tells whole seconds.
    assert before - 2 < info.modified_seconds < time.time() + 2
    (listed,) = any_store.list()
    assert (listed.key, listed.size_bytes, listed.etag) == ("a/b", 5, etag)
    assert listed.modified_seconds == pytest.approx(info.modified_seconds, abs=1.0)


def test_delete(any_store: Store) -> None:
    any_store.put("a/b", b"x")
    any_store.delete("a/b")
    with pytest.raises(NotFound):
        any_store.get("a/b")
    assert list(any_store.list()) == []
    any_store.put("a/b", b"y", if_absent=True)
    assert any_store.get("a/b").data == b"y"


def test_list_is_in_key_order_and_by_prefix(any_store: Store) -> None:
    keys = ["a/b", "a-b", "a.b", "a0", "b", "a/ä", "a/𝄞", "a/Z"]
    for key in random.sample(keys, len(keys)):
        any_store.put(key, b"x")
    assert [info.key for info in any_store.list()] == sorted(keys)
    for prefix in ("a", "a/", "a/b", "a-", "b", "c", "a/ä", "a/b/"):
        expected = sorted(key for key in keys if key.startswith(prefix))
        assert [info.key for info in any_store.list(prefix)] == expected, prefix


@pytest.mark.slow
@pytest.mark.parametrize("any_store", ["memory", "directory", "moto"], indirect=True)
def test_list_of_more_than_a_page(any_store: Store) -> None:
    keys = [f"generations/{number:020}.json" for number in range(1003)]
    for key in keys:
        any_store.put(key, b"{}")
    assert [info.key for info in any_store.list()] == keys
    assert [info.key for info in any_store.list("generations/")] == keys


@pytest.mark.slow
def test_odd_keys(any_store: Store) -> None:
    for key in ODD_KEYS:
        etag = any_store.put(key, b"odd")
        assert any_store.get_range(key, 1, 2, etag=etag).data == b"dd", key
        assert [info.key for info in any_store.list()] == [key]
        assert any_store.head(key).size_bytes == 3
        any_store.delete(key)
        assert list(any_store.list()) == []


@pytest.mark.parametrize("any_store", ["memory", "directory", "moto"], indirect=True)
def test_backslash_is_a_letter(any_store: Store) -> None:
    """Not on SeaweedFS, which takes it for a slash."""
    any_store.put("back\\slash", b"x")
    assert [info.key for info in any_store.list()] == ["back\\slash"]


@pytest.mark.slow
def test_hostile_keys(any_store: Store) -> None:
    asks = (
        any_store.get,
        any_store.head,
        any_store.delete,
        lambda key: any_store.get_range(key, 0, 1),
        lambda key: any_store.put(key, b"x"),
        lambda key: any_store.put(key, b"x", if_absent=True),
    )
    for key, ask in itertools.product(HOSTILE_KEYS, asks):
        with pytest.raises(InvalidUrl):
            ask(key)
    assert list(any_store.list()) == list(any_store.list("../")) == []


def test_create_only(any_store: Store) -> None:
    etag = any_store.put("g/1", b"first", if_absent=True)
    with pytest.raises(AlreadyExists, match=f"{re.escape(any_store.url)}/g/1"):
        any_store.put("g/1", b"second", if_absent=True)
    assert any_store.get_range("g/1", 0, 5, etag=etag).data == b"first"


def test_compare_and_swap(any_store: Store) -> None:
    first = any_store.put("m", b"1")
    second = any_store.put("m", b"2", if_match=first)
    with pytest.raises(AlreadyExists, match=f"{re.escape(any_store.url)}/m"):
        any_store.put("m", b"3", if_match=first)
    assert any_store.get("m").data == b"2"
    assert any_store.head("m").etag == second
    any_store.delete("m")
    with pytest.raises(NotFound, match=f"{re.escape(any_store.url)}/m"):
        any_store.put("m", b"4", if_match=second)
    with pytest.raises(NotFound):
        any_store.get("m")


def test_two_conditions_exclude_each_other(any_store: Store) -> None:
    with pytest.raises(ValueError, match="cannot be combined"):
        any_store.put("m", b"", if_absent=True, if_match="x")


def race(store: Store, key: str, texts: list[bytes], **condition: Any) -> str:
    """Let 8 threads write at once; the ETag that the one winner got, whose text is there."""
    barrier = threading.Barrier(WRITERS)

    def write(text: bytes) -> str | None:
        barrier.wait()
        try:
            return store.put(key, text, **condition)
        except AlreadyExists:
            return None

    with ThreadPoolExecutor(WRITERS) as threads:
        etags = list(threads.map(write, texts))
    ((text, etag),) = [(text, etag) for text, etag in zip(texts, etags, strict=True) if etag]
    blob = store.get(key)
    assert (blob.data, blob.etag) == (text, etag)
    return etag


@pytest.mark.slow
@real_threads
def test_one_writer_wins(any_store: Store) -> None:
    etag = any_store.put("m", b"start")
    for number in range(ROUNDS):
        # Never the same text twice: on S3 the ETag is that of the bytes, and who writes what is there changes nothing.
        texts = [b"%d in round %d" % (writer, number) for writer in range(WRITERS)]
        race(any_store, f"generations/{number}", texts, if_absent=True)
        etag = race(any_store, "m", texts, if_match=etag)


@pytest.mark.slow
def test_large_object(any_store: Store) -> None:
    """Above the size from which S3 gets it in parts."""
    data = random.Random(5).randbytes(20 << 20)
    etag = any_store.put("large", data)
    assert any_store.get("large").data == data
    # Across the border of two parts.
    blob = any_store.get_range("large", (8 << 20) - 5, 10, etag=etag)
    assert blob.data == data[(8 << 20) - 5 : (8 << 20) + 5]
    assert any_store.head("large").size_bytes == blob.total_bytes == len(data)
    with pytest.raises(AlreadyExists):
        any_store.put("large", data, if_absent=True)


@real_threads
def test_readers_never_see_half_of_a_write(any_store: Store) -> None:
    versions = [bytes([number]) * 50_000 for number in range(6)]
    any_store.put("a", versions[0])
    done = threading.Event()

    def read() -> int:
        reads = 0
        while not done.is_set():
            blob = any_store.get("a")
            assert blob.data in versions
            reads += 1
        return reads

    with ThreadPoolExecutor(2) as threads:
        readers = [threads.submit(read) for _ in range(2)]
        for version in versions[1:]:
            any_store.put("a", version)
        done.set()
        assert all(reader.result() >= 0 for reader in readers)
    assert any_store.get("a").data == versions[-1]
