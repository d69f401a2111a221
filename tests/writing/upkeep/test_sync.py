"""A context in step with files: what is new, changed or gone, and nothing else."""

from __future__ import annotations

import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, append, publish, replace
from monocontext.errors import InvalidText, NotFound
from monocontext.format.manifest import read_newest
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore
from monocontext.writing.upkeep.sync import sync

from .upkept import documents_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {"a.txt": "A\n", "sub/b.txt": "B", "sub/c.txt": ""}.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    return tmp_path / "tree"


def test_what_changed_and_nothing_else(store: MemoryStore, tree: Path) -> None:
    assert sync(tree, store).added == ("a.txt", "sub/b.txt", "sub/c.txt")
    (tree / "a.txt").write_text("A longer\n")
    (tree / "new.txt").write_text("N")
    (tree / "sub" / "b.txt").unlink()
    for dry_run, generation in (True, 1), (False, 2):
        found = sync(tree, store, delete=True, dry_run=dry_run)
        assert (found.added, found.changed, found.deleted) == (("new.txt",), ("a.txt",), ("sub/b.txt",))
        assert (found.unchanged, read_newest(store).generation) == (1, generation)  # type: ignore[union-attr]
    assert documents_of(store) == {"a.txt": "A longer\n", "sub/c.txt": "", "new.txt": "N"}
    counted = CountingStore(store)
    again = sync(tree, counted, delete=True)
    assert (again.unchanged, counted.counts["put"]) == (3, 0)


def test_a_file_with_another_time_and_the_same_text_is_stored_once(store: MemoryStore, tree: Path) -> None:
    sync(tree, store)
    os.utime(tree / "a.txt", ns=(1, 1))
    counted = CountingStore(store)
    assert sync(tree, counted).changed == ()
    stored = counted.counts["put"]
    sync(tree, counted)
    assert counted.counts["put"] == stored > 0


def test_a_file_of_the_same_size_and_another_text_is_seen(store: MemoryStore, tree: Path) -> None:
    sync(tree, store)
    (tree / "a.txt").write_text("Z\n")
    os.utime(tree / "a.txt", ns=(1, 1))  # copied from elsewhere with its old time
    assert sync(tree, store).changed == ("a.txt",)


def test_a_document_that_was_replaced_gets_the_text_of_its_file_again(store: MemoryStore, tree: Path) -> None:
    sync(tree, store)
    before = documents_of(store)
    replace(store, {"a.txt": "by another way"})
    assert sync(tree, store).changed == ("a.txt",)
    assert documents_of(store) == before


def test_a_context_of_an_upload_is_taken_on(store: MemoryStore, tree: Path) -> None:
    publish([tree], store)
    append({"other": "stays"}, store)
    found = sync(tree, store)
    assert found.unchanged == 3
    assert documents_of(store)["other"] == "stays"


def test_objects_of_a_bucket(any_store: Store, store: MemoryStore) -> None:
    for name, data in {"a.txt": b"A", "b/c.txt": b"C\n", "binary": b"\0\1"}.items():
        any_store.put(name, data)
    endpoint = any_store._options.endpoint if hasattr(any_store, "_options") else None
    options = {"endpoint": endpoint} if endpoint else {}
    assert sync(any_store.url, store, store_options=options).added == ("a.txt", "b/c.txt")
    any_store.put("a.txt", b"another")
    found = sync(any_store.url, store, store_options=options)
    assert (found.changed, found.unchanged) == (("a.txt",), 1)
    assert documents_of(store) == {"a.txt": "another", "b/c.txt": "C\n"}


def test_a_context_in_its_own_source_is_left_out(tree: Path) -> None:
    for _ in range(2):
        assert sync(tree, tree / "sub" / "ctx").root is not None
        publish([tree], tree / "other", replace=True, note=str)
    for name in "sub/ctx", "other":
        assert list(documents_of(tree / name)) == ["a.txt", "sub/b.txt", "sub/c.txt"]


