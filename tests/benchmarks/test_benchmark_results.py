"""Results are written with a version, and read only by who knows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import harness, results
from benchmarks.__main__ import main
from benchmarks.virtual.gates import Gate, judge


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    result = results.make(
        "virtual", 7, {"size_bytes": 1}, [{"program": "x", "stall_seconds": 0.5}], guard={"load": 1.0}
    )
    path = results.write(result, tmp_path / "deep" / "one.json")
    assert results.read(path) == json.loads(json.dumps(result)) == result
    assert (result["version"], result["seed"], result["guard"]) == (results.VERSION, 7, {"load": 1.0})
    assert result["machine"]["date"]


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(results.UnknownResult, match="is no JSON"):
        results.read(path)
    path.write_text("[]")
    with pytest.raises(results.UnknownResult, match="is no result: it lacks benchmark"):
        results.read(path)
    result = results.make("virtual", 0, {}, [])
    path.write_text(json.dumps({**result, "version": results.VERSION + 1}))
    with pytest.raises(results.UnknownResult, match=f"of version {results.VERSION + 1}"):
        results.read(path)


def test_files_are_named_by_day_commit_and_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    result = results.make("virtual", 0, {"size_bytes": 200_000_000, "profile": "far_150"}, [])
    path = results.write(result)
    assert path.name == f"{result['machine']['date'][:10]}-{result['commit']}-virtual-0.2GB-far_150.json"
    later = {**result, "commit": "later", "machine": {**result["machine"], "date": "2999-01-01T00:00:00+00:00"}}
    results.write(later)
    results.write(results.make("peers", 0, {"size_bytes": 10**9, "server": "seaweedfs"}, []))
    found = results.newest(tmp_path)
    assert set(found) == {"virtual-0.2GB-far_150", "peers-1GB-seaweedfs"}
    assert found["virtual-0.2GB-far_150"]["commit"] == "later"


def row(program: str, policy: str = "all", **more: object) -> dict[str, object]:
    usual = {"size_bytes": 200_000_000, "stall_seconds": 0.0, "oracle_seconds": 0.0, "regret": 0.0}
    return {
        "program": program,
        "policy": policy,
        **usual,
        "amplification": 1.0,
        "precision": 0.9,
        "skipped": 1.0,
        **more,
    }


def test_gates_are_what_the_figures_say() -> None:
    failing = [
        gate.name for gate in judge([row("linear chunk scan", regret=0.11, amplification=1.2)]) if not gate.holds
    ]
    assert failing == ["regret of linear chunk scan", "amplification of linear chunk scan"]
    assert all(gate.holds for gate in judge([row("bisection", regret=1.02), row("literal zooms")]))
    assert not all(gate.holds for gate in judge([row("literal zooms", precision=0.8)]))
    slower = [row("interleaved scans", stall_seconds=2.0), row("interleaved scans", "off", stall_seconds=1.9)]
    assert [gate.name for gate in judge(slower) if not gate.holds] == [
        "interleaved scans, stall against no reading ahead"
    ]
    large = {"size_bytes": 10_000_000_000}
    assert [gate.holds for gate in judge([row("grep and zoom", **large, stall_seconds=1.6)])] == [False, True]
    assert [
        gate.holds for gate in judge([row("full pass", **large, stall_seconds=11.4, bounded_oracle_seconds=10)])
    ] == [True]
    assert judge([row("linear chunk scan", "off", regret=9.0)]) == []
    assert str(Gate("x", 2.0, 1.0)) == "FAILS  x: 2.000, at most 1"


def test_amounts() -> None:
    assert [harness.amount(text) for text in ("0.2GB", "100MB/s", "1TB", "64M", "12")] == [
        200_000_000,
        100_000_000,
        10**12,
        64_000_000,
        12,
    ]


def test_a_run_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "v.json"
    words = f"benchmarks virtual --size 4MB --seeds 1 --program verify --policy off --json {path}"
    monkeypatch.setattr("sys.argv", words.split())
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    result = results.read(path)
    assert {each["policy"] for each in result["rows"]} == {
        "off",
        "no index",
        "all, no index",
        "terse code",
        "download all",
        "reactive",
        "oracle",
        "oracle, one cache",
    }
    assert result["rows"][0]["mix"]
    assert "re-read and verify" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*words.split(), "--trace"])
    with pytest.raises(SystemExit):
        main()
    assert "turn  0 at" in capsys.readouterr().out
