"""`python -m benchmarks quality`: exact answers, scores that mean something, runs that go on, one text in two forms."""

from __future__ import annotations

from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality import arms
from benchmarks.quality.families import FAMILIES, make_questions
from benchmarks.quality.haystack import Sources, build, prepare
from benchmarks.quality.questions import Question, Rule, score
from benchmarks.quality.running import BadPlan, Plan, run

SIZE = 200_000
PLAN = Plan(sizes_bytes=(SIZE,), questions_per_family=2, runner="local", window_tokens=20_000)


def said(*lines: object) -> None:
    """Nobody listens."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """A small tree: files of some thousand characters, each with a function that one other calls."""
    root = tmp_path_factory.mktemp("tree")
    for number in range(12):
        filler = "".join(f"def filler_{number}_{k}():\n    return {k}\n\n\n" for k in range(80))
        called = f"def helper_number_{number}():\n    return {number}\n\n\n"
        caller = f"def caller_number_{number}():\n    return helper_number_{number}()\n"
        (root / f"module_{number}.py").write_text(filler + called + caller)
    return Sources(root)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, sources: Sources) -> Any:
    return run(PLAN, tmp_path_factory.mktemp("out"), said, sources)[0]


@pytest.mark.parametrize(
    ("rule", "answer", "given", "expected"),
    [
        ("text", "L204", " l204. ", 1.0), ("text", "L204", "the room is L204", 0.0), ("text", "L204", "**L204**.", 1.0),
        ("number", "1234", "1,234", 1.0), ("number", "12", "**12.**", 1.0), ("number", "12", "12 or 13", 0.0),
        ("number", "12", "13", 0.0), ("count", "12", "14", 0.75**2), ("count", "12", "twelve", 0.0),
        ("set", "Lima, Oslo", "Oslo\nLima", 1.0), ("set", "Lima, Oslo", "Lima, Oslo, Riga", 0.0),
        ("text", "L204", None, 0.0),
    ],
)  # fmt: skip
def test_scores(rule: Rule, answer: str, given: str | None, expected: float) -> None:
    assert isclose(score(Question("q", "f", "?", answer, rule, (), ()), given), expected)


def test_questions_stay_and_only_the_haystack_grows(sources: Sources) -> None:
    questions = make_questions(tuple(FAMILIES), 2, 0)
    assert questions == make_questions(tuple(FAMILIES), 2, 0)
    assert len({question.id for question in questions}) == 2 * len(FAMILIES)
    assert [question.family for question in questions] == [*FAMILIES, *FAMILIES], "a stopped run has asked all families"
    planted = [each for question in questions for each in question.evidence]
    for size in (SIZE, 3 * SIZE):
        text = "".join(build(size, planted, sources))
        assert size - 500 <= len(text.encode()) <= size
        assert all(text.count(each.text) == 1 for each in planted)


def test_a_haystack_is_that_of_its_sources(sources: Sources, tmp_path: Path) -> None:
    other = tmp_path / "tree"
    other.mkdir()
    folders = [prepare(tmp_path, 1000, [], files) for files in (sources, Sources(other), sources)]
    assert folders[0] == folders[2] != folders[1]


@pytest.mark.slow
def test_the_loops_answer_all_and_say_the_same_over_a_str_and_a_lazy_text(ran: Any) -> None:
    by_arm = {arm: {row["question"]: row for row in ran if row["arm"] == arm} for arm in arms.ARMS}
    assert {arm: len(rows) for arm, rows in by_arm.items()} == dict.fromkeys(arms.ARMS, 10)
    loops = ("rlm", "rlm-str")
    assert all(row["right"] for arm in loops for row in by_arm[arm].values())
    for question, row in by_arm["rlm"].items():
        for other in loops[1:]:
            assert row["transcript"] == by_arm[other][question]["transcript"]
        assert (row["turns"], row["reason"]) == (2, "answer")
        assert 0 < row["bytes_read"] < SIZE
    assert [row["bytes_read"] for row in by_arm["rlm-str"].values()] == [None] * 10


def test_a_run_goes_on_and_asks_nothing_twice(tmp_path: Path, sources: Sources) -> None:
    plan = replace(PLAN, arms=("rlm",), families=("needle", "counting"))
    heard: list[str] = []

    def stop(line: str) -> None:
        heard.append(line)
        if len(heard) == 3:  # the estimate and two runs
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path, stop, sources)
    path = tmp_path / "runs.jsonl"
    kept = path.read_text()
    assert kept.count("\n") == 3
    path.write_text(kept + '{"a run": "that was ki')
    assert len(run(plan, tmp_path, said, sources)[0]) == 4
    assert path.read_text().startswith(kept)
    assert len(path.read_text().splitlines()) == 5
    with pytest.raises(BadPlan, match="holds runs of another plan, whose seed is 0"):
        run(replace(plan, seed=1), tmp_path, said, sources)


def test_a_kill_at_the_start_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "answer", lambda *given: arms.Run("x", "answer", dollars=0.4))
    plan, path = replace(PLAN, arms=("search",), families=("needle",), questions_per_family=1), tmp_path / "runs.jsonl"
    path.write_text('{"machine": "cut')
    assert len(run(plan, tmp_path, said, Sources(tmp_path))[0]) == 1
    kept = path.read_text()
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: pytest.fail("a kill within this would lose the runs"))
    assert (len(run(plan, tmp_path, said, Sources(tmp_path))[0]), path.read_text()) == (1, kept)


def test_the_cap_ends_a_run_and_is_said(tmp_path: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "answer", lambda *given: arms.Run("x", "answer", dollars=0.4))
    plan = replace(PLAN, arms=("search",), families=("needle",), questions_per_family=5, max_dollars=1.0)
    heard: list[str] = []
    rows, unasked = run(plan, tmp_path, heard.append, sources)
    assert (len(rows), unasked) == (3, 2)
    assert len(run(replace(plan, max_dollars=1.3), tmp_path, said, sources)[0]) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": ("rlm", "magic")}, "no arm 'magic'"),
        ({"families": ("x",)}, "no family 'x'"),
        ({"model": "nobody-knows-it", "max_dollars": 1.0}, "no price is known for nobody-knows-it"),
    ],
)
def test_a_bad_plan_is_said_before_anything_is_asked(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(BadPlan, match=message):
        run(replace(PLAN, **change), tmp_path, said)
