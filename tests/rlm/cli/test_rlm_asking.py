"""The options of commands that ask models: what they send, to whom, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sessions.agents import small

from monocontext.sessions import upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from rlm.cli.commands import app

cli = CliRunner()
ASKS_SUB = "```repl\nFINAL(llm_query('x'))\n```"


@pytest.fixture(autouse=True)
def _anthropic(monkeypatch: pytest.MonkeyPatch, anthropic_endpoint: Any) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-ant")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", anthropic_endpoint.url)


def run(notes: Path, *args: str) -> Any:
    return cli.invoke(app, ["run", str(notes), "q", "--runner", "local", *args])


def test_root_and_sub_model_of_different_makers(endpoint: Any, anthropic_endpoint: Any, notes: Path) -> None:
    anthropic_endpoint.reply = lambda body: ASKS_SUB
    result = run(
        notes, "--model", "anthropic:claude-x", "--sub-model", "openai:gpt-y", "--temperature", "0",
        "--option", "top_k=5", "--sub-option", "seed=7", "--header", "X-Team:blue", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert set(json.loads(result.stdout)["usage"]["model_usage_summaries"]) == {"claude-x", "gpt-y"}
    root = anthropic_endpoint.requests[0]
    assert (root["model"], root["temperature"], root["top_k"]) == ("claude-x", 0, 5)
    assert anthropic_endpoint.keys[0].endswith("sk-of-ant")
    (sub,) = endpoint.requests
    assert (sub["model"], sub["temperature"], sub["seed"], "top_k" in sub) == ("gpt-y", 0, 7, False)
    assert "x-team" not in endpoint.seen[0]
    assert endpoint.keys == ["Bearer sk-of-the-test"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--option", "low"], "an option must be NAME=VALUE, as in seed=1, not 'low'"),
        (["--header", "sk-secret"], "a header must be NAME:VALUE"),
    ],
)
def test_what_cannot_be_sent_is_one_line(endpoint: Any, notes: Path, args: list[str], told: str) -> None:
    endpoint.reply = lambda body: "FINAL(1)"
    result = run(notes, *args)
    assert result.exit_code == 2, result.output
    assert told in result.stderr.splitlines()[-1]
    assert "sk-secret" not in result.output
    assert endpoint.requests == []


def test_compile_asks_claude_where_only_its_key_is(
    anthropic_endpoint: Any, endpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name)
    (tmp_path / "archive").mkdir()
    store = open_store(str(tmp_path / "archive"))
    upload_session(store, recognize_session(small().write(tmp_path / "sessions")), user="dev@here", is_open=True)
    anthropic_endpoint.reply = lambda body: ASKS_SUB if "system" in body else "## Summary\n- nothing"
    args = ["compile", str(tmp_path / "archive"), "--runner", "local", "--max-iterations", "1", "--temperature", "0"]
    result = cli.invoke(app, args)
    assert result.exit_code == 0, result.output
    assert {body["model"] for body in anthropic_endpoint.requests} == {"claude-sonnet-5-5", "claude-haiku-5-5"}
    assert all(body["temperature"] == 0 for body in anthropic_endpoint.requests)
    assert endpoint.requests == []
