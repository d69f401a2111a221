"""`compact`, `gc`, `index --filters`, and what `info` and `verify` say of filters."""

from __future__ import annotations

from pathlib import Path

import pytest
from ran import Cli

from monocontext.cli.upkeep import parse_seconds

TEXT = "".join(f"line {i}: καλημέρα\n" if i % 7 == 3 else f"line {i}: plain {i * i}\n" for i in range(4000))


@pytest.fixture
def context(cli: Cli, tmp_path: Path) -> Path:
    """A context of many appends."""
    place = tmp_path / "ctx"
    pieces = [TEXT[a : a + 5000] for a in range(0, len(TEXT), 5000)]
    for number, piece in enumerate(pieces):
        (tmp_path / "in.txt").write_text(piece)
        size = () if number else ("--frame-bytes", "4K")
        cli("append" if number else "upload", tmp_path / "in.txt", place, *size).fine()
    return place


def test_compact(cli: Cli, context: Path) -> None:
    before = cli("info", context, "--json").fine().json
    said = cli("compact", context).fine().out
    assert f"{len(TEXT):,} characters in 4,000 lines" in said
    after = cli("info", context, "--json").fine().json
    assert (after["generation"], after["characters"]) == (before["generation"] + 1, before["characters"])  # type: ignore[operator]
    assert cli("cat", context).fine().out == TEXT
    assert cli("verify", context).fine().out.endswith(", 1 filters: all as recorded\n")
    assert cli("compact", context, "--json").fine().json["generation"] == after["generation"]
    assert len(list((context / "segments").iterdir())) == before["generation"] + 1  # type: ignore[operator]


def test_compact_to_other_sizes(cli: Cli, context: Path) -> None:
    sizes = ("--segment-bytes", "8K", "--frame-bytes", "16K")
    found = cli("compact", context, *sizes, "--no-filters", "--json").fine().json
    assert found["frames"] <= len(TEXT.encode()) / (12 << 10) + 1  # type: ignore[operator]
    assert cli("info", context, "--json").fine().json["filters"] == {"groups": 0, "frames": 0, "bytes": 0}
    assert cli("cat", context).fine().out == TEXT


def test_gc(cli: Cli, context: Path) -> None:
    generations = cli("info", context, "--json").fine().json["generation"]
    cli("compact", context).fine()
    assert "removed 0 versions" in cli("gc", context).fine().out
    would = cli("gc", context, "--older-than", "0s", "--dry-run", "--json").fine().json
    assert (would["dry_run"], would["generations"]) == (True, generations)
    ran = cli("gc", context, "--older-than", "0s")
    assert ran.code == 0
    assert ran.err.startswith("note: with a grace period below two days, running uploads")
    assert f"removed {generations:,} versions, {would['segments']:,} segments" in ran.out
    assert "2 versions stay" in ran.out  # the newest, and the fence that has the same text
    assert len(list((context / "generations").glob("*.json"))) == 2
    assert "removed 1 version, 0 segments" in cli("gc", context, "--older-than", "0s").out
    assert "documents" not in cli("history", context).out, "a version without the one before it has no known changes"
    assert "removed 0 versions, 0 segments" in cli("gc", context, "--older-than", "0s").out
    assert cli("cat", context).fine().out == TEXT
    cli("verify", context).fine()


def test_index_filters(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(TEXT)
    place = tmp_path / "ctx"
    cli("upload", tmp_path / "in.txt", place, "--frame-bytes", "4K", "--no-filters").fine()
    assert "     filters  none\n" in cli("info", place).fine().out
    assert f": version 2, {len(TEXT):,} characters" in cli("index", "--filters", place).fine().out
    found = cli("info", place, "--json").fine().json
    filters = found["filters"]
    assert isinstance(filters, dict)
    assert (filters["groups"], filters["frames"]) == (1, found["frames"])
    assert f"     filters  {filters['bytes']:,} bytes\n" in cli("info", place).fine().out
    assert cli("index", "--filters", place, "--json").fine().json["generation"] == 2
    assert cli("cat", place).fine().out == TEXT


def test_bad_input(cli: Cli, tmp_path: Path, context: Path) -> None:
    for command in (["compact"], ["gc"], ["index", "--filters"]):
        cli(*command, tmp_path / "nothing").refused("no context")
        cli(*command, "memory://x").refused("lives in the memory of one process")
        cli(*command, "ftp://x").refused("ftp://x")
    cli("compact", context, "--segment-bytes", "many").misused("not a size: 'many'")
    cli("compact", context, "--segment-bytes", "0").misused("segment_bytes must be at least 1")
    cli("compact", context, "--frame-bytes", "1G").misused("frame_bytes must be between")
    cli("gc", context, "--older-than", "7").misused("not a duration: '7'; examples are 90m, 36h and 7d")
    cli("gc", context, "--older-than=-7d").misused("not a duration")
    for option in ("--replace", "--frame-bytes=4K", "--dask=local"):
        cli("index", "--filters", option, context).misused(" need sources: --filters alone keeps the text")
    for option in ("--rebuild", "--allow=s3://b"):
        cli("index", tmp_path / "in.txt", tmp_path / "new", option).misused("--rebuild and --allow need --filters and ")


def test_durations() -> None:
    seconds = {"90m": 5400, "36h": 129600, "7d": 604800, "1.5 d": 129600, "0s": 0, "2W": 1209600, " 7d ": 604800}
    assert {text: parse_seconds(text) for text in seconds} == seconds
