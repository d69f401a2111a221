"""`monocontext memory ...`, and `ls`, `put`, `get`, `rm`, as a user types them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from ran import Cli

from monocontext.errors import StoreFailure
from monocontext.memory import Memory


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "memory").mkdir()
    return str(tmp_path / "memory")


def test_exec_prints_the_envelope(cli: Cli, place: str) -> None:
    ran = cli("memory", "exec", "P key value 60", place).fine()
    assert ran.json == {"success": True, "output": {"status": "OK"}, "error": None, "metadata": {}}
    found = cli("memory", "exec", "G key META", place).fine().json["output"]
    assert isinstance(found, dict)
    assert (found["value"], found["expires_in"]) == ("value", 60)
    failed = cli("memory", "exec", "G none", place)
    assert (failed.code, failed.json["error"], failed.err) == (1, "ERR:NOT_FOUND", "")
    cli("memory", "exec", json.dumps({"command": "P", "key": "two words", "value": "a\nb", "ttl": 5}), place).fine()
    assert cli("memory", "exec", "-", place, stdin=b"G key").json["output"] == {"value": "value"}
    assert cli("memory", "exec", '{"command": "P key v", "if_absent": true}', place).json["error"] == "ERR:EXISTS"
    assert cli("memory", "exec", "L", place).json["output"] == {"keys": ["key", "two words"]}


def test_keys_and_values(cli: Cli, place: str) -> None:
    cli("memory", "put", "a/../b", "first line\nsecond", place, "--ttl", "100").fine()
    assert cli("memory", "get", "a/../b", place).fine().out == "first line\nsecond"
    cli("memory", "put", "stdin", "-", place, stdin="ünï\n".encode()).fine()
    assert cli("memory", "get", "stdin", place, "--json").fine().json["value"] == "ünï\n"
    cli("memory", "put", "new\nline", "x", place).fine()
    assert cli("memory", "list", place).fine().out == 'a/../b\n"new\\nline"\nstdin\n'
    assert cli("memory", "list", "a/", place).fine().out == "a/../b\n"
    rows = [json.loads(line) for line in cli("memory", "list", place, "--json").fine().out.splitlines()]
    assert [(row["key"], row["ttl_seconds"]) for row in rows][:2] == [("a/../b", 100), ("new\nline", None)]
    assert cli("memory", "search", "SECOND", place, "-i").fine().out == "a/../b:2:second\n"
    assert cli("memory", "search", "absent", place).code == 1
    etag = str(cli("memory", "get", "stdin", place, "--json").json["etag"])
    cli("memory", "put", "stdin", "2", place, "--if-match", etag).fine()
    cli("memory", "put", "stdin", "3", place, "--if-match", etag).refused("'stdin' has the ETag")
    cli("memory", "put", "stdin", "3", place, "--create").refused(
        "the key 'stdin' exists already: replace it with --if-match "
    )
    assert cli("memory", "exec", ' {"command": "G", "key": "stdin"}', place).fine().json["success"]
    cli("memory", "delete", "stdin", place).fine()
    cli("memory", "delete", "stdin", place).refused("no key 'stdin'")
    cli("memory", "get", "stdin", place).refused("no key 'stdin'")
    assert "removed 0" in cli("memory", "purge", place).fine().out
    assert cli("memory", "clear", place, "--json").fine().json == {"removed": 2}
    assert cli("memory", "list", place).fine().out == ""


def test_a_pattern_and_a_key_that_look_like_urls(cli: Cli, place: str, tmp_path: Path) -> None:
    cli("memory", "put", "note", "see s3://b", place).fine()
    assert cli("memory", "search", "s3://b", place).fine().out == "note:1:see s3://b\n"
    assert cli("memory", "search", "s3://b", "x", place).code == 1
    call = json.dumps({"command": "P", "key": "s3://x", "value": "1"})
    cli("memory", "get", "s3://x", place).refused("a key that looks like a URL as JSON: ")
    assert cli("memory", "exec", call, tmp_path / "new", "--create").fine().json["success"]


def test_what_is_refused(cli: Cli, place: str, tmp_path: Path) -> None:
    for ttl in ("nan", "-1", "inf"):
        cli("memory", "put", "k", "v", place, "--ttl", ttl).refused(f"between 0 and 315,360,000 seconds, not {ttl}")
    cli("memory", "put", "", "v", place).refused("a key must have at least one character")
    cli("memory", "put", "k" * 2048, "v", place).refused("is too long")
    cli("memory", "put", "k", "v", place, "--create", "--if-match", "x").misused("--create and --if-match")
    cli("memory", "put", "k", "-", place, stdin=b"\xff").misused("stdin is not UTF-8 at byte 0")
    for pattern in ("(", "a{99999999999}", "(" * 3000 + "a" + ")" * 3000):
        cli("memory", "search", pattern, place).misused("not a regular expression")
        cli("grep", pattern, tmp_path).refused("not a regular expression")
    cli("memory", "search", "s3://x", "notes").refused("the URL comes last")
    cli("memory", "list", "memory://x").refused("lives in the memory of one process")
    assert os.listdir(place) == []


OLD_ORDER = (
    *("put {} key value", "put {} key value --create", "put {} key docs", "get {} key", "list {} prefix"),
    *("search {} pattern", "search pattern {} notes", "delete {} key", "clear {} docs", "exec {} P --create"),
)


@pytest.mark.parametrize("command", OLD_ORDER)
def test_the_url_first_is_refused_before_anything_is_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    used = f"{tmp_path}/used"
    cli("memory", "put", "key", "value", used, "--create").fine()
    (tmp_path / "docs").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for place in (used, "s3://bucket/team"):
        cli("memory", *command.format(place).split()).refused("the URL comes last: ")
    assert sorted(tmp_path.rglob("*")) == before
    assert cli("memory", "get", "key", used).fine().out == "value"


def test_a_directory_that_is_not_there(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["put", "key", "value", "notes"], ["get", "key", "notes"], ["list", "notes"], ["exec", "L", "notes"]):
        cli("memory", *words).refused("no directory 'notes' for a memory")
    (tmp_path / "file").write_text("a key may have the name of a file")
    (tmp_path / "src").mkdir()
    for key in ("file", "src", "https://a.example"):
        cli("memory", "put", key, "value", f"./{key[:3]}-memory", "--create").fine()
    cli("memory", "put", "src", "key", "value", "--create").refused("write a new directory as ./NAME")
    for words in (["purge", "notes"], ["clear", "notes"], ["search", "x", "notes"]):
        cli("memory", *words).refused("no directory 'notes' for a memory")
    assert not (tmp_path / "notes").exists()
    assert not (tmp_path / "value").exists()
    cli("memory", "put", "src/key", "value", "notes", "--create").fine()
    assert cli("memory", "get", "src/key", "notes").fine().out == "value"
    assert cli("memory", "exec", "P http://x v", "more", "--create").fine().json["success"]
    assert cli("memory", "list", "src", "notes").fine().out == "src/key\n"
    assert cli("memory", "exec", '{"command": "P", "key": "s3://a", "value": "v"}', "more").fine().json["success"]
    cli("memory", "exec", "{", "more").misused("not valid JSON")
    cli("memory", "list", "a", "b", "more").misused("expected [PREFIX] URL, got 3 arguments")


def test_purge_goes_on_with_watch(cli: Cli, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "purge", Mock(side_effect=[StoreFailure("the server sleeps"), 1]))
    sleep = Mock(side_effect=[None, KeyboardInterrupt])
    monkeypatch.setattr("monocontext.cli.options.time", Mock(sleep=sleep))
    ran = cli("memory", "purge", "--watch", "--interval", "9", "--json", place)
    assert (ran.code, ran.out, ran.err) == (0, '{"removed": 1}\n', "monocontext: the server sleeps\n")
    assert [item.args for item in sleep.call_args_list] == [(9,), (9,)]


def test_files_of_a_volume(cli: Cli, tmp_path: Path) -> None:
    source, volume, back = tmp_path / "source", str(tmp_path / "volume"), tmp_path / "back"
    (source / "deep").mkdir(parents=True)
    (source / "a.txt").write_bytes(b"a\xff\0")
    (source / "deep" / "b.txt").write_bytes(b"bb")
    note = cli("ls", volume)
    assert (note.code, note.out) == (0, "")
    assert note.err.startswith("note: nothing below ")
    cli("put", source, volume).fine()
    cli("put", source / "a.txt", f"{volume}/memory/one.bin").fine()
    cli("put", source / "a.txt", source / "deep" / "b.txt", f"{volume}/").fine()
    cli("put", "-", f"{volume}/stdin", stdin=b"piped").fine()
    listed = [line.split()[-1] for line in cli("ls", volume).fine().out.splitlines()]
    assert listed == ["a.txt", "b.txt", "memory/one.bin", "source/a.txt", "source/deep/b.txt", "stdin"]
    rows = [json.loads(line) for line in cli("ls", volume, "--json").fine().out.splitlines()]
    assert [row["bytes"] for row in rows] == [3, 2, 3, 3, 2, 5]
    assert cli("get", f"{volume}/stdin").fine().out == "piped"
    cli("get", f"{volume}/", back).fine()
    assert (back / "source" / "a.txt").read_bytes() == b"a\xff\0"
    cli("get", f"{volume}/stdin", back / "a.txt").refused("a.txt already exists: --force overwrites it")
    cli("get", f"{volume}/stdin", back / "a.txt", "--force").fine()
    assert (back / "a.txt").read_bytes() == b"piped"
    cli("put", source / "a.txt", f"{volume}/stdin", "--create").refused("already exists")
    cli("rm", f"{volume}/stdin").fine()
    cli("rm", f"{volume}/stdin").refused("nothing at ")
    assert "removed 5" in cli("rm", "-r", volume).fine().out
    cli("put", tmp_path / "none", f"{volume}/x").refused("No such file")
    cli("put", volume).misused("one or more files and then a URL")


def test_volumes_by_name(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONOCONTEXT_VOLUMES", str(tmp_path / "volumes"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one")
    for command in (["ls", "notes"], ["get", "notes", "."], ["rm", "-r", "notes"], ["put", "a.txt", "notes"]):
        cli(*command).refused("no file 'notes', and no volume", "volume create notes")
    cli("volume", "rm", "notes").refused("no volume 'notes'")
    cli("volume", "create", "../x").refused("is not a volume name")
    assert cli("volume", "list").fine().out == ""
    cli("volume", "create", "notes").fine()
    cli("volume", "create", "notes").refused("volume 'notes' already exists")
    (tmp_path / "volumes" / "team").mkdir(parents=True)  # as an interpreter leaves one
    (tmp_path / "volumes" / "team" / "x").write_text("y")
    assert cli("volume", "list").fine().out == "notes\nteam\n"
    assert cli("get", "team/x").fine().out == "y"
    assert cli("ls", "notes").code == 0
    cli("put", "a.txt", "notes").fine()
    cli("put", "a.txt", "notes/memory/b.txt").fine()
    assert [line.split()[-1] for line in cli("ls", "notes").fine().out.splitlines()] == ["a.txt", "memory/b.txt"]
    assert cli("get", "notes/memory/b.txt").fine().out == "one"
    cli("get", "notes", "back").fine()
    assert (tmp_path / "back" / "memory" / "b.txt").read_text() == "one"
    cli("ls", "back/memory").fine()  # a directory here, as before
    (tmp_path / "notes").mkdir()
    cli("rm", "-r", "notes").refused("is both a volume and a file")
    (tmp_path / "notes").rmdir()
    cli("rm", "notes/a.txt").fine()
    assert "removed 1" in cli("volume", "rm", "notes").fine().out
    cli("ls", "notes").refused("no file 'notes', and no volume")


def test_links_that_lead_out_of_a_directory(cli: Cli, tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    source.mkdir()
    (source / "a.txt").write_text("a\n")
    (tmp_path / "secret").write_text("SECRET\n")
    (source / "notes.txt").symlink_to("../secret")
    ran = cli("put", source, place)
    assert ran.code == 0
    assert ran.err.startswith("note: ")
    assert "left out 1 entry: notes.txt (leads out, to " in ran.err
    assert [path.name for path in place.rglob("*.txt")] == ["a.txt"]
    cli("put", source, place, "--follow-links").fine()
    assert (place / "source" / "notes.txt").read_text() == "SECRET\n"
    cli("upload", source, tmp_path / "ctx", "--follow-links").fine()
    assert "SECRET" in cli("cat", tmp_path / "ctx").fine().out
