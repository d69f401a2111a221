"""Tables and pictures are made of results, and stand where the markers are."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from benchmarks import report, results
from benchmarks.harness import _judge
from benchmarks.virtual import suite
from benchmarks.virtual.suite import Plan

MARKED = """# Measured

<!-- harness: virtual-0.004GB-far_150 -->
stale text
<!-- harness: end -->

kept
<!-- harness: peers-0.2GB -->
<!-- harness: end -->
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("results")
    plan = Plan(size_bytes=4_000_000, seeds=1, programs=("tail", "zooms"))
    _judge(suite.run(plan, told=lambda line: None), place / "one.json")
    return place


def test_a_table_takes_the_place_of_the_old_one(folder: Path, tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text(MARKED)
    assert report.write(folder, document) == ["virtual-0.004GB-far_150"]
    said = document.read_text()
    assert "stale" not in said
    assert said.endswith("kept\n<!-- harness: peers-0.2GB -->\n<!-- harness: end -->\n")
    assert "| tail first |" in said
    assert "Virtual clock: 0.004 GB, profile `far_150`, 100 MB/s, mean of 1 runs." in said
    assert "gates hold" in said
    report.write(folder, document)
    assert document.read_text() == said


def test_gates_that_do_not_hold_are_printed() -> None:
    machine = {"date": "2026-01-01T00:00:00", "python": "3", "system": "x", "cores": 1}
    setting = {"size_bytes": 1, "profile": "p", "nic_bytes_per_second": 1.0, "seeds": 1}
    gates = [
        {"name": "a", "found": 2.0, "most": 1.0, "holds": False},
        {"name": "b", "found": 0, "most": 1, "holds": True},
    ]
    result = {"benchmark": "virtual", "machine": machine, "commit": "c", "seed": 0, "setting": setting, "gates": gates}
    assert report.table(result | {"rows": []}).strip().endswith("1 of 2 gates hold. Not held: a 2.00 (at most 1).")


def test_peers_have_a_table_of_their_own() -> None:
    guards = {"overhead_seconds": 0.001, "loopback_bytes_per_second": 1e9, "load": 1.0, "steal": 0.0}
    setting = {"size_bytes": 2 * 10**8, "server": "stand-in", "profile": "far_150", "nic_bytes_per_second": 1e8}
    parts = ("stall", "open", "first", "slice", "zoom", "chunk", "find", "cpu")
    row = {f"{part}_seconds": 1.5 for part in parts} | {"requests": 3, "bytes": 2e6, "peak_rss_bytes": 1 << 20}
    rows = [
        row | {"way": "slow", "version": "1", "gave_up": True},
        row | {"way": "b", "version": "", "gave_up": False, "stall_seconds": 1.0},
    ]
    result = results.make(
        "peers", 0, setting | {"rounds": 3, "thinks": 14.0}, rows, guard=guards, judged=False, missing=["c"]
    )
    said = report.table(result)
    assert "| slow 1 | > 1.50 |" in said
    assert said.index("| b | 1.00 |") < said.index("| slow 1 |")
    assert "reported, not judged" in said
    assert said.endswith("Not installed here: c.")


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="no matplotlib here: pip install .[bench]")
def test_pictures_are_the_same_for_the_same_result(folder: Path, tmp_path: Path) -> None:
    from benchmarks import plots

    result = next(iter(results.newest(folder).values()))
    once, again = (plots._bars(result, tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert once == again
    assert b"tail first" in once
