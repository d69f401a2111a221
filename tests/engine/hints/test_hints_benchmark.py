"""The benchmark of hints runs, and its replies are what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import hints


def test_a_row_counts_hints_and_times_calls() -> None:
    row = hints.measure("five blocks", hints.replies()["five blocks"], rounds=1)
    assert row.hints == 14
    assert 0 < row.us_median <= row.us_p99 <= row.us_worst
    assert row.times_parse is not None


def test_long_replies_are_long() -> None:
    for name, reply in hints.replies().items():
        assert ("100 KB" in name) == (abs(len(reply) - hints.LONG) < 2_000)


def test_the_result_has_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "replies", lambda: {"short": hints.fence("x = context[5:10]\n"), "prose": "Well."})
    hints.main(1, tmp_path / "hints.json")
    result = json.loads((tmp_path / "hints.json").read_text())
    assert result["version"] == 1
    assert [(row["reply"], row["hints"]) for row in result["rows"]] == [("short", 1), ("prose", 0)]
