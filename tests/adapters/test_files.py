"""Texts as files of fsspec: bytes, lines, ranges, copies in other processes, and libraries that read with it."""

from __future__ import annotations

import csv
import pickle
import random
import uuid
from pathlib import Path
from typing import Any

import pytest

from monocontext import append, publish

fsspec = pytest.importorskip("fsspec", reason="no fsspec here: pip install -e '.[fsspec]'")

ROWS = [f"{n},ü{'x' * (n % 37)}文 {n * n}\n" for n in range(30_000)]
TEXT = "number,word\n" + "".join(ROWS)
DATA = TEXT.encode()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    publish(TEXT, tmp_path / "ctx", frame_bytes=1 << 14, segment_bytes=200_000)
    return tmp_path / "ctx"


def open_filesystem(place: object, **options: Any) -> Any:
    return fsspec.filesystem("monocontext", fo=str(place), skip_instance_cache=True, **options)


def test_the_whole_text_by_a_chain_of_urls(place: Path) -> None:
    with fsspec.open(f"monocontext://text::file://{place}") as file:
        assert file.read() == DATA
    with fsspec.open(f"monocontext://text.csv::{place.as_uri()}", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert (len(rows), rows[-1]["number"]) == (30_000, "29999")
    name = uuid.uuid4().hex
    publish("in memory", f"memory://{name}/deep")
    with fsspec.open(f"monocontext://text::memory://{name}/deep") as file:
        assert file.read() == b"in memory"


@pytest.mark.parametrize("cache_type", ["readahead", "none", "bytes"])
def test_any_range_is_that_of_the_bytes(place: Path, cache_type: str) -> None:
    """Ends of ranges fall within characters and frames."""
    fs, chance = open_filesystem(place), random.Random(5)
    assert fs.size("text") == len(DATA)
    with fs.open("text", block_size=5_000, cache_type=cache_type) as file:
        for _ in range(200):
            start = chance.randrange(len(DATA))
            length = chance.choice([0, 1, 2, 3, 100, 16_384, 50_000])
            file.seek(start)
            assert file.read(length) == DATA[start : start + length]
            assert fs.cat_file("text", start, start + length) == DATA[start : start + length]
    for start, end in [(None, 5), (-5, None), (5, -5), (len(DATA), None), (7, 3), (0, len(DATA) + 9)]:
        assert fs.cat_file("text", start, end) == DATA[start:end]
    assert fs.read_block("text", 1_000, 1_000, delimiter=b"\n") in DATA


def test_names(place: Path) -> None:
    fs = open_filesystem(place)
    assert fs.ls("", detail=False) == ["text"]
    assert fs.find("") == ["text"]
    assert (fs.isfile("text"), fs.isdir(""), fs.exists("other"), fs.exists("text/other")) == (True, True, False, False)
    for missing in ("other", "textual", "a/text"):
        with pytest.raises(FileNotFoundError):
            fs.open(missing)
    for mode in ("wb", "ab", "xb"):
        with pytest.raises(OSError, match="publish"):
            fs.open("text", mode)
    with pytest.raises(ValueError, match="the URL of the text is missing"):
        fsspec.open("monocontext://text").open()


def test_documents_are_files(tmp_path: Path) -> None:
    given = {"a/deep/one.csv": TEXT[:300_007], "a/two.csv": TEXT[300_007:], "a/2": "no newline"}
    given |= {"three": "", "文/four": "ü\r\n"}
    publish(given, tmp_path / "ctx", frame_bytes=1 << 14)
    fs = open_filesystem(tmp_path / "ctx")
    assert fs.ls("", detail=False) == ["a", "text", "three", "文"]
    assert fs.ls("a", detail=False) == ["a/2", "a/deep", "a/two.csv"]
    assert fs.find("") == sorted([*given, "text"])
    for name, text in given.items():
        data = text.encode()
        assert fs.cat_file(name) == data
        assert (fs.size(name), fs.isfile(name)) == (len(data), True)
        with fs.open(name) as file:
            assert file.read() == data
    assert fs.cat_file("a/two.csv", 5, -7) == given["a/two.csv"].encode()[5:-7]
    assert fs.isdir("a/deep")
    assert not fs.exists("a/deep/none")
    with fsspec.open(f"monocontext://a/two.csv::{(tmp_path / 'ctx').as_uri()}", "rt", encoding="utf-8") as file:
        assert file.read() == given["a/two.csv"]


def test_names_that_begin_with_a_slash(tmp_path: Path) -> None:
    publish({"/src/a.py": "one", "/b": "two", "c": "three"}, tmp_path / "ctx")
    fs = open_filesystem(tmp_path / "ctx")
    assert (fs.find(""), fs.find("/src")) == (["b", "c", "src/a.py", "text"], ["src/a.py"])
    assert [fs.cat_file(path) for path in ("src/a.py", "/src/a.py", "b", "/c")] == [b"one", b"one", b"two", b"three"]


def test_appended_documents_are_files_once_asked_for(tmp_path: Path) -> None:
    publish({"log": "one", "text": "a document of this name"}, tmp_path / "ctx")
    fs = open_filesystem(tmp_path / "ctx")
    assert fs.cat_file("text") == b"a document of this name"
    append({"log": "two", "new/log": "three"}, tmp_path / "ctx")
    assert fs.find("") == ["log", "text"]
    assert fs.cat_file("log") == b"one"
    fs.invalidate_cache()
    assert fs.find("") == ["log", "new/log", "text"]
    assert fs.cat_file("log") == b"two"


def test_a_copy_stays_on_its_generation(place: Path) -> None:
    """Else two workers of one computation could divide two texts."""
    fs = open_filesystem(place)
    append("more\n", place)
    assert pickle.loads(pickle.dumps(fs)).size("text") == len(DATA)
    file = fs.open("text")
    fs.invalidate_cache()
    assert fs.cat_file("text", -5) == b"more\n"
    assert (len(file.read()), file.size) == (len(DATA), len(DATA))
    assert fs.info("text")["generation"] == 2
