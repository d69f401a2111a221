"""The benchmark of search runs through, on a text of a few megabytes, and its needles are what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import search
from benchmarks.endpoint import Distance
from benchmarks.logs import Logs
from benchmarks.needles import Haystack, choose
from benchmarks.search import Plan


@pytest.fixture(scope="module")
def haystack() -> Haystack:
    return Haystack(b"".join(Logs(3_000_000, seed=4)))


@pytest.mark.slow
def test_needles_are_drawn_by_the_seed(haystack: Haystack) -> None:
    assert choose(haystack, 3, seed=1) == choose(haystack, 3, seed=1)
    assert choose(haystack, 3, seed=1) != choose(haystack, 3, seed=2)


def test_needles_are_what_they_say(haystack: Haystack) -> None:
    text = haystack.data.decode()
    needles = choose(haystack, 4, seed=1)
    assert {needle.kind for needle in needles} == {
        "rare identifier",
        "absent identifier",
        "near miss",
        "word",
        "common word",
        "phrase",
        "UUID",
        "(?i) identifier",
        "regex",
    }
    for needle in needles:
        if needle.is_pattern:
            continue
        assert text.count(needle.query) == needle.places
        if needle.kind in ("absent identifier", "near miss"):
            assert needle.query.lower() not in text.lower()
        else:
            assert needle.places > 0
        if needle.kind == "rare identifier":
            assert needle.places <= 5


@pytest.mark.slow
def test_a_run_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MONOCONTEXT_CORPORA", str(tmp_path))
    monkeypatch.setenv("MONOCONTEXT_PEERS", str(tmp_path / "none"))
    plan = Plan(
        size_bytes=4_000_000,
        corpora=("logs", "novel"),
        needles=2,
        rounds=1,
        peer_rounds=1,
        distance=Distance(latency_seconds=0.0),
    )
    result = search.main(plan, tmp_path / "result.json")
    logs = result["corpora"]["logs"]
    assert json.loads((tmp_path / "result.json").read_text())["corpora"]["logs"] == logs
    assert logs["publish"]["text_bytes"] == 4_000_000
    assert all(row["share"] > 0 for row in logs["needles"])
    assert {row["way"] for row in logs["peers"]} >= {"monocontext without filters", "monocontext with filters"}
    assert len(logs["passes"]) == 5
    assert "novel: not to be had: no text is called 'novel'" in capsys.readouterr().out
    assert not list(tmp_path.glob("tmp*")), "nothing is left behind"


def test_sizes_and_lists() -> None:
    assert [search.size(text) for text in ("1G", "64M", "1.5k", "12")] == [10**9, 64 * 10**6, 1500, 12]
    assert search.parse_list("code,logs") == ("code", "logs")
