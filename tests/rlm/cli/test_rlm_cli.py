"""The command `rlm`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rlm
from rlm.cli.commands import app
from rlm.cli.questions import describe_rights
from rlm.prompts.examples import conversation

cli = CliRunner()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    return path


@pytest.fixture
def model(endpoint: Any) -> Any:
    first = "```repl\nprint(repr(context))\n```"
    endpoint.reply = lambda body: "FINAL(it is two)" if len(conversation(body["messages"])) > 1 else first
    return endpoint


def test_a_text_file_and_its_first_line_and_its_answer(model: Any, notes: Path) -> None:
    result = cli.invoke(app, ["run", str(notes), "which?", "--base-url", model.url, "--verbose"])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0] == describe_rights("confined")
    assert "confined" in describe_rights("confined")
    assert "with your rights" in describe_rights("local")
    assert result.stdout == "it is two\n"
    assert "turn 1" in result.stderr
    assert r"'one\r\ntwo\n'" in result.stderr
    assert "2 turns, 2 calls, 22 tokens in" in result.stderr


def test_a_forced_answer_says_so(endpoint: Any, notes: Path) -> None:
    endpoint.reply = lambda body: "hm"
    options = ["--base-url", endpoint.url, "--max-iterations", "1", "--verbose", "--runner", "local"]
    result = cli.invoke(app, ["run", str(notes), "q", *options])
    assert (result.exit_code, result.stdout) == (1, "hm\n")
    assert result.stderr.count("was forced") == 1


def test_a_file_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"abc\xff")
    result = cli.invoke(app, ["run", str(path), "q"])
    assert result.exit_code == 2
    assert "is not UTF-8: byte 0xff at offset 3" in result.stderr


def test_a_context_in_storage_and_what_it_cost(model: Any, tmp_path: Path) -> None:
    monocontext = pytest.importorskip("monocontext")
    monocontext.publish("needle in a text\n" * 1000, str(tmp_path / "context"))
    first = "```repl\nprint(type(context).__name__, context[:6], len(context))\n```"
    model.reply = lambda body: "FINAL(found)" if len(conversation(body["messages"])) > 1 else first
    for place in (tmp_path / "context", (tmp_path / "context").as_uri()):
        result = cli.invoke(app, ["run", str(place), "q", "--base-url", model.url, "--json", "--verbose"])
        assert result.exit_code == 0, result.output
        assert "str needle 17000" in result.stderr  # the namespace kit answers for the text
        assert set(json.loads(result.stdout)["io"]) == {"gets", "bytes", "hits", "ms"}


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere-to-be-found", "nowhere-to-be-found: no such file or directory"),
        ("file:///nowhere/to/be/found", "no context at file:///nowhere/to/be/found"),
        ("ftp://x/y", "unknown scheme in the URL"),
    ],
)
def test_a_context_that_is_not_there_is_one_line(place: str, said: str) -> None:
    result = cli.invoke(app, ["run", place, "q"])
    assert result.exit_code == 2, result.output
    assert len(result.output.splitlines()) == 2
    assert said in result.output


def test_the_version() -> None:
    assert cli.invoke(app, ["--version"]).stdout == f"rlm {rlm.__version__}\n"


def test_the_help_is_whole_and_has_a_short_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli.invoke(app, ["-h"]).stdout
    assert shown == cli.invoke(app, ["--help"]).stdout
    assert "..." not in shown.partition("Commands:")[2]
    assert "--anonymous" in cli.invoke(app, ["compile", "-h"]).stdout
