"""Roots with directories: whatever writes, reads and removes copes with them; sizes are small here."""

from __future__ import annotations

import itertools
import sys
from random import Random

import pytest

from monocontext import Monocontext
from monocontext.format import directories
from monocontext.format.directories import expand
from monocontext.format.manifest import find_root
from monocontext.format.refs import PageDirectory, level_of
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.compact import add_filters, compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify
from tests.writing.upkeep.upkept import memory

LAYOUT = {"frame_bytes": 600, "segment_bytes": 4000}
SMALL = 60_000
"""Bytes of a cache beside which these texts are large, so that searches ask filters."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of 24 frames, directories of 4 pages or 3 filters, filters of 40 frames, roots that fold from 2 KB on."""
    for name in ("monocontext.writing.pages", "monocontext.writing.splice"):
        monkeypatch.setattr(sys.modules[name], "FRAMES_PER_PAGE", 24)
    monkeypatch.setattr("monocontext.writing.splice._SPLIT_FRAMES", 12)
    monkeypatch.setattr(sys.modules["monocontext.format.filters.building"], "GROUP_FRAMES", 40)
    monkeypatch.setattr("monocontext.format.filters.joining._MOST_FRAMES", 40)
    sizes = {"DIRECTORY_PAGES": 4, "DIRECTORY_FILTERS": 3, "KEPT_PAGES": 2, "KEPT_FILTERS": 2, "MOST_NAMED_BYTES": 2000}
    for name, value in sizes.items():
        monkeypatch.setattr(directories, name, value)


def lines(count: int, seed: int = 0) -> str:
    random = Random(seed)
    return "".join(f"line {seed}.{i} {random.getrandbits(80):x} é漢\n" for i in range(count))


def same(store: Store, text: str, random: Random) -> None:
    """Every way to a place of the text, through directories that are closed each time."""
    with Monocontext.open(store, cache_bytes=1 << 20) as context:
        assert str(context[0 : len(text)]) == text
        assert context.count("\n") == text.count("\n")
    for _ in range(6):
        at = random.randrange(len(text))
        line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
        number = text.count("\n", 0, at)
        with Monocontext.open(store) as context:
            assert context[at : at + 50] == text[at : at + 50]
        with Monocontext.open(store) as context:
            assert context.lines[number] == line + "\n"
        with Monocontext.open(store, cache_bytes=SMALL) as context:
            assert context.find(line[:30]) == text.find(line[:30])
            assert context.rfind(line[:30], 0, at) == text.rfind(line[:30], 0, at)
        with Monocontext.open(store, cache_bytes=SMALL) as context:
            middle = line[7:20]
            assert [hit.line for hit in context.grep(middle)] == [each for each in text.splitlines() if middle in each]
    assert verify(store).problems == []


@pytest.mark.slow
def test_appends_fill_directories_up() -> None:
    store, random = memory(), Random(2)
    text = lines(5000)
    publish(text, store, **LAYOUT)  # type: ignore[arg-type]
    sizes, full = [], []
    for i in range(25):
        more = lines(random.choice([3, 60, 900]), i + 1)
        root = append(more, store)
        text += more
        sizes.append(len(root.to_bytes()))
        entries = [page for page in root.pages if isinstance(page, PageDirectory)]
        full += [page.entries == 4 for page, after in itertools.pairwise(entries) if page.level == after.level]
    whole = expand(root, lambda ref: store.get(ref.key).data)
    assert whole.pages[-1].frames == root.frames
    assert full
    assert all(full), "all but the last of a level are full"
    assert max(sizes) < 12_000
    same(store, text, random)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_upkeep(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store, random = memory(), Random(seed)
    text = lines(5000, 7)
    publish(text, store, filters=seed != 1, **LAYOUT)  # type: ignore[arg-type]
    for i in range(8):
        more = lines(random.randrange(1, 900), i)
        append(more, store, filters=seed != 1)
        text += more
    before = find_root(store).manifest
    assert before.has_directories
    monkeypatch.setattr("monocontext.format.filters.joining._MOST_FRAMES", 1 << 16)
    after = add_filters(store) if seed == 1 else compact(store, segment_bytes=4000, frame_bytes=600)
    assert after.generation > before.generation
    assert after.has_directories
    if seed == 1:
        assert after.filter_directories
    else:
        assert [ref.frames for ref in after.filters] == [after.frames], "small filters become one"
    same(store, text, random)
    again = compact(store, segment_bytes=4000, frame_bytes=600)
    assert compact(store, segment_bytes=4000, frame_bytes=600).generation == again.generation, "nothing to do"
    removed = gc(store, older_than_seconds=0)
    assert removed.objects > 0
    same(store, text, random)
    named = {info.key for info in store.list("index/")}
    wanted: set[str] = set()
    expand(find_root(store).manifest, lambda ref: (wanted.add(ref.key), store.get(ref.key).data)[1])
    assert {key for key in named if key.endswith(".dir")} == wanted
    assert gc(store, older_than_seconds=0).objects == 1, "the generation before the fence"


def test_damage_is_named() -> None:
    store, text = memory(), lines(8000)
    root = publish(text, store, **LAYOUT)  # type: ignore[arg-type]
    first = root.pages[0]
    data = bytearray(store.get(first.key).data)
    data[len(data) // 2] ^= 1
    store.put(first.key, bytes(data))
    with Monocontext.open(store) as context, pytest.raises(ValueError, match=first.key):
        context[first.characters // 2]
    [problem] = verify(store).problems
    assert first.key in problem


def test_names_of_documents_in_directories_that_no_table_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each append stores a page of few documents, and a table of names begins in a directory."""
    monkeypatch.setattr("monocontext.writing.documents.INLINE_BYTES", 0)
    monkeypatch.setattr("monocontext.writing.documents.DOCUMENTS_PER_PAGE", 40)
    store = memory()
    publish({"first": "text\n"}, store, **LAYOUT)  # type: ignore[arg-type]
    for upload in range(40):
        append({f"{upload}.{i}": f"{upload} {i}\n" for i in range(5)}, store)
    with Monocontext.open(store) as context:
        documents = context.documents
        assert (documents.count, context.stats.gets) == (201, 1)  # an asynchronous loop takes both at once
        assert [str(context.documents[f"{n}.{n % 5}"]) for n in range(40)] == [f"{n} {n % 5}\n" for n in range(40)]
    compact(store, segment_bytes=4000, frame_bytes=600)
    gc(store, older_than_seconds=0)
    assert verify(store).problems == []


def test_gets_of_a_slice() -> None:
    store, text = memory(), lines(8000)
    root = publish(text, store, **LAYOUT)  # type: ignore[arg-type]
    counted = CountingStore(store)
    with Monocontext.open(counted) as context:
        assert counted.gets == 1
        assert context[len(text) // 3] == text[len(text) // 3]
    assert counted.gets == 1 + level_of(root.pages[0]) + 2  # directories from the top down, a page, a frame
