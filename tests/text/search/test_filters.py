"""Filters never hide a match: random searches against `str` and `re`, borders, damage, and what is read."""

from __future__ import annotations

import dataclasses
import gc
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from monocontext import Monocontext, publish, regex
from monocontext.errors import DamagedData
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.manifest import ROOT_KEY, Manifest
from monocontext.stores.local import LocalStore
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, WrappedStore
from monocontext.writing.publish import append
from monocontext.writing.upkeep.compact import add_filters
from monocontext.writing.upkeep.verify import verify
from tests.budget import examples

from .cases import FRAME_BYTES, run


@pytest.mark.parametrize("seed", range(examples(40)))
def test_random_searches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monocontext.format.filters.layout.WHOLE_BYTES", seed % 2 << 20)
    run(seed, 50, Counter())


@pytest.mark.fuzz
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_random_searches() -> None:
    counts: Counter[str] = Counter()
    for seed in range(10_000, 12_000):
        run(seed, 50, counts)
    assert counts["cases"] == 100_000
    assert counts["narrowed"] > 10_000
    assert counts["pruned"] > counts["frames"] / 2, "filters that prune little prove little"


def lines(count: int) -> str:
    return "".join(f"{number:06d} the quick brown fox jumps over the lazy dog\n" for number in range(count))


@pytest.fixture
def store() -> Iterator[Store]:
    yield MemoryStore("filters")
    forget("filters")


def root(store: Store) -> Manifest:
    return Manifest.from_bytes(store.get(ROOT_KEY).data)


@pytest.mark.slow
def test_the_temporary_file_of_filters_in_the_making_is_closed(store: Store) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert publish(lines(2000), store, frame_bytes=FRAME_BYTES).filters
        gc.collect()
    assert [str(item.message) for item in warned if item.category is ResourceWarning] == []


def test_what_gets_no_filter(store: Store) -> None:
    publish(lines(300), store, frame_bytes=FRAME_BYTES, filters=False)
    assert root(store).filters == ()
    publish(lines(300), store, frame_bytes=FRAME_BYTES - 1, replace=True)
    assert root(store).filters == ()
    publish(lines(20), store, frame_bytes=FRAME_BYTES, replace=True)
    assert root(store).filters == ()


def test_a_damaged_filter_is_an_error_and_never_a_missing_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monocontext.format.filters.layout.WHOLE_BYTES", 0)
    publish(lines(2000) + "needle-4711\n" + lines(2000), LocalStore(tmp_path), frame_bytes=FRAME_BYTES)
    (part,) = (tmp_path / "filters").iterdir()
    data = part.read_bytes()
    for damaged in (bytes(len(data)), data[:1000], data[4:] + data[:4], data[:-10] + bytes(10)):
        part.write_bytes(damaged)
        assert not verify(tmp_path).ok
        with Monocontext.open(tmp_path) as context, pytest.raises(DamagedData, match="filters/"):
            context.find("needle-4711")


BLOCK_BYTES = 1028
"""Of filters over up to 1024 frames: 1024 bytes of rows and their checksum."""


class _Mixing(WrappedStore):
    """Answers what is asked of filters with as many other blocks, checksums and all."""

    def __init__(self, store: Store, blocks_on: int, other_filter: bool) -> None:
        super().__init__(store)
        self._blocks_on = blocks_on
        self._keys = [key for ref in root(store).filters for key in ref.keys] if other_filter else []

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        if not key.endswith(".flt"):
            return super().get_range(key, start, length, etag=etag)
        if self._keys:
            key = self._keys[(self._keys.index(key) + 1) % len(self._keys)]
        whole = self.get(key)
        position = (start + self._blocks_on * BLOCK_BYTES) % whole.total_bytes
        return dataclasses.replace(whole, data=(whole.data * 2)[position : position + length])


