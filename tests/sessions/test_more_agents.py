"""Sessions of Gemini CLI, OpenCode, Cursor's agent and Aider, in files of their formats."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from monocontext.errors import InvalidText
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import discover_sessions, recognize_session
from monocontext.stores import open_store
from sessions.agents import everything
from sessions.more_agents import (
    WRITERS,
    aider,
    cursor,
    gemini,
    opencode_database,
    opencode_export,
    opencode_files,
)
from sessions.test_sessions_readers import texts_in, turns_in

SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


def test_gemini_cli(own_home: Path) -> None:
    path = gemini(own_home, 1)
    assert texts_in(path) == [
        ("user", "text", "Fix the login"),
        ("assistant", "text", "I run it."),
        ("assistant", "tool_use", '{"command": "make"}'),
        ("tool", "tool_result", "ok 1"),
    ]
    assert {turn.tool for turn in turns_in(path)} == {"", "run_shell_command"}
    records = [json.loads(line) for line in path.read_text().splitlines()]
    document = path.with_name("session-old.json")
    document.write_text(json.dumps({**records[0], "messages": [records[1], records[4]], "summary": "x"}))
    assert texts_in(document) == texts_in(path)
    with path.open("a") as file:
        file.write(json.dumps({"$rewindTo": "m2"}) + "\n")
    assert turns_in(path)[-1].marks == ("back_to=1",)
    path.with_name("no.json").write_text('{"sessionId": "x", "projectHash": "y"}')
    with pytest.raises(InvalidText, match="no session of Gemini CLI"):
        recognize_session(path.with_name("no.json"))


@pytest.mark.parametrize("write", [opencode_files, opencode_export])
def test_opencode(own_home: Path, write: Callable[..., Path]) -> None:
    path = write(own_home, 1)
    expected = [
        ("user", "text", "Fix the login"),
        ("assistant", "tool_use", '{"command": "make"}'),
        ("tool", "tool_result", "ok 1"),
        ("assistant", "text", "Done."),
    ]
    assert texts_in(path) == expected
    assert recognize_session(path).session_id == f"ses_{1:026d}"
    opencode_database(own_home, 2)
    (found,) = [file for file in discover_sessions("opencode") if file.session_id == f"ses_{2:026d}"]
    store = open_store(own_home / "a")
    assert upload_session(store, found).records == 6
    turns = Sessions(store).project("api").turns(found.session_id)
    assert [(turn.role, turn.kind) for turn in turns] == [(role, kind) for role, kind, _ in expected]
    assert turns[0].ts == "2026-02-14T10:00:01.000Z"


def test_a_part_of_opencode_that_goes_on_is_taken_once_it_ends(own_home: Path) -> None:
    path = opencode_database(own_home, 1)
    store = open_store(own_home / "a")
    with closing(sqlite3.connect(path.parent)) as rows, rows:
        (whole,) = rows.execute("SELECT data FROM part WHERE id = 'prt_1_3'").fetchone()
        running = {**json.loads(whole), "state": {"status": "running", "input": {}}}
        rows.execute("UPDATE part SET data = ? WHERE id = 'prt_1_3'", (json.dumps(running),))
    (file,) = discover_sessions("opencode")
    assert upload_session(store, file, is_open=True).turns == 2
    with closing(sqlite3.connect(path.parent)) as rows, rows:
        rows.execute("UPDATE part SET data = ? WHERE id = 'prt_1_3'", (whole,))
    assert upload_session(store, file).turns == 2
    turns = Sessions(store).project("api").turns(file.session_id)
    assert sorted(turn.text for turn in turns) == ["Done.", "Fix the login", "ok 1", '{"command": "make"}']


def test_cursor(own_home: Path) -> None:
    path = cursor(own_home, 1)
    assert texts_in(path) == [
        ("user", "text", "Fix the login\n"),
        ("assistant", "text", "I run it."),
        ("assistant", "tool_use", '{"command": "make"}'),
        ("tool", "tool_result", "ok"),
    ]
    assert recognize_session(path).folder == "home-dev-api"
    below = path.parent / "subagents" / "sub.jsonl"
    below.parent.mkdir()
    below.write_bytes(path.read_bytes())
    assert recognize_session(below).session_id == f"{path.stem}/subagents/sub"


def test_aider(own_home: Path) -> None:
    path = aider(own_home, 1)
    assert texts_in(path) == [
        ("system", "text", "Aider v0.86.2\nMain model: x 1"),
        ("user", "text", "Fix the login\nand test it"),
        ("assistant", "text", "I change it.\n\n```python\n# not a head"),
        ("system", "text", "not the program"),
        ("assistant", "text", "```"),
        ("system", "text", "Applied edit to login.py\nCommit 1a2b3c4 fix: login"),
    ]
    store = open_store(own_home / "a")
    file = recognize_session(path)
    assert upload_session(store, file).records == 7
    with path.open("a") as history:
        history.write("\n# aider chat started at 2026-02-15 09:00:00\n\n#### Once more  \n")
    assert recognize_session(path).session_id == file.session_id
    assert upload_session(store, file).records == 2
    assert Sessions(store).project("api").turns(file.session_id)[-1].text == "Once more"


@pytest.mark.parametrize("agent", WRITERS)
def test_each_is_found_kept_whole_and_without_secrets(
    agent: str, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = WRITERS[agent](own_home, 1, said=f"Use GITHUB_TOKEN={SECRET}")
    monkeypatch.chdir(path.parent if agent == "aider" else own_home)
    (file,) = discover_sessions(agent)
    store = open_store(own_home / "archive")
    first = upload_session(store, file)
    assert first.records > 0
    assert first.findings
    again = upload_session(store, file)
    assert (again.records, again.turns) == (0, 0)
    assert SECRET.encode() not in everything(store)
    info = Sessions(store).project(first.project).info(file.session_id)
    assert info.agent == agent
    assert info.unknown == ({} if agent == "aider" else {"hologram": 1})
    assert agent == "aider" or b"hologram" in everything(store)
    assert "[REDACTED" in info.first_prompt


def test_a_database_that_is_none_is_one_line(own_home: Path) -> None:
    database = own_home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"no database at all" * 100)
    with pytest.raises(InvalidText, match=r"opencode\.db: file is not a database"):
        discover_sessions("opencode")
