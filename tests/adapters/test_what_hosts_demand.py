"""What other people's hosts do to the object that they are given: each asks something of it, and gets it cheaply."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Iterator, Sequence

import pytest

from monocontext import ContextTooLarge, Monocontext
from monocontext.testing import CountingStore, S3StandIn
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


def test_a_pickle_is_small_and_holds_no_secret() -> None:
    """recursive-llm and the ipython subprocess of rlms pickle it, and aliases of it go back after each step."""
    with (
        S3StandIn(virtual_context(100, FILLER)) as server,
        Monocontext.open(server.url(), endpoint=server.endpoint, anonymous=True) as text,
    ):
        text[:10]
        pickled = pickle.dumps(text)
        assert len(pickled) < 1000
        with pickle.loads(pickled) as again:
            assert again[:30] == text[:30]


def test_a_copy_is_the_text_itself(context: Monocontext) -> None:
    """spec-ptc and the ipython environment of rlms copy what they hold, deeply."""
    assert copy.copy(context) is context
    assert copy.deepcopy({"context": [context]})["context"][0] is context


def test_a_repr_is_short_and_costs_nothing(context: Monocontext, store: CountingStore) -> None:
    """Loggers and REPLs take it after every cell."""
    began = time.process_time()
    said = [repr(context) for _ in range(100)]
    assert time.process_time() - began < 1.0
    assert len(said[0]) < 200
    assert f"{LENGTH:,}" in said[0]
    assert store.requests == 0


@pytest.mark.parametrize("make", [str, "{}".format, lambda text: f"{text}", "%s".__mod__, lambda text: text.encode()])
def test_the_whole_as_one_str_is_refused(context: Monocontext, store: CountingStore, make: object) -> None:
    """A host that asks for it must not be handed a preview, nor all of it."""
    with pytest.raises(ContextTooLarge, match="more than the limit of 67,108,864"):
        make(context)  # type: ignore[operator]
    assert store.requests == 0


def test_it_is_what_it_says(context: Monocontext) -> None:
    """Hosts sort by type: callables go elsewhere, and attributes that anything answers to are asked for."""
    assert type(context) is context.__class__ is Monocontext
    assert not isinstance(context, str)
    assert isinstance(context, Sequence)
    assert not callable(context)
    for probed in ("model_dump", "dict", "__fields__", "to_repl_variable", "__array__interface__"):
        assert not hasattr(context, probed)
