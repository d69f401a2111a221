"""The sample as a `str`, and behind a store in awkward frames."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from namespace_hosts import sample_text

from monocontext import Monocontext, publish
from monocontext.stores.memory import forget

SMALL_LIMIT = 3_000
"""Characters up to which a result is a real `str` in the runs that are to meet lazy values everywhere."""

_numbers = itertools.count()


@pytest.fixture(scope="session")
def text() -> str:
    return sample_text()


@pytest.fixture(scope="session")
def open_text() -> Iterator[Callable[..., Monocontext]]:
    """Make a context of a text: `open_text(text, materialize_limit=...)`, in frames of 700 bytes or so."""
    places: list[str] = []
    opened: list[Monocontext] = []

    def make(text: str, *, frame_bytes: int = 700, **options: Any) -> Monocontext:
        places.append(f"namespace-{next(_numbers)}")
        url = f"memory://{places[-1]}/text"
        publish(text, url, frame_bytes=frame_bytes, segment_bytes=20 * frame_bytes)
        opened.append(Monocontext.open(url, **options))
        return opened[-1]

    yield make
    for context in opened:
        context.close()
    for place in places:
        forget(place)


@pytest.fixture(scope="session")
def contexts(text: str, open_text: Callable[..., Monocontext]) -> dict[str, Monocontext]:
    """The sample behind a store: with the usual limit, and with one under which whole-text results are lazy."""
    return {"default": open_text(text), "small": open_text(text, materialize_limit=SMALL_LIMIT)}
