"""Sessions as Gemini CLI, OpenCode, Cursor's agent and Aider write them, for tests."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any


def gemini(home: Path, number: int, said: str = "Fix the login", project: str = "api") -> Path:
    """`~/.gemini/tmp/<project>/chats/session-*.jsonl`, a message whose tool ends is written again."""
    session = f"6e1f0000-0000-4000-8000-{number:012d}"
    at = "2026-02-14T10:00:0{}.000Z".format
    call: dict[str, Any] = {"id": "c1", "name": "run_shell_command", "args": {"command": "make"}, "timestamp": at(2)}
    done = [{"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": f"ok {number}"}}}]
    message = {"id": "m2", "timestamp": at(2), "type": "gemini", "content": "I run it.", "model": "gemini-3-pro"}
    records: list[Any] = [
        {"sessionId": session, "projectHash": "ab" * 32, "startTime": at(0), "lastUpdated": at(0), "kind": "main"},
        {"id": "m1", "timestamp": at(1), "type": "user", "content": [{"text": said}]},
        {"$set": {"lastUpdated": at(1)}},
        {**message, "toolCalls": [{**call, "status": "executing"}]},
        {**message, "toolCalls": [{**call, "status": "success", "result": done}], "thoughts": []},
        {"$set": {"summary": "Login fixed"}},
        {"id": "m3", "timestamp": at(3), "type": "hologram", "content": "of a later version"},
    ]
    path = home / ".gemini" / "tmp" / project / "chats" / f"session-2026-02-14T10-00-{session[:8]}-{number}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def _opencode(number: int, said: str, directory: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    session = f"ses_{number:026d}"
    info = {"id": session, "projectID": "global", "directory": directory, "title": "Login", "version": "1.1.36",
            "slug": "x", "time": {"created": 1_771_063_200_000 + number, "updated": 1_771_063_300_000}}  # fmt: skip
    user = {"id": f"msg_{number}_1", "sessionID": session, "role": "user", "time": {"created": 1_771_063_201_000},
            "agent": "build", "model": {"providerID": "anthropic", "modelID": "claude-sonnet-5"}}  # fmt: skip
    reply = {"id": f"msg_{number}_2", "sessionID": session, "role": "assistant", "modelID": "claude-sonnet-5",
             "time": {"created": 1_771_063_202_000, "completed": 1_771_063_204_000}}  # fmt: skip
    state = {"status": "completed", "input": {"command": "make"}, "output": f"ok {number}", "title": "make",
             "metadata": {}, "time": {"start": 1_771_063_202_500, "end": 1_771_063_203_000}}  # fmt: skip
    parts: list[list[dict[str, Any]]] = [
        [{"id": f"prt_{number}_1", "type": "text", "text": said}],
        [
            {"id": f"prt_{number}_2", "type": "step-start"},
            {"id": f"prt_{number}_3", "type": "tool", "tool": "bash", "callID": "c1", "state": state},
            {"id": f"prt_{number}_4", "type": "text", "text": "Done.",
             "time": {"start": 1_771_063_203_100, "end": 1_771_063_203_200}},
            {"id": f"prt_{number}_5", "type": "hologram"},
        ],
    ]  # fmt: skip
    return info, [{"info": user, "parts": parts[0]}, {"info": reply, "parts": parts[1]}]


def opencode_files(home: Path, number: int, said: str = "Fix the login", directory: str = "/home/dev/api") -> Path:
    """`~/.local/share/opencode/storage`, until 1.1."""
    info, messages = _opencode(number, said, directory)
    storage = home / ".local" / "share" / "opencode" / "storage"
    path = storage / "session" / "global" / f"{info['id']}.json"
    for place, what in [(path, info)] + [
        pair
        for message in messages
        for pair in [
            (storage / "message" / info["id"] / f"{message['info']['id']}.json", message["info"]),
            *((storage / "part" / message["info"]["id"] / f"{part['id']}.json", part) for part in message["parts"]),
        ]
    ]:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(what), "utf-8")
    return path


def opencode_database(home: Path, number: int, said: str = "Fix the login", directory: str = "/home/dev/api") -> Path:
    """`~/.local/share/opencode/opencode.db`, since 1.2: the columns that a reader needs, of the tool's own tables."""
    info, messages = _opencode(number, said, directory)
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(database)) as rows, rows:
        rows.executescript(
            "CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT,"
            " directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);"
            "CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,"
            " time_updated INTEGER, data TEXT);"
            "CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,"
            " time_created INTEGER, time_updated INTEGER, data TEXT);"
        )
        session, time = info["id"], info["time"]
        rows.execute(
            "INSERT OR REPLACE INTO session VALUES (?,?,?,?,?,?,?,?,?)",
            (session, "global", None, "x", directory, info["title"], "1.2.5", time["created"], time["updated"]),
        )
        for message in messages:
            about = {name: value for name, value in message["info"].items() if name not in ("id", "sessionID")}
            key, at = message["info"]["id"], message["info"]["time"]["created"]
            rows.execute("INSERT OR REPLACE INTO message VALUES (?,?,?,?,?)", (key, session, at, at, json.dumps(about)))
            for part in message["parts"]:
                data = json.dumps({name: value for name, value in part.items() if name != "id"})
                rows.execute(
                    "INSERT OR REPLACE INTO part VALUES (?,?,?,?,?,?)", (part["id"], key, session, at, at, data)
                )
    return database / session


def opencode_export(home: Path, number: int, said: str = "Fix the login", directory: str = "/home/dev/api") -> Path:
    """What `opencode export` prints."""
    info, messages = _opencode(number, said, directory)
    path = home / "export.json"
    path.write_text(json.dumps({"info": info, "messages": messages}, indent=2), "utf-8")
    return path


def cursor(home: Path, number: int, said: str = "Fix the login", project: str = "home-dev-api") -> Path:
    """`~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl`, as of 2026-05."""
    session = f"c0000000-0000-4000-8000-{number:012d}"
    blocks = [{"type": "text", "text": "I run it."},
              {"type": "tool_use", "id": "t1", "name": "Shell", "input": {"command": "make"}}]  # fmt: skip
    records = [
        {"role": "user", "message": {"content": [{"type": "text", "text": f"<user_query>\n{said}\n</user_query>"}]}},
        {"role": "assistant", "message": {"content": blocks}},
        {"role": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}},
        {"type": "hologram", "of": "a later version"},
    ]
    path = home / ".cursor" / "projects" / project / "agent-transcripts" / session / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def aider(home: Path, number: int, said: str = "Fix the login") -> Path:
    """`.aider.chat.history.md` of a repository, as of 0.86."""
    path = home / f"repository-{number}" / "api" / ".aider.chat.history.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"\n# aider chat started at 2026-02-14 10:00:{number % 60:02d}\n\n> Aider v0.86.2  \n"
        f"> Main model: x {number}  \n\n"
        f"#### {said}  \n#### and test it  \n\nI change it.\n\n```python\n# not a head\n> not the program\n```\n\n"
        "> Applied edit to login.py  \n> Commit 1a2b3c4 fix: login  \n",
        "utf-8",
    )
    return path


WRITERS: dict[str, Callable[..., Path]] = {
    "gemini-cli": gemini,
    "opencode": opencode_database,
    "cursor": cursor,
    "aider": aider,
}
