"""The benchmark of search runs through, on a text of a few megabytes, and its needles are what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import search
from benchmarks.logs import make_logs
from benchmarks.needles import choose
from benchmarks.search import Plan


@pytest.fixture(scope="module")
def haystack() -> bytes:
    return b"".join(make_logs(3_000_000, seed=4))


@pytest.mark.slow
def test_needles_are_drawn_by_the_seed(haystack: bytes) -> None:
    assert choose(haystack, 1, 3, seed=1) == choose(haystack, 1, 3, seed=1)
    assert choose(haystack, 1, 3, seed=1) != choose(haystack, 1, 3, seed=2)


def test_needles_are_what_they_say(haystack: bytes) -> None:
    text = haystack.decode()
    needles = choose(haystack, 1, 4, seed=1)
    assert {needle.kind for needle in needles} == {
        "rare identifier",
        "absent identifier",
        "word",
        "common word",
        "phrase",
        "regex",
    }
    for needle in needles:
        if needle.kind == "regex":
            assert sum(1 for _ in re.finditer(needle.query, text)) == needle.places
            continue
        assert text.count(needle.query) == needle.places
        assert (needle.places == 0) == (needle.kind == "absent identifier")
        if needle.kind == "rare identifier":
            assert needle.places <= 5


@pytest.mark.slow
def test_a_run_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MONOCONTEXT_CORPORA", str(tmp_path))
    plan = Plan(4_000_000, ("logs", "novel"), needles=2, latency_seconds=0.0)
    searches, *others = search.run(plan).values()
    assert not others
    assert {(each.kind, each.operation) for each in searches} == set(search.ASKED)
    assert all(each.share > 0 for each in searches)
    said = capsys.readouterr().out
    assert "| filters alone | " in said
    assert "| rare identifier (2) | count | " in said
    assert "novel: left out: unknown text 'novel'" in said
    assert not list(tmp_path.glob("tmp*")), "nothing is left behind"
