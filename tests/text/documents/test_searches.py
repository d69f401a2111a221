"""A loop over documents asks search filters once for a needle, and reads only what they cannot rule out."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext import regex as mre
from monocontext.engine.stats import Stats
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore
from monocontext.writing.documents import documents

COUNT = 30_000
NEEDLE = "3f0c1d4e-7a52-4b1c-9c1f-0d2f6a9b8e11"
HITS = (7, 15_000, COUNT - 2)
PATTERN: Any = mre.compile(NEEDLE)


def text_of(choice: random.Random, number: int) -> str:
    text = "".join(f"{choice.getrandbits(60):015x} " for _ in range(40))
    return f"{text[:300]}{NEEDLE}{text[300:]}" if number in HITS else text


@pytest.fixture(scope="module")
def store() -> Iterator[CountingStore]:
    name, choice = uuid.uuid4().hex, random.Random(3)
    store = MemoryStore(name)
    publish(documents((f"name {i:05}", text_of(choice, i)) for i in range(COUNT)), store)
    yield CountingStore(store)
    forget(name)


LOOPS: dict[str, tuple[str, Callable[[Any], object], object]] = {
    "list": ("list", lambda xs: [i for i, d in enumerate(xs) if NEEDLE in d], list(HITS)),
    "items": ("dict", lambda xs: [k for k, d in xs.items() if NEEDLE in d], [f"name {i:05}" for i in HITS]),
    "find": ("list", lambda xs: [i for i, d in enumerate(xs) if d.find(NEEDLE) >= 0], list(HITS)),
    "count": ("list", lambda xs: sum(d.count(NEEDLE) for d in xs), 3),
    "regex": ("list", lambda xs: [i for i, d in enumerate(xs) if mre.search(NEEDLE[:20] + r"[-\w]+", d)], list(HITS)),
    "findall": ("list", lambda xs: [len(mre.findall(NEEDLE, d)) for d in xs].count(1), 3),
    "pattern": ("list", lambda xs: [i for i, d in enumerate(xs) if PATTERN.search(d)], list(HITS)),
    "from a place": ("list", lambda xs: [i for i, d in enumerate(xs) if PATTERN.search(d, 300)], list(HITS)),
    "behind it": ("list", lambda xs: [i for i, d in enumerate(xs) if PATTERN.search(d, 301)], []),
    "values": ("dict", lambda xs: len([d for d in xs.values() if mre.search(NEEDLE, d)]), 3),
    "any": ("list", lambda xs: any("no such needle" in d for d in xs), False),
    "two needles": ("list", lambda xs: [i for i, d in enumerate(xs) if NEEDLE in d or "another one" in d], list(HITS)),
}


@pytest.mark.slow
@pytest.mark.parametrize("loop", list(LOOPS))
def test_a_loop_reads_what_filters_cannot_rule_out(store: CountingStore, loop: str) -> None:
    shape, run, expected = LOOPS[loop]
    with Monocontext.open(store, shape=shape) as xs:  # type: ignore[call-overload]
        store.reset()
        assert run(xs) == expected
        stored = xs.text._reader.manifest.stored_bytes
        filters = sum(one.key.startswith("filters/") for one in store.log)
        segments = sum(one.length or 0 for one in store.log if one.key.startswith("segments/"))
        assert filters <= 16 * (1 + (loop == "two needles"))
        assert segments < (0.25 if loop == "two needles" else 0.08) * stored
        pages = sum(one.key.startswith("documents/") for one in store.log)
        assert pages <= len(xs.text._reader.manifest.documents.pages)
        assert not [
            key
            for key in {(one.key, one.start) for one in store.log}
            if sum((one.key, one.start) == key for one in store.log) > 1
        ]  # nothing twice


@pytest.mark.slow
def test_what_no_filter_answers_is_read_once_in_large_requests(store: CountingStore) -> None:
    with Monocontext.open(store, shape="list") as xs:
        store.reset()
        assert sum("zzz" in d for d in xs) == 0
        segments = [one for one in store.log if one.key.startswith("segments/")]
        manifest: Any = xs.text._reader.manifest  # type: ignore[attr-defined]
        assert sum(one.length or 0 for one in segments) <= 1.05 * manifest.stored_bytes
        assert len(segments) < manifest.frames / 3


@pytest.mark.slow
def test_lengths_and_names_read_no_text(store: CountingStore) -> None:
    with Monocontext.open(store, shape="dict") as xs:
        store.reset()
        assert len(xs) == COUNT
        assert store.gets == 0
        longest = max(xs.values(), key=len)
        assert len(longest) == 640 + len(NEEDLE)
        assert sum(map(len, xs.values())) == COUNT * 640 + 3 * len(NEEDLE)
        assert not [one for one in store.log if one.key.startswith("segments/")]


def test_a_needle_of_each_document_asks_no_filter(store: CountingStore) -> None:
    with Monocontext.open(store, shape="list") as xs:
        store.reset()
        assert all(str(d)[100:140] in d for d in xs[:50])
        assert sum(f"{i} needle" in d for i, d in zip(range(50), xs, strict=False)) == 0
        assert not [one for one in store.log if one.key.startswith("filters/")]


def test_a_pass_that_ends_early_leaves_nothing_under_way(store: CountingStore) -> None:
    with Monocontext.open(store, shape="list") as xs:
        for _ in range(3):
            assert next(i for i, d in enumerate(xs) if "zz" in d or i == 500) == 500
        reader: Any = xs.text._reader  # type: ignore[attr-defined]
        stats: Stats = xs.stats
        assert stats.bytes_fetched < reader.manifest.stored_bytes


def test_threads_share_a_list(store: CountingStore) -> None:
    with Monocontext.open(store, shape="list") as xs, ThreadPoolExecutor(4) as threads:
        needles = (NEEDLE, "zzz", NEEDLE, "no such needle")
        found = list(threads.map(lambda needle: [i for i, d in enumerate(xs) if needle in d], needles))
    assert found == [list(HITS), [], list(HITS), []]


def test_names_are_the_keys() -> None:
    publish({"b": "1\n", "a": "2\n"}, "memory://documents-names", replace=True)
    with Monocontext.open("memory://documents-names") as context:
        assert list(context.documents.names) == list(context.documents) == ["b", "a"]
