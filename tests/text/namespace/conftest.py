"""The sample as a `str`, and behind a store in awkward frames."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from namespace_hosts import sample_text

from monocontext import Monocontext, publish
from monocontext.stores.memory import forget


@pytest.fixture(scope="session")
def text() -> str:
    return sample_text()


@pytest.fixture(scope="session")
def contexts(text: str) -> Iterator[dict[str, Monocontext]]:
    """The sample behind a store: with the usual limit, and with one under which whole-text results are lazy."""
    publish(text, url := "memory://namespace/text", frame_bytes=700, segment_bytes=14_000)
    with Monocontext.open(url) as default, Monocontext.open(url, materialize_limit=3_000) as small:
        yield {"default": default, "small": small}
    forget("namespace")
