"""`upload`, `append` and `index`: what is stored, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ran import TEXT, Cli


def test_upload_says_what_it_made(cli: Cli, file: Path, tmp_path: Path) -> None:
    said = cli("upload", file, tmp_path / "a").fine().out
    assert said.count("\n") == 1
    assert f"{len(TEXT):,} characters in 20,000 lines" in said
    found = cli("upload", file, tmp_path / "b", "--json").fine().json
    assert found["url"] == str(tmp_path / "b")
    assert (found["generation"], found["characters"], found["lines"]) == (1, len(TEXT), 20_000)
    assert found["text_bytes"] == len(TEXT.encode())


def test_upload_stdin(cli: Cli, tmp_path: Path) -> None:
    cli("upload", "-", tmp_path / "ctx", stdin=TEXT.encode()).fine()
    assert cli("cat", tmp_path / "ctx").fine().out == TEXT
    assert "is an empty text" in cli("upload", "-", tmp_path / "empty").err
    assert cli("cat", tmp_path / "empty").fine().out == ""
    assert cli("info", tmp_path / "empty", "--json").fine().json["characters"] == 0


def test_upload_several_in_order(cli: Cli, file: Path, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("without an end of line")
    cli("upload", tmp_path / "b.txt", "-", file, tmp_path / "ctx", stdin=b"|stdin|").fine()
    assert cli("cat", tmp_path / "ctx").fine().out == "without an end of line|stdin|" + TEXT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"a.py": "a = 1\n", "sub/b.py": "b = 2", "sub/c.txt": "c\n", "z.md": "z\n"}.items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(text)
    return tmp_path / "src"


def test_upload_a_folder(cli: Cli, folder: Path, tmp_path: Path) -> None:
    cli("upload", folder, tmp_path / "ctx", "--include", "sub/*", "--include", "*.py", "--exclude", "*.txt").fine()
    assert cli("cat", tmp_path / "ctx").fine().out == "=== FILE: a.py ===\na = 1\n=== FILE: sub/b.py ===\nb = 2"
    cli("upload", folder, tmp_path / "none", "--include", "*.{ts,tsx}").refused("no file in it matches", "*.{ts,tsx}")
    assert not (tmp_path / "none").exists()


def test_sizes_and_codec(cli: Cli, file: Path, tmp_path: Path) -> None:
    options = ["--frame-bytes", "16KiB", "--segment-bytes", "64k", "--codec", "raw"]
    cli("upload", file, tmp_path / "ctx", *options).fine()
    found = cli("info", tmp_path / "ctx", "--json").fine().json
    assert (found["frame_bytes"], found["codec"]) == (16 << 10, "raw")
    sizes = [each.stat().st_size for each in (tmp_path / "ctx" / "segments").iterdir()]
    assert max(sizes) <= 64 << 10
    assert sum(sizes) - 16 * len(sizes) == found["stored_bytes"] == len(TEXT.encode())  # each ends in a line of its own


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--frame-bytes", "16iB", "not a size: '16iB'"),
        ("--frame-bytes", "0", "frame_bytes"),
        ("--codec", "gzip", "zstd"),
        ("--encoding", "klingon", "klingon"),
        ("--errors", "ignore", "replace"),
    ],
)
def test_options_that_mean_nothing(cli: Cli, file: Path, tmp_path: Path, option: str, value: str, said: str) -> None:
    cli("upload", file, tmp_path / "ctx", option, value).misused(said)
    assert not (tmp_path / "ctx").exists()


def test_upload_where_a_context_is(cli: Cli, uploaded: Path, file: Path) -> None:
    cli("upload", file, uploaded).refused("append", "--replace", f"{len(TEXT):,} characters")
    cli("upload", "-", uploaded, "--replace", stdin=b"new").fine()
    assert cli("cat", uploaded).fine().out == "new"
    assert cli("cat", uploaded, "--generation", "1").fine().out == TEXT


def test_append(cli: Cli, uploaded: Path) -> None:
    found = cli("append", "-", uploaded, "--json", stdin=b"the end").fine().json
    assert (found["generation"], found["characters"]) == (2, len(TEXT) + 7)
    assert cli("cat", uploaded).fine().out == TEXT + "the end"
    assert cli("cat", uploaded, "--generation", "1").fine().out == TEXT
    cli("cat", uploaded, "--generation", "99").refused("no generation 99 at ")
    cli("verify", uploaded).fine()


def test_index_leaves_the_text_where_it_is(cli: Cli, folder: Path, tmp_path: Path) -> None:
    cli("index", folder / "a.py", folder / "sub", tmp_path / "ctx").fine()
    assert cli("cat", tmp_path / "ctx").fine().out == "a = 1\nb = 2c\n"
    assert not (tmp_path / "ctx" / "segments").exists()
    cli("verify", tmp_path / "ctx").fine()
    (folder / "a.py").write_text("A = 1\n")
    cli("cat", tmp_path / "ctx").refused("a.py")


def test_index_refuses_what_is_compressed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08\x00 and so on")
    cli("index", tmp_path / "a.gz", tmp_path / "ctx").refused("gzip", "`monocontext sync ")
    cli("sync", (tmp_path / "a.gz").as_uri(), tmp_path / "ctx").refused("a.gz: damaged gzip data")


def test_encodings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("début, ça va".encode("latin-1"))
    cli("upload", tmp_path / "latin.txt", tmp_path / "a", "--encoding", "latin-1").fine()
    assert cli("cat", tmp_path / "a").fine().out == "début, ça va"
    cli("upload", tmp_path / "latin.txt", tmp_path / "b", "--errors", "replace").fine()
    assert cli("cat", tmp_path / "b").fine().out == "d\ufffdbut, \ufffda va"


def test_a_pipe_is_no_file_to_store(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a").write_text("x")
    os.mkfifo(tmp_path / "src" / "pipe")
    cli("put", tmp_path / "src" / "pipe", tmp_path / "place/").refused("src/pipe is a named pipe, not a file")
    cli("upload", tmp_path / "src" / "pipe", tmp_path / "ctx").refused("src/pipe is a named pipe, not a file")
    stored = cli("put", tmp_path / "src", tmp_path / "place/")
    assert stored.code == 0
    assert stored.err == f"note: {tmp_path}/src: left out 1 entry: pipe (a named pipe)\n"
    assert [path.name for path in (tmp_path / "place").rglob("*") if path.is_file()] == ["a"]
