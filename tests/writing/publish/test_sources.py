"""One rule for what is text, in uploads, uploads by workers, syncs and folders that are opened directly."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard

from monocontext import Monocontext, append, publish
from monocontext.errors import InvalidText, NotFound
from monocontext.writing.decoding import InputOptions
from monocontext.writing.folder import Folder
from monocontext.writing.sources import InputFile, read_source
from monocontext.writing.upkeep.sync import sync
from tests.writing.upkeep.upkept import documents_of

WORDS = "".join(f"{number} words\n" for number in range(9000))
TEXTS = {
    "a.log": WORDS.encode(),
    "b.log.gz": gzip.compress(WORDS.encode()),
    "c.log.zst": b"P*M\x18\4\0\0\0skip" + zstandard.compress(WORDS.encode()) + zstandard.compress(b"second frame\n"),
    "d.log.bz2": bz2.compress(b"") + bz2.compress(WORDS.encode()),
    "e.log.xz": lzma.compress(b"") + bytes(8) + lzma.compress(WORDS.encode()) + bytes(12 << 10),
    "gz.txt": b"\x1f is no gzip\n",
}
NO_TEXTS = {
    "cut.gz": (gzip.compress(WORDS.encode())[:-20], "damaged gzip data"),
    "cut.zst": (zstandard.compress(WORDS.encode())[:-20], "damaged zstd data"),
    "second.bz2": (bz2.compress(WORDS.encode()) + bytes(9) + bz2.compress(b"x")[9:], "damaged bzip2 data"),
    "second.xz": (lzma.compress(WORDS.encode()) + bytes(9), "damaged xz data: expected zero bytes in multiples of 4"),
    "flipped.bz2": (bz2.compress(WORDS.encode())[:-30] + bytes(30), "damaged bzip2 data"),
    "l.txt": (("Käse" * 9000).encode("latin-1"), "not utf-8 at byte 1"),
    "paper.pdf": (b"%PDF-1.7\n%\xe2\xe3\n" * 99, "a PDF"),
    "tar.gz": (gzip.compress(b"name\0\0\0\0" * 99), "a binary file"),
    "u.txt": ("wide text".encode("utf-32"), "looks like UTF-32"),
    "w.txt": ("wide text".encode("utf-16"), "looks like UTF-16"),
    "x.zip": (b"PK\x03\x04\0\0", "a zip archive or an office file"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for name, data in (TEXTS | {name: data for name, (data, _) in NO_TEXTS.items()}).items():
        (tmp_path / "in" / name).write_bytes(data)
    return tmp_path / "in"


def by_workers(source: Path, place: Path, **options: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        publish(source, place, executor=pool, **options)


def by_append(source: Path, place: Path, **options: Any) -> None:
    publish("", place)
    append(source, place, **options)


@pytest.mark.parametrize(
    "write", [publish, by_append, by_workers, sync, lambda source, place, note: sync(source.as_uri(), place, note=note)]
)
def test_packed_text_is_read_and_what_is_no_text_is_named(
    write: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    notes: list[str] = []
    write(folder, tmp_path / "ctx", note=notes.append)
    expected = dict.fromkeys(TEXTS, WORDS) | {"gz.txt": "\x1f is no gzip\n"}
    expected["c.log.zst"] += "second frame\n"
    assert documents_of(tmp_path / "ctx") == expected
    (said,) = notes
    assert "left out 11 files that are not text: " in said
    for name, (_, reason) in NO_TEXTS.items():
        assert f"{name} ({reason}" in said


@pytest.mark.parametrize("write", [publish, sync])
def test_what_goes_away_meanwhile(write: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    (logs / "sub").mkdir(parents=True)
    for name in ("a", "b", "d", "sub/e"):
        (logs / name).write_text(name)
    open_file = Folder.open

    def opened(folder: Folder, name: str) -> io.BufferedReader:
        (logs / "b").unlink(missing_ok=True)
        shutil.rmtree(logs / "sub", ignore_errors=True)
        return open_file(folder, name)

    monkeypatch.setattr(Folder, "open", opened)
    notes: list[str] = []
    write(logs, tmp_path / "ctx", note=notes.append)
    assert documents_of(tmp_path / "ctx") == {"a": "a", "d": "d"}
    assert all(note.endswith("b (removed before it was read), sub/e (removed before it was read)") for note in notes)


def test_a_folder_that_is_opened_follows_the_same_rule(folder: Path, recwarn: pytest.WarningsRecorder) -> None:
    with Monocontext.open(folder) as context:
        assert list(context.documents) == list(TEXTS)
    assert "left out 11 files that are not text" in str(recwarn[0].message)
    assert str(Monocontext.open(folder / "b.log.gz")) == WORDS


@pytest.mark.parametrize("name", NO_TEXTS)
def test_what_is_named_by_itself_is_refused_and_noise_is_never_proposed(
    name: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidText) as raised:
        publish(folder / name, tmp_path / "ctx")
    assert "replace" not in str(raised.value) or name == "l.txt"
    assert str(folder / name) in str(raised.value)


def test_a_document_whose_file_is_no_text_any_more_stays_and_is_named(folder: Path, tmp_path: Path) -> None:
    place, notes = tmp_path / "ctx", list[str]()
    sync(folder, place, note=str)
    (folder / "a.log").write_bytes(b"crash\0\0 of a log\n")
    found = sync(folder, place, delete=True, note=notes.append)
    assert (found.changed, found.deleted, found.unchanged) == ((), (), 5)
    assert documents_of(place)["a.log"] == WORDS
    assert "a.log (a binary file; its earlier text stays)" in notes[0]
    (folder / "a.log").unlink()
    assert sync(folder, place, delete=True, note=str).deleted == ("a.log",)


def test_deleting_leaves_excluded_names_alone(tmp_path: Path) -> None:
    (tmp_path / "in" / "lib").mkdir(parents=True)
    for name in ("a.md", "lib/l.py", "gone.py", "gone.md"):
        (tmp_path / "in" / name).write_text(name)
    place = tmp_path / "ctx"
    sync(tmp_path / "in", place)
    for name in ("gone.py", "gone.md"):
        (tmp_path / "in" / name).unlink()
    assert sync(tmp_path / "in", place, delete=True, exclude=("*.py",)).deleted == ("gone.md",)
    assert sync(tmp_path / "in", place, delete=True, include=("*.md",)).deleted == ()
    assert sync(tmp_path / "in", place, delete=True).deleted == ("gone.py",)
    assert list(documents_of(place)) == ["a.md", "lib/l.py"]


@pytest.mark.parametrize("write", [publish, by_workers, sync])
def test_a_repository_without_git_and_what_git_ignores(write: Callable[..., Any], tmp_path: Path) -> None:
    tree = tmp_path / "in"
    for repository in (tree, tree / "clone"):
        subprocess.run(["git", "init", "-q", repository], check=True)
        (repository / "loop").symlink_to(tree)  # no end if git is asked of both, again and again
    for name in (".gitignore", "a.txt", "out/b.txt", ".env", "clone/c.txt", "sub/d.txt", "sub/.env"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("out/\n.env\nsub/*\n!sub/d.txt\n")
    expected = {"": [".gitignore", "a.txt", "clone/c.txt", "sub/d.txt"], "sub": ["d.txt"], "out": ["b.txt"]}
    for folder, names in expected.items():  # one that is ignored is taken if it is named
        write(tree / folder, tmp_path / f"ctx{folder}", note=str)
        assert list(documents_of(tmp_path / f"ctx{folder}")) == names
    write(tree, tmp_path / "all", ignored=True, note=str)
    assert set(documents_of(tmp_path / "all")) == {*expected[""], ".env", "out/b.txt", "sub/.env"}
    with pytest.raises(NotFound, match=r"no file in it matches b\.txt, without those that git ignores; ignored=True"):
        write(tree, tmp_path / "none", include=["b.txt"], note=str)


def test_a_file_of_a_folder_and_that_file_alone_have_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("a\n")
    publish(Path("logs"), tmp_path / "ctx")
    (tmp_path / "logs" / "b.log").write_text("b\n")
    append(Path("logs/b.log"), tmp_path / "ctx")
    assert list(documents_of(tmp_path / "ctx")) == ["a.log", "b.log"]
    assert sync(Path("logs"), tmp_path / "ctx", delete=True).added == ()


class Cut(io.FileIO):
    """A file that another process cuts, and writes again, while it is read for the first time."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        Cut.reads += 1
        data = super().read(size)
        if Cut.reads == 1:
            with open(self.name, "wb") as file:
                file.write(b"written again\n")
        return data


def test_a_file_that_is_cut_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"first\n" * 400_000)
    monkeypatch.setattr(Cut, "reads", 0)
    source = InputFile("a.log", str(path), lambda: Cut(path), {}, str(tmp_path))
    assert b"".join(data for data, _ in read_source(source, InputOptions())) == b"written again\n"


def test_a_long_file_that_is_cut_is_named(tmp_path: Path) -> None:
    path, notes = tmp_path / "a.log", list[str]()
    path.write_bytes(b"x" * 20_000_000)
    pieces = read_source(InputFile("a.log", str(path), partial(path.open, "rb"), {}), InputOptions(note=notes.append))
    assert len(next(pieces)[0]) == 1 << 20
    os.truncate(path, 12 << 20)
    assert sum(len(data) for data, _ in pieces) == 11 << 20
    assert "a.log: shortened or overwritten while it was read, so only part of its text is stored" in notes[-1]
