"""Replaced and deleted documents: the text that a publish of the same documents makes, at the cost of what changed."""

from __future__ import annotations

import json
import random
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from monocontext import Monocontext, append, delete, documents, publish, replace
from monocontext.engine.reader import Reader
from monocontext.errors import InvalidText, NotFound
from monocontext.format.manifest import listed_generations
from monocontext.stores.disk.cache import DiskCache
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, Crash, CrashingStore
from monocontext.writing.upkeep import edit
from monocontext.writing.upkeep.compact import compact
from monocontext.writing.upkeep.forget import find_leftovers
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify
from monocontext.writing.upkeep.versions import restore
from tests.budget import examples

from .programs import Program, check, whole_of
from .upkept import documents_of, root, text_of


@pytest.fixture
def asks_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches ask filters in texts of any size, and edits of neighbouring frames are made apart."""
    monkeypatch.setattr(edit, "_FULL_GROUP_BYTES", 5_000)
    monkeypatch.setattr(Reader, "is_one_wave", lambda self, start, stop: False)


@pytest.mark.usefixtures("asks_filters")
@pytest.mark.parametrize("seed", range(examples(80)))
def test_random_programs_give_what_a_dict_gives(
    store: MemoryStore, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With filters and index pages of every size."""
    sizes = random.Random(seed)
    monkeypatch.setattr("monocontext.format.filters.joining._MOST_FRAMES", sizes.choice([0, 30, 1 << 16]))
    monkeypatch.setattr("monocontext.format.filters.building.GROUP_FRAMES", sizes.choice([8, 16, 40, 1 << 16]))
    monkeypatch.setattr(sys.modules["monocontext.writing.pages"], "FRAMES_PER_PAGE", sizes.choice([3, 20, 4096]))
    program = Program(store, seed, tmp_path)
    for _ in range(10):
        program.step()
    assert verify(store).ok


def test_one_document_of_a_thousand(store: MemoryStore) -> None:
    """Two frames are read and stored again; pages of the index and of documents too, and nothing else."""
    texts = {f"d{number}": f"line {number}\n" * 400 for number in range(1000)}
    publish(texts, store, frame_bytes=16 << 10)
    before = {info.key for info in store.list()}
    counted = CountingStore(store)
    replace(counted, {"d500": "another line\n"})
    (segment,) = (info for info in store.list("segments/") if info.key not in before)
    assert segment.size_bytes < 8000
    assert counted.gets <= 10
    assert len({info.key for info in store.list()} - before) <= 4
    assert documents_of(store) == texts | {"d500": "another line\n"}


def test_header_lines_go_with_their_documents(store: MemoryStore, tmp_path: Path) -> None:
    for name, text in {"a.txt": "A", "b.txt": "B\n", "c.txt": ""}.items():
        (tmp_path / name).write_text(text)
    publish([tmp_path], store)
    replace(store, {"a.txt": "long\ntext"})
    delete(store, "b.*")
    assert text_of(store) == "=== FILE: a.txt ===\nlong\ntext\n=== FILE: c.txt ===\n"
    assert documents_of(store) == {"a.txt": "long\ntext", "c.txt": ""}


def test_a_list_of_names_may_hold_globs_and_a_name_comes_first(store: MemoryStore) -> None:
    publish({"a": "1", "b/c.txt": "2", "b/d.txt": "3", "e*": "4", "eel": "5", "c.txt": "6"}, store)
    delete(store, ["a", "b/c*", "e*"])
    for names, name in (("x*", r"'x\*' or matches that glob"), ("d.txt", "'d.txt'"), (["eel", "x\\"], "'x.*'")):
        with pytest.raises(NotFound, match=f"no document is named {name}$"):
            delete(store, names)
    assert list(documents_of(store)) == ["b/d.txt", "eel", "c.txt"]


def test_text_between_documents_stays(store: MemoryStore) -> None:
    publish({"a": "A\n"}, store)
    append("a line of no document\nand a line about b\n", store)
    append({"b": "B\n"}, store)
    delete(store, ["a", "b"])
    assert (text_of(store), documents_of(store)) == ("a line of no document\nand a line about b\n", {})


def test_metadata_stays_unless_it_is_given(store: MemoryStore) -> None:
    publish(documents([("a", "A", {"by": "x"}), ("b", "B", {"by": "y"})]), store)
    replace(store, [("a", "AA"), ("b", "BB", {"by": "z"})])
    with Monocontext.open(store) as context:
        assert [context.documents.metadata(name)["by"] for name in ("a", "b")] == ["x", "z"]


def test_of_several_documents_with_one_name_the_last_is_replaced_and_all_are_deleted(store: MemoryStore) -> None:
    publish({"a": "first", "b": "B"}, store)
    append({"a": "second"}, store)
    replace(store, {"a": "third"})
    assert text_of(store) == "first\nB\nthird\n"
    delete(store, "a")
    assert (text_of(store), documents_of(store)) == ("B\n", {"b": "B"})


