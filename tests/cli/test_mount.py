"""`monocontext mount`: its operations as libfuse calls them, a real mount where there can be one, and refusals."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest

from monocontext import Monocontext, documents, publish
from monocontext.cli import mount
from monocontext.errors import MonocontextError, StoreFailure
from monocontext.stores import open_store
from monocontext.testing import FaultyStore, fail

BIG = "".join(f"{number:06} größe 日本 {Random(number).randbytes(40).hex()}\n" for number in range(30_000))
TEXTS = {"src/a.py": "one\n", "src/deep/b.py": "zwei ö\n", "empty": "", "big.txt": BIG}


@pytest.fixture
def url(tmp_path: Path) -> str:
    publish(documents(TEXTS), tmp_path / "stored")
    return str(tmp_path / "stored")


def test_names_sizes_and_bytes_are_those_of_the_documents(url: str) -> None:
    with Monocontext.open(url) as context:
        files = mount.MountedFiles(context)
        assert sorted(files.readdir("/", 0)) == [".", "..", "big.txt", "empty", "src"]
        assert sorted(files.readdir("/src", 0)) == [".", "..", "a.py", "deep"]
        assert stat.S_ISDIR(files.getattr("/src")["st_mode"])
        for name, text in TEXTS.items():
            data = text.encode()
            info = files.getattr(f"/{name}")
            assert (info["st_size"], stat.filemode(info["st_mode"])) == (len(data), "-r--r--r--")
            for start, size in ((0, 4096), (7, 131_072), (len(data) - 3, 10), (len(data), 10), (len(data) + 9, 10)):
                if start >= 0:
                    assert files.read(f"/{name}", size, start, 0) == data[start : start + size]


def test_a_text_without_documents_is_one_file(tmp_path: Path) -> None:
    publish("größe\n", tmp_path)
    with Monocontext.open(tmp_path) as context:
        files = mount.MountedFiles(context)
        assert files.getattr("/text")["st_size"] == 8
        assert files.read("/text", 100, 0, 0) == "größe\n".encode()


@pytest.mark.parametrize(("path", "error"), [("/src/none", FileNotFoundError), ("/src", IsADirectoryError)])
def test_what_is_no_file_cannot_be_read(url: str, path: str, error: type[OSError]) -> None:
    with Monocontext.open(url) as context, pytest.raises(error):
        mount.MountedFiles(context).read(path, 1, 0, 0)


def test_a_failing_store_is_an_input_error_and_a_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    broken = threading.Event()
    fault = fail(StoreFailure("the disk is gone"))
    store = FaultyStore(open_store(url), lambda *_: fault if broken.is_set() else None)
    with Monocontext.open(store, prefetch="off") as context:
        files = mount.MountedFiles(context)
        files.read("/big.txt", 1, 0, 0)
        broken.set()
        with pytest.raises(OSError, match=os.strerror(errno.EIO)) as raised:
            files.read("/big.txt", 100_000, 900_000, 0)
    assert raised.value.errno == errno.EIO
    assert "/big.txt: the disk is gone" in capsys.readouterr().err


def test_where_there_can_be_no_mount_one_line_says_why(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount, "_DEVICE", tmp_path / "none")
    with pytest.raises(MonocontextError, match=r"cannot open /.*none: run `modprobe fuse`"):
        mount.mount(url, tmp_path, s3={})
    monkeypatch.setattr(mount, "_DEVICE", Path(os.devnull))
    monkeypatch.setitem(sys.modules, "mfusepy", None)
    with pytest.raises(MonocontextError, match="mfusepy is missing: in the clone"):
        mount.mount(url, tmp_path, s3={})


def _can_mount() -> bool:
    try:
        import mfusepy  # noqa: F401
    except (ImportError, OSError):
        return False
    return os.access("/dev/fuse", os.R_OK | os.W_OK)


@pytest.mark.slow
@pytest.mark.skipif(not _can_mount(), reason="needs mfusepy, libfuse and /dev/fuse")
def test_programs_read_a_mount(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    command = [sys.executable, "-P", "-m", "monocontext", "mount", url, str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while not os.path.ismount(folder):
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(TEXTS)
            assert all((folder / name).read_text() == text for name, text in TEXTS.items())
            done = subprocess.run(["grep", "-rn", "zwei", "."], cwd=folder, capture_output=True, text=True)
            assert done.stdout == "./src/deep/b.py:1:zwei ö\n"
            with pytest.raises(OSError, match="Read-only"):
                (folder / "new").write_text("x")
        finally:
            process.terminate()
        assert process.wait(60) == 0
    assert not os.path.ismount(folder)
