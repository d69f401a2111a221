"""`monocontext memory ...`, and `ls`, `put`, `get`, `rm`, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from ran import Cli

from monocontext.testing import SeaweedServer


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "memory")


def test_exec_prints_the_envelope(cli: Cli, place: str) -> None:
    ran = cli("memory", "exec", place, "P key value 60").fine()
    assert ran.json == {"success": True, "output": {"status": "OK"}, "error": None, "metadata": {}}
    found = cli("memory", "exec", place, "G key META").fine().json["output"]
    assert isinstance(found, dict)
    assert (found["value"], found["expires_in"]) == ("value", 60)
    failed = cli("memory", "exec", place, "G none")
    assert (failed.code, failed.json["error"], failed.err) == (1, "ERR:NOT_FOUND", "")
    cli("memory", "exec", place, "P", "--key", "two words", "--value", "a\nb", "--ttl", "5").fine()
    assert cli("memory", "exec", place, "-", stdin=b"G key").json["output"] == {"value": "value"}
    assert cli("memory", "exec", place, "P key v", "--if-absent").json["error"] == "ERR:EXISTS"
    assert cli("memory", "exec", place, "L").json["output"] == {"keys": ["key", "two words"]}


def test_keys_and_values(cli: Cli, place: str) -> None:
    cli("memory", "put", place, "a/../b", "first line\nsecond", "--ttl", "100").fine()
    assert cli("memory", "get", place, "a/../b").fine().out == "first line\nsecond"
    cli("memory", "put", place, "stdin", "-", stdin="ünï\n".encode()).fine()
    assert cli("memory", "get", place, "stdin", "--json").fine().json["value"] == "ünï\n"
    cli("memory", "put", place, "new\nline", "x").fine()
    assert cli("memory", "list", place).fine().out == 'a/../b\n"new\\nline"\nstdin\n'
    assert cli("memory", "list", place, "a/").fine().out == "a/../b\n"
    rows = [json.loads(line) for line in cli("memory", "list", place, "--json").fine().out.splitlines()]
    assert [(row["key"], row["ttl_seconds"]) for row in rows][:2] == [("a/../b", 100), ("new\nline", None)]
    assert cli("memory", "search", place, "SECOND", "-i").fine().out == "a/../b:2:second\n"
    assert cli("memory", "search", place, "absent").code == 1
    etag = str(cli("memory", "get", place, "stdin", "--json").json["etag"])
    cli("memory", "put", place, "stdin", "2", "--if-match", etag).fine()
    cli("memory", "put", place, "stdin", "3", "--if-match", etag).refused("'stdin' is there already")
    cli("memory", "put", place, "stdin", "3", "--create").refused("'stdin' is there already")
    cli("memory", "delete", place, "stdin").fine()
    cli("memory", "delete", place, "stdin").refused("no key 'stdin'")
    cli("memory", "get", place, "stdin").refused("no key 'stdin'")
    assert "removed 0" in cli("memory", "purge", place).fine().out
    assert cli("memory", "clear", place, "--json").fine().json == {"removed": 2}
    assert cli("memory", "list", place).fine().out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["k", "v", "--ttl", "nan"], "a TTL is between 0 and 315,360,000 seconds, not nan"),
        (["k", "v", "--ttl", "-1"], "a TTL is between 0 and 315,360,000 seconds, not -1.0"),
        (["k", "v", "--ttl", "inf"], "not inf"),
        (["", "v"], "a key has at least one character"),
        (["k" * 2048, "v"], "is too long"),
    ],
)
def test_what_is_refused(cli: Cli, place: str, arguments: list[str], said: str) -> None:
    cli("memory", "put", place, *arguments).refused(said)
    assert not os.path.exists(place)


def test_misuse(cli: Cli, place: str) -> None:
    cli("memory", "put", place, "k", "v", "--create", "--if-match", "x").misused("--create or --if-match")
    cli("memory", "put", place, "k", "-", stdin=b"\xff").misused("stdin is not UTF-8 at byte 0")
    cli("memory", "search", place, "(").misused("not a regular expression")
    cli("memory", "list", "memory://x").refused("lives in the memory of one process")
    cli("memory", "serve", place, "--no-token", "--host", "0.0.0.0").refused("without a token")


def test_serve(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "monocontext", "memory", "serve", str(tmp_path), "--port", "0"]
    checkout = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": checkout, "MONOCONTEXT_MEMORY_TOKEN": "secret"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd="/") as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith(f"memory {tmp_path.as_uri()} at http://127.0.0.1:"), line
            body = json.dumps({"tool": "memory", "parameters": {"command": "P k v"}}).encode()
            request = urllib.request.Request(f"{line.split()[-1]}/execute", body, {"Authorization": "Bearer secret"})
            with urllib.request.urlopen(request, timeout=20) as answer:
                assert json.load(answer)["output"] == {"status": "OK"}
        finally:
            process.terminate()
    assert (tmp_path / "entries" / "k").exists()


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
    cli("get", f"{volume}/stdin", back / "a.txt").refused("File exists")
    cli("get", f"{volume}/stdin", back / "a.txt", "--force").fine()
    assert (back / "a.txt").read_bytes() == b"piped"
    cli("put", source / "a.txt", f"{volume}/stdin", "--create").refused("exists already")
    cli("rm", f"{volume}/stdin").fine()
    cli("rm", f"{volume}/stdin").refused("nothing at ")
    assert "removed 5" in cli("rm", "-r", volume).fine().out
    cli("put", tmp_path / "none", f"{volume}/x").refused("No such file")
    cli("put", volume).misused("one or more files and then a URL")
    cli("get", f"{volume}/").misused("name one")


def test_a_link_in_the_target_leads_nowhere(cli: Cli, tmp_path: Path) -> None:
    volume, back, outside = tmp_path / "volume", tmp_path / "back", tmp_path / "outside"
    cli("put", "-", f"{volume}/out/x", stdin=b"x").fine()
    back.mkdir()
    outside.mkdir()
    (back / "out").symlink_to(outside)
    cli("get", f"{volume}/", back).refused("outside")
    assert list(outside.iterdir()) == []


def test_on_a_real_server(cli: Cli, seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", seaweed.endpoint)
    url = seaweed.url("volume-of-commands")
    cli("put", "-", f"{url}/a/b", stdin=b"piped").fine()
    assert cli("ls", url).fine().out.endswith("  a/b\n")
    assert cli("get", f"{url}/a/b", "--endpoint", seaweed.endpoint).fine().out == "piped"
    cli("rm", f"{url}/a/b").fine()
    cli("memory", "put", url, "k", "v").fine()
    assert cli("memory", "exec", url, "G k").json["output"] == {"value": "v"}
