"""The command `monocontext`, as its users type it: results, exit codes, and errors of one line."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ran import Cli

import monocontext
from monocontext import Monocontext
from monocontext.testing import SeaweedServer

TEXT = "".join(f"line {i}: καλημέρα \U0001f600\n" if i % 7 == 3 else f"line {i}: plain\n" for i in range(20_000))


def process(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "monocontext", *map(str, arguments)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text(TEXT)
    return tmp_path / "in.txt"


@pytest.fixture
def context(cli: Cli, file: Path, tmp_path: Path) -> Path:
    """A context that holds TEXT, in four frames or more."""
    cli("upload", file, tmp_path / "ctx", "--frame-bytes", "64K").fine()
    return tmp_path / "ctx"


# -- upload, append, index ---------------------------------------------------------------------------------------------


def test_upload_a_file_and_cat_it(cli: Cli, context: Path) -> None:
    assert cli("cat", context).fine().out == TEXT


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


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            [],
            "=== FILE: a.py ===\na = 1\n=== FILE: z.md ===\nz\n"
            "=== FILE: sub/b.py ===\nb = 2\n=== FILE: sub/c.txt ===\nc\n",
        ),
        (["--include", "*.py"], "=== FILE: a.py ===\na = 1\n=== FILE: sub/b.py ===\nb = 2"),
        (["--include", "*.py", "--include", "*.md", "--header", ""], "a = 1\nz\nb = 2"),
        (["--exclude", "sub/*", "--header", "## {path}"], "## a.py\na = 1\n## z.md\nz\n"),
        (["--include", "sub/*", "--exclude", "*.txt", "--header", "\\n-- {path}"], "\n-- sub/b.py\nb = 2"),
    ],
)
def test_upload_a_folder(cli: Cli, folder: Path, tmp_path: Path, options: list[str], text: str) -> None:
    cli("upload", folder, tmp_path / "ctx", *options).fine()
    cli("upload", folder, tmp_path / "none", "--include", "*.{ts,tsx}").refused("no file in it matches", "*.{ts,tsx}")
    assert not (tmp_path / "none").exists()
    found = cli("cat", tmp_path / "ctx").fine().out
    # The order of files and subfolders is the walk's; each file stands whole after its header.
    assert sorted(found.split("\n")) == sorted(text.split("\n"))
    assert len(found) == len(text)


def test_sizes_and_codec(cli: Cli, file: Path, tmp_path: Path) -> None:
    options = ["--frame-bytes", "16KiB", "--segment-bytes", "64k", "--codec", "raw"]
    cli("upload", file, tmp_path / "ctx", *options).fine()
    found = cli("info", tmp_path / "ctx", "--json").fine().json
    assert (found["frame_bytes"], found["codec"]) == (16 << 10, "raw")
    segments = list((tmp_path / "ctx" / "segments").iterdir())
    assert all(each.stat().st_size <= 64 << 10 for each in segments)
    assert len(segments) >= len(TEXT.encode()) >> 16
    by_time = sum(each.stat().st_size for each in segments)
    assert by_time - 16 * len(segments) == found["stored_bytes"] == len(TEXT.encode())  # each ends in a line of its own


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--frame-bytes", "64Q", "64Q"),
        ("--frame-bytes", "0", "frame_bytes"),
        ("--frame-bytes", "1G", "frame_bytes"),
        ("--segment-bytes", "-1", "-1"),
        ("--codec", "gzip", "zstd"),
        ("--encoding", "klingon", "klingon"),
        ("--errors", "ignore", "replace"),
    ],
)
def test_options_that_mean_nothing(cli: Cli, file: Path, tmp_path: Path, option: str, value: str, said: str) -> None:
    cli("upload", file, tmp_path / "ctx", option, value).misused(said)
    assert not (tmp_path / "ctx").exists()


def test_upload_where_a_context_is(cli: Cli, context: Path, file: Path) -> None:
    cli("upload", file, context).refused("append", "--replace", f"{len(TEXT):,} characters")
    cli("upload", "-", context, "--replace", stdin=b"new").fine()
    assert cli("cat", context).fine().out == "new"
    assert cli("cat", context, "--generation", "1").fine().out == TEXT


def test_append(cli: Cli, context: Path) -> None:
    found = cli("append", "-", context, "--json", stdin=b"the end").fine().json
    assert (found["generation"], found["characters"]) == (2, len(TEXT) + 7)
    assert cli("cat", context).fine().out == TEXT + "the end"
    assert cli("cat", context, "--generation", "1").fine().out == TEXT
    cli("verify", context).fine()


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
    cli("upload", tmp_path / "latin.txt", tmp_path / "a").refused("latin.txt", "byte 1 ", "--errors replace")
    assert not (tmp_path / "a" / "manifest.json").exists()
    cli("upload", tmp_path / "latin.txt", tmp_path / "a", "--encoding", "latin-1").fine()
    assert cli("cat", tmp_path / "a").fine().out == "début, ça va"
    cli("upload", tmp_path / "latin.txt", tmp_path / "b", "--errors", "replace").fine()
    assert cli("cat", tmp_path / "b").fine().out == "d\ufffdbut, \ufffda va"


def test_a_byte_order_mark_is_dropped_with_a_note(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbftext")
    done = cli("upload", tmp_path / "bom.txt", tmp_path / "ctx")
    assert done.code == 0
    assert done.err.startswith("note: ")
    assert done.err.count("\n") == 1
    assert cli("cat", tmp_path / "ctx").fine().out == "text"


# -- info, cat, verify -------------------------------------------------------------------------------------------------


def test_info(cli: Cli, context: Path) -> None:
    found = cli("info", context, "--json").fine().json
    assert found["url"] == context.resolve().as_uri()
    assert (found["generation"], found["characters"], found["lines"]) == (1, len(TEXT), 20_000)
    assert (found["bytes"], found["frame_bytes"], found["codec"]) == (len(TEXT.encode()), 64 << 10, "zstd")
    shown = cli("info", context).fine().out
    for each in (f"{len(TEXT):,}", "20,000", "filters", context.resolve().as_uri()):
        assert each in shown


@pytest.mark.parametrize(
    "part", ["0:10", "60000:200000", "-20:", ":-1", ":", "5", "-1", "7:3", "999999999:", "100:1000000000"]
)
def test_cat_characters(cli: Cli, context: Path, part: str) -> None:
    low, colon, high = part.partition(":")
    expected = TEXT[int(low) :][:1] if not colon else TEXT[int(low) if low else None : int(high) if high else None]
    assert cli("cat", context, "--chars", part).fine().out == expected
    assert cli("cat", context, "--chars", part, "--json").fine().json == {
        "url": context.resolve().as_uri(),
        "generation": 1,
        "text": expected,
    }


@pytest.mark.parametrize("part", ["1:10", "3:15000", "-2:", ":-1", ":", "5", "-1", "7:3", "999999999:"])
def test_cat_lines_counts_from_one(cli: Cli, context: Path, part: str) -> None:
    lines = ["", *TEXT.splitlines(keepends=True)]
    low, colon, high = part.partition(":")
    expected = lines[int(low) :][:1] if not colon else lines[int(low) if low else None : int(high) if high else None]
    assert cli("cat", context, "--lines", part).fine().out == "".join(expected)


def test_cat_takes_one_range(cli: Cli, context: Path) -> None:
    cli("cat", context, "--chars", "1:2", "--lines", "1:2").misused("--chars cannot be combined with")
    cli("cat", context, "--lines", "0:2").misused("counted from 1")
    cli("cat", context, "--chars", "one:two").misused("one:two")
    cli("cat", context, "--lines", "1:2:3").misused("1:2:3")


def test_verify(cli: Cli, context: Path) -> None:
    assert "all as recorded" in cli("verify", context).fine().out
    found = cli("verify", context, "--json").fine().json
    assert (found["ok"], found["problems"], found["text_bytes"]) == (True, [], len(TEXT.encode()))


def test_verify_lists_damage(cli: Cli, file: Path, tmp_path: Path) -> None:
    context = tmp_path / "ctx"
    cli("upload", file, context, "--frame-bytes", "64K", "--segment-bytes", "64K", "--codec", "raw").fine()
    segments = sorted((context / "segments").iterdir())
    assert len(segments) > 2
    flipped, short, *_ = segments
    data = bytearray(flipped.read_bytes())
    data[len(data) // 2] ^= 1
    flipped.write_bytes(data)
    short.write_bytes(short.read_bytes()[:-25])  # 16 of them are behind the text
    done = cli("verify", context)
    assert (done.code, done.err) == (1, "")
    for damaged in (flipped, short):
        assert any(damaged.name in line for line in done.out.splitlines())
    assert f"{len(done.out.splitlines()) - 1} problems" in done.out.splitlines()[-1]
    done = cli("verify", context, "--json")
    assert (done.code, done.err, done.json["ok"]) == (1, "", False)
    assert isinstance(done.json["problems"], list)
    assert len(done.json["problems"]) >= 2
    segments[2].unlink()
    assert segments[2].name in cli("verify", context).out


def test_cat_of_damage_is_refused(cli: Cli, context: Path) -> None:
    (segment,) = (context / "segments").iterdir()
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    done = cli("cat", context)
    assert done.code == 2
    assert TEXT.startswith(done.out)  # what came before the damage may have been printed, never anything wrong
    assert done.err.count("\n") == 1
    assert segment.name in done.err


# -- what users get wrong ----------------------------------------------------------------------------------------------

READING = [["info"], ["cat"], ["cat", "--lines", "1"], ["verify"]]


@pytest.mark.parametrize("command", READING)
def test_nothing_there(cli: Cli, tmp_path: Path, command: list[str]) -> None:
    cli(*command, tmp_path / "none").refused("no context", "none")
    (tmp_path / "file").write_text("text")
    said = cli(*command, tmp_path / "file")
    assert said.code == 0 if command != ["verify"] else said.refused("file")


def test_a_generation_that_is_not_there(cli: Cli, context: Path) -> None:
    cli("cat", context, "--generation", "99").refused("no generation 99 at ")


def test_a_large_plain_file_has_its_own_name(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of the cache folder where its index lies."""
    monkeypatch.setattr("monocontext.writing.plain.SMALL_BYTES", 10)
    monkeypatch.setenv("XDG_CACHE_HOME", str(file.parent / "cache"))
    assert cli("info", file, "--json").fine().json["url"] == file.resolve().as_uri()
    cli("cat", file, "--document", "none").refused(f"{file}: no document 'none'")


