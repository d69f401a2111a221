"""Runs that do not finish say so, retries are told, and a resumed run heeds what is said with it."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_replies import repl

from monocontext import publish
from rlm import RLM, ScriptedLM
from rlm.cli.commands import app

cli = CliRunner()


def run(*args: object) -> Any:
    return cli.invoke(app, ["run", *map(str, args), "--runner", "local"])


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (["--max-calls", "1"], "max_calls is reached; it had no answer yet. Raise --max-calls"),
        (["--max-iterations", "1"], "no answer after its last turn. Raise --max-iterations"),
    ],
)
def test_a_run_without_an_answer_is_one_line_and_no_empty_answer(
    endpoint: Any, notes: Path, limit: list[str], told: str
) -> None:
    endpoint.reply = lambda body: repl("print(1)")
    result = run(notes, "q", *limit)
    assert (result.exit_code, result.stdout) == (1, "")
    _, cost, line = result.stderr.splitlines()
    assert "tokens in" in cost
    assert line.startswith("rlm: The model did not finish: ")
    assert told in line
    shown = run(notes, "q", *limit, "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["finished"]) == (1, False)
    assert told in shown.stderr


def test_the_command_that_is_named_goes_on(endpoint: Any, notes: Path, tmp_path: Path) -> None:
    endpoint.reply = lambda body: repl("n = 41")
    path = tmp_path / "run.jsonl"
    result = run(notes, "q", "--trajectory", path, "--max-calls", "2")
    assert f"Resume it with a higher limit: rlm run --resume {path} --max-calls N" in result.stderr
    asked = len(endpoint.requests)
    same = run("--resume", path)
    assert (same.exit_code, len(endpoint.requests)) == (1, asked)  # it has ended, and nothing is allowed
    endpoint.reply = lambda body: repl("FINAL(n + 1)")
    more = run("--resume", path, "--max-calls", "3")
    assert (more.exit_code, more.stdout, len(endpoint.requests)) == (0, "42\n", asked + 1), more.output


def test_a_chat_and_a_batch_say_it_too(endpoint: Any, notes: Path, tmp_path: Path) -> None:
    endpoint.reply = lambda body: repl("print(1)")
    talk = cli.invoke(app, ["chat", str(notes), "--max-calls", "1", "--runner", "local"], input="q\n")
    assert (talk.exit_code, talk.stdout) == (1, "")
    assert "The model did not finish: max_calls is reached; it had no answer yet." in talk.stderr
    questions, out = tmp_path / "q.jsonl", tmp_path / "out.jsonl"
    questions.write_text('"one?"\n')
    args = ["batch", str(questions), str(notes), "--out", str(out), "--max-iterations", "1", "--runner", "local"]
    assert cli.invoke(app, args).exit_code == 1
    assert json.loads(out.read_text())["finished"] is False
    nowhere = cli.invoke(app, ["batch", "nosuch.jsonl", str(notes), "--out", str(out)])
    assert nowhere.exit_code == 2
    assert nowhere.stderr.splitlines()[-1] == "rlm: [Errno 2] No such file or directory: 'nosuch.jsonl'"


def break_off(endpoint: Any, tmp_path: Path, *args: object) -> Path:
    """A run that a call ended, and its recording."""
    path = tmp_path / "run.jsonl"
    endpoint.reply = lambda body: (400, "not now")
    failed = run(*args, "q", "--trajectory", path)
    assert (failed.exit_code, f"resume it with: rlm run --resume {path}" in failed.stderr) == (2, True)
    return path


def test_resume_heeds_the_endpoint_the_model_and_the_limits(endpoint: Any, notes: Path, tmp_path: Path) -> None:
    path = break_off(endpoint, tmp_path, notes, "--base-url", endpoint.url, "--model", "old", "--temperature", "0.5")
    lines = path.read_text().replace(endpoint.url.rstrip("/"), "http://127.0.0.1:9/v1")
    path.write_text(lines)
    asked: list[dict[str, Any]] = []

    def reply(body: dict[str, Any]) -> str:
        asked.append(body)
        return repl("FINAL(1)") if len(asked) > 1 else repl("x = 1")

    endpoint.reply = reply
    result = run("--resume", path, "--base-url", endpoint.url, "--model", "new", "--max-iterations", "7")
    assert (result.exit_code, result.stdout) == (0, "1\n"), result.output
    assert {body["model"] for body in asked} == {"new"}
    assert {body["temperature"] for body in asked} == {0.5}
    assert "7" in str(asked[0]["messages"][-1]["content"])


@pytest.mark.parametrize(
    ("args", "told"),
    [(["--trajectory", "other.jsonl"], "leave out --trajectory"),
     (["NOTES", "another question"], "a resumed run keeps its question")],
)  # fmt: skip
def test_resume_refuses_by_name_what_cannot_change(
    endpoint: Any, notes: Path, tmp_path: Path, args: list[str], told: str
) -> None:
    path = break_off(endpoint, tmp_path, notes)
    result = run(*[str(notes) if arg == "NOTES" else arg for arg in args], "--resume", path)
    assert result.exit_code == 2
    assert told in result.stderr


def test_the_context_is_found_from_any_folder(endpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    publish("needle\n" * 50_000, tmp_path / "ctx")
    monkeypatch.chdir(tmp_path)
    path = break_off(endpoint, tmp_path, "ctx")
    assert json.loads(path.read_text().splitlines()[0])["source"] == str(tmp_path / "ctx")
    monkeypatch.chdir(tmp_path / "elsewhere")
    endpoint.reply = lambda body: repl("FINAL(context[:6])")
    assert run("--resume", path).stdout == "needle\n"


@pytest.mark.parametrize("model", ["gpt-5", "anthropic:claude-opus-5-5"])
def test_a_missing_key_is_one_line(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    if model.startswith("anthropic:"):
        pytest.importorskip("anthropic")
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ran = run(notes, "q", "--model", model)
    assert (ran.exit_code, "no API key: set " in ran.stderr.splitlines()[-1]) == (2, True)
    asked, out = tmp_path / "q.jsonl", tmp_path / "out.jsonl"
    asked.write_text('"one?"\n')
    ran = cli.invoke(app, ["batch", str(asked), str(notes), "--out", str(out), "--model", "gpt-5"])
    assert (ran.exit_code, out.exists()) == (2, False)


def test_a_limit_of_dollars_that_cannot_hold_is_told_first() -> None:
    with pytest.warns(UserWarning, match="no price is known for secret-model: max_dollars"):
        RLM(lm=ScriptedLM([], model="secret-model"), max_dollars=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RLM(lm=ScriptedLM([], model="secret-model"), max_dollars=1, prices={"secret-model": (1, 2)})
        RLM(lm=ScriptedLM([], model="secret-model"))
