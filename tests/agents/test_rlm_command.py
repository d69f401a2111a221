"""The plugin in the real agents: installed by its line, it answers `/rlm` from files, with sources and a limit.

`make test-agents` installs them, and names an interpreter that has `rlm` and an MCP SDK; without these this skips.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hosts.contract import SHELL_QUESTIONS, shell_text
from hosts.openai_server import answering

from agents.programs import PROGRAMS, Program, make_home, plain
from agents.stand_in import Call, Reply, StandIn, Step
from monocontext.testing import S3StandIn

TOP = Path(__file__).resolve().parents[2]
NODE_MODULES = Path(os.environ.get("MONOCONTEXT_AGENTS", ""))
PYTHON = os.environ.get("MONOCONTEXT_MCP_PYTHONS", "").split(":")[0]
pytestmark = pytest.mark.skipif(
    not (PYTHON and os.environ.get("MONOCONTEXT_AGENTS")), reason="needs what `make test-agents` installs"
)
INSTALL = {"claude-code": ("install",), "codex": ("add",)}
PROMPT = {"claude-code": "/rlm $0.20 notes.txt What is the word?", "codex": "$monocontext:rlm $0.20 What is the word?"}
TOOL = {"claude-code": "mcp__plugin_monocontext_rlm__ask", "codex": "mcp__rlm.ask"}
CELL = "```repl\nat = context.find('the word is')\nFINAL(context[at:at + 18], sources=['the word is Basalt'])\n```"


class Asking(StandIn):
    """The model of the agent: once it has read our skill it calls `ask`, and says what that gave."""

    tool = ""

    def answer(self, steps: Sequence[Step], has_tools: bool) -> Reply:
        results = [text for role, text in steps if role == "result"]
        if not has_tools or not any("Ask a recursive language model" in text for _, text in steps):
            return "No skill."
        arguments = {"query": "What is the word?", "context": "notes.txt", "max_dollars": 0.2}
        return f"It gave: {results[-1]}" if results else Call(self.tool, arguments)


@pytest.mark.parametrize("program", PROGRAMS, ids=[each.name for each in PROGRAMS])
def test_a_question_about_a_file(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, asked = tmp_path / "home", list[str]()
    make_home(home)
    work = home / "work" / "api"
    (work / "notes.txt").write_text("one\nthe word is Basalt\n")
    monkeypatch.setenv("PATH", f"{Path(PYTHON).parent}:{os.environ['PATH']}")

    def model_of_rlm(messages: object) -> str:
        asked.append(json.dumps(messages))
        return CELL

    with Asking({}) as model, answering(model_of_rlm) as endpoint:
        model.tool = TOOL[program.name]
        program.configure(home, model.url)
        for name, value in {"OPENAI_BASE_URL": endpoint, "OPENAI_API_KEY": "none"}.items():
            monkeypatch.setitem(program.variables, name, value)
        for words in (("marketplace", "add", str(TOP)), (*INSTALL[program.name], "monocontext@monocontext")):
            subprocess.run(
                [NODE_MODULES / ".bin" / program.command, "plugin", *words], cwd=work, check=True, capture_output=True,
                env=program.environment(home, model.url),
            )  # fmt: skip
        said = plain(program.run(NODE_MODULES, home, model, program.first, PROMPT[program.name]))
    assert len(asked) == 1, said
    assert "the word is Basalt" in said.partition("It gave:")[2]
    assert "line:2" in said
    assert "dollars" in said


BASH = {"claude-code": "mcp__texts__bash", "codex": "mcp__texts.bash"}


class Running(StandIn):
    """Runs its prompt in `bash`, and says what that gave."""

    tool = ""

    def answer(self, steps: Sequence[Step], has_tools: bool) -> Reply:
        results = [text for role, text in steps if role == "result"]
        command = next((command for command, _ in SHELL_QUESTIONS if ("user", command) in steps), "true")
        return f"It gave: {results[-1]}" if results else Call(self.tool, {"command": command})


@pytest.mark.parametrize("program", PROGRAMS, ids=[each.name for each in PROGRAMS])
def test_five_questions_by_bash_alone_read_a_hundredth(program: Program, tmp_path: Path) -> None:
    home = tmp_path / "home"
    make_home(home)
    with S3StandIn(shell_text()) as server, Running({}) as model:
        model.tool = BASH[program.name]
        program.configure(home, model.url)
        served = f"-P -m monocontext mcp {server.url()} --shell --endpoint {server.endpoint} --anonymous".split()
        words = [*program.mcp("texts", PYTHON, served), *program.first]
        for command, answer in SHELL_QUESTIONS:
            said = plain(program.run(NODE_MODULES, home, model, words, command)).replace("\\", "")
            assert f'{{"stdout":"{answer}n"' in said.partition("It gave:")[2].replace("\n", ""), said
        assert server.bytes_sent < (4 << 30) // 100
