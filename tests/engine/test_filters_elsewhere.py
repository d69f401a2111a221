"""Searches that ask filters outside of the text, as those over sessions do, in texts whose pages are named by
directories: the answers are those of the frames named, and nothing else is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.growth import FRAME, NEEDLE, simulated
from monocontext import Monocontext
from monocontext.engine.filter_lookup import RecordsInMemory
from monocontext.format.filters.query import Literal, Query
from monocontext.testing import CountingStore
from tests.virtual import virtual_context

FRAMES = 12_000_000
"""3 TB: five directories of pages."""
PLACES = [FRAMES // 5, FRAMES // 2, FRAMES - 7]
Runs = tuple[tuple[int, int], ...]


@pytest.fixture(scope="module", params=[False, True], ids=["no filters", "filters"])
def store(request: pytest.FixtureRequest) -> CountingStore:
    middle = len(FRAME) // 2
    planted = f"{FRAME[:middle]}\n{NEEDLE}\n{FRAME[middle:]}"
    return CountingStore(virtual_context(FRAMES, FRAME, dict.fromkeys(PLACES, planted), filters=request.param))


def opened(store: CountingStore, ask: Callable[[Query, bool], Runs | None], **options: Any) -> Monocontext:
    context = Monocontext.open(store, workers=simulated(), **options)
    reader: Any = context._reader
    assert reader.manifest.has_directories
    reader.use_other_filters(ask)
    store.reset()
    return context


def kinds(store: CountingStore) -> set[str]:
    """What was asked for."""
    return {request.key.rpartition(".")[2] for request in store.log}


class Elsewhere:
    """Names the frames that hold the needle, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Query] = []

    def __call__(self, query: Query, within_line: bool) -> Runs:
        self.asked.append(query)
        return tuple((place, place + 1) for place in PLACES if query == Literal(NEEDLE))


def test_a_search_reads_the_frames_that_are_named(store: CountingStore) -> None:
    ask = Elsewhere()
    context = opened(store, ask)
    first = context.find(NEEDLE)
    assert first // len(FRAME) == PLACES[0]
    assert context[first : first + len(NEEDLE)] == NEEDLE
    assert context.rfind(NEEDLE) // len(FRAME) == PLACES[2]
    assert context.find(NEEDLE, first + 1) // len(FRAME) == PLACES[1]
    assert [hit.offset // len(FRAME) for hit in context.grep(NEEDLE)] == PLACES
    assert context.count(NEEDLE) == 3
    assert NEEDLE not in context[first + 1 : PLACES[1] * len(FRAME)]
    assert kinds(store) == {"dir", "idx", "seg"}, "no filter of the text itself"
    assert store.bytes_read < 10e6
    assert 1 <= len(ask.asked) <= 2, "grep asks for matches within a line; answers are remembered"


def test_a_hint_reads_nothing_ahead_that_is_not_named(store: CountingStore) -> None:
    """The read-ahead asks nobody elsewhere: it holds the lock of the text."""
    ask = Elsewhere()
    context = opened(store, ask)
    with context.thinking():
        context.hint(f"at = context.find({NEEDLE!r})\nprint(context[at:at + 50])\n")
    assert not ask.asked
    assert kinds(store) <= {"dir", "idx"}
    assert context.find(NEEDLE) // len(FRAME) == PLACES[0]
    assert len(ask.asked) == 1
    store.reset()
    with context.thinking():
        context.hint(f"last = context.rfind({NEEDLE!r})\n")
    assert context.rfind(NEEDLE) // len(FRAME) == PLACES[2]
    assert kinds(store) <= {"dir", "idx", "seg"}
    assert len(ask.asked) == 1


def test_who_cannot_tell_leaves_a_part_to_be_read(store: CountingStore) -> None:
    context = opened(store, lambda query, within_line: None)
    at = PLACES[1] * len(FRAME)
    assert context.find(NEEDLE, at - 20 * len(FRAME), at + 20 * len(FRAME)) // len(FRAME) == PLACES[1]
    assert context.find(NEEDLE, at - 20 * len(FRAME), at) == -1
    assert "flt" not in kinds(store)


@pytest.mark.usefixtures("stores_are_measured")
def test_a_walk_fetches_nothing_by_itself(store: CountingStore) -> None:
    """Who follows it may hold the lock of the text, and the store may be far away."""
    context = opened(store, Elsewhere())
    reader: Any = context._reader
    reader.fetcher.link.round_trip_seconds = 0.03
    query, at = Literal(NEEDLE), (PLACES[1] - 30) * len(FRAME)
    missing = reader._filters.narrow(
        query, at, at + 60 * len(FRAME), False,
        get_loaded=reader.cache.peek, records=RecordsInMemory(reader.table), needs_text=False,
    )  # fmt: skip
    assert {item.object.rpartition(".")[2] for item in missing.items} == {"dir"}
    assert store.log == []
    assert reader.narrow(query, at, at + 60 * len(FRAME)).runs == [(PLACES[1], PLACES[1] + 1)]
