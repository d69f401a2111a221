"""`monocontext grep`: what it prints is what grep prints, and it reads what it must."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ran import Cli, on_a_terminal

WORDS = ("the quick brown fox", "ERROR disk full", "a.b", "axb", "", "é漢字 ok", "Error: timeout", "\tfour\r", "-dash")
TEXT = "".join(f"{WORDS[number * 7919 % 97 % len(WORDS)]} {number}\n" for number in range(3000)) + "no end of line"
RARE = "request 3f0c1d4e-7a52"


@pytest.fixture
def context(cli: Cli, tmp_path: Path) -> Path:
    """TEXT in frames of 512 bytes."""
    (tmp_path / "in.txt").write_text(TEXT)
    cli("upload", tmp_path / "in.txt", tmp_path / "ctx", "--frame-bytes", "512").fine()
    return tmp_path / "ctx"


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    """A context of a folder of files with a rare line in two of them."""
    for number in range(60):
        lines = [f"line {number} {line}\n" for line in range(20)]
        if number in (11, 40):
            lines[7] = lines[9] = RARE + "\n"
        path = tmp_path / "src" / ("sub" if number % 2 else ".") / f"{number:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines))
    cli("upload", tmp_path / "src", tmp_path / "folder", "--frame-bytes", "512").fine()
    return tmp_path / "folder"


def test_exit_codes(cli: Cli, context: Path) -> None:
    assert [cli("grep", pattern, context).code for pattern in ("ERROR", "nothing")] == [0, 1]
    assert [cli("grep", "-c", pattern, context).code for pattern in ("ERROR", "nothing")] == [0, 1]
    assert [cli("grep", "-l", pattern, context).code for pattern in ("ERROR", "nothing")] == [0, 1]
    assert cli("grep", "-l", "ERROR", context.parent / "in.txt").fine().out == f"{context.parent / 'in.txt'}\n"  # plain
    for quiet in ("-q", "--quiet"):
        printed = [cli("grep", pattern, context, quiet) for pattern in ("ERROR", "nothing")]
        assert [(each.code, each.out, each.err) for each in printed] == [(0, "", ""), (1, "", "")]
    for pattern in ("a\nb", r"quick\n"):
        cli("grep", pattern, context).refused("the pattern needs a newline, but grep matches within a line")
    for pattern in ("[[:space:]]", "[^[:space:]]", "[a-f[:digit:]]", r"\\[[:^alpha:]]"):  # letters and `:` to Python
        cli("grep", pattern, context).refused(":] is not supported: write a-zA-Z, ")
    assert [cli("grep", pattern, context).code for pattern in (r"\[[:q]", "[[]")] == [1, 1]
    cli("grep", "s3://bucket/key", "the quick").misused("the URL comes last: `monocontext grep 'the quick' ")
    cli("grep", "x" * 5000, context.parent).refused("open one, such as")
    cli("grep", "-e", "x", "y", context).misused("one argument with -e, the URL")
    cli("grep", "-m", "-1", "x", context).misused("--max-count")
    assert cli("grep", "-F", "(", context).code == 1


def test_json_is_that_of_ripgrep(cli: Cli, context: Path) -> None:
    begin, *rows, end, summary = map(json.loads, cli("grep", "--json", "漢|ok|full", context).fine().out.splitlines())
    assert begin == {"type": "begin", "data": {"path": {"text": "in.txt"}}}
    data = TEXT.encode()
    for row in rows:
        found = row["data"]
        line = TEXT.split("\n")[found["line_number"] - 1] + "\n"
        assert (row["type"], found["path"], found["lines"]) == ("match", {"text": "in.txt"}, {"text": line})
        assert data[found["absolute_offset"] :].startswith(line.encode())
        for part in found["submatches"]:
            assert line.encode()[part["start"] : part["end"]].decode() == part["match"]["text"] in ("漢", "ok", "full")
        assert TEXT.startswith(found["submatches"][0]["match"]["text"], found["offset"])
    assert 100 < len(rows) == end["data"]["stats"]["matched_lines"] < summary["data"]["stats"]["matches"]
    assert end["data"]["stats"]["bytes_searched"] == len(data)
    around = [json.loads(line) for line in cli("grep", "--json", "-C1", "end of", context).fine().out.splitlines()]
    assert [row["type"] for row in around] == ["begin", "context", "match", "end", "summary"]
    assert around[2]["data"]["lines"] == {"text": "no end of line"}  # no newline ends it
    assert cli("grep", "--json", "-c", "ERROR", context).fine().json == {"path": "in.txt", "count": TEXT.count("ERROR")}


@pytest.mark.slow
def test_on_a_terminal_a_text_steers_nothing(cli: Cli, tmp_path: Path) -> None:
    place = str(tmp_path / "hostile")
    cli("upload", "-", place, stdin="a \x1b]0;title\x07 needle\x9b2J\n".encode()).fine()
    for words in (["grep", "needle"], ["grep", "-o", "n.*"], ["cat"], ["grep", "--json", "n"]):
        shown = on_a_terminal("stdout", *words, place)[1]
        assert "needle" in shown
        assert "\x1b]0;" not in shown
        assert "\x9b" not in shown
    raw = cli("cat", place).fine().out
    assert raw == "a \x1b]0;title\x07 needle\x9b2J\n"  # not on a terminal: the text itself
    assert cli("grep", "needle", place).fine().out == raw


def test_on_a_terminal_lines_have_numbers_and_colours(context: Path) -> None:
    found = on_a_terminal("stdout", "grep", "ERR.R", "-m", "1", "-A", "1", context)[1].split("\r\n")
    assert re.match("\x1b\\[32m\\d+\x1b\\[0m:\x1b\\[1;31mERROR\x1b\\[0m disk full ", found[0])
    assert re.match("\x1b\\[32m\\d+\x1b\\[0m-", found[1])
    _, plain = on_a_terminal("stdout", "grep", "ERR.R", "-m", "1", "-N", context, NO_COLOR="1")
    assert plain.startswith("ERROR disk full ")


def test_names_of_source_files(cli: Cli, folder: Path, context: Path) -> None:
    assert cli("grep", "-l", RARE, folder).fine().out == "40.txt\nsub/11.txt\n"
    every = cli("grep", "-l", "line", folder).fine().out.splitlines()
    assert every == [*(f"{n:02}.txt" for n in range(0, 60, 2)), *(f"sub/{n:02}.txt" for n in range(1, 60, 2))]
    assert cli("grep", "-l", "--json", "line 3 19", folder).fine().json == {"path": "sub/03.txt"}
    assert cli("grep", "-l", "FILE: sub/05", folder).code == 1  # the header lines are no lines of a file
    assert cli("grep", "-l", "ERROR", context).fine().out == "in.txt\n"


def test_lines_are_those_of_the_file(cli: Cli, folder: Path, tmp_path: Path) -> None:
    """What is printed opens at the right line, of each way to print it."""
    hits = [f"{name}:{line}:{RARE}" for name in ("40.txt", "sub/11.txt") for line in (8, 10)]
    assert cli("grep", "-n", RARE, folder).fine().out.splitlines() == hits
    assert cli("grep", RARE, folder).fine().out.splitlines() == [re.sub(r":\d+:", ":", hit) for hit in hits]
    parts = [hit[: hit.rindex(":") + 1] + "3f0c" for hit in hits]
    assert cli("grep", "-no", "3f0c", folder).fine().out.splitlines() == parts
    assert cli("grep", "-n", "-m", "1", RARE, folder).fine().out.splitlines() == hits[::2]
    said = cli("grep", "-n", "--heading", RARE, folder).fine().out
    assert said == f"40.txt\n8:{RARE}\n10:{RARE}\n\nsub/11.txt\n8:{RARE}\n10:{RARE}\n"
    around = cli("grep", "-n", "-A1", "-B9", RARE, folder).fine().out.splitlines()
    assert (around[0], around[10:12]) == ("40.txt-1-line 40 0", ["40.txt-11-line 40 10", "--"])
    rows = [json.loads(line) for line in cli("grep", "--json", ".", folder).fine().out.splitlines()]
    opened = [(tmp_path / "src" / row["data"]["path"]["text"], row["data"]) for row in rows if row["type"] == "match"]
    assert len(opened) == 60 * 20
    for path, found in opened:
        data = path.read_bytes()
        assert data.splitlines(keepends=True)[found["line_number"] - 1].decode() == found["lines"]["text"]
        assert data[found["absolute_offset"] :].startswith(found["lines"]["text"].encode())


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_end_of_a_line_is_before_its_carriage_return(cli: Cli, tmp_path: Path, ending: str) -> None:
    (tmp_path / "f.txt").write_bytes(ending.join(["a needle", "needle b", "$ needle", ""]).encode())
    cli("upload", tmp_path / "f.txt", tmp_path / "lines").fine()
    for pattern, numbers in {"needle$": [1, 3], "^$": [], "^[$] |b$": [2, 3], r"\$ n": [3]}.items():
        found = cli("grep", "-n", "-o", pattern, tmp_path / "lines").out
        assert [int(line.partition(":")[0]) for line in found.splitlines()] == numbers, pattern
        assert "\r" not in found


def test_a_comment_at_the_end_of_a_verbose_pattern(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("a needle\n# note\n")
    for option, pattern in (("-n", "(?x) needle # note"), ("-w", "(?xi) NEEDLE # note"), ("-x", r"(?x) a\ needle #")):
        assert "a needle" in cli("grep", option, pattern, tmp_path / "f.txt").fine().out


def test_a_text_without_documents_is_named_by_its_place(cli: Cli, tmp_path: Path) -> None:
    cli("upload", "-", tmp_path / "plain", stdin=TEXT.encode()).fine()
    assert cli("grep", "-l", "ERROR", tmp_path / "plain").fine().out == f"{tmp_path / 'plain'}\n"


def test_stats(cli: Cli, folder: Path) -> None:
    found = cli("grep", "--stats", "-c", RARE, folder)
    assert (found.code, found.out) == (0, "40.txt:2\nsub/11.txt:2\n")
    frames, read, gets = found.err.splitlines()
    told = re.fullmatch(r"frames: (\d+) in all, (\d+) pruned, (\d+) looked at, (\d+) in vain", frames)
    assert told
    every, pruned, looked_at, in_vain = map(int, told.groups())
    assert every == pruned + looked_at
    assert 2 <= looked_at - in_vain <= looked_at < every / 4
    assert re.fullmatch(r"bytes: [0-9,]+ of text and index, [0-9,]+ of filters", read)
    assert re.fullmatch(r"GETs: \d+; seconds: \d+\.\d\d", gets)
    assert "frames: none pruned, every line is looked at" in cli("grep", "--stats", r"\d{9}", folder).err
    assert "none pruned" in cli("grep", "--stats", "-v", "no such line", folder).err


@pytest.mark.parametrize(("pattern", "option"), [("(a+)+$", "--only-matching"), ("(a|a)*b", "--json")])
def test_a_pattern_that_does_not_end_is_stopped(cli: Cli, tmp_path: Path, pattern: str, option: str) -> None:
    (tmp_path / "in.txt").write_text("first\n" + "a" * 60 + "!\n")
    done = cli("grep", "--max-seconds", "0.2", option, pattern, tmp_path / "in.txt")
    assert done.code == 2
    assert "a pattern took more than 0.2 seconds on one piece" in done.err
    assert "--max-seconds" in done.err


def test_a_reader_that_waits_is_no_pattern_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a line\n" * 60_000)
    command = [sys.executable, "-m", "monocontext", "grep", "--max-seconds", "0.5", "line", tmp_path / "in.txt"]
    with subprocess.Popen(command, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        first = process.stdout.read(1000)
        time.sleep(0.8)  # the pipe is full
        rest, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert len(first + rest) == 7 * 60_000
