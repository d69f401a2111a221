"""`verify` reads filters too: names, checksums, and no gram of the text missing."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from monocontext.errors import NotFound
from monocontext.format.filters.checking import Checker
from monocontext.format.filters.columns import StoredRows
from monocontext.format.filters.grams import TABLES
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.manifest import ROOT_KEY, Manifest, generation_key
from monocontext.format.refs import FILTER_KIND, FilterRef, FilterRun, filter_key
from monocontext.stores.protocol import Store
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.verify import verify

from .upkept import FRAME_BYTES, memory, root, words


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    """A text of three filters; the first of `request.param` lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("monocontext.format.filters.joining._MOST_FRAMES", 0)
        store, random = memory(), Random(6)
        publish(words(random, getattr(request, "param", 1000)), store, frame_bytes=FRAME_BYTES)
        append(words(random, 1000), store)
    assert len(root(store).filters) == 3, "the last one of the frame before the second"
    return store


def rewrite(store: Store, manifest: Manifest, number: int, **changes: object) -> None:
    """Another record of a filter, in both copies of the root."""
    filters = list(manifest.filters)
    filters[number] = dataclasses.replace(filters[number], **changes)  # type: ignore[arg-type]
    changed = dataclasses.replace(manifest, filters=tuple(filters)).to_bytes()
    store.put(ROOT_KEY, changed)
    store.put(generation_key(manifest.generation), changed)


def tamper(store: Store, number: int, change: Callable[[np.ndarray, FilterRef], None]) -> None:
    """Other bits in a filter, under the name and checksums that are right for them."""
    manifest = root(store)
    ref = manifest.filters[number]
    rows = StoredRows(ref, lambda key: store.get(key).data).rows
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    change(bits, ref)
    data = FilterLayout(ref).encode(np.packbits(bits, axis=1, bitorder="little"), 0)
    name = hashlib.sha256(data).hexdigest()[:32]
    store.put(filter_key(name), data)
    rewrite(store, manifest, number, parts=(name,))


@pytest.mark.slow
@pytest.mark.parametrize("store", [11_000], indirect=True)
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("frame", [0, 7, 8, 40, -1])
def test_a_bit_that_is_missing(store: Store, number: int, frame: int) -> None:
    ref = root(store).filters[number]
    index = range(ref.frames)[frame]

    def clear_one(bits: np.ndarray, ref: FilterRef) -> None:
        bits[np.flatnonzero(bits[:, index])[0], index] = 0

    tamper(store, number, clear_one)
    (problem,) = verify(store).problems
    assert f"lacks grams or words of 1 frames, the first of them frame {ref.first_frame + index}" in problem
    assert number or ref.frames > 2 * 256, "more than a tile"


def test_damaged_objects(store: Store) -> None:
    first, second, _ = (ref.keys[0] for ref in root(store).filters)
    data = store.get(first).data
    store.put(first, data[:-1])
    assert {line.split(":")[0] for line in verify(store).problems} == {first}
    store.put(first, data[:100] + b"?" + data[101:])
    assert any(f"of {first}: expected" in line for line in verify(store).problems)
    store.put(first, data)
    store.delete(second)
    (problem,) = verify(store).problems
    assert second in problem


def test_a_filter_takes_no_more_room_than_its_objects_have() -> None:
    """A root may claim 128 GiB."""
    ref = FilterRef(FILTER_KIND, TABLES, 18, 4096, (1 << 22) - 8, (FilterRun(0, 0, 1),), ("0" * 32,), 0)
    ref = dataclasses.replace(ref, parts=ref.parts * FilterLayout(ref).parts)

    def get(key: str) -> bytes:
        raise NotFound(key)

    assert set(Checker((ref,), get).finish()) == {ref.keys[0]}


def test_another_filter_under_the_name(store: Store) -> None:
    manifest = root(store)
    key = manifest.filters[0].keys[0]
    tamper(store, 0, lambda bits, ref: bits.fill(1))
    full = store.get(root(store).filters[0].keys[0]).data
    store.put(key, full)
    rewrite(store, manifest, 0, parts=manifest.filters[0].parts)
    (problem,) = verify(store).problems
    assert f"{key}: its content has the SHA-256" in problem


def test_filters_of_other_tables_are_not_compared(store: Store) -> None:
    tamper(store, 0, lambda bits, ref: bits.fill(0))
    rewrite(store, root(store), 0, fold="unicode-99.0")
    assert verify(store).ok


def test_document_counts_that_are_not_those_of_the_text() -> None:
    texts = ["é" * 5000, "e\n" * 2500, "", "short é", "short\ne"]
    stores: list[Store] = [memory(), memory()]
    for store, order in zip(stores, (texts, [texts[1], texts[0], "", texts[4], texts[3]]), strict=True):
        texts_by_name = {str(number): text for number, text in enumerate(order)}
        publish(texts_by_name, store, frame_bytes=FRAME_BYTES, segment_bytes=100, codec="raw")
    assert verify(stores[0]).problems == []
    wrong = dataclasses.replace(root(stores[0]), documents=root(stores[1]).documents).to_bytes()
    for key in (ROOT_KEY, generation_key(1)):
        stores[0].put(key, wrong)
    problems = verify(stores[0]).problems
    assert [line.split(":")[0] for line in problems] == [f"document {n} ('{n}')" for n in (0, 1, 3, 4)]
    assert "counts differ: expected (5000, 2500), found (10000, 0)" in problems[0]
