"""Documents as they are published and appended: by name, by place, from files, in bounded memory; and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, append, publish
from monocontext.errors import AlreadyExists, InvalidText, NotFound
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from monocontext.writing.documents import documents
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify


def texts_of(store: Any) -> list[tuple[str, str]]:
    with Monocontext.open(store) as context:
        found = context.documents
        return [(record.name, str(context.view(record.start, record.stop))) for record in found.records()]


def test_a_mapping_is_its_documents(store: MemoryStore) -> None:
    given = {"a": "one", "b": "", "c": "é\n\n", "漢": "\r\n"}
    publish(given, store)
    assert texts_of(store) == list(given.items())
    with Monocontext.open(store) as context:
        assert str(context) == "one\né\n\n\r\n"
        assert {name: str(text) for name, text in context.documents.items()} == given
        assert context.stats.gets == 2  # the root, which holds their page, and the text
    assert verify(store).problems == []


def test_an_iterable_streams_with_metadata(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from a file")
    long = "x" * (3 << 20)
    items = [("a", "1", {"k": [1, None]}), ("b", tmp_path / "file"), "unnamed", ("c", long), ("a", "2")]
    publish(documents(iter(items)), store)
    assert texts_of(store) == [("a", "1"), ("b", "from a file"), ("2", "unnamed"), ("c", long), ("a", "2")]
    with Monocontext.open(store) as context:
        assert context.documents.metadata("b") == {}
        assert context.documents.metadata_of(0) == {"k": [1, None]}
        assert str(context.documents["a"]) == "2"  # the last of a name
        assert list(context.documents) == ["a", "b", "2", "c"]  # as in a dict of the pairs
        assert len(context.documents) == 4
        assert context.documents.count == 5


def test_files_of_a_directory_are_documents_whatever_they_hold(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("=== FILE: forged ===\nnot a file\n")
    (tmp_path / "sub" / "b.txt").write_text("no newline")
    publish(tmp_path, store)
    assert texts_of(store) == [("a.txt", "=== FILE: forged ===\nnot a file\n"), ("sub/b.txt", "no newline")]
    with Monocontext.open(store) as context:
        assert str(context).count("=== FILE: ") == 3
        assert context.documents.at(str(context).index("not a file")).name == "a.txt"  # type: ignore[union-attr]


def test_plain_text_has_no_documents(store: MemoryStore) -> None:
    assert publish("text", store).documents is None
    with Monocontext.open(store) as context:
        assert dict(context.documents) == {}


def test_documents_without_text_are_kept(store: MemoryStore) -> None:
    publish({"a": "", "b": ""}, store)
    append({"c": ""}, store)
    append({"d": "text"}, store)
    assert texts_of(store) == [("a", ""), ("b", ""), ("c", ""), ("d", "text")]
    with Monocontext.open(store, shape="list") as texts:
        assert texts == ["", "", "", "text"]
    publish({"e": ""}, store, replace=True)
    assert texts_of(store) == [("e", "")]
    assert verify(store).ok


def test_pages_fill_and_names_are_found_in_tables(store: MemoryStore) -> None:
    publish(documents((f"name {i}", str(i)) for i in range(9000)), store)
    append(documents([("name 5", "anew"), ("more", "text")]), store)
    append(documents([(f"other {i}", str(i)) for i in range(5000)]), store)
    assert verify(store).problems == []
    with Monocontext.open(store) as context:
        found = context.documents
        assert found.count == 14_002
        names = {"name 5": "anew", "name 8999": "8999", "other 4999": "4999"}
        assert {name: str(found[name]) for name in names} == names
        assert "absent" not in found
        assert len(found) == 14_001
    with Monocontext.open(store) as context:
        assert str(context.documents["name 7"]) == "7"
        assert context.stats.gets <= 1 + len(context._reader.manifest.documents.names) + 2  # type: ignore[union-attr]
    assert verify(store).documents == 14_002
    for info in list(store.list("documents/")):
        store.delete(info.key)
    assert verify(store).documents == 0


def test_names_are_found_in_a_table_that_took_in_others(store: MemoryStore) -> None:
    publish(documents((f"a {i}", str(i)) for i in range(4100)), store)
    root = append(documents((f"b {i}", str(i)) for i in range(4100)), store)
    assert root.documents is not None
    assert len(root.documents.names) == 1
    with Monocontext.open(store) as context:
        assert [str(context.documents[name]) for name in ("a 7", "b 4099")] == ["7", "4099"]
    assert verify(store).problems == []


def test_appending_little_costs_little(store: MemoryStore) -> None:
    publish(documents((f"name {i}", str(i)) for i in range(5000)), store)
    counted = CountingStore(store)
    append({"one": "more"}, counted)
    assert not [one for one in counted.log if one.verb == "put" and one.key.startswith("documents/")]


@pytest.mark.slow
@pytest.mark.parametrize("size", [400, 4000], ids=["short", "long"])
def test_an_append_whose_pages_were_collected_changes_nothing(store: MemoryStore, size: int) -> None:
    """A page of 4,096 documents is stored while the rest is read: `gc` without a grace period takes it for garbage."""
    before = publish({"first": "text"}, store)
    collected = 0

    def rows() -> Iterator[tuple[str, str]]:
        nonlocal collected
        for i in range(9000):
            if i == 8900:  # texts go on by the MiB
                collected += gc(store, older_than_seconds=0).documents
            yield f"name {i}", "x" * size

    with pytest.raises(AlreadyExists, match=r"`gc` .* may have removed objects of this write"):
        append(documents(rows()), store)
    assert collected == 1
    assert texts_of(store) == [("first", "text")]
    assert verify(store).problems == []
    assert Monocontext.open(store).generation == before.generation + 1  # the fence
    append(documents((f"name {i}", "x" * size) for i in range(6000)), store)
    assert [name for name, _ in texts_of(store)] == ["first", *(f"name {i}" for i in range(6000))]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([("a", 1)], "document 0 .'a'.: its text must be a str or a path, not int"),
        (["fine", 7], "document 1: expected a text, .name, text."),
        ([(1, "text")], "document 0: its name must be a str, not int"),
        ([("a", "half \ud83d")], "document 'a': a lone surrogate U.D83D at character 5"),
        ([("\ud83d", "text")], "document 0: its name has a lone surrogate"),
        ([("n" * 5000, "text")], "its name has 5,000 bytes"),
        ([("a", "text", {"k": object()})], "document 0: its metadata is not a JSON object"),
        ([("a", "text", {"k": "v" * 70_000})], "its metadata has 70,008 bytes"),
        ([("a", "text", {"k": float("nan")})], "document 0: its metadata is not a JSON object"),
    ],
)
def test_what_is_no_document_is_refused_in_one_line(store: MemoryStore, items: list[Any], words: str) -> None:
    with pytest.raises(InvalidText, match=words) as caught:
        publish(documents(items), store)
    assert "\n" not in str(caught.value)
    with pytest.raises(NotFound):
        Monocontext.open(store)


def test_a_dict_needs_different_names(store: MemoryStore) -> None:
    publish(documents([*((str(i), "text") for i in range(5000)), ("17", "again")]), store)
    with pytest.raises(ValueError, match="several documents are named '17'"):
        Monocontext.open(store, shape="dict")
    assert len(Monocontext.open(store, shape="list")) == 5001


def test_damage_of_documents_is_found(tmp_path: Path) -> None:
    publish(documents((f"name {i}", str(i)) for i in range(9000)), tmp_path)
    for file in (tmp_path / "documents").iterdir():
        whole = file.read_bytes()
        data = bytearray(whole)
        data[len(data) // 2] ^= 1
        file.chmod(0o644)
        file.write_bytes(data)
        assert any(file.name in problem for problem in verify(tmp_path).problems)
        file.write_bytes(whole)
    assert verify(tmp_path).ok