@pytest.mark.parametrize("command", [["verify"], ["upload", "-"], ["append", "-"]])
def test_something_else_is_there(cli: Cli, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "another application"}')
    cli(*command, tmp_path).refused("manifest.json", "not the manifest of a context")
    assert (tmp_path / "manifest.json").read_text() == '{"name": "another application"}'


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


@pytest.mark.parametrize("command", [*READING, ["upload", "-"], ["upload", "--replace", "-"], ["append", "-"]])
def test_a_newer_format(cli: Cli, context: Path, command: list[str]) -> None:
    root = json.loads((context / "manifest.json").read_text())
    (context / "manifest.json").write_text(json.dumps({**root, "format": 9, "min_reader": 9}))
    cli(*command, context, stdin=b"text").refused("manifest.json", "9")
    assert json.loads((context / "manifest.json").read_text())["format"] == 9


@pytest.mark.parametrize("command", [*READING, ["upload", "-"], ["append", "-"], ["index", "/tmp"]])
def test_places_that_a_command_cannot_mean(cli: Cli, command: list[str]) -> None:
    cli(*command, "memory://name", stdin=b"text").refused("memory://name", "directory or S3")
    cli(*command, "ftp://host/x", stdin=b"text").refused("ftp")
    cli(*command, "s3://", stdin=b"text").refused("s3://")


