"""The wall-clock half runs through, on a text of a few megabytes and a near server; no figure of it is judged here."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest

from benchmarks import results
from benchmarks.wall import client, guard, peers
from benchmarks.wall.session import NEEDLE, session, text


def test_a_session_knows_its_answers() -> None:
    data = text(6_000_000)
    played = session(data, seed=1, think_seconds=1.0)
    assert played == session(data, seed=1, think_seconds=1.0)
    assert played.turns != session(data, seed=2, think_seconds=1.0).turns
    assert data.count(NEEDLE.encode()) == 1
    assert played.answers[0] == crc32(data[:2000])
    assert data.find(NEEDLE.encode()) in played.answers
    assert json.loads(played.to_json())["size_bytes"] == 6_000_000


@pytest.mark.slow
def test_ways_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MONOCONTEXT_PEERS", str(tmp_path / "none"))
    ways = ("str in memory", "monocontext, prefetch off", "monocontext, prefetch all", "obstore")
    plan = peers.Plan(size_bytes=6_000_000, profile="s3_express", rounds=1, think_seconds=0.05, ways=ways)
    result = peers.run(plan, told=lambda line: None)
    assert [row["way"] for row in result["rows"]] == list(ways[:3])
    assert result["missing"] == ["obstore"]
    floor, off, ahead = result["rows"]
    assert (floor["requests"], floor["bytes"]) == (0, 0)
    assert off["requests"] > 0
    assert ahead["peak_rss_bytes"] > 10 << 20
    assert not off["gave_up"]
    assert set(result["guard"]) == {"overhead_seconds", "loopback_bytes_per_second", "load", "steal"}
    assert results.read(results.write(result, tmp_path / "peers.json"))["rows"] == json.loads(
        json.dumps(result["rows"])
    )


def test_a_wrong_answer_ends_the_run() -> None:
    played = session(text(4_000_000), seed=0, think_seconds=0.1)
    looks = [{"kind": "slice", "found": answer} for answer in played.answers]
    peers._check("x", {"looks": looks}, played)
    looks[3]["found"] = 1
    with pytest.raises(AssertionError, match="x: a slice gave 1, expected"):
        peers._check("x", {"looks": looks}, played)


def test_a_look_over_its_budget_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(client.Way):
        package = ""

        def range(self, start: int, stop: int) -> bytes:
            self.check()
            return b"x" * (stop - start)

    monkeypatch.setitem(client.WAYS, "slow", Slow)
    monkeypatch.setitem(client.PACKAGES, "slow", ())
    turns = [{"think": 0.0, "code": "", "steps": [["slice", 0, 10], ["find", "no such"]]}]
    found = client.play("slow", 100, turns, budget_seconds=-1.0)
    assert found["gave_up"]
    assert [look["found"] for look in found["looks"]] == [None, None]
    assert not client.play("slow", 100, turns, budget_seconds=60.0)["gave_up"]


def test_what_is_too_slow_is_not_judged() -> None:
    measured = {"overhead_seconds": 0.001, "loopback_bytes_per_second": 1e9, "load": 1.0, "steal": 0.0}
    assert guard.may_judge(measured, latency_seconds=0.15, nic_bytes_per_second=100e6)
    assert not guard.may_judge(measured, latency_seconds=0.002, nic_bytes_per_second=100e6)
    assert not guard.may_judge(measured, latency_seconds=0.15, nic_bytes_per_second=600e6)