def test_a_context_among_its_own_objects_is_left_out(store: MemoryStore) -> None:
    store.put("a.txt", b"A")
    for _ in range(2):
        sync(store.url, f"{store.url}/ctx")
    assert list(Monocontext.open(f"{store.url}/ctx").documents) == ["a.txt"]


def test_an_empty_folder_deletes_nothing(store: MemoryStore, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "not mounted").mkdir()
    with pytest.raises(NotFound, match="no text in the sources, so no context was created at memory:"):
        sync(tmp_path / "not mounted", store)
    assert not list(store.list())
    sync(tree, store)
    with pytest.raises(NotFound, match="no files found: `delete` would remove all 3 documents"):
        sync(tmp_path / "not mounted", store, delete=True)
    assert len(documents_of(store)) == 3


def test_what_a_link_leads_to_is_not_gone(store: MemoryStore, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "d.txt").write_text("D")
    (tree / "link").symlink_to(tmp_path / "elsewhere")
    assert "link/d.txt" in sync(tree, store, follow_links=True).added
    assert sync(tree, store, delete=True, note=str).deleted == ()


def test_a_disk_that_vanishes_deletes_nothing(store: MemoryStore, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync(tree, store)
    scandir = os.scandir

    def scan(path: str) -> Any:
        if path.endswith("sub/"):
            tree.rename(tree.with_name("unmounted"))
            tree.mkdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    with pytest.raises(FileNotFoundError):
        sync(tree, store, delete=True)
    assert len(documents_of(store)) == 3


@pytest.mark.slow
def test_a_new_file_is_not_kept_in_memory(store: MemoryStore, tree: Path) -> None:
    (tree / "large").write_bytes(b"0123456789abcde\n" * (6 << 20))
    tracemalloc.start()
    sync(tree, store)
    assert tracemalloc.get_traced_memory()[1] < 48 << 20
    tracemalloc.stop()


def test_bad_sources(store: MemoryStore, tree: Path) -> None:
    with pytest.raises(NotFound, match="no such file or folder"):
        sync(tree / "nothing", store)
    (tree / "latin.txt").write_bytes("é".encode("latin-1"))
    with pytest.raises(InvalidText, match="not utf-8 at byte 0"):
        sync(tree / "latin.txt", store)
    assert sync(tree, store).added == ("a.txt", "sub/b.txt", "sub/c.txt")


def test_two_sources_of_one_name_are_refused(store: MemoryStore, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_text("another\n")
    places = [str(tree), f"file://{tmp_path}/elsewhere"]
    with pytest.raises(InvalidText, match=r"a\.txt and file://.*a\.txt both give a document named 'a\.txt': rename"):
        sync(places, store)
    assert read_newest(store) is None
    (tree / "a.txt").unlink()
    os.symlink("nowhere", tree / "a.txt")  # left out: the other is the document
    assert sync(places, store, note=lambda text: None).added == ("sub/b.txt", "sub/c.txt", "a.txt")
    assert documents_of(store)["a.txt"] == "another\n"


def test_two_syncs_at_once_give_each_document_once(tree: Path, tmp_path: Path) -> None:
    """Whoever loses the commit compares again; a text that was doubled before is repaired."""
    place = tmp_path / "context"
    publish({"first": "x\n"}, place)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: sync(tree, place), range(2)))
    append({"a.txt": "doubled\n"}, place)
    (tree / "a.txt").write_bytes(b"\0")
    for exclude in ("*.txt",), ():  # not selected, then not text any more: both documents stay
        assert sync(tree, place, exclude=exclude, note=print).deleted == ()
        assert "A\n" in Monocontext.open(place)
    (tree / "a.txt").write_text("new price\n")
    assert sync(tree, place).deleted == ("a.txt",)
    assert documents_of(place) == {"first": "x\n", "a.txt": "new price\n", "sub/b.txt": "B", "sub/c.txt": ""}
