"""The wall-clock half runs through, on a text of a few megabytes and a near server; no figure of it is judged here."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest

from benchmarks.logs import NEEDLE, make_incident
from benchmarks.wall import client, peers
from benchmarks.wall.peers import session


def test_a_session_knows_its_answers() -> None:
    data = make_incident(6_000_000, 0.7)
    played = session(data, seed=1, think_seconds=1.0)
    assert played == session(data, seed=1, think_seconds=1.0)
    assert played.turns != session(data, seed=2, think_seconds=1.0).turns
    assert data.count(NEEDLE.encode()) == 1
    assert played.answers[0] == crc32(data[:2000])
    assert data.find(NEEDLE.encode()) in played.answers
    assert json.loads(played.to_json())["size_bytes"] == len(data)


@pytest.mark.slow
def test_ways_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MONOCONTEXT_PEERS", str(tmp_path / "none"))
    ways = ("str in memory", "monocontext without reading ahead", "monocontext")
    plan = peers.Plan(size_bytes=6_000_000, profile="s3_express", rounds=1, think_seconds=0.05, ways=ways)
    rows = peers.run(plan)
    assert [row["way"] for row in rows] == list(ways)
    floor, off, ahead = rows
    assert (floor["requests"], floor["bytes"]) == (0, 0)
    assert off["requests"] > 0
    assert ahead["peak_bytes"] > 10 << 20


def test_every_look_is_answered_by_ranges_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_incident(2_000_000, 0.7)

    class Plain(client.Way):
        packages = ()

        def range(self, start: int, stop: int) -> bytes:
            return data[start:stop]

    monkeypatch.setitem(client.WAYS, "plain", Plain)
    played = session(data, seed=0, think_seconds=0.0)
    turns = [turn | {"steps": [step for step in turn["steps"] if step[0] != "pause"]} for turn in played.turns]
    assert client.play("plain", len(data), turns)["found"] == played.answers