def test_a_document_after_another_million(store: MemoryStore) -> None:
    """Names of more documents than a page holds are found by a table, which a deletion writes again."""
    publish(documents((f"d{number}", f"{number}", None) for number in range(9000)), store)
    delete(store, "d42")
    with Monocontext.open(store) as context:
        assert "d42" not in context.documents
        assert [str(context.documents[f"d{number}"]) for number in (41, 43, 8999)] == ["41", "43", "8999"]


SECRET = "the person who asked to be forgotten"
HISTORIES = {
    "fresh": (),
    "neighbour replaced": ("neighbour",),
    "itself replaced": ("itself",),
    "compacted": ("neighbour", "compact"),
    "restored": ("neighbour", "restore"),
    "updated and compacted": ("itself", "append", "compact", "delete"),
    "all": ("append", "itself", "neighbour", "compact", "delete", "restore", "append", "neighbour"),
}
"""What happened to a text before one of its documents is forgotten."""


def forgotten(store: Store, seed: int, codec: str, frame_bytes: int, history: tuple[str, ...]) -> dict[str, str]:
    """Documents of which one with the secret went through a history and was forgotten; returns the others."""
    chance = random.Random(seed)
    texts = {f"d{number}": f"{chance.randrange(1 << 40):x} " * chance.randrange(1, 90) for number in range(32)}
    number = chance.randrange(4, 24)
    name = f"d{number}"
    texts[name] += f"{SECRET}\n" * 9  # one of them lies whole in an object
    publish(dict(texts), store, frame_bytes=frame_bytes, segment_bytes=chance.choice((900, 6000, 1 << 20)), codec=codec)
    for step, kind in enumerate(history):
        neighbour = f"d{number + 1 + step % 3}"
        match kind:
            case "neighbour" if neighbour in texts:
                texts[neighbour] = f"changed {step}"
                replace(store, {neighbour: texts[neighbour]})
            case "itself":
                texts[name] = f"other {step} {SECRET} again\n"
                replace(store, {name: texts[name]})
            case "delete":
                gone = f"d{number - 1 - step % 3}"
                if texts.pop(gone, None) is not None:
                    delete(store, gone)
            case "append":
                texts[f"after {step}"] = "x"
                append({f"after {step}": "x"}, store)
            case "compact":
                compact(store, frame_bytes=2 * frame_bytes)
            case "restore":
                for _ in range(2):
                    restore(store, root(store).generation - 1)
    assert find_leftovers(store, [SECRET])
    del texts[name]
    delete(store, name, forget=True)
    return texts


@pytest.mark.parametrize("codec", ["zstd", "raw"])
@pytest.mark.parametrize("frame_bytes", [700, 256 << 10])
@pytest.mark.parametrize("history", HISTORIES)
def test_a_forgotten_text_is_in_no_object(store: MemoryStore, history: str, frame_bytes: int, codec: str) -> None:
    texts = forgotten(store, len(history), codec, frame_bytes, HISTORIES[history])
    assert find_leftovers(store, [SECRET]) == []
    check(store, texts, random.Random(1))
    assert verify(store).ok


def test_a_text_is_forgotten_on_every_store(any_store: Store) -> None:
    texts = forgotten(any_store, 5, "zstd", 700, HISTORIES["all"])
    assert find_leftovers(any_store, [SECRET]) == []
    check(any_store, texts, random.Random(5))


def test_forgetting_reaches_a_cache_on_disk(store: MemoryStore, tmp_path: Path) -> None:
    publish({"s": f"{SECRET}\n" * 3_000, "t": "other " * 200_000}, store, frame_bytes=4_000, codec="raw")
    with Monocontext.open(store, cache_dir=tmp_path) as context:
        assert len(context[:9_000]) == 9_000
    delete(store, "s", forget=True)
    assert list(DiskCache(tmp_path).files())
    delete(store, "t", forget=True, cache_dir=tmp_path)
    assert not list(DiskCache(tmp_path).files())
    assert find_leftovers(store, [SECRET]) == []
    with pytest.raises(ValueError, match="cache_dir needs forget"):
        delete(store, "*", cache_dir=tmp_path)


@pytest.mark.parametrize("after", range(0, 30, 3))
def test_forgetting_that_was_killed_is_ended_by_gc(store: MemoryStore, after: int) -> None:
    texts = {f"d{number}": f"text {number}\n" * 50 for number in range(40)} | {"s": SECRET}
    publish(texts, store, frame_bytes=600)
    with suppress(Crash):
        delete(CrashingStore(store, after), "s", forget=True)
    assert verify(store).ok
    try:
        delete(store, "s", forget=True)  # again: also where the deletion itself was committed
    except NotFound:
        gc(store, older_than_seconds=0)  # no version has it any more
    assert find_leftovers(store, [SECRET]) == []
    assert verify(store).ok


