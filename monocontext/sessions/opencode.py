"""Find the sessions of OpenCode in its database, its earlier tree of files or an export, and make turns from them.

OpenCode keeps messages in parts. A record here is the description of a session, or one part with the role, model and
time of its message. A part that is still being written, such as a running tool, is left for the next upload.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from monocontext.errors import InvalidText
from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, sessions_of
from monocontext.sessions.records import Record, RecordLine, lines_of_records, read_document
from monocontext.sessions.turn import Turn

SESSION, PART = "opencode.session", "opencode.part"
LEFT_OUT = frozenset(["step-start", "step-finish", "snapshot", "patch", "reasoning", "agent", "retry"])
"""Types of parts that make no turn. They are in the archive."""
_FACTS = ("id", "parentID", "projectID", "directory", "title", "version")


def is_export(found: Any) -> bool:
    """Whether JSON is the output of `opencode export`, or the file of a session."""
    info = found.get("info", found) if isinstance(found, dict) else None
    return isinstance(info, dict) and str(info.get("id")).startswith("ses_") and "directory" in info


def _session_name(session: str, parent: object) -> str:
    return f"{parent}/subagents/{session}" if isinstance(parent, str) and parent else session


def _records(path: Path) -> Iterator[Record]:
    """The records of a session: the database and the session's id as one path, or a file."""
    if path.parent.is_file():
        yield from _database_records(path.parent, path.name)
        return
    found = read_document(path)
    if not is_export(found):
        raise InvalidText(f"{path}: no session of OpenCode: expected its id and directory")
    info = found.get("info", found)
    messages = found["messages"] if "messages" in found else _stored_messages(path, str(info["id"]))
    yield _session_record(info, info.get("time", {}).get("created"))
    for message in messages:
        yield from _part_records(message["info"], message["parts"])


def _stored_messages(path: Path, session: str) -> Iterator[Record]:
    storage = path.parents[2]
    for message in sorted((storage / "message" / session).glob("msg_*.json")):
        parts = sorted((storage / "part" / message.stem).glob("prt_*.json"))
        yield {"info": read_document(message), "parts": [read_document(part) for part in parts]}


def _database_records(database: Path, session: str) -> Iterator[Record]:
    with _open(database) as rows:
        facts = "SELECT id, parent_id, project_id, directory, title, version, time_created FROM session WHERE id = ?"
        found = rows.execute(facts, (session,)).fetchone()
        if found is None:
            raise InvalidText(f"{database}: no session {session}")
        yield _session_record(dict(zip(_FACTS, found, strict=False)), found[-1])
        texts = rows.execute(
            "SELECT m.id, m.data, p.id, p.data FROM part p JOIN message m ON m.id = p.message_id "
            "WHERE p.session_id = ? ORDER BY m.time_created, m.id, p.id",
            (session,),
        )
        for message, info, part, data in texts:
            yield from _part_records({**json.loads(info), "id": message}, [{**json.loads(data), "id": part}])


@contextmanager
def _open(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a database, which the agent may be writing, to read it. Raises `InvalidText` if SQLite cannot read it."""
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as rows:
            yield rows
    except sqlite3.Error as error:
        raise InvalidText(f"{database}: {error}") from None


def _session_record(info: Record, created: object) -> Record:
    facts = {name: info[name] for name in _FACTS if info.get(name)}
    return {"type": SESSION, "cwd": info.get("directory"), "timestamp": _time(created), **facts}


def _part_records(info: Record, parts: Iterable[Record]) -> Iterator[Record]:
    """The records of the complete parts of a message, which `info` describes."""
    model = info.get("modelID") or (info.get("model") or {}).get("modelID")
    for part in parts:
        if _is_whole(info, part):
            yield {
                "type": PART, "uuid": part.get("id"), "messageID": info.get("id"), "role": info.get("role"),
                "model": model, "timestamp": _time(_began(part.get("state"), part, info)), "part": part,
            }  # fmt: skip


def _began(*candidates: Any) -> object:
    """The first beginning that one of these objects has, in milliseconds; None if none has one."""
    for each in candidates:
        time = each.get("time") if isinstance(each, dict) else None
        for name in ("start", "created"):
            if isinstance(time, dict) and name in time:
                return time[name]
    return None


def _is_whole(info: Record, part: Record) -> bool:
    if part.get("type") == "tool":
        state = part.get("state")
        return isinstance(state, dict) and state.get("status") in ("completed", "error")
    time = part.get("time")
    return info.get("role") != "assistant" or not isinstance(time, dict) or "end" in time or "completed" in info["time"]


def _time(milliseconds: object) -> str:
    if not isinstance(milliseconds, int | float):
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _OpenCodeTurns(TurnMaker):
    agent = "opencode"

    def feed(self, record: Record) -> list[Turn]:
        self._see_time(record)
        kind = record.get("type")
        if kind == SESSION:
            self.cwd = self.began_in = str(record.get("directory") or self.cwd)
            self.title = str(record.get("title") or self.title)[:200]
            return []
        part = record.get("part")
        if kind != PART or not isinstance(part, dict):
            self._see_unknown(kind)
            return []
        self.model = str(record.get("model") or self.model)
        return self._part_turns(part, record)

    def _part_turns(self, part: Record, record: Record) -> list[Turn]:
        kind, role = part.get("type"), "user" if record.get("role") == "user" else "assistant"
        if kind == "text":
            text = str(part.get("text") or "")
            if role == "user" and not part.get("synthetic"):
                self._see_prompt(text)
            return self._turn(role, "text", text, record)
        if kind == "tool":
            state, tool = part["state"], str(part.get("tool") or "")
            result = state.get("output") if state.get("status") == "completed" else f"[error]\n{state.get('error')}"
            return [
                *self._turn("assistant", "tool_use", as_text(state.get("input")), record, tool=tool),
                *self._turn("tool", "tool_result", as_text(result), record, tool=tool),
            ]
        if kind == "file":
            return self._turn(role, "text", f"[file] {part.get('filename') or part.get('mime') or ''}", record)
        if kind == "compaction":
            return self._turn("system", "summary", "[conversation compacted]", record)
        if kind not in LEFT_OUT:
            self._see_unknown(kind)
        return []


class OpenCode(SessionReader):
    """Finds and reads the sessions of OpenCode."""

    agent = _OpenCodeTurns.agent
    maker = _OpenCodeTurns

    def discover(self) -> Iterator[SessionFile]:
        """The sessions of the database and of the tree of files, in any order.

        The path of a session in the database is the database's path and the session's id.
        """
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "opencode"
        database = Path(os.environ.get("OPENCODE_DB") or data / "opencode.db")
        if database.is_file():
            with _open(database) as rows:
                for session, parent, updated in rows.execute("SELECT id, parent_id, time_updated FROM session"):
                    name = _session_name(session, parent)
                    yield SessionFile(database / session, name, self.agent, updated / 1000)
        yield from sessions_of((data / "storage" / "session").glob("*/ses_*.json"), self)

    def lines(self, path: Path) -> Iterable[RecordLine]:
        """The records of a session. Raises `InvalidText` for a file that is not a session."""
        return lines_of_records(_records(path))

    def file(self, path: Path) -> SessionFile:
        """The session in an export, or in a file of the tree. Raises `InvalidText` for any other file."""
        first = next(_records(path))
        name = _session_name(str(first["id"]), first.get("parentID"))
        return SessionFile(path, name, self.agent, path.stat().st_mtime)
