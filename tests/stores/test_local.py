"""The directory store in particular: links, hidden files, permissions, replacement under a reader, the disk."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, append, publish
from monocontext.errors import (
    AccessDenied,
    AlreadyExists,
    ContextChanged,
    InvalidUrl,
    NotFound,
    StoreFailure,
    Unsupported,
)
from monocontext.format.manifest import ROOT_KEY, generation_key
from monocontext.stores.local import LocalStore
from monocontext.writing.upkeep.compact import compact


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "ctx")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


def test_opening_writes_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "new")
    assert list(store.list()) == []
    with pytest.raises(NotFound):
        store.get("a")
    store.delete("a")
    assert names(tmp_path) == set()


def test_more_than_a_thousand_folders_deep(store: LocalStore, tmp_path: Path) -> None:
    folder = "/".join(["d"] * 1200)
    store.put(f"{folder}/o", b"x")
    assert [info.key for info in store.list("d/")] == [f"{folder}/o"]
    assert store.sweep(0) == (0, 0)
    (tmp_path / "ctx" / folder / "o").unlink()
    os.removedirs(tmp_path / "ctx" / folder)  # pytest would call itself for each


def test_a_drive_that_is_missing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda path: False)  # even of `/`, the folder above itself
    with pytest.raises(Unsupported, match="cannot write"):
        store.put("a/o", b"x")


def test_own_files_are_hidden(store: LocalStore, tmp_path: Path) -> None:
    etag = store.put("m", b"1")
    store.put("m", b"2", if_match=etag)
    (tmp_path / "ctx/.monocontext-left-by-a-kill").write_bytes(b"half")
    assert ".monocontext-lock" in names(tmp_path)
    assert [info.key for info in store.list()] == ["m"]
    for key in (".monocontext-lock", ".monocontext-left-by-a-kill", ".monocontext-x/y"):
        with pytest.raises(NotFound):
            store.get(key)
        with pytest.raises(InvalidUrl, match="reserved"):
            store.put(key, b"")


def test_a_failed_write_leaves_nothing(store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store.put("a", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StoreFailure, match="ctx/a: No space left on device"):
            store.put("a", b"new")
    assert store.get("a").data == b"old"
    assert names(tmp_path / "ctx") == {"a"}


def test_short_reads_and_writes_are_continued(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    pread, write = os.pread, os.write
    monkeypatch.setattr(os, "pread", lambda fd, length, start: pread(fd, min(length, 7), start))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:5]))
    store.put("a", bytes(range(100)))
    assert store.get("a").data == bytes(range(100))
    assert store.get_range("a", 10, 50).data == bytes(range(10, 60))


def test_replaced_after_it_was_opened(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader keeps the version that it opened, whole."""
    etag, pread = store.put("a", b"old version"), os.pread

    def late(descriptor: int, length: int, start: int) -> bytes:
        monkeypatch.setattr(os, "pread", pread)
        store.put("a", b"new version")
        return pread(descriptor, length, start)

    monkeypatch.setattr(os, "pread", late)
    blob = store.get_range("a", 0, 3, etag=etag)
    assert (blob.data, blob.etag) == (b"old", etag)
    assert store.get("a").data == b"new version"


def test_written_in_place_while_read(store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by us; but an index may point at files of others."""
    store.put("a", b"old version")
    pread = os.pread

    def late(descriptor: int, length: int, start: int) -> bytes:
        (tmp_path / "ctx/a").write_bytes(b"new text, longer")
        return pread(descriptor, length, start)

    monkeypatch.setattr(os, "pread", late)
    with pytest.raises(ContextChanged, match="ctx/a changed while it was read"):
        store.get("a")


def test_versions_of_one_size_within_a_tick_differ(store: LocalStore) -> None:
    """Inodes are given out again, and the clock of the file system stands still for milliseconds."""
    etags = [store.put("a", b"%06d" % number) for number in range(300)]
    assert len(set(etags)) == 300


def test_links_inside_are_followed_and_links_outside_refused(store: LocalStore, tmp_path: Path) -> None:
    store.put("real/a", b"inside")
    (tmp_path / "secret").write_bytes(b"outside")
    (tmp_path / "ctx-evil").mkdir()
    (tmp_path / "ctx-evil/b").write_bytes(b"outside")
    links = {"in": "real/a", "out": "../secret", "sibling": "../ctx-evil", "folder": "real", "dangling": "../new"}
    for name, target in links.items():
        (tmp_path / "ctx" / name).symlink_to(target)
    assert store.get("in").data == b"inside"
    assert store.get("folder/a").data == b"inside"
    for key in ("out", "sibling/b", "dangling"):
        for ask in (store.get, store.head, store.delete, lambda key: store.put(key, b"x")):
            with pytest.raises(AccessDenied, match="leads out of the store"):
                ask(key)
    assert [info.key for info in store.list()] == ["in", "real/a"]
    assert (tmp_path / "secret").read_bytes() == b"outside"
    assert not (tmp_path / "new").exists()


def test_what_is_no_file(store: LocalStore, tmp_path: Path) -> None:
    store.put("folder/a", b"x")
    for key, message in (("folder", "folder$"), ("a" * 300, "aaa: File name too long$")):
        with pytest.raises(NotFound, match=message):
            store.get(key)
        store.delete(key)
    for key, if_absent in (("folder", False), ("folder", True), ("folder/a/b", False)):
        with pytest.raises(Unsupported, match=f"cannot write .*/{key}"):
            store.put(key, b"x", if_absent=if_absent)
    assert [info.key for info in store.list()] == ["folder/a"]
    for url in (f"{tmp_path}/{'a' * 300}", f"{tmp_path.as_uri()}/{'a' * 300}"):
        with pytest.raises(NotFound, match=r"nothing at .*: File name too long$"):
            Monocontext.open(url)


def special(path: Path, kind: str) -> None:
    """Something in the place of a file that waits for its other end, or never ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path.name)
        finally:
            os.chdir(here)
    else:
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero
        except PermissionError:
            pytest.skip("only root makes devices")


