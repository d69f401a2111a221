"""`info`, `cat`, `search` and `verify`: what is printed of a text, whole and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ran import TEXT, Cli


def test_info(cli: Cli, uploaded: Path) -> None:
    found = cli("info", uploaded, "--json").fine().json
    assert found["url"] == uploaded.resolve().as_uri()
    assert (found["generation"], found["characters"], found["lines"]) == (1, len(TEXT), 20_000)
    assert (found["bytes"], found["frame_bytes"], found["codec"]) == (len(TEXT.encode()), 64 << 10, "zstd")
    shown = cli("info", uploaded).fine().out
    for each in (f"{len(TEXT):,}", "20,000", "filters", uploaded.resolve().as_uri()):
        assert each in shown


@pytest.mark.parametrize(
    "part", ["0:10", "60000:200000", "-20:", ":-1", ":", "5", "-1", "7:3", "999999999:", "100:1000000000"]
)
def test_cat_characters(cli: Cli, uploaded: Path, part: str) -> None:
    low, colon, high = part.partition(":")
    expected = TEXT[int(low) :][:1] if not colon else TEXT[int(low) if low else None : int(high) if high else None]
    assert cli("cat", uploaded, "--chars", part).fine().out == expected
    told = {"url": uploaded.resolve().as_uri(), "generation": 1, "text": expected}
    assert cli("cat", uploaded, "--chars", part, "--json").fine().json == told


@pytest.mark.parametrize("part", ["1:10", "3:15000", "-2:", ":-1", ":", "5", "-1", "7:3", "999999999:"])
def test_cat_lines_counts_from_one(cli: Cli, uploaded: Path, part: str) -> None:
    lines = ["", *TEXT.splitlines(keepends=True)]
    low, colon, high = part.partition(":")
    expected = lines[int(low) :][:1] if not colon else lines[int(low) if low else None : int(high) if high else None]
    assert cli("cat", uploaded, "--lines", part).fine().out == "".join(expected)


def test_cat_takes_one_range(cli: Cli, uploaded: Path) -> None:
    cli("cat", uploaded, "--chars", "1:2", "--lines", "1:2").misused("--chars cannot be combined with")
    cli("cat", uploaded, "--lines", "0:2").misused("no line 0, as in '0:2': ")
    cli("cat", uploaded, "--chars", "one:two").misused("one:two")
    cli("cat", uploaded, "--lines", "1:2:3").misused("1:2:3")


def test_cite_says_what_it_knows(cli: Cli, uploaded: Path) -> None:
    cited = {"0-4": None, "0-4@7": None, "0-4@1": True, "0-4#" + "0" * 8: False, "0-999999": False}
    for source, stands in cited.items():
        ran = cli("cite", uploaded, source, "--json")
        assert (ran.json["stands"], ran.code) == (stands, 2 if stands is False else 0)
        assert ("note: the source has no checksum" in ran.err) == (stands is None)


def test_verify_lists_damage(cli: Cli, file: Path, tmp_path: Path) -> None:
    context = tmp_path / "ctx"
    cli("upload", file, context, "--frame-bytes", "64K", "--segment-bytes", "64K", "--codec", "raw").fine()
    flipped, short, missing, *_ = sorted((context / "segments").iterdir())
    data = bytearray(flipped.read_bytes())
    data[len(data) // 2] ^= 1
    flipped.write_bytes(data)
    short.write_bytes(short.read_bytes()[:-25])  # 16 of them are behind the text
    missing.unlink()
    done = cli("verify", context)
    assert (done.code, done.err) == (1, "")
    *problems, summary = done.out.splitlines()
    assert all(any(damaged.name in line for line in problems) for damaged in (flipped, short, missing))
    assert f"{len(problems)} problems" in summary
    done = cli("verify", context, "--json")
    assert (done.code, done.err, done.json["ok"], done.json["problems"]) == (1, "", False, problems)


def test_cat_of_damage_is_refused(cli: Cli, uploaded: Path) -> None:
    (segment,) = (uploaded / "segments").iterdir()
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    done = cli("cat", uploaded)
    assert done.code == 2
    assert TEXT.startswith(done.out)  # what came before the damage may have been printed, never anything wrong
    assert done.err.count("\n") == 1
    assert segment.name in done.err


def test_it_prints_passages_best_first(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n} of a quiet text\n" for n in range(2000)) + "keys are rotated\n")
    cli("upload", tmp_path / "a.txt", tmp_path / "ctx").fine()
    said = cli("search", tmp_path / "ctx", "rotate", "keys").fine().out
    assert "keys are rotated" in said
    (row,) = [json.loads(line) for line in cli("search", "--json", tmp_path / "ctx", "rotates").fine().out.splitlines()]
    assert row["line"] > 1900
    assert row["text"].endswith("keys are rotated\n")
    assert cli("search", tmp_path / "ctx", "absent").code == 1
    for excluded in ("-silent", "-mail", "-host", "-film"):  # -m and -h are options, these are none
        assert cli("search", "keys", excluded, tmp_path / "ctx", "-m1").fine().out.endswith("keys are rotated\n")
    assert cli("search", "keys", tmp_path / "ctx", "-rotated").code == 1
    cli("search", "-keys", "-rotated").misused("got only words that must not occur")
    cli("search", tmp_path / "ctx", "?!").refused()