def test_sources_that_are_not_there(cli: Cli, tmp_path: Path) -> None:
    cli("upload", tmp_path / "none.txt", tmp_path / "ctx").refused("none.txt")
    cli("index", tmp_path / "none", tmp_path / "ctx").refused("none")
    cli("index", "memory://name", tmp_path / "ctx").refused("memory://name")
    assert not (tmp_path / "ctx" / "manifest.json").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    cli("upload", "-", tmp_path / "closed" / "ctx", stdin=b"text").refused("permission")


@pytest.mark.slow
@pytest.mark.parametrize("command", [*READING, ["upload", "-"], ["append", "-"]])
def test_no_such_bucket(cli: Cli, moto_s3: str, command: list[str]) -> None:
    cli(*command, "s3://no-such-bucket/ctx", stdin=b"text").refused("no bucket", "no-such-bucket")


@pytest.mark.slow
@pytest.mark.parametrize("command", [*READING, ["upload", "-"], ["append", "-"]])
def test_no_credentials(cli: Cli, moto_s3: str, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    cli(*command, f"s3://{moto_s3}/ctx", stdin=b"text").refused("no credentials", "AWS_ACCESS_KEY_ID")


def test_no_such_profile(cli: Cli, moto_s3: str) -> None:
    cli("info", f"s3://{moto_s3}/ctx", "--profile", "nobody").refused("nobody")


def test_an_empty_prefix(cli: Cli, moto_s3: str) -> None:
    cli("info", f"s3://{moto_s3}/nothing-here").refused("no context", "nothing-here")


def test_an_endpoint_that_does_not_answer(cli: Cli) -> None:
    cli("info", "s3://bucket/ctx", "--endpoint", "http://127.0.0.1:9").refused("s3://bucket/ctx", "127.0.0.1:9")
    cli("info", "s3://bucket/ctx", "--endpoint", "not a url").refused("endpoint")


# -- the real server ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_on_s3(cli: Cli, seaweed: SeaweedServer, file: Path, request: pytest.FixtureRequest) -> None:
    url, endpoint = seaweed.url(f"cli-{os.getpid()}"), ("--endpoint", seaweed.endpoint)
    cli("upload", file, f"{url}/a", "--frame-bytes", "64K", *endpoint).fine()
    cli("append", "-", f"{url}/a", *endpoint, stdin=b"more").fine()
    assert cli("cat", f"{url}/a", *endpoint).fine().out == TEXT + "more"
    assert cli("cat", f"{url}/a", "--lines", "-2:", *endpoint).fine().out == "line 19999: plain\nmore"
    assert cli("info", f"{url}/a", "--json", *endpoint).fine().json["generation"] == 2
    cli("verify", f"{url}/a", *endpoint).fine()
    cli("upload", file, f"{url}/a", *endpoint).refused("append", "--replace")
    client = seaweed.client()
    client.put_object(Bucket=seaweed.bucket, Key=f"cli-{os.getpid()}/plain/1.txt", Body=b"as it lies")
    cli("index", f"{url}/plain/", f"{url}/b", *endpoint).fine()
    assert cli("cat", f"{url}/b", *endpoint).fine().out == "as it lies"


def test_empty_files_are_stored_as_fast_as_others(
    cli: Cli, seaweed: SeaweedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request each: after an empty body the server left the next one without an answer for 10 s."""
    from botocore.httpsession import URLLib3Session

    sent, send = [], URLLib3Session.send
    monkeypatch.setattr(URLLib3Session, "send", lambda self, request: sent.append(request) or send(self, request))
    names = ["a/__init__.py", "b/__init__.py", "c/__init__.py", "d.py"]
    for name in names:
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text("x = 1\n" if name == "d.py" else "")
    url = seaweed.url(f"cli-empty-{os.getpid()}/")
    shown = cli("put", tmp_path / "src", url, "--endpoint", seaweed.endpoint).fine().out
    sizes = sorted(line.partition(": ")[2] for line in shown.splitlines())
    assert sizes == ["0 bytes", "0 bytes", "0 bytes", "6 bytes"]
    assert len(sent) == len(names), "a request had to be made twice"
    cli("get", url, tmp_path / "back", "--endpoint", seaweed.endpoint).fine()
    for name in names:
        assert (tmp_path / "back" / "src" / name).read_bytes() == (tmp_path / "src" / name).read_bytes()


def test_a_pipe_is_no_file_to_store(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a").write_text("x")
    os.mkfifo(tmp_path / "src" / "pipe")
    cli("put", tmp_path / "src" / "pipe", tmp_path / "place/").refused("src/pipe is a named pipe, not a file")
    cli("upload", tmp_path / "src" / "pipe", tmp_path / "ctx").refused("src/pipe is a named pipe, not a file")
    stored = cli("put", tmp_path / "src", tmp_path / "place/")
    assert stored.code == 0
    assert stored.err == f"note: {tmp_path}/src: left out entries that are not files: pipe (a named pipe)\n"
    assert [path.name for path in (tmp_path / "place").rglob("*") if path.is_file()] == ["a"]


def test_keys_that_the_server_refuses(cli: Cli, seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url, endpoint = seaweed.url("cli-refused"), ("--endpoint", seaweed.endpoint)
    cli("info", url, "--anonymous", *endpoint).refused("access to", "refused")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    cli("info", url, *endpoint).refused("access to", "SignatureDoesNotMatch")
    cli("upload", "-", url, *endpoint, stdin=b"text").refused("access to")


def test_the_endpoint_from_the_environment(cli: Cli, seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", seaweed.endpoint)
    url = seaweed.url(f"cli-environment-{os.getpid()}")
    cli("upload", "-", url, stdin=b"text").fine()
    assert cli("cat", url).fine().out == "text"
    cli("info", "s3://no-such-bucket/ctx").refused("no bucket")


# -- processes and terminals -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_as_a_module_and_as_a_script(context: Path) -> None:
    script = Path(sys.executable).parent / "monocontext"
    for command in (process(), [str(script)]) if script.exists() else (process(),):
        shown = subprocess.run([*command, "--help"], capture_output=True, text=True)
        assert (shown.returncode, shown.stderr) == (0, "")
        for name in ("upload", "append", "index", "info", "cat", "verify"):
            assert f" {name} " in shown.stdout
        done = subprocess.run([*command, "cat", context], capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(TEXT.encode()).digest()
        done = subprocess.run([*command, "cat", context / "none"], capture_output=True)
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


@pytest.mark.parametrize(("unbuffered", "size"), [("", 20_000_000), ("1", 20_000_000), ("1", 200_000)])
def test_head_has_seen_enough(
    unbuffered: str, size: int, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe closes while more is still to come, perhaps of a single write: no error, no word."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    cli("upload", "-", tmp_path / "ctx", stdin=(TEXT * 20).encode()[:size]).fine()
    with subprocess.Popen(process("cat", tmp_path / "ctx"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.read(10) == TEXT.encode()[:10]
        running.stdout.close()
        assert running.wait(60) == 141
        assert running.stderr.read() == b""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["info", "verify", "cat"])
def test_nobody_reads_the_output(context: Path, command: str) -> None:
    """The pipe was closed before a word was written."""
    with subprocess.Popen(process(command, context), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.wait(60) == 141
        assert running.stderr.read() == b""


def test_the_whole_of_a_pipe_without_an_end(context: Path, tmp_path: Path) -> None:
    """stdin that comes slowly, in pieces that end inside characters."""
    with subprocess.Popen(
        process("upload", "-", tmp_path / "slow"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        for byte in "καλημέρα \U0001f600".encode():
            running.stdin.write(bytes([byte]))
            running.stdin.flush()
            time.sleep(0.001)
        running.stdin.close()
        assert running.wait(60) == 0
        assert running.stderr.read() == b""
    with Monocontext.open(tmp_path / "slow") as ctx:
        assert str(ctx) == "καλημέρα \U0001f600"


def on_a_terminal(command: list[str]) -> tuple[int, str]:
    """Run with a terminal for stderr; gives the exit code and what the terminal saw."""
    master, slave = pty.openpty()
    try:
        running = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=slave,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(slave)
        seen = b""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    data = os.read(master, 65536)
                except OSError:  # Linux: the other side is closed
                    break
                if not data:
                    break
                seen += data
        return running.wait(60), seen.decode()
    finally:
        os.close(master)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "label"), [("upload", "upload"), ("append", "append"), ("verify", "verify")])
def test_a_bar_on_a_terminal(context: Path, file: Path, tmp_path: Path, command: str, label: str) -> None:
    arguments: dict[str, list[str | Path]] = {
        "upload": [file, tmp_path / "new"],
        "append": [file, context],
        "verify": [context],
    }
    code, seen = on_a_terminal(process(command, *arguments[command]))
    assert code == 0
    assert label in seen
    assert "━" in seen
    done = subprocess.run(process("verify", context), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b""), "silence where there is no terminal"


def test_an_error_on_a_terminal_is_one_line_too(context: Path, file: Path) -> None:
    code, seen = on_a_terminal(process("upload", file, context))
    assert code == 2
    assert seen.count("monocontext: ") == 1
    assert "Traceback" not in seen


def test_the_version(cli: Cli) -> None:
    assert cli("--version").fine().out == f"monocontext {monocontext.__version__}\n"