SPECIAL = pytest.mark.parametrize("kind", ["pipe", "socket", "device"])


@SPECIAL
def test_what_is_no_file_is_refused_and_not_waited_for(store: LocalStore, tmp_path: Path, kind: str) -> None:
    etag = store.put("a", b"x")
    special(tmp_path / "ctx/odd", kind)
    verbs: list[Callable[[str], object]] = [
        *(store.get, store.head, store.delete, lambda key: store.get_range(key, 0, 1)),
        *(lambda key: store.put(key, b"x"), lambda key: store.put(key, b"x", if_absent=True)),
        lambda key: store.put(key, b"x", if_match=etag),
    ]
    for verb in verbs:
        with pytest.raises(AccessDenied, match=f"/odd is a .*{kind}, not a file"):
            verb("odd")
    assert [info.key for info in store.list()] == ["a"]
    assert not stat.S_ISREG(os.stat(tmp_path / "ctx/odd").st_mode)
    special(tmp_path / "ctx/.monocontext-lock", kind)
    for step in (lambda: store.put("a", b"y"), lambda: store.put("a", b"y", if_match=etag), lambda: store.delete("a")):
        with pytest.raises(AccessDenied, match="monocontext-lock is a"):
            step()
    assert store.get("a").data == b"x"
    store.put("gone", b"x")
    special(tmp_path / "ctx/gone", kind)
    os.unlink(tmp_path / "ctx/.monocontext-lock")
    if kind != "socket":  # that cannot be opened at all
        store.put("b", b"a commit, which puts on the disk what came before", if_absent=True)


@SPECIAL
@pytest.mark.parametrize("key", [ROOT_KEY, generation_key(2)])
def test_a_context_with_something_else_in_the_place_of_a_root(store: LocalStore, kind: str, key: str) -> None:
    """`manifest.json` as a pipe: the loop that brings it up to date never ended."""
    publish("text\n", store)
    special(Path(store.url.removeprefix("file://")) / key, kind)
    changes: list[Any] = [lambda: append("m", store), lambda: publish("o", store, replace=True), lambda: compact(store)]
    for change in changes:
        with pytest.raises(AccessDenied, match=f"{key} is a .*{kind}, not a file"):
            change()


def test_a_directory_in_the_place_of_the_root(store: LocalStore) -> None:
    (Path(store.url.removeprefix("file://")) / ROOT_KEY).mkdir(parents=True)
    with pytest.warns(UserWarning, match=r"manifest.json could not be updated, .* cannot write .* Is a directory"):
        publish("text\n", store)
    assert str(Monocontext.open(store)) == "text\n"


def test_a_delete_without_permission_is_refused(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    store.put("a", b"x")
    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "lstat", refuse)
    with pytest.raises(AccessDenied, match=r"no permission for .*/a"):
        store.delete("a")


def test_file_systems_without_hard_links(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    store.put("a", b"1", if_absent=True)
    with pytest.raises(AlreadyExists):
        store.put("a", b"2", if_absent=True)
    store.put("a", b"3")
    assert store.get("a").data == b"3"


def test_a_commit_waits_for_what_it_names(store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, then the names of files, in that order; nothing waits before the commit."""
    synced: list[str] = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to see which file is synced")
    monkeypatch.setattr(os, "fsync", record)
    root = tmp_path / "ctx"
    store.put("segments/a", b"x")
    store.put("segments/gone", b"y")
    store.delete("segments/gone")
    assert synced == []
    store.put("generations/1", b"{}", if_absent=True)
    assert synced[0] == str(root / "segments/a")
    assert {str(root / "segments"), str(root), str(root / "generations"), str(tmp_path)} <= set(synced)
    committed = next(index for index, name in enumerate(synced) if ".monocontext-" in name)
    assert synced.index(str(root / "segments")) < committed < synced.index(str(root / "generations"))
    synced.clear()
    store.put("generations/2", b"{}", if_absent=True)
    assert not any("segments" in name for name in synced)


def test_processes_do_not_lose_increments(store: LocalStore, tmp_path: Path) -> None:
    """Opened at different roots, too."""
    store.put("deep/n", b"0")
    code = (
        "import sys; from monocontext.stores import open_store; from monocontext.errors import AlreadyExists\n"
        "store, key, left = open_store(sys.argv[1]), sys.argv[2], 40\n"
        "while left:\n"
        "    seen = store.get(key)\n"
        "    try: store.put(key, b'%d' % (int(seen.data) + 1), if_match=seen.etag); left -= 1\n"
        "    except AlreadyExists: pass\n"
    )
    places = [(tmp_path / "ctx", "deep/n"), (tmp_path / "ctx/deep", "n"), (tmp_path, "ctx/deep/n")]
    project = Path(__file__).parents[2]
    running = [subprocess.Popen([sys.executable, "-c", code, *map(str, place)], cwd=project) for place in places]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert store.get("deep/n").data == b"120"
