"""Find the sessions of Gemini CLI, and make turns from their records.

A file begins with the metadata of the session, then has a message on each line. A message that grows, for instance by
the results of its tools, is written again under its `id`. `$set` changes the metadata, and also all messages when the
conversation is compressed. `$rewindTo` abandons all messages after one. Earlier versions wrote one JSON document.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from monocontext.errors import InvalidText
from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, content_text, sessions_of
from monocontext.sessions.records import Record, RecordLine, lines_of_records, read_document, read_lines
from monocontext.sessions.turn import Kind, Turn
from monocontext.stores.regular_file import open_file

_MOST_BYTES = 1 << 20
"""The most that is read of a file that names projects."""
_SET_UP = re.compile(r"\s*<session_context>|This is the Gemini CLI\. We are setting up the context")
_ROLES = {"user": "user", "gemini": "assistant", "info": "system", "warning": "system", "error": "system"}


def _directory_of(folder: Path) -> str:
    """The project's directory for a folder of `~/.gemini/tmp`; empty if Gemini CLI has not recorded it.

    The name of the folder is a short word, in earlier versions the SHA-256 of the directory.
    """
    home = folder.parent.parent
    for marker in (folder / ".project_root", home / "history" / folder.name / ".project_root"):
        if directory := _read_small(marker).strip():
            return directory
    try:
        known = json.loads(_read_small(home / "projects.json") or "{}")["projects"]
        names = {str(name): str(directory) for directory, name in known.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # not the file that it should be
        return ""
    hashes = {hashlib.sha256(each.encode("utf-8", "replace")).hexdigest(): each for each in names.values()}
    return names.get(folder.name) or hashes.get(folder.name, "")


def _read_small(path: Path) -> str:
    try:
        with open_file(path) as file:
            return file.read(_MOST_BYTES).decode("utf-8-sig", "replace")
    except OSError:  # no such file: nothing is known
        return ""


def is_ours(record: Record) -> bool:
    """Whether Gemini CLI writes such records at the beginning of a file, or as changes."""
    return {"sessionId", "projectHash"} <= record.keys() or "$set" in record or "$rewindTo" in record


class _GeminiTurns(TurnMaker):
    agent = "gemini-cli"

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._known: set[tuple[str, ...]] = set()
        """The parts of messages that have a turn: id of the message, kind of the part, its text or id."""
        self._turns_before: dict[str, int] = {}
        """The number of turns before each message, by its id."""

    def feed(self, record: Record) -> list[Turn]:
        kind = record.get("type")
        if kind == "unreadable":
            return self._unreadable_turn(record)
        self._see_time({"timestamp": record.get("timestamp") or record.get("startTime")})
        if "$rewindTo" in record:
            back = self._turns_before.get(str(record["$rewindTo"]), 0)
            return self._turn("system", "summary", "[rewound]", record, marks=(f"back_to={back}",))
        session = record.get("$set", record if is_ours(record) else None)
        if isinstance(session, dict):
            self._see_session(session)
            return self._rewritten_turns(session.get("messages"))
        if kind not in _ROLES or not isinstance(record.get("id"), str):
            self._see_unknown(kind)
            return []
        return self._message_turns(record, str(kind))

    def _see_session(self, session: Record) -> None:
        if isinstance(session.get("summary"), str):
            self.title = " ".join(session["summary"].split())[:200]
        directories = session.get("directories")
        if isinstance(directories, list) and directories and isinstance(directories[0], str):
            self.cwd = self.began_in = directories[0]

    def _rewritten_turns(self, messages: Any) -> list[Turn]:
        """The turns of the new messages among all messages of a conversation, such as a summary."""
        turns: list[Turn] = []
        for message in messages if isinstance(messages, list) else ():
            kind = message.get("type") if isinstance(message, dict) else None
            if kind in _ROLES and isinstance(message.get("id"), str) and message["id"] not in self._turns_before:
                turns += self._message_turns(message, kind, "summary" if self.n else "text")
        return turns

    def _message_turns(self, record: Record, kind: str, form: Kind = "text") -> list[Turn]:
        message_id = record["id"]
        self._turns_before.setdefault(message_id, self.n)
        if isinstance(record.get("model"), str):
            self.model = record["model"]
        turns: list[Turn] = []
        text = content_text(record.get("content"))
        if self._is_new(message_id, "text", text) and not (kind == "user" and _SET_UP.match(text)):
            if kind == "user" and form == "text":
                self._see_prompt(text)
            turns += self._turn(_ROLES[kind], form, f"[{kind}] {text}" if _ROLES[kind] == "system" else text, record)
        calls = record.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                turns += self._call_turns(message_id, call, record)
        return turns

    def _call_turns(self, message_id: str, call: Record, record: Record) -> list[Turn]:
        call_id, tool = str(call.get("id")), str(call.get("name") or "")
        timed = {**record, "timestamp": call.get("timestamp") or record.get("timestamp")}
        turns: list[Turn] = []
        if self._is_new(message_id, "call", call_id):
            turns += self._turn("assistant", "tool_use", as_text(call.get("args")), timed, tool=tool)
        result = call.get("result")
        if result is not None and self._is_new(message_id, "result", call_id):
            turns += self._turn("tool", "tool_result", _result_text(result), timed, tool=tool)
        return turns

    def _is_new(self, message_id: str, kind: str, content: str) -> bool:
        """Note a part of a message; returns whether it has content and was not noted before."""
        part = message_id, kind, content
        is_new = bool(content) and part not in self._known
        self._known.add(part)
        return is_new


def _result_text(result: Any) -> str:
    """The text of a tool's result, which is a list of parts. In parts of functions it is under `response`."""
    parts = result if isinstance(result, list) else [result]
    texts = []
    for part in parts:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        output = response.get("response") if isinstance(response, dict) else None
        if isinstance(output, dict):
            texts.append(as_text(output.get("output", output.get("error", output))))
        else:
            texts.append(content_text([part]) or json.dumps(part, ensure_ascii=False))
    return "\n".join(texts)


