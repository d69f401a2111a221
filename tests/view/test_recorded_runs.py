"""`monocontext view --run`: the reads of runs that `rlm` recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from monocontext import Monocontext, publish
from monocontext.cli.commands import app
from monocontext.errors import MonocontextError
from monocontext.view.recorded_runs import recorded_turns
from monocontext.view.session import ReadingSession
from rlm import RLM
from rlm.models.scripted import ScriptedLM

TEXT = "".join(f"line {i}\n" for i in range(200_000))


@pytest.fixture
def context(tmp_path: Path) -> Monocontext:
    publish(TEXT, tmp_path / "context")
    text: Monocontext = Monocontext.open(tmp_path / "context")
    return text


def record(context: Monocontext, path: Path, *, question: str = "What is there?") -> Path:
    """A run of two turns: a slice after a search of half of the text, then another slice."""
    replies = ["```repl\ncontext.find('line 100000')\nprint(context[1000:1100])\n```", "FINAL(context[5000:5050])"]
    RLM(lm=ScriptedLM(replies), runner="local", trajectory=path).completion(question, context)
    return path


def test_shows_each_turn_with_the_pieces_that_it_received(context: Monocontext, tmp_path: Path) -> None:
    run = record(context, tmp_path / "run.jsonl")
    second, first = recorded_turns([run], context)
    assert (first.number, first.question, first.received) == (1, "What is there?", [(1000, 1100)])
    assert first.ranges[0][0] == 0
    assert first.ranges[-1][1] >= TEXT.index("line 100000")
    assert (second.number, second.received) == (2, [(5000, 5050)])
    session = ReadingSession(context, [second, first]).summary(0, 100)
    assert [(action["turn"], action["ranges"]) for action in session["actions"]] == [
        (2, [(5000, 5050)]),
        (1, [(1000, 1100)]),
    ]
    shares = session["map"]["runs"]
    assert shares[0] == 1000
    assert shares[-1] == 0
    assert session["characters"] == 0, "the page itself has read nothing"


def test_takes_the_runs_of_a_folder_over_this_text_alone(context: Monocontext, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    publish(TEXT, tmp_path / "other")
    other: Monocontext = Monocontext.open(tmp_path / "other")
    record(context, runs / "a.jsonl", question="one")
    record(other, runs / "b.jsonl", question="two")
    (runs / "c.jsonl").write_text('{"context": []}\n[1]\nno JSON\n')
    assert {turn.question for turn in recorded_turns([runs], context)} == {"one"}


def test_ignores_values_of_the_wrong_kind(context: Monocontext, tmp_path: Path) -> None:
    lines = [
        {"context": {"uri": context.url, "chars": len(context)}, "query": 7},
        {"iteration": "x", "code_blocks": [{"result": {"ranges": [[5, 9], [9, 5], ["a", 1], [-4, 10**30], 3]}}]},
        {"code_blocks": [None, {"result": {"ranges": None, "handed": "x", "io": [1]}}]},
    ]
    path = tmp_path / "run.jsonl"
    path.write_bytes("".join(json.dumps(line) + "\n" for line in lines).encode() + b"\xff")
    [turn] = recorded_turns([path], context)
    assert (turn.number, turn.question, turn.ranges) == (0, "7", [(0, len(context))])


def test_says_when_no_run_is_about_this_version(context: Monocontext, tmp_path: Path) -> None:
    run = record(context, tmp_path / "run.jsonl")
    publish(TEXT + "more", tmp_path / "context", replace=True)
    done = CliRunner().invoke(app, ["view", str(tmp_path / "context"), "--no-open", "--run", str(run)])
    assert isinstance(done.exception, MonocontextError)
    assert str(done.exception) == f"no run in {run} read {context.url} in this version"
    with pytest.raises(MonocontextError, match="No such file"):
        recorded_turns([tmp_path / "none.jsonl"], context)
