"""What the commands share: amounts, the gates that judge a run, and that the command line lists and runs them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import growth, latency
from benchmarks.__main__ import main
from benchmarks.options import amount, head_line, row_line
from benchmarks.virtual.suite import Gate, Row, judge


def row(program: str, policy: str = "all", **more: Any) -> Row:
    usual = Row(program, policy, stall_seconds=0.0, amplification=1.0, precision=0.9)
    return replace(usual, **more)


def failing(*rows: Row) -> list[str]:
    return [gate.name for gate in judge(rows) if not gate.holds]


def test_gates_are_what_the_figures_say() -> None:
    off = row("linear chunk scan", "off", stall_seconds=2.0)
    slow = row("linear chunk scan", stall_seconds=0.3, amplification=1.2)
    against = "stall of linear chunk scan against no reading ahead"
    assert failing(slow, off) == [against, "amplification of linear chunk scan"]
    assert failing(row("linear chunk scan", stall_seconds=0.1), off) == []
    assert failing(row("literal zooms", precision=0.8)) == ["hints that miss, literal zooms"]
    assert judge([off]) == []
    assert str(Gate("x", 2.0, 1.0)) == "FAILS  x: 2.000, at most 1"


def test_amounts_and_tables() -> None:
    amounts = ("0.2GB", "100MB/s", "1TB", "64M", "12")
    assert [amount(text) for text in amounts] == [200_000_000, 100_000_000, 10**12, 64_000_000, 12]
    assert f"{head_line('a', 'b')}\n{row_line('x', 1)}" == "| a | b |\n|---|---:|\n| x | 1 |"


def run(monkeypatch: pytest.MonkeyPatch, words: str) -> int:
    monkeypatch.setattr("sys.argv", words.split())
    return main()


def test_programs_from_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "benchmarks virtual --size 4MB --seeds 1 --program verify --policy off") == 0
    said = capsys.readouterr().out
    assert "| seconds of waiting in one run | off | bytes moved per byte used, off |" in said
    assert "| re-read and verify | " in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("virtual --program verfy", "no program to run: choose from linear chunk scan"),
        ("virtual --size 1TB --program pass", "no program to run"),
        ("virtual --policy al", "no policy 'al': choose from off, history, code, all"),
        ("virtual --seeds 0", "argument --seeds: must be at least 1, not 0"),
        ("virtual --size 64X", "argument --size: not an amount of bytes: '64X'; write for example 64M or 0.2GB"),
        ("quality --sizes 1MB,1.2.3", "argument --sizes: not an amount of bytes: '1.2.3'"),
        ("growth more", "no part 'more': choose from appends, scale"),
    ],
)
def test_what_cannot_be_measured_ends_at_once(words: str, message: str, monkeypatch: Any, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, f"benchmarks {words}")
    assert message in f"{ended.value} {capsys.readouterr().err}"


def test_growth_measures_all_parts_if_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "PARTS", {"one": lambda: iter([growth.Row("x", "1", "2", is_within=False)])})
    assert run(monkeypatch, "benchmarks growth") == 1


def test_every_way_of_the_note_reads_the_slice() -> None:
    """It raises where a way reads another text."""
    gets = {way: rows[0].gets for way, rows in latency.run(1, "zero").items()}
    assert gets["one after another"] == gets["parallel"] == 50
    assert gets["one object with byte ranges"] <= gets["bigger segments"] <= 10
    assert gets["preload and warm"] == 0


def test_the_way_of_each_call_is_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Promises of the issues: at most so many functions and files for a cold slice."""
    assert run(monkeypatch, "benchmarks file_changes --rounds 1") == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    functions, files = map(int, next(row[2:4] for row in rows if row[0] == "cold slice over S3"))
    assert functions <= 70
    assert files <= 13
    assert len(rows) == 5


def test_questions_of_a_conversation_are_ranked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    turns = [{"speaker": "Ada", "dia_id": f"D1:{n}", "text": text} for n, text in enumerate(("I paint.", "It rains."))]
    asked = [("Who paints?", ["D1:0"], 1), ("Where is the submarine?", ["D1:1"], 4), ("Who swims?", ["D1:0"], 5)]
    questions = [{"question": query, "evidence": named, "category": number} for query, named, number in asked]
    conversation = {"session_1_date_time": "1 May 2023", "session_1": turns}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"conversation": conversation, "qa": questions}]))
    assert run(monkeypatch, f"benchmarks words --locomo {path}") == 0
    said = capsys.readouterr().out
    assert "| 2 questions | @1 | @5 | @10 |" in said
    assert "| a turn of the evidence | 0.500 | 0.500 | 0.500 |" in said