@pytest.mark.parametrize(("blocks_on", "other_filter"), [(1, False), (20, False), (0, True)])
def test_another_block_of_the_same_length_is_damage(
    store: Store, blocks_on: int, other_filter: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monocontext.format.filters.building.GROUP_FRAMES", 32)
    rng = Random(4)
    text = "".join(f"{rng.getrandbits(256):064x}\n" for _ in range(4096))
    manifest = publish(text[:150_000] + "needle-4711\n" + text[150_000:], store, frame_bytes=4096)
    first, second, *_ = manifest.filters
    assert (FilterLayout(first).blocks > 21, FilterLayout(first).block_bytes) == (True, BLOCK_BYTES)
    assert (first.frames, first.bits) == (second.frames, second.bits)
    assert first.seed != second.seed
    with Monocontext.open(_Mixing(store, blocks_on, other_filter)) as context:
        with pytest.raises(DamagedData, match=r"block \d+ of filters/"):
            context.find("needle-4711")
        with pytest.raises(DamagedData, match=r"block \d+ of filters/"):
            _ = "no such thing" in context


def test_a_filter_made_with_other_tables_is_asked_for_ascii_only(store: Store) -> None:
    publish(lines(300) + "Straße needle-4711\n" + lines(300), store, frame_bytes=FRAME_BYTES)
    manifest = root(store)
    other = dataclasses.replace(manifest.filters[0], fold="unicode-99.0")
    store.put(ROOT_KEY, dataclasses.replace(manifest, filters=(other,)).to_bytes())
    context = Monocontext.open(store, cache_bytes=0)
    assert context.find("aße") >= 0
    assert context.stats.search.searches == 0
    assert context.find("needle-4711") >= 0
    assert context.stats.search.pruned > 0


def test_what_a_search_reads() -> None:
    store = CountingStore(MemoryStore("what-a-search-reads"))
    publish(lines(4000) + "needle-4711\n" + lines(4000), store, frame_bytes=4096)
    context = Monocontext.open(store, materialize_limit=1000)
    store.reset()
    assert "no-such-thing" not in context
    asked = [request.key.split("/")[0] for request in store.log]
    assert set(asked) == {"filters"}, "what is absent costs no frame"
    store.reset()
    assert context.find("needle-4711") == len(lines(4000))
    kinds = Counter(request.key.split("/")[0] for request in store.log)
    assert kinds["segments"] == 1
    assert kinds["filters"] <= 7
    store.reset()
    assert context.find("needle-4711") >= 0
    assert regex.search("needle-[0-9]+", context)
    assert "needle-4711" in context.lower()
    assert store.gets <= 3, "rows, answers and frames are remembered; of `needle-` alone rows of 3 bytes are read too"
    search = context.stats.search
    assert search.hits == 4
    assert search.looked_at + search.pruned <= search.frames
    assert search.false_positives <= 4
    forget("what-a-search-reads")


@pytest.mark.slow
@pytest.mark.parametrize("frames", [[8192, 512], [512, 8192], [8192, 512, 8192], [4096, 700, 512, 8192]])
def test_needles_across_appends_with_frames_of_other_sizes(
    store: Store, frames: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a column covers behind its frame follows the frames' size: borders must reach as far as is asked."""
    monkeypatch.setattr("monocontext.writing.publish.full_piece_bytes", lambda layout: 1)
    random = Random(1)
    pieces = ["".join(f"{random.getrandbits(32):08x} " for _ in range(12 * size // 9)) for size in frames]
    if len(frames) > 2:
        pieces[1] = pieces[1][:100]
    publish(pieces[0], store, frame_bytes=frames[0], codec="raw")
    for piece, size in zip(pieces[1:], frames[1:], strict=True):
        append(piece, store, frame_bytes=size)
    text = "".join(pieces)
    context = Monocontext.open(store, cache_bytes=0)
    border = 0
    for piece in pieces[:-1]:
        border += len(piece)
        for back in (1, 20, 60, 70, 120, 300):
            for ahead in (1, 8, 30, 150):
                needle = text[max(border - back, 0) : border + ahead]
                assert context.find(needle) == text.find(needle), (border, back, ahead)
    assert context.stats.search.pruned > 0


def test_a_lost_filter_keeps_nobody_from_writing_and_is_made_anew(tmp_path: Path) -> None:
    publish(lines(300), tmp_path, frame_bytes=FRAME_BYTES)
    for part in (tmp_path / "filters").iterdir():
        part.unlink()
    append(lines(300) + "needle-4711\n", tmp_path)
    add_filters(tmp_path, rebuild=True)
    assert verify(tmp_path).ok
    with Monocontext.open(tmp_path) as context:
        assert context.find("needle-4711") == 2 * len(lines(300))
        assert context.stats.search.pruned > 0


def test_filters_that_tell_of_a_long_literal_in_different_ways(store: Store) -> None:
    """One column reaches far enough to tell where the match begins, the other only where its literal does."""
    random = Random(2)
    first, second = ("".join(f"{random.getrandbits(32):08x} " for _ in range(size)) for size in (40_000, 2_000))
    publish(first, store, frame_bytes=16384, codec="raw")
    append(second, store, frame_bytes=FRAME_BYTES)
    text = first + second
    context = Monocontext.open(store, cache_bytes=0)
    for position in (100_000, len(first) - 90, len(first) + 5000):
        pattern = "[0-9a-f ]{0,20}" + re.escape(text[position : position + 200])
        assert regex.search(pattern, context).span() == re.search(pattern, text).span()  # type: ignore[union-attr]


def test_where_the_first_rows_of_a_large_filter_rule_out_little_more_are_read(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grams about a pair of words occur together, each pair in many frames, all of the needle in one."""
    monkeypatch.setattr("monocontext.format.filters.layout.WHOLE_BYTES", 0)
    chance = Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=12)) for _ in range(40)]
    text = "".join(" ".join(chance.choices(words, k=8)) + "\n" for _ in range(4000))
    needle = " ".join(words[number] for number in (3, 7, 9, 11))
    text = f"{text[:200_000]}{needle}{text[200_000:]}"
    publish(text, store, frame_bytes=2000, codec="raw")
    with Monocontext.open(store, prefetch="off") as context:
        assert context.find(needle) == 200_000
        assert context.stats.search.looked_at <= 4
        assert context.stats.search.filter_gets > 3
