"""`rlm chat`, `rlm summarize`, and `rlm run` with limits, presets and --resume."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rlm import RLM, LLMError, RunnerUnavailable, ScriptedLM
from rlm.cli import app, rights
from rlm.console import print_step
from rlm.excerpt import printable
from rlm.runner import DEFAULT_RUNNER
from rlm.summarize import summarize

RIGHTS = rights(DEFAULT_RUNNER)
cli = CliRunner()


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, endpoint: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text("one\ntwo\n")
    return path


# --- chat -----------------------------------------------------------------------------------------


def test_chat_answers_in_a_row_over_one_namespace(endpoint: Any, notes: Path) -> None:
    asked: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        asked.append(body["messages"][-1]["content"])
        return repl("n = globals().get('n', 0) + 1; FINAL(f'{n} {len(context)}')")

    endpoint.reply = reply
    result = cli.invoke(
        app, ["chat", str(notes)], input="first\n\nsecond\n/vars\n/cost\n/new\nthird\n/nonsense\n/help\n"
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == "1 8\n2 8\n1 8\n"
    said = result.stderr
    assert said.splitlines()[0] == RIGHTS
    assert said.count("1 turns, 1 calls, 11 tokens in, 7 out, $0.0001") == 3
    assert "n  int: 2" in said
    assert "2 calls, 36 tokens, $0.0002" in said
    assert "There is no /nonsense" in said
    assert "/quit" in said
    assert len(asked) == 3


def test_a_failed_call_ends_no_chat_and_quit_does(endpoint: Any, notes: Path) -> None:
    replies = iter([(400, "not today"), "FINAL(fine)"])
    endpoint.reply = lambda body: next(replies)
    result = cli.invoke(app, ["chat", str(notes)], input="first\nsecond\n/quit\nthird\n")
    assert result.exit_code == 0, result.output
    assert result.stdout == "fine\n"
    assert "rlm: model 'gpt-5'" in result.stderr


# --- summarize ------------------------------------------------------------------------------------


def reader(prompt: str) -> str:
    if prompt.startswith("These are summaries"):
        return "# Title\n\n## Overview\nAll of it."
    place = re.search(r"characters ([\d,]+) to ([\d,]+) of", prompt)
    return f"part {place[1]}-{place[2]}" if place else "merged"


def test_every_character_is_read_once_and_the_parts_are_put_together() -> None:
    text = "".join(f"line {i} of the text\n" for i in range(3000))
    sub = ScriptedLM(reader)
    summary = summarize(RLM(lm=sub), text, chunk_characters=5_000, focus="numbers")
    assert summary.text.startswith("# Title")
    read = [call[0]["content"].split("\n\n", 1)[1] for call in sub.calls if "this part" in call[0]["content"]]
    assert "".join(sorted(read, key=lambda part: text.index(part))) == text
    assert [part.start for part in summary.parts[1:]] == [part.stop for part in summary.parts[:-1]]
    assert all(text[part.stop - 1] == "\n" for part in summary.parts)
    assert all("Pay attention to: numbers." in call[0]["content"] for call in sub.calls)
    assert any("Make one summary" in call[0]["content"] for call in sub.calls)
    assert summary.usage.calls == len(sub.calls)


def test_a_short_text_takes_two_calls_and_an_empty_one_none() -> None:
    sub = ScriptedLM(reader)
    assert len(summarize(RLM(lm=sub), "short").parts) == 1
    assert len(sub.calls) == 2
    with pytest.raises(LLMError, match="the text is empty"):
        summarize(RLM(lm=sub), "")


def test_a_text_that_needs_more_calls_than_allowed_is_refused_before_the_first() -> None:
    sub = ScriptedLM(reader)
    with pytest.raises(LLMError, match=r"100,000 characters need \d+ calls, 5 are allowed"):
        summarize(RLM(lm=sub, max_calls=5), "x" * 100_000, chunk_characters=5_000)
    assert sub.calls == []


def test_summarize_as_a_command(endpoint: Any, notes: Path, tmp_path: Path) -> None:
    endpoint.reply = lambda body: reader(body["messages"][0]["content"])
    result = cli.invoke(app, ["summarize", str(notes)])
    assert (result.exit_code, result.stdout) == (0, "# Title\n\n## Overview\nAll of it.\n")
    monocontext = pytest.importorskip("monocontext")
    monocontext.publish("needle in a text\n" * 1000, str(tmp_path / "context"))
    result = cli.invoke(app, ["summarize", str(tmp_path / "context"), "--json", "--chunk-characters", "5000"])
    found = json.loads(result.stdout)
    assert len(found["parts"]) == 4
    assert found["usage"]["model_usage_summaries"]["gpt-5"]["total_calls"] >= 5


# --- run ------------------------------------------------------------------------------------------


def test_run_is_quiet_when_piped(endpoint: Any, notes: Path) -> None:
    endpoint.reply = lambda body: "FINAL(it)"
    result = cli.invoke(app, ["run", str(notes), "q"])
    assert (result.stdout, result.stderr) == ("it\n", RIGHTS + "\n")


def test_limits_and_their_reason(endpoint: Any, notes: Path) -> None:
    endpoint.reply = lambda body: (
        repl("answer['content'] = 'draft'; llm_query('x')") if len(body["messages"]) > 1 else "y"
    )
    for option, reason in (("--max-calls", "max_calls"), ("--max-tokens", "max_tokens")):
        result = cli.invoke(app, ["run", str(notes), "q", option, "2", "--json", "--verbose"])
        found = json.loads(result.stdout)
        assert (found["answer"], found["finished"], found["reason"]) == ("draft", False, reason)
        assert f"{reason} is reached" in result.stderr
    assert found["cost"] > 0


def test_a_failed_run_says_how_to_go_on_and_goes_on(endpoint: Any, notes: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    failed: list[int] = []

    def reply(body: dict[str, Any]) -> Any:
        if len(body["messages"]) == 1:
            return "sub"
        if len(body["messages"]) == 3:
            return repl("x = llm_query('paid')")
        failed.append(1)
        return (400, "not now") if len(failed) == 1 else repl("FINAL(x + context)")

    endpoint.reply = reply
    result = cli.invoke(app, ["run", str(notes), "q", "--trajectory", str(path), "--max-calls", "9"])
    assert result.exit_code == 2
    assert f"go on later: rlm run --resume {path}" in result.stderr
    asked = len(endpoint.requests)
    result = cli.invoke(app, ["run", "--resume", str(path)])
    assert (result.exit_code, result.stdout) == (0, "subone\ntwo\n\n"), result.output
    assert len(endpoint.requests) == asked + 1
    again = cli.invoke(app, ["run", "--resume", str(path), "--json"])
    assert json.loads(again.stdout)["iterations"] == 2
    assert len(endpoint.requests) == asked + 1


def test_resume_of_a_context_in_storage_opens_it_again(endpoint: Any, tmp_path: Path) -> None:
    monocontext = pytest.importorskip("monocontext")
    monocontext.publish("needle in a text\n" * 10_000, str(tmp_path / "context"))
    path = tmp_path / "run.jsonl"
    replies = iter([(400, "not now"), repl("FINAL(context[:6])")])
    endpoint.reply = lambda body: next(replies)
    assert cli.invoke(app, ["run", str(tmp_path / "context"), "q", "--trajectory", str(path)]).exit_code == 2
    assert cli.invoke(app, ["run", "--resume", str(path)]).stdout == "needle\n"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["run"], "needs a CONTEXT and a QUESTION"),
        (["run", "NOTES"], "needs a CONTEXT and a QUESTION"),
        (["run", "NOTES", "q", "--runner", "nonsense"], "no runner 'nonsense'"),
        (["run", "NOTES", "q", "--preset", "nonsense"], "no preset 'nonsense'"),
        (["run", "NOTES", "q", "--backend", "nonsense"], "no backend 'nonsense'"),
        (["run", "--resume", "nowhere.jsonl"], "there is no trajectory at nowhere.jsonl"),
        (["run", "memory://x", "q"], "use a directory or S3"),
        (["chat", "no-such-place"], "no-such-place"),
        (["summarize", "s3://no such bucket/x"], "no such bucket"),
    ],
)
def test_what_a_user_can_mend_is_one_line(args: list[str], told: str, notes: Path) -> None:
    result = cli.invoke(app, [str(notes) if arg == "NOTES" else arg for arg in args])
    assert result.exit_code == 2, result.output
    lines = [line for line in result.output.splitlines() if line != RIGHTS]
    assert len(lines) == 1, result.output
    assert told in lines[0]
    assert lines[0].startswith("rlm: ")


def test_an_endpoint_that_is_down_is_one_line(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import rlm.gate

    monkeypatch.setattr(rlm.gate.time, "sleep", lambda seconds: None)
    result = cli.invoke(app, ["run", str(notes), "q", "--base-url", "http://127.0.0.1:9/v1"])
    assert result.exit_code == 2
    assert result.stderr.splitlines()[1].startswith("rlm: cannot reach http://127.0.0.1:9/v1")
    assert len(result.output.splitlines()) == 2


# --- demo -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("runner", ["nonsense", DEFAULT_RUNNER])
def test_a_demo_whose_runner_is_not_here_says_so_before_it_stores_anything(
    runner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm.runners.process._chosen", {})
    monkeypatch.setattr("rlm.runners.process._started", _refuse)
    monkeypatch.setattr("rlm.demo._server", lambda: pytest.fail("a server was started"))
    result = cli.invoke(app, ["demo", "--runner", runner])
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("rlm: no runner 'nonsense'" if runner == "nonsense" else "rlm: nothing here can confine")
    assert line.endswith("(by make: make demo RUNNER=local)")


def _refuse(way: str, *_: object) -> None:
    raise RunnerUnavailable(f"{way} is not permitted")


# --- what a model writes on a terminal ------------------------------------------------------------


def test_an_answer_that_no_encoding_holds_is_printed_all_the_same(endpoint: Any, notes: Path) -> None:
    endpoint.reply = lambda body: repl("print('\\ud800')\nFINAL('an \\ud800 answer')")
    result = cli.invoke(app, ["run", str(notes), "q", "--verbose"])
    assert result.exit_code == 0, result.output
    assert result.stdout == "an \\ud800 answer\n"


def test_what_steers_a_terminal_is_spelled_out_there() -> None:
    hostile = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\rd\x9be\r\n\tplain é 🎉\n\ud800"
    shown = "a\\x1b]52;c;aGk=\\x07b\\x1b[2Jc\\rd\\x9be\r\n\tplain é 🎉\n\\ud800"
    assert printable(hostile, terminal=True) == shown
    assert printable(hostile, terminal=False) == hostile.replace("\ud800", "\\ud800")


def test_steps_on_a_terminal_hold_no_escape_of_the_cells() -> None:
    lm = ScriptedLM([repl("print('\\x1b]0;title\\x07') # \x1b]0;code\x07"), "FINAL(1)"])
    steps: list[Any] = []
    RLM(lm=lm, on_step=steps.append, runner="local").completion("q", "text")
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    for step in steps:
        print_step(step, console)
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b]0;" not in written
    assert "title" in written
