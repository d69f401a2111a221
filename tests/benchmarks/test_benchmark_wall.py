"""The wall-clock half runs through, on a text of a few megabytes and a near server; no figure of it is judged here."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.wall import peers


@pytest.mark.slow
def test_ways_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MONOCONTEXT_PEERS", str(tmp_path / "none"))
    ways = ("str in memory", "monocontext without reading ahead", "monocontext")
    plan = peers.Plan(size_bytes=6_000_000, profile="s3_express", rounds=1, think_seconds=0.05, ways=ways)
    rows = peers.run(plan)
    assert [row.way for row in rows] == list(ways)
    floor, off, ahead = rows
    assert (floor.requests, floor.bytes) == (0, 0)
    assert off.requests > 0
    assert ahead.peak_bytes > 10 << 20
