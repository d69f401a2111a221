"""The real agents, newest, against a stand-in model: each turn that it saw stands once in the archive, in order.

`make test-agents` installs them and sets `MONOCONTEXT_AGENTS`; without it these tests skip.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.programs import PROGRAMS, TASK, Program, make_home, plain
from agents.seen import rows_of, seen_by
from agents.stand_in import Hang, StandIn
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import discover_sessions
from monocontext.stores import open_store

NODE_MODULES = os.environ.get("MONOCONTEXT_AGENTS")
pytestmark = pytest.mark.skipif(not NODE_MODULES, reason="needs the agents of `make test-agents`")
AGENTS = pytest.mark.parametrize("program", PROGRAMS, ids=[each.name for each in PROGRAMS])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_home(tmp_path / "home")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME", "OPENCODE_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def talk(program: Program, home: Path, prompts: list[str], heavy: str = "") -> StandIn:
    """Give an agent some prompts, each in a process of its own that goes on with the session."""
    script = {
        "Run it, please.": [program.shell, "It ran."],
        "continue": ["Tests pass."],
        "Ask a helper, please.": [*program.subagent, "The helper found 3 files."],
        TASK: list(program.counted),
        "Think long, please.": [Hang("I thi")],
        "Go on, please.": ["Gone on."],
        "Say much, please.": ["Much was said."],
    }
    with StandIn(script, heavy=heavy) as model:
        program.configure(home, model.url)
        for number, prompt in enumerate(prompts):
            said = program.run(Path(str(NODE_MODULES)), home, model, program.next if number else program.first, prompt)
            assert prompt in {one for one, _, _ in model.heard}, plain(said)
    return model


def archived(program: Program, folder: Path) -> Sessions:
    store = open_store(folder / "archive")
    for file in discover_sessions(program.name):
        upload_session(store, file)
    return Sessions(store)


@AGENTS
def test_calls_and_the_same_words_again(program: Program, home: Path, tmp_path: Path) -> None:
    model = talk(program, home, ["Run it, please.", "continue", "continue", "continue"])
    archive = archived(program, tmp_path)
    assert archive.projects() == ["github.com-acme-api"]
    project = archive.project("github.com-acme-api")
    (info,) = project.sessions()
    assert rows_of(project.turns(info.session_id), model.script) == seen_by(model, without=[TASK])
    assert (info.unknown, info.unreadable, info.first_prompt.strip('"')) == ({}, 0, "Run it, please.")


@AGENTS
def test_a_subagent_belongs_to_its_session(program: Program, home: Path, tmp_path: Path) -> None:
    model = talk(program, home, ["continue", "Ask a helper, please.", "continue"])
    project = archived(program, tmp_path).project("github.com-acme-api")
    main, below = sorted(project.sessions(), key=lambda info: "/" in info.session_id)
    assert below.session_id.startswith(f"{main.session_id}/subagents/")
    assert rows_of(project.turns(main.session_id), model.script) == seen_by(model, without=[TASK])
    counted = rows_of(project.turns(below.session_id), model.script)
    assert counted[-1] in [("assistant", "There are 3 files."), ("call", "complete_task"), ("result", "")]
    assert (main.unknown, below.unknown) == ({}, {})


@AGENTS
def test_an_interrupt(program: Program, home: Path, tmp_path: Path) -> None:
    model = talk(program, home, ["continue", "Think long, please.", "Go on, please.", "continue"])
    project = archived(program, tmp_path).project("github.com-acme-api")
    (info,) = project.sessions()
    assert rows_of(project.turns(info.session_id), model.script) == seen_by(model)
    assert info.unknown == {}


@AGENTS
def test_a_compaction_loses_nothing(program: Program, home: Path, tmp_path: Path) -> None:
    model = talk(program, home, ["continue", "Say much, please.", "continue", "continue"], heavy="Say much, please.")
    project = archived(program, tmp_path).project("github.com-acme-api")
    (info,) = project.sessions()
    turns = project.turns(info.session_id)
    assert rows_of(turns, model.script) == seen_by(model)
    assert "summary" in {turn.kind for turn in turns}
    assert info.unknown == {}
