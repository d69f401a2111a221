"""The real agents, newest, against a stand-in model: each turn that it saw stands once in the archive, in order.

`make test-agents` installs them and sets `MONOCONTEXT_AGENTS`; without it these tests skip.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.programs import COUNTED, PROGRAMS, TASK, Program, make_home, plain
from agents.stand_in import Hang, Row, StandIn, rows_of, seen_by
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.archive import Project
from monocontext.sessions.pull import pull_session
from monocontext.sessions.readers import discover_sessions
from monocontext.stores import open_store

INSTALLED = os.environ.get("MONOCONTEXT_AGENTS", "")
NODE_MODULES = Path(INSTALLED)
pytestmark = [
    pytest.mark.skipif(not INSTALLED, reason="needs the agents of `make test-agents`"),
    pytest.mark.parametrize("program", PROGRAMS, ids=[each.name for each in PROGRAMS]),
]
MUCH = " ".join(f"{n * n * 7919 % 100_003} is number {n}." for n in range(4_000))
"""So much that a summary is shorter."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_home(tmp_path / "home")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def talk(program: Program, home: Path, prompts: list[str], heavy: str = "") -> StandIn:
    """Give an agent some prompts, each in a process of its own that goes on with the session."""
    script = {
        "Run it, please.": [program.shell, "It ran."], "continue": ["Tests pass."],
        "Ask a helper, please.": [*program.subagent, "The helper found 3 files."], TASK: [COUNTED],
        "Think long, please.": [Hang("I thi")], "Go on, please.": ["Gone on."], "Say much, please.": [MUCH],
    }  # fmt: skip
    with StandIn(script, heavy=heavy) as model:
        program.configure(home, model.url)
        for number, prompt in enumerate(prompts):
            said = program.run(NODE_MODULES, home, model, program.next if number else program.first, prompt)
            assert prompt not in script or prompt in {one for one, _, _ in model.heard}, plain(said)
    return model


def archived(program: Program, home: Path) -> Project:
    store = open_store(home.parent / "archive")
    for file in discover_sessions(program.name):
        upload_session(store, file)
    archive = Sessions(store)
    assert archive.projects() == ["github.com-acme-api"]
    return archive.project("github.com-acme-api")


def check(program: Program, home: Path, model: StandIn) -> Project:
    """The main session holds what the model saw, and no record is unknown."""
    project = archived(program, home)
    rows: list[Row] = seen_by(model, without=[TASK])
    (main,) = (info for info in project.sessions() if "/" not in info.session_id)
    assert rows_of(project.turns(main.session_id), model.script) == rows
    assert [info.unknown for info in project.sessions()] == [{}] * len(project.sessions())
    return project


def test_calls_and_the_same_words_again(program: Program, home: Path) -> None:
    model = talk(program, home, ["Run it, please.", "continue", "continue", "continue"])
    (info,) = check(program, home, model).sessions()
    assert info.first_prompt.strip('"') == "Run it, please."


def test_a_subagent_belongs_to_its_session(program: Program, home: Path) -> None:
    model = talk(program, home, ["continue", "Ask a helper, please.", "continue"])
    project = check(program, home, model)
    main, below = sorted(project.list_sessions(), key=len)
    assert below.startswith(f"{main}/subagents/")
    counted = rows_of(project.turns(below), model.script)
    assert {("assistant", COUNTED), ("call", "complete_task")} & set(counted)


def test_an_interrupt(program: Program, home: Path) -> None:
    check(program, home, talk(program, home, ["continue", "Think long, please.", "Go on, please.", "continue"]))


def test_a_compaction_loses_nothing(program: Program, home: Path) -> None:
    prompts = ["continue", "Say much, please.", *program.compact, "continue", "continue"]
    model = talk(program, home, prompts, heavy="Say much, please.")
    project = check(program, home, model)
    assert "summary" in {turn.kind for session in project.list_sessions() for turn in project.turns(session)}


def test_a_session_goes_on_in_another_clone_of_another_user(
    program: Program, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun by one, uploaded by the agent's own hook, pulled by another into a path with spaces, and resumed there: the
    model sees the turns of before, with paths of the new clone."""
    other = home.parent / "ben b"
    make_home(other)
    clone = other / "work" / "my api"
    (other / "work" / "api").rename(clone)
    archive = home.parent / "archive"
    command = [sys.executable, "-P", "-m", "monocontext"]
    subprocess.run(
        [*command, "hooks", "install", str(archive), "--agent", program.name], cwd=home / "work" / "api",
        env={**os.environ, "HOME": str(home)}, check=True, capture_output=True,
    )  # fmt: skip
    script = {"Run it, please.": [program.shell, "It ran."], "And now?": ["Gone on."]}
    with StandIn(script) as model:
        for each in (home, other):
            program.configure(each, model.url)
        trusted = ["--dangerously-bypass-hook-trust"] if program.name == "codex" else []
        program.run(NODE_MODULES, home, model, [*program.first[:1], *trusted, *program.first[1:]], "Run it, please.")
        project = Sessions.open(archive).project("github.com-acme-api")
        deadline = time.monotonic() + 60
        while not any(len(project.turns(name)) == 4 for name in project.list_sessions()):
            assert time.monotonic() < deadline, (project.list_sessions(), (home / ".monocontext").exists())
            time.sleep(0.2)
        (session,) = project.list_sessions()
        monkeypatch.setenv("HOME", str(other))
        done = pull_session(Sessions.open(archive), session, clone)
        heard = len(model.requests)
        words = program.first
        words = ("exec", "resume", session, *words[1:]) if program.name == "codex" else ("--resume", session, *words)
        said = program.run(NODE_MODULES, other, model, words, "And now?", at=clone)
    assert "Gone on." in said
    asked = json.dumps([request for _, request in model.requests[heard:] if "And now?" in json.dumps(request)])
    assert all(each in asked for each in ("Run it, please.", "out-17", "It ran.", str(clone)))
    assert str(home / "work" / "api") not in asked
    for file in discover_sessions(program.name):
        upload_session(project.store, file)
    assert (project.list_sessions(), len(project.turns(session))) == ([session], 6)
    assert done.path.exists()