class GeminiCli(SessionReader):
    """Finds and reads the sessions of Gemini CLI."""

    agent = _GeminiTurns.agent
    maker = _GeminiTurns

    def discover(self) -> Iterator[SessionFile]:
        """The sessions in `~/.gemini/tmp/<project>/chats`, those of subagents included, in any order."""
        home = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home())
        found = (home / ".gemini" / "tmp").glob("*/chats/**/*.json*")
        return sessions_of((path for path in found if path.suffix in (".json", ".jsonl")), self)

    def lines(self, path: Path) -> Iterable[RecordLine]:
        """The records of a file. Raises `InvalidText` for a document without messages."""
        if path.suffix == ".jsonl":
            return read_lines(path)
        found = read_document(path)
        if not isinstance(found, dict) or not isinstance(found.get("messages"), list):
            raise InvalidText(f"{path}: no session of Gemini CLI: expected an object with messages")
        metadata = {name: value for name, value in found.items() if name not in ("messages", "lastUpdated")}
        messages = [each for each in found["messages"] if isinstance(each, dict)]
        return lines_of_records([metadata, *messages])

    def file(self, path: Path) -> SessionFile:
        """The session in a file. Its id is at the beginning of the file, else it is the file's name."""
        first = next(iter(self.lines(path)), None)
        session = first.record.get("sessionId") if first else None
        session_id = session if isinstance(session, str) and session else path.name.partition(".")[0]
        folder = path.parent
        if folder.parent.name == "chats":
            session_id, folder = f"{folder.name}/subagents/{session_id}", folder.parent
        place = _directory_of(folder.parent) or folder.parent.name
        return SessionFile(path, session_id, self.agent, path.stat().st_mtime, place)
