"""Random programs over lazy lists and dicts of documents, against real ones: on stores, after appends, any cache."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from monocontext import Monocontext, append, publish
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import Store
from monocontext.text import served_text
from monocontext.writing.documents import documents
from monocontext.writing.upkeep.compact import compact
from tests.budget import examples
from tests.text.documents.programs import differences, pairs, texts

CACHES = (0, 1000, 20_000, 1 << 20, 64 << 20)


def grow(store: Store, seed: int, shape: str) -> Any:
    """Publish, append and perhaps compact documents; returns the real list or dict."""
    choice = random.Random(seed)
    frame_bytes = choice.choice((64, 600, 4096))
    given = pairs(seed, texts(seed, choice.choice((0, 1, 5, 30, 80)), 3 * frame_bytes), double=False)
    publish(documents(given), store, frame_bytes=frame_bytes)
    for turn in range(choice.choice((0, 0, 1, 4))):
        more = pairs(seed + turn, texts(seed + turn + 1, choice.randrange(6), 2 * frame_bytes), double=True)
        more = list(dict(more).items())
        append(documents(more), store)
        given += more
    if choice.random() < 0.3:
        compact(store)
    return [text for _, text in given] if shape == "list" else dict(given)


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    name = uuid.uuid4().hex
    yield MemoryStore(name)
    forget(name)


def opened(store: Store, seed: int, shape: str) -> Any:
    return Monocontext.open(
        store, shape=shape, cache_bytes=CACHES[seed % len(CACHES)], threads=bool(seed % 3),  # type: ignore[call-overload]
        materialize_limit=(1 << 20, 64 << 20)[seed % 2],
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["list", "dict"])
@pytest.mark.parametrize("seed", range(examples(10)))
def test_programs_give_what_they_give_on_real_ones(store: MemoryStore, seed: int, shape: str) -> None:
    real = grow(store, seed, shape)
    with opened(store, seed, shape) as xs:
        assert differences(xs, real, seed, 100) == []


@pytest.mark.parametrize("shape", ["list", "dict"])
def test_programs_on_every_store(any_store: Store, shape: str) -> None:
    real = grow(any_store, 4, shape)
    with opened(any_store, 4, shape) as xs:
        assert differences(xs, real, 4, 60) == []


@pytest.mark.parametrize("shape", ["list", "dict"])
def test_programs_over_a_served_context(store: MemoryStore, shape: str) -> None:
    real = grow(store, 7, shape)
    with opened(store, 7, shape) as xs:
        served: Any = served_text(xs.serve().answer)
        assert type(served) is type(xs)
        assert differences(served, real, 7, 150) == []


@pytest.mark.fuzz
@pytest.mark.parametrize("shape", ["list", "dict"])
@pytest.mark.parametrize("part", range(20))
def test_many_programs(shape: str, part: int) -> None:
    """100,000 statements."""
    for seed in range(100 + 5 * part, 105 + 5 * part):
        name = uuid.uuid4().hex
        store = MemoryStore(name)
        real = grow(store, seed, shape)
        with opened(store, seed, shape) as xs:
            assert differences(xs, real, seed, 500) == []
        forget(name)
