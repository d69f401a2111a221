"""What other people's hosts do to the object that they are given: each asks something of it, and gets it cheaply."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from monocontext import Monocontext
from monocontext.testing import CountingStore
from tests.virtual import virtual_context

FRAMES = 1 << 18
FILLER = "a line of sixteen kibibytes\n" * 585
LENGTH = FRAMES * len(FILLER)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore(virtual_context(FRAMES, FILLER))


@pytest.fixture
def context(store: CountingStore) -> Iterator[Monocontext]:
    with Monocontext.open(store) as text:
        store.reset()
        yield text


def test_a_repr_is_short_and_costs_nothing(context: Monocontext, store: CountingStore) -> None:
    """Loggers and REPLs take it after every cell."""
    began = time.process_time()
    said = [repr(context) for _ in range(100)] + [repr(context.split("\n"))]
    assert time.process_time() - began < 1.0
    assert max(map(len, said)) < 200
    assert f"{LENGTH:,}" in said[0]
    assert store.requests == 0


def test_it_is_what_it_says(context: Monocontext) -> None:
    """Hosts sort by type: callables go elsewhere, and attributes that anything answers to are asked for."""
    assert type(context) is context.__class__ is Monocontext
    assert not isinstance(context, str)
    assert isinstance(context, Sequence)
    assert not callable(context)
    for probed in ("model_dump", "dict", "__fields__", "to_repl_variable", "__array__interface__"):
        assert not hasattr(context, probed)
