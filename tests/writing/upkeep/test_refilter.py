"""Filters for texts that are stored already: added once, read once, where reading is allowed."""

from __future__ import annotations

import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from monocontext import Monocontext
from monocontext.errors import AlreadyExists, ForeignObject, NotFound
from monocontext.format.filters.layout import FilterLayout
from monocontext.records import replace
from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.testing import CountingStore, Crash, CrashingStore
from monocontext.writing import batches
from monocontext.writing.index_in_place import index
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep import filter_parts
from monocontext.writing.upkeep.add_filters import add_filters
from monocontext.writing.upkeep.verify import verify
from tests.budget import examples

from .upkept import FRAME_BYTES, Overtaken, check, memory, root, words


@pytest.fixture
def random() -> Random:
    return Random(5)


def test_a_text_without_filters_gets_them(random: Random) -> None:
    store = CountingStore(memory())
    text = words(random, 2000)
    before = publish(text, store, frame_bytes=FRAME_BYTES, filters=False)
    store.reset()
    seen: list[int] = []
    after = add_filters(store, progress=seen.append)
    assert [request.key.split("/")[0] for request in store.log if request.verb == "put"] == [
        "filters",
        "generations",
        "manifest.json",
    ]
    assert store.bytes_read < 1.2 * before.stored_bytes + 40_000
    assert seen[-1] == len(text.encode())
    assert (after.generation, after.pages, after.stored_bytes) == (2, before.pages, before.stored_bytes)
    assert [(ref.first_frame, ref.frames) for ref in after.filters] == [(0, after.frames)]
    whole = publish(text, memory(), frame_bytes=FRAME_BYTES)
    alike = [[replace(ref, parts=(), seed=0) for ref in root.filters] for root in (after, whole)]
    assert alike[0] == alike[1], "the same as if the upload had written them"
    check(store, text, random)
    store.reset()
    assert add_filters(store) == after
    assert store.puts == 0


@pytest.mark.slow
def test_holes_are_filled(random: Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lies around them: filters that merge, that do not, of groups of a full size, an end of the text."""
    for merged_bytes, group_frames in [(4 << 20, 1 << 16), (0, 1 << 16), (0, 8)]:
        monkeypatch.setattr("monocontext.format.filters.building.MERGED_BYTES", merged_bytes)
        monkeypatch.setattr(sys.modules["monocontext.format.filters.building"], "GROUP_FRAMES", group_frames)
        for seed in range(6):
            random.seed(seed)
            store = memory()
            pieces = [words(random, random.choice([1, 10, 150])) for _ in range(8)]
            publish(pieces[0], store, frame_bytes=FRAME_BYTES, filters=random.random() < 0.5)
            for piece in pieces[1:]:
                append(piece, store, filters=random.random() < 0.5)
            after = add_filters(store)
            assert sum(ref.frames for ref in after.filters) == (after.frames if after.frames >= 9 else 0)
            check(store, "".join(pieces), random)
            assert add_filters(store) == after


@pytest.mark.parametrize("group_frames", [1 << 16, 8])
@pytest.mark.parametrize("seed", range(examples(20)))
def test_workers_make_the_same(seed: int, group_frames: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a whole text and of holes in it; where pages are short, too, so that little text is known behind a part."""
    monkeypatch.setattr(sys.modules["monocontext.format.filters.building"], "GROUP_FRAMES", group_frames)
    monkeypatch.setattr("monocontext.writing.pages.FRAMES_PER_PAGE", 4)
    monkeypatch.setattr(filter_parts, "_AFTER_BYTES", seed % 2)
    monkeypatch.setattr(batches, "BATCH_BYTES", 3 * FRAME_BYTES)
    made = []
    for executor in (None, ThreadPoolExecutor(2)):
        random, store = Random(seed), memory()
        pieces = [words(random, random.choice([1, 10, 150])) for _ in range(6)]
        publish(pieces[0], store, frame_bytes=FRAME_BYTES, filters=random.random() < 0.5)
        for piece in pieces[1:]:
            append(piece, store, filters=random.random() < 0.5)
        seen = [0]
        after = add_filters(store, rebuild=seed % 3 == 0, executor=executor, progress=seen.append)
        parts = [(key, part, ref) for ref in after.filters for part, key in enumerate(ref.keys)]
        rows = [FilterLayout(ref).decode(part, store.get(key).data).tobytes() for key, part, ref in parts]
        made.append(([replace(ref, parts=(), seed=0) for ref in after.filters], rows, seen[-1]))
        check(store, "".join(pieces), random)
        if executor:
            executor.shutdown()
    assert made[0] == made[1]


def test_what_gets_none(random: Random) -> None:
    store = memory()
    for text, frame_bytes in [("", 512), (words(random, 20), 512), (words(random, 900), 511)]:
        before = publish(text, store, replace=True, frame_bytes=frame_bytes)
        assert add_filters(store) == before
    with pytest.raises(NotFound, match="no context there to add filters to"):
        add_filters(memory())


def test_virtual_frames_are_read_where_that_is_allowed(random: Random) -> None:
    elsewhere, here = (f"memory://{uuid.uuid4().hex}" for _ in range(2))
    text = words(random, 800)
    open_store(elsewhere).put("a.txt", text.encode())
    before = index(elsewhere, here, frame_bytes=FRAME_BYTES, filters=False)
    with pytest.raises(ForeignObject, match=r"allow=\["):
        add_filters(here)
    assert root(open_store(here)) == before
    after = add_filters(here, allow=[elsewhere])
    assert sum(ref.frames for ref in after.filters) == after.frames
    assert verify(here, allow=[elsewhere]).problems == []
    with Monocontext.open(here, allow=[elsewhere]) as context:
        assert context.find(text[9000:9030]) == 9000
        assert context.stats.search.pruned > 0
    assert not list(open_store(here).list("segments/"))
    for url in (elsewhere, here):
        forget(url.removeprefix("memory://"))


def test_beside_appenders(random: Random) -> None:
    store = memory()
    text = words(random, 500)
    publish(text, store, frame_bytes=FRAME_BYTES, filters=False)
    more = [words(random, lines) for lines in (1, 200, 2)]
    others = [lambda piece=piece: append(piece, store, filters=len(piece) > 99) for piece in more]  # type: ignore[misc]
    after = add_filters(Overtaken(store, *others))
    assert after.generation == 5
    assert sum(ref.frames for ref in after.filters) == after.frames
    check(store, text + "".join(more), random, 50)


def test_beside_one_who_replaces_the_text(random: Random) -> None:
    store = memory()
    publish(words(random, 500), store, frame_bytes=FRAME_BYTES, filters=False)
    with pytest.raises(AlreadyExists, match="nothing was changed"):
        add_filters(Overtaken(store, lambda: publish("other\n" * 2000, store, replace=True)))
    check(store, "other\n" * 2000, random)


@pytest.mark.parametrize("landed", [False, True], ids=["before", "landed"])
def test_a_crash_at_every_put(landed: bool, random: Random) -> None:
    text = words(random, 300)
    for puts in range(10):
        store = memory()
        publish(text, store, frame_bytes=FRAME_BYTES, filters=False)
        crashing = CrashingStore(store, puts, landed=landed)
        try:
            add_filters(crashing)
        except Crash:
            pass
        check(store, text, random, 3)
        if not crashing.crashed:
            break
        add_filters(store)
        check(store, text, random, 3)
    assert puts >= 2
