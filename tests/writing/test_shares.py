"""Texts that workers store and objects that they index: the text, documents and answers are those of one process."""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, append, publish
from monocontext.engine.reader import Reader
from monocontext.errors import AccessDenied, InvalidText, NotFound
from monocontext.format.manifest import find_root
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import WrappedStore
from monocontext.writing import index_in_place, shares
from monocontext.writing.index_in_place import index
from monocontext.writing.splice import find_gaps
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify
from tests.budget import examples
from tests.writing.upkeep.upkept import memory

SHARE_BYTES = 1500
WORDS = ["alpha", "gamma ray", "délta", "ΐota", "kilo\n", "x", "\n", "\r\n", "\r", "日本語", "12:34:56", "\ufeff"]


def content(dice: random.Random) -> bytes:
    kind = dice.randrange(12)
    if kind < 3:
        return (b"", b"\xef\xbb\xbf", b"\x00\x01binary")[kind]
    text = "".join(dice.choice(WORDS) + dice.choice((" ", "\n", "")) for _ in range(dice.choice((1, 30, 900))))
    return (b"\xef\xbb\xbf" if kind == 3 else b"") + text.encode()


def tree(root: Path, dice: random.Random) -> list[Path]:
    """A folder with files in subfolders, and a file that is named by itself."""
    for number in range(dice.randrange(1, 20)):
        folder = root / "tree" / dice.choice(("", "a", "a/b", "z"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_bytes(content(dice))
    alone = root / "alone.txt"
    alone.write_bytes(content(dice).replace(b"\x00", b""))
    given = [root / "tree", alone]
    dice.shuffle(given)
    return given[: dice.choice((1, 2, 2))]


def told(place: Any, is_covered: bool = True) -> tuple[Any, ...]:
    """What readers see of a text; its filters are whole and its answers those of the `str`."""
    assert verify(place).problems == []
    root = find_root(open_store(place) if isinstance(place, str | Path) else place).manifest
    assert not (root.filters and is_covered) or find_gaps(root.filters, root.frames) == []
    with Monocontext.open(place) as context:
        whole, dice = str(context), random.Random(len(context))
        for _ in range(8 if whole else 0):
            at = dice.randrange(len(whole))
            needle = whole[at : at + dice.choice((3, 8, 20))]
            assert (context.find(needle), context.count(needle)) == (whole.find(needle), whole.count(needle))
        records = [context.documents.table.document(number) for number in range(context.documents.count)]
        counts = [(row.name, len(row), row.newlines, row.bytes) for row in records]
        return whole, {name: str(one) for name, one in context.documents.items()}, counts


@pytest.fixture(autouse=True)
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of some files, ranges of the larger ones, and searches that ask filters."""
    for module in (shares, index_in_place):
        monkeypatch.setattr(module, "SHARE_BYTES", SHARE_BYTES)
    monkeypatch.setattr(index_in_place, "_MOST_OBJECTS", 5)
    monkeypatch.setattr(shares, "_MOST_JOINED", 2)
    monkeypatch.setattr(Reader, "is_one_wave", lambda self, start, stop: False)


def sent(sources: Any, store: Any, **options: Any) -> list[str]:
    notes: list[str] = []
    publish(sources, store, frame_bytes=600, note=notes.append, **options)
    return sorted(notes)


@pytest.mark.parametrize("seed", range(examples(60)))
def test_a_tree_is_what_an_upload_without_workers_makes(seed: int, tmp_path: Path) -> None:
    sources = tree(tmp_path, random.Random(seed))
    spread, here = memory(), memory()
    with ThreadPoolExecutor(2) as pool:
        assert sent(sources, spread, executor=pool) == sent(sources, here)
    assert told(spread) == told(here)


@pytest.mark.parametrize("seed", range(examples(20)))
def test_texts_that_are_sent_and_appended(seed: int) -> None:
    dice = random.Random(seed)
    first, second = (f"{content(dice).decode(errors='replace')}{'word ' * dice.randrange(4000)}" for _ in range(2))
    spread, here = memory(), memory()
    with ThreadPoolExecutor(2) as pool:
        for store, executor in ((spread, pool), (here, None)):
            publish(first, store, frame_bytes=600, executor=executor)
            append(second, store, executor=executor)
    assert told(spread, is_covered=False) == told(here, is_covered=False)
    assert str(Monocontext.open(spread)) == first + second


@pytest.mark.parametrize("seed", range(examples(30)))
def test_objects_that_workers_index(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    (tmp_path / "texts").mkdir()
    for number in range(dice.randrange(1, 40)):
        data = content(dice).replace(b"\x00", b"")
        (tmp_path / "texts" / f"{number:02}.txt").write_bytes(data.decode("utf-8", "ignore").encode())
    alone, spread = list[str](), list[str]()
    index(tmp_path / "texts", tmp_path / "alone", frame_bytes=600, note=alone.append)
    with ThreadPoolExecutor(2) as pool:
        index(tmp_path / "texts", tmp_path / "spread", frame_bytes=600, note=spread.append, executor=pool)
    assert told(tmp_path / "spread") == told(tmp_path / "alone")
    assert alone == spread
    assert len(list(open_store(tmp_path / "spread").list("filters/"))) < 12  # not one for each of 40 shares


def test_processes_index_objects(tmp_path: Path) -> None:
    """The shares and what becomes of them are pickled; each process opens the place itself."""
    (tmp_path / "texts").mkdir()
    for number in range(7):
        (tmp_path / "texts" / f"{number}.txt").write_text(f"line of {number}, é\n" * 300)
    index(tmp_path / "texts", tmp_path / "alone", frame_bytes=600)
    with ProcessPoolExecutor(1) as pool:
        index(tmp_path / "texts", tmp_path / "spread", frame_bytes=600, executor=pool)
    assert told(tmp_path / "spread") == told(tmp_path / "alone")


class NoDeletes(WrappedStore):
    def delete(self, key: str, *, if_match: str | None = None) -> None:
        raise AccessDenied(f"{key}: no right to delete")


def test_a_writer_needs_no_right_to_delete(tmp_path: Path) -> None:
    """The filters that were joined stay then, until `gc`."""
    (tmp_path / "a.txt").write_text("some words\n" * 2000)
    store = memory()
    with ThreadPoolExecutor(2) as pool:
        publish(tmp_path / "a.txt", NoDeletes(store), frame_bytes=600, executor=pool)
    left = len(list(store.list("filters/")))
    gc(store, older_than_seconds=0)
    assert 0 < len(list(store.list("filters/"))) < left
    assert verify(store).ok


def test_bad_text_and_a_missing_file_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"bad \xff\n")
    (tmp_path / "texts").mkdir()
    for at in (0, 4500, 8999):
        (tmp_path / "texts" / "a.txt").write_bytes(b"x" * at + b"\xff" + b"y" * (9000 - at))
        said = rf"a\.txt: not utf-8 at byte {at}; .*sync --encoding"
        with ThreadPoolExecutor(2) as pool, pytest.raises(InvalidText, match=said):
            index(tmp_path / "texts", tmp_path / "ctx", frame_bytes=600, executor=pool)
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(InvalidText, match=r"bad.txt: not utf-8 at byte 4 \(0xff\)"):
            publish(tmp_path / "bad.txt", memory(), executor=pool)
        with pytest.raises(NotFound, match=r"none.txt: no such file"):
            publish([tmp_path / "none.txt"], memory(), executor=pool)


@pytest.mark.parametrize("text", ["ab", "line\n" * 100])
def test_a_share_whose_frames_all_stay_open_leaves_no_filter(store: Store, text: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        publish(text, store, frame_bytes=600, executor=threads, replace=True)
    assert not list(store.list("filters/"))
