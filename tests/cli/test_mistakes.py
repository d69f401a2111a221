"""What users get wrong at a place: one line, exit 2, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ran import Cli

READING = [["info"], ["cat"], ["cat", "--lines", "1"], ["verify"]]


def test_a_large_plain_file_has_its_own_name(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of the index in memory."""
    monkeypatch.setattr("monocontext.writing.plain.SMALL_BYTES", 10)
    assert cli("info", file, "--json").fine().json["url"] == file.resolve().as_uri()
    cli("cat", file, "--document", "none").refused(f"{file}: no document 'none'")


def test_the_folder_here_is_a_plain_folder_too(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    cli("verify", ".").refused(". is a plain folder")
    assert "version" not in cli("info", ".").fine().out
    assert cli("grep", "-l", "line 0:", ".").fine().out == "in.txt\n"


def deeprecurse(folder: Path) -> str:
    (folder / "segments").mkdir()
    (folder / "segments" / "0.txt").write_text("one\ntwo\n")
    (folder / "segments" / "1.txt").write_text("three\n")
    manifest = [
        {"segment": "segments/0.txt", "start_line": 0, "line_count": 2},
        {"segment": "segments/1.txt", "start_line": 2, "line_count": 1},
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return (folder / "manifest.json").read_text()


@pytest.mark.parametrize("command", [*READING, ["upload", "-"], ["upload", "--replace", "-"], ["append", "-"]])
def test_a_deeprecurse_context(cli: Cli, tmp_path: Path, command: list[str]) -> None:
    before = deeprecurse(tmp_path)
    cli(*command, tmp_path, stdin=b"text").refused("DeepRecurse", "monocontext index")
    assert (tmp_path / "manifest.json").read_text() == before


def test_a_deeprecurse_context_is_indexed_elsewhere(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    before = deeprecurse(tmp_path / "old")
    cli("index", tmp_path / "old", tmp_path / "new").fine()
    assert cli("cat", tmp_path / "new").fine().out == "one\ntwo\nthree\n"
    cli("index", tmp_path / "old", tmp_path / "old").refused("DeepRecurse")
    assert (tmp_path / "old" / "manifest.json").read_text() == before


@pytest.mark.parametrize("command", [*READING, ["upload", "-"], ["append", "-"], ["index", "/tmp"]])
def test_places_that_a_command_cannot_mean(cli: Cli, command: list[str]) -> None:
    cli(*command, "memory://name", stdin=b"text").refused("memory://name", "directory or S3")
    cli(*command, "ftp://host/x", stdin=b"text").refused("ftp")
    cli(*command, "s3://", stdin=b"text").refused("s3://")


def test_no_such_profile_or_endpoint(cli: Cli, moto_s3: str) -> None:
    cli("info", f"s3://{moto_s3}/ctx", "--profile", "nobody").refused("nobody")
    cli("info", "s3://bucket/ctx", "--endpoint", "http://127.0.0.1:9").refused("s3://bucket/ctx", "127.0.0.1:9")
    cli("info", "s3://bucket/ctx", "--endpoint", "not a url").refused("endpoint")


SIGNED = "https://host.invalid/x?sig=SECRET"


@pytest.mark.parametrize(
    "words",
    [
        *(["grep", SIGNED, "word"], ["search", SIGNED, SIGNED], ["memory", "get", SIGNED, "key"]),
        *(["upload", SIGNED], ["upload", SIGNED, "ctx"], ["put", SIGNED, "./ctx"], ["info", "ctx", SIGNED], [SIGNED]),
        *(["restore", "3", SIGNED], ["memory", "get", "s3://me:SECRET@bucket/x", "key"]),
        ["info", "s3://bucket/x", "--endpoint", "http://127.0.0.1:9/?token=SECRET", "--anonymous"],
    ],
)  # fmt: skip
def test_a_secret_in_a_wrong_place_is_not_printed(cli: Cli, words: list[str]) -> None:
    ended = cli(*words)
    assert (ended.code, ended.out) == (2, "")
    assert "***" in ended.err
    assert "SECRET" not in ended.err


@pytest.mark.parametrize(
    "words",
    [["cite", "0-5"], ["ls-documents", "*.md"], ["get", "nothing"], ["append"], ["sync", "--delete"], ["upload"]],
)
def test_the_other_order_is_recognised(cli: Cli, uploaded: Path, tmp_path: Path, words: list[str]) -> None:
    """A `sync` stored its own text into the folder of its sources."""
    (tmp_path / "src").mkdir()
    url, others = (uploaded, [tmp_path / "src"]) if words[0] in ("append", "sync", "upload") else (uploaded, [])
    cli(*words, url, *others).misused("its URL comes last" if others else "the URL comes first")
    assert not list((tmp_path / "src").iterdir())
    (tmp_path / "src" / "generations").mkdir()
    (tmp_path / "src" / "generations" / "a.txt").write_text("a")
    cli("upload", tmp_path / "src", tmp_path / "other").fine()
