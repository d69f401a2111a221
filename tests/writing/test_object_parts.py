"""Objects that workers index where they lie: the text, records and filters of an index that one process makes."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext
from monocontext.engine.reader import Reader
from monocontext.errors import ContextChanged, InvalidText
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.manifest import Manifest
from monocontext.records import replace
from monocontext.stores import open_store
from monocontext.writing import batches, object_parts
from monocontext.writing.index_in_place import index
from monocontext.writing.upkeep.verify import verify
from tests.budget import examples
from tests.writing.test_file_parts import Elsewhere, content

BATCH_BYTES = 1500


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of some objects, ranges of the larger ones, and searches that ask filters."""
    monkeypatch.setattr(batches, "BATCH_BYTES", BATCH_BYTES)
    monkeypatch.setattr(object_parts, "_MOST", 5)
    monkeypatch.setattr(object_parts, "_FOLLOWING", 2)
    monkeypatch.setattr(object_parts, "_HEAD_BYTES", 40)
    monkeypatch.setattr(Reader, "is_one_wave", lambda self, start, stop: False)


def fill(place: Path, dice: random.Random, most_bytes: int) -> None:
    place.mkdir()
    for number in range(dice.randrange(1, 40)):
        data = content(dice).replace(b"\x00", b"")
        (place / f"{number:02}.txt").write_bytes(data[:most_bytes].decode("utf-8", "ignore").encode())


def rows_of(root: Manifest, place: Path) -> list[tuple[int, bytes]]:
    """All rows of its filters."""
    store = open_store(place)
    return [
        (ref.first_frame, FilterLayout(ref).decode(part, store.get(key).data).tobytes())
        for ref in root.filters
        for part, key in enumerate(ref.keys)
    ]


def records_of(root: Manifest) -> object:
    pages = [replace(page, id="") for page in root.pages]  # with their checksums
    return pages, root.last_page, root.stored_bytes, root.flags, root.sources, root.final_newline, len(root.filters)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("seed", range(examples(40)))
def test_whole_objects_give_the_same_records_and_filters(seed: int, tmp_path: Path) -> None:
    fill(tmp_path / "texts", random.Random(seed), 2 * BATCH_BYTES)
    notes: tuple[list[str], list[str]] = ([], [])
    make = partial(index, tmp_path / "texts", frame_bytes=600)
    alone = make(tmp_path / "alone", note=notes[0].append)
    with ThreadPoolExecutor(2) as pool:
        spread = make(tmp_path / "spread", note=notes[1].append, executor=pool)
    assert records_of(spread) == records_of(alone)
    assert rows_of(spread, tmp_path / "spread") == rows_of(alone, tmp_path / "alone")
    assert notes[0] == notes[1]
    left = {key for ref in spread.filters for key in ref.keys}
    assert {info.key for info in open_store(tmp_path / "spread").list("filters/")} == left


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("seed", range(examples(40)))
def test_ranges_of_large_objects_give_the_same_text(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    fill(tmp_path / "texts", dice, 1 << 20)
    index(tmp_path / "texts", tmp_path / "alone", frame_bytes=600)
    with ThreadPoolExecutor(2) as pool:
        index(tmp_path / "texts", tmp_path / "spread", frame_bytes=600, executor=pool)
    assert verify(tmp_path / "spread").problems == []
    with Monocontext.open(tmp_path / "alone") as one, Monocontext.open(tmp_path / "spread") as other:
        whole = str(one)
        assert str(other) == whole
        assert list(other.lines) == list(one.lines)
        for _ in range(20 if whole else 0):
            at = dice.randrange(len(whole))
            needle = whole[at : at + dice.choice((3, 8, 20))]
            assert (other.find(needle), other.count(needle)) == (whole.find(needle), whole.count(needle))


@pytest.mark.slow
def test_workers_in_processes(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("".join(f"{i:08} straße {i * i:x}\n" for i in range(2_500_000)))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        spread = index(tmp_path / "texts", tmp_path / "spread", executor=pool)
    alone = index(tmp_path / "texts", tmp_path / "alone")
    assert (spread.characters, spread.newlines) == (alone.characters, alone.newlines)
    with Monocontext.open(tmp_path / "spread") as one, Monocontext.open(tmp_path / "alone") as other:
        assert one.find("02499999 straße") == other.find("02499999 straße") > 0


@pytest.mark.usefixtures("small_parts")
def test_the_driver_reads_what_workers_do_not_find(tmp_path: Path) -> None:
    fill(tmp_path / "texts", random.Random(5), 2 * BATCH_BYTES)
    spread = index(tmp_path / "texts", tmp_path / "spread", frame_bytes=600, executor=Elsewhere())
    assert records_of(spread) == records_of(index(tmp_path / "texts", tmp_path / "alone", frame_bytes=600))


class Before(ThreadPoolExecutor):
    """Does something before the first task."""

    def __init__(self, once: Callable[[], object]) -> None:
        super().__init__(1)
        self._once = [once]

    def submit(self, work: Any, /, *args: Any, **options: Any) -> Any:
        while self._once:
            self._once.pop()()
        return super().submit(work, *args, **options)


def test_what_changed_since_it_was_listed_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    path = tmp_path / "texts" / "a.txt"
    path.write_text("first\n" * 1000)
    executor: Executor
    with (
        Before(lambda: path.write_text("other\n" * 2000)) as executor,
        pytest.raises(ContextChanged, match=r"^[^\n]*a\.txt was replaced: expected ETag [^\n]*$"),
    ):
        index(tmp_path / "texts", tmp_path / "ctx", executor=executor)
    assert not os.path.exists(tmp_path / "ctx" / "manifest.json")


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("at", [0, 2000, 4499, 4500, 4501, 8999])
def test_what_is_not_utf_8_is_refused_with_its_place(at: int, tmp_path: Path) -> None:
    """Also at the border of two ranges."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_bytes(b"x" * at + b"\xff" + b"y" * (9000 - at))
    with (
        ThreadPoolExecutor(2) as pool,
        pytest.raises(InvalidText, match=rf"a\.txt: not UTF-8 at byte {at}: .*sync --encoding"),
    ):
        index(tmp_path / "texts", tmp_path / "ctx", frame_bytes=600, executor=pool)
