"""What is read whole has a bound: a root, an entry's head, a lease of a gigabyte is refused by name, not downloaded."""

from __future__ import annotations

import os
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from sessions.agents import small

import monocontext.writing.commit
from monocontext import Monocontext, append, publish
from monocontext.errors import ContextTooLarge, DamagedData
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, Manifest, generation_key
from monocontext.memory import Memory
from monocontext.sessions import upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from monocontext.stores.local import LocalStore
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, S3StandIn
from rlm.compile.compiling import compile_sessions

HUGE_BYTES = 1 << 30


def huge(store: LocalStore, key: str) -> None:
    """A file without blocks: it takes no room on the disk, and 1 GiB in memory."""
    path = Path(store.url.removeprefix("file://")) / key
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.truncate(HUGE_BYTES)


@pytest.fixture
def folder(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "place")


def test_a_limit_of_a_whole_object(any_store: Store) -> None:
    any_store.put("a", b"0123456789")
    assert any_store.get("a", most_bytes=10).data == b"0123456789"
    for most_bytes in (0, 9):
        with pytest.raises(DamagedData, match=f"/a is too large: expected at most {most_bytes} bytes, found 10"):
            any_store.get("a", most_bytes=most_bytes)
    assert any_store.get("a").data == b"0123456789"


@pytest.mark.parametrize("transport", ["own", "boto3"])
def test_nothing_of_it_is_downloaded(transport: str) -> None:
    with S3StandIn({"a": bytes(64 << 20)}) as server:
        with (
            closing(open_store(server.url(), endpoint=server.endpoint, transport=transport)) as store,
            pytest.raises(DamagedData, match="expected at most 1,000 bytes, found 67,108,864"),
        ):
            store.get("a", most_bytes=1000)
        assert server.counts["GET"] == 1
        assert server.bytes_sent < 64 << 20


@pytest.mark.parametrize("key", [ROOT_KEY, generation_key(2)])
def test_a_root(folder: LocalStore, key: str) -> None:
    publish("text\n", folder)
    append("more\n", folder)
    huge(folder, key)
    counted = CountingStore(folder)
    with pytest.raises(DamagedData, match=f"{key} is too large: expected .*, found 1,073,741,824"):
        Monocontext.open(counted, generation=None if key == ROOT_KEY else 2)
    assert counted.bytes_read == 0
    if key == ROOT_KEY:  # a copy: the next writer takes the newest generation, and repairs it
        append("and more\n", folder)
        with Monocontext.open(folder) as context:
            assert str(context) == "text\nmore\nand more\n"


def test_unknown_fields_are_not_parsed() -> None:
    root = b'{"format": 1, "x": "' + b"x" * MOST_ROOT_BYTES + b'"}'
    with pytest.raises(DamagedData, match=r"here: the root has 67,108,88\d bytes, at most 67,108,864 are allowed"):
        Manifest.from_bytes(root, "here")


def test_no_writer_commits_a_root_that_no_reader_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monocontext.writing.commit, "MOST_ROOT_BYTES", 100)
    with pytest.raises(ContextTooLarge, match=r"the next root would have .* bytes, at most 100 are allowed"):
        publish("text\n", open_store(f"memory://{uuid.uuid4().hex}"))


def test_an_entry_of_a_memory(folder: LocalStore) -> None:
    memory = Memory(folder)
    memory.put("k", "v")
    (info,) = folder.list()
    head = b"monocontext-memory 1 %08d\n" % 90_000_000
    folder.put(info.key, head + b"[" * 1000)
    path = Path(folder.url.removeprefix("file://")) / info.key
    os.truncate(path, HUGE_BYTES)
    counted = CountingStore(folder)
    with pytest.warns(UserWarning, match="90,000,000 bytes, and an object of 1,073,741,824 bytes at most 1,081,344"):
        assert Memory(counted).list() == []
    assert counted.bytes_read == 2048


def test_what_is_kept_of_sessions(folder: LocalStore, tmp_path: Path) -> None:
    upload_session(folder, recognize_session(small(1).write(tmp_path)), project="proj")
    huge(folder, "compiled/proj/brief.md")
    with pytest.raises(DamagedData, match=r"compiled/proj/brief\.md is too large"):
        compile_sessions(folder, "proj")
