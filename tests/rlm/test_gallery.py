"""The programs of the gallery, as a user runs them, with scripts in place of models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.memory import Memory

CHECKOUT = Path(__file__).parents[2]


def run(name: str, *arguments: object) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, str(CHECKOUT / "examples" / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_price_of_five_questions() -> None:
    """The rows of docs/rlm.md, but for tokens that the installed library moves a little."""
    shown = "\n".join(run("question_cost.py"))
    rows, expected = (
        re.findall(r"^\| ([\w ]+) \| (\d+) \| (\d+) \| ([\d,]+) \|", text, re.M)
        for text in (shown, (CHECKOUT / "docs" / "rlm.md").read_text("utf-8"))
    )
    assert [row[:3] for row in rows] == [row[:3] for row in expected]
    for (*_, tokens), (*_, told) in zip(rows, expected, strict=True):
        assert 0.7 < int(tokens.replace(",", "")) / int(told.replace(",", "")) < 1.4
    assert "$0.000" not in shown


@pytest.mark.slow
def test_a_question_over_a_log(tmp_path: Path) -> None:
    answer, took = run("ask_a_log.py", tmp_path, "--lines", 12_000, "--runner", "local")
    assert answer == (
        "billing ran out of disk 5 times. Just before the first time: 2026-11-22T14:00 billing INFO "
        "settings changed: keep_traces=forever (was 1 day)"
    )
    with Monocontext.open(tmp_path) as context:
        assert took.startswith(f"3 turns over {len(context):,} characters: ")
        assert context.count("\n") == 12_000
    again = run("ask_a_log.py", tmp_path, "--runner", "local")
    assert again[:2] == ["The log is there already.", answer]


@pytest.mark.slow
def test_a_code_base_explained(tmp_path: Path) -> None:
    *lines, most, took = run("explain_code.py", "--url", tmp_path / "kept", "--runner", "local")
    assert "errors.py: email package exception classes." in lines
    assert re.match(r"Most imported: errors \(\d+ files\)", most)
    calls, tokens, characters = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", took))
    assert calls == len(lines) + 2
    assert tokens * 4 < characters / 10, "no model reads the code"


@pytest.mark.slow
def test_a_hundred_documents_compared(tmp_path: Path) -> None:
    answer, took = run("compare_documents.py", "--url", tmp_path / "kept", "--runner", "local")
    assert answer == (
        "97 of 100 contracts ask for 30 days. The others: "
        "contract_017.txt: 90, contract_042.txt: 14, contract_077.txt: 60"
    )
    turns, calls, tokens = took.split(", ", 2)
    assert (turns, calls) == ("2 turns", "102 calls of models")
    with Monocontext.open(tmp_path / "kept") as context:
        characters = len(context)
    assert int(tokens.partition(" ")[0].replace(",", "")) * 4 < characters / 20, "no model reads the contracts"


@pytest.mark.slow
def test_a_team_memory(tmp_path: Path) -> None:
    ana, ben = run("team_memory.py", tmp_path, "--runner", "local")
    assert ana.startswith("Ana: 1.212.0, after 2 turns; ")
    assert ben == "Ben: 1.212.0, after 1 turns; 0 bytes of the notes read"
    entry = Memory.open(tmp_path / "memory").entry("finding:login_retry_release")
    assert (entry.value, entry.ttl_seconds) == ("1.212.0", 7 * 24 * 3600)
    assert run("team_memory.py", tmp_path, "--runner", "local")[0] == "The notes are there already."