def test_what_was_deleted_before_can_be_forgotten(store: MemoryStore) -> None:
    texts = {"a": "kept\n" * 90, "s": SECRET, "b": "kept too\n" * 90, "d/a": SECRET, "d/b": "", "e/a": SECRET}
    publish(texts | {"[a]": SECRET}, store, frame_bytes=600)
    delete(store, ["s", "d/a", "e/a", "[a]"])
    for wrong_name in ("t", "d"):  # of the folder d, a document is left
        with pytest.raises(NotFound):
            delete(store, ["s", "e", wrong_name], forget=True)  # which ends no earlier version
    assert listed_generations(store) == [1, 2]
    delete(store, ["s", "b", "e", "[a]"], forget=True)  # `[a]` is no glob, since a document had that name
    assert find_leftovers(store, [SECRET, "kept too"]) == []
    assert (list(documents_of(store)), verify(store).ok) == (["a", "d/b"], True)
    with pytest.raises(NotFound):
        delete(store, "s", forget=True)


def test_what_only_dead_bytes_hold_can_be_forgotten(store: MemoryStore) -> None:
    publish({f"d{number}": f"text {number}\n" * 90 for number in range(40)} | {"s": SECRET}, store, frame_bytes=600)
    delete(store, "s")
    gc(store, older_than_seconds=0)  # no version has its name any more
    with pytest.raises(NotFound, match="if it was deleted before, forget without a name removes what is left"):
        delete(store, "s", forget=True)
    delete(store, [], forget=True)
    assert find_leftovers(store, [SECRET]) == []


@pytest.mark.usefixtures("asks_filters")
def test_filters_keep_what_they_know(store: MemoryStore) -> None:
    chance = random.Random(1)
    texts = {f"d{number}": " ".join(f"{chance.randrange(1 << 40):x}" for _ in range(100)) for number in range(300)}
    publish(texts, store, frame_bytes=1200)
    replace(store, {"d150": "what was never there before"})
    base, small = json.loads(store.get("manifest.json").data)["filters"]
    assert len(base["runs"]) == 2
    assert small["width"] < 5
    assert verify(store).ok
    word = texts["d299"].split()[50]
    with Monocontext.open(store) as context:
        assert context.find(word) == text_of(store).find(word)
        assert context.stats.search.pruned > 200
    compact(store)
    (row,) = json.loads(store.get("manifest.json").data)["filters"]
    assert len(row["runs"]) == 1


@pytest.mark.slow
def test_a_needle_after_a_hundred_edits(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """In prose and dumps, whose filters have other numbers of rows, a search reads few rows of one large filter."""
    monkeypatch.setattr(Reader, "is_one_wave", lambda self, start, stop: False)
    chance = random.Random(7)
    words = ["".join(chance.choices("etaoinsrldcu", k=chance.randrange(2, 9))) for _ in range(3000)]

    def text(number: int) -> str:
        if number % 3:
            return "".join(f"{word}{chance.choice('     ,.-')}" for word in chance.choices(words, k=3000))
        return "".join(f"{chance.getrandbits(32):08x} " for _ in range(2000))

    texts = {f"d{number}": text(number) for number in range(240)}
    publish(texts, store, frame_bytes=16 << 10)

    def search(needle: str, most_gets: int = 12) -> None:
        whole = whole_of(texts)
        counted = CountingStore(store)
        with Monocontext.open(counted) as context:
            assert counted.gets == 1
            assert context.find(needle) == whole.find(needle)
            assert counted.gets <= 1 + most_gets
        with Monocontext.open(store) as context:
            assert context.count(needle) == whole.count(needle)

    for number, name in enumerate(chance.sample(list(texts)[:-3], 100)):
        needle = f"ticket {chance.getrandbits(40):010x}"
        at = chance.randrange(len(texts[name]))
        texts[name] = f"{texts[name][:at]} {needle}{texts[name][at:]}"
        replace(store, {name: texts[name]})
        if number >= 70 and number % 3 == 0:
            search(needle)
    assert len(root(store).filters) <= 2
    for needle in ("ticket zero", texts["d17"][5000:5040], texts["d18"][5000:5040]):
        search(needle)
    search(max(words, key=len), 30)
    counted = CountingStore(store)
    with Monocontext.open(counted) as context:
        assert counted.gets == 1
        assert context[2_000_000:2_000_009]
        assert counted.gets == 2


def test_what_is_not_there_is_an_error_and_changes_nothing(store: MemoryStore) -> None:
    publish({"a": "A"}, store)
    with pytest.raises(NotFound, match=r"no document is named 'x' \(2 names are missing\): `update` adds new ones"):
        replace(store, {"a": "aa", "x": "X", "y": "Y"})
    with pytest.raises(NotFound, match=r"no context at .* to change"):
        delete("memory://nothing-here", "a")
    for wrong in ({"a": 5}, [("a",)], ["a"]):
        with pytest.raises(InvalidText):
            replace(store, wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidText, match="lone surrogate"):
        replace(store, {"a": "\ud800"})
    with pytest.raises(TypeError, match="mapping of name to text"):
        replace(store, "a")  # type: ignore[arg-type]
    for wrong_names in (5, b"a", [5]):
        with pytest.raises(TypeError, match="name of a document must be a str"):
            delete(store, wrong_names)  # type: ignore[arg-type]
    assert delete(store, []).generation == 1
    assert (root(store).generation, text_of(store)) == (1, "A\n")
