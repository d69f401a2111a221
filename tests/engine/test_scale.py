"""Texts of many terabytes: roots, requests and bytes are exact (docs/benchmarks.md)."""

from __future__ import annotations

import pytest

from benchmarks.growth import FRAME, LINE, NEEDLE, huge_text, simulated_workers
from monocontext import Monocontext
from monocontext.format.manifest import ROOT_KEY
from monocontext.testing import CountingStore
from tests.virtual import virtual_context

pytestmark = pytest.mark.slow  # 6 s, of which the virtual store takes most

DIRECTORY, PAGE = "dir", "idx"


def kinds(store: CountingStore) -> list[str]:
    """What was asked for, in order."""
    return [request.key.rpartition(".")[2] for request in store.log]


def test_100_terabytes_open_with_one_request() -> None:
    frames = 10**14 // len(FRAME)
    store = CountingStore(virtual_context(frames, FRAME))
    assert store.store.head(ROOT_KEY).size_bytes <= 16_000
    context = Monocontext.open(store, workers=simulated_workers())
    assert store.gets == 1
    assert len(context) == frames * len(FRAME)
    store.reset()
    at = frames // 3 * len(FRAME)
    assert context[at : at + 50] == LINE[:50]
    assert kinds(store) == [DIRECTORY, PAGE, "seg"]
    assert store.bytes_read < 500_000
    context = Monocontext.open(store, workers=simulated_workers())
    store.reset()
    assert context.lines[frames * 1000] == LINE
    assert kinds(store) == [DIRECTORY, PAGE, "seg"]


@pytest.fixture(scope="module")
def text() -> tuple[CountingStore, list[int]]:
    """3 TB with filters, and three needles."""
    made, places = huge_text(3)
    return CountingStore(made), places


def test_a_find_asks_each_filter_once(text: tuple[CountingStore, list[int]]) -> None:
    store, [first, *_] = text
    context = Monocontext.open(store, workers=simulated_workers())
    store.reset()
    assert context.find(NEEDLE) // len(FRAME) == first
    filters = -(-(3 * 10**12 // len(FRAME)) // (1 << 16))
    asked = kinds(store)
    assert asked.count(DIRECTORY) == -(-(filters - 8) // 64) + 1, "those of the filters, and one of pages"
    assert asked.count("flt") <= 16 * filters
    assert asked.count("seg") <= 2
    store.reset()
    assert context.find(NEEDLE) // len(FRAME) == first
    assert store.gets == 0, "answers are remembered"
