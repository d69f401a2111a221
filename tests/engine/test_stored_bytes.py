"""A text that is larger than the cache decoded, and smaller as it is stored, is fetched once."""

from __future__ import annotations

from random import Random

import pytest

from monocontext import Monocontext, publish
from monocontext.engine.fetch.cache import reserved_bytes
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore

CACHE_BYTES = 4 << 20


def logs(megabytes: int) -> str:
    dice = Random(5)
    lines = [
        f"2026-11-22 INFO host-{dice.randrange(40)} served a request in {dice.randrange(900)} ms\n" for _ in range(500)
    ]
    return "".join(dice.choices(lines, k=megabytes * 20_000))


def passes(text: str, times: int) -> tuple[list[int], Monocontext]:
    """Bytes of segments that each pass fetched."""
    store = CountingStore(MemoryStore(f"passes {len(text)}", "text"))
    publish(text, store, frame_bytes=64 << 10, segment_bytes=1 << 20, replace=True)
    moved, at = [], len(store.log)
    context = Monocontext.open(store, cache_bytes=CACHE_BYTES)
    for _ in range(times):
        assert context.count("served") == text.count("served")
        moved.append(sum(one.length or 0 for one in store.log[at:] if one.key.startswith("segments/")))
        at = len(store.log)
    return moved, context


def test_three_passes_fetch_a_compressed_text_once() -> None:
    text = logs(9)
    moved, context = passes(text, 3)
    reader = context._source.reader
    assert len(text) > 2 * CACHE_BYTES
    assert 0 < moved[0] <= 1.1 * reader.manifest.stored_bytes
    assert moved[1:] == [0, 0]
    assert reader.fetcher.stored.used_bytes == reader.manifest.stored_bytes
    assert reader.cache.used_bytes + reader.fetcher.stored.used_bytes <= CACHE_BYTES
    assert context[5_000_000:5_000_100] == text[5_000_000:5_000_100]
    context.close()
    assert reader.fetcher.stored.used_bytes == 0


def test_what_memory_has_damaged_is_fetched_again() -> None:
    text = logs(9)
    _, context = passes(text, 1)
    stored = context._source.reader.fetcher.stored
    for key, body in list(stored._kept.items()):
        stored._kept[key] = b"\0" * len(body)
    assert context.count("served") == text.count("served")
    context.close()


@pytest.mark.parametrize(
    ("text", "stored", "cache", "reserved"),
    [
        (400, 75, 256, 75),
        (200, 75, 256, 0),  # decoded frames fit
        (400, 129, 256, 0),  # too much of the cache
        (400, 400, 256, 0),
        (400, 75, 0, 0),
    ],
)
def test_all_of_it_or_nothing(text: int, stored: int, cache: int, reserved: int) -> None:
    assert reserved_bytes(text, stored, cache) == reserved
