"""What a memory stands on: stores that tell their time with an answer, and remove one version on request."""

from __future__ import annotations

import math
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from monocontext.errors import AlreadyExists, NotFound
from monocontext.memory import Memory
from monocontext.memory.entry import Entry, round_to_clock
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, SeaweedServer


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


def test_times_come_with_the_answer(any_store: Store) -> None:
    any_store.put("a", b"1")
    blob, info, (listed,) = any_store.get("a"), any_store.head("a"), any_store.list()
    for told in (blob, info, listed):
        assert abs(told.modified_seconds - time.time()) < 30
        is_untold = told.now_seconds == 0 and not any_store.url.startswith("memory:")
        assert is_untold or -1 <= told.now_seconds - told.modified_seconds < 30
    assert any_store.get_range("a", 0, 1).data == b"1"


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
