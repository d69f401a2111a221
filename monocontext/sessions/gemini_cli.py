"""Find the sessions of Gemini CLI, and make turns from their records.

A file begins with the metadata of the session, then has a message on each line. A message that gets more, such as the
results of its tools, is written again under its `id`; `$set` changes the metadata, and also all messages when the
conversation was compressed; `$rewindTo` abandons everything since. Earlier versions wrote one JSON document.
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
"""The most bytes to read of the file that lists projects."""
_SET_UP = re.compile(r"\s*<session_context>|This is the Gemini CLI\. We are setting up the context")
_ROLES = {"user": "user", "gemini": "assistant", "info": "system", "warning": "system", "error": "system"}


def _directory_of(folder: Path) -> str:
    """The directory that a folder of `~/.gemini/tmp` belongs to; empty where Gemini CLI has not written it down.

    The folder is named by a short word, in earlier versions by the SHA-256 of the directory.
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
    return {"sessionId", "projectHash"} <= record.keys() or "$set" in record or "$rewindTo" in record


class _GeminiTurns(TurnMaker):
    agent = "gemini-cli"

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._said: set[tuple[str, ...]] = set()
        self._places: dict[str, int] = {}

    def feed(self, record: Record) -> list[Turn]:
        kind = record.get("type")
        if kind == "unreadable":
            return self._unreadable_turn(record)
        self._see_time({"timestamp": record.get("timestamp") or record.get("startTime")})
        if "$rewindTo" in record:
            back = self._places.get(str(record["$rewindTo"]), 0)
            return self._turn("system", "summary", "[rewound]", record, marks=(f"back_to={back}",))
        known = record.get("$set", record if is_ours(record) else None)
        if isinstance(known, dict):
            self._see_session(known)
            return self._rewritten_turns(known.get("messages"))
        if kind not in _ROLES or not isinstance(record.get("id"), str):
            self._see_unknown(kind)
            return []
        return self._message_turns(record, str(kind))

    def _see_session(self, known: Record) -> None:
        if isinstance(known.get("summary"), str):
            self.title = " ".join(known["summary"].split())[:200]
        directories = known.get("directories")
        if isinstance(directories, list) and directories and isinstance(directories[0], str):
            self.cwd = self.began_in = directories[0]

    def _rewritten_turns(self, messages: Any) -> list[Turn]:
        """The new state of the conversation: its parts that were not said before, such as a summary."""
        turns: list[Turn] = []
        for message in messages if isinstance(messages, list) else ():
            kind = message.get("type") if isinstance(message, dict) else None
            if kind in _ROLES and isinstance(message.get("id"), str) and message["id"] not in self._places:
                turns += self._message_turns(message, kind, "summary" if self.n else "text")
        return turns

    def _message_turns(self, record: Record, kind: str, form: Kind = "text") -> list[Turn]:
        number = record["id"]
        self._places.setdefault(number, self.n)
        if isinstance(record.get("model"), str):
            self.model = record["model"]
        turns: list[Turn] = []
        text = content_text(record.get("content"))
        if self._is_new(number, "text", text) and not (kind == "user" and _SET_UP.match(text)):
            if kind == "user" and form == "text":
                self._see_prompt(text)
            turns += self._turn(_ROLES[kind], form, f"[{kind}] {text}" if _ROLES[kind] == "system" else text, record)
        calls = record.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                turns += self._call_turns(number, call, record)
        return turns

    def _call_turns(self, number: str, call: Record, record: Record) -> list[Turn]:
        tool, name = str(call.get("id")), str(call.get("name") or "")
        about = {**record, "timestamp": call.get("timestamp") or record.get("timestamp")}
        turns: list[Turn] = []
        if self._is_new(number, "call", tool):
            turns += self._turn("assistant", "tool_use", as_text(call.get("args")), about, tool=name)
        result = call.get("result")
        if result is not None and self._is_new(number, "result", tool):
            turns += self._turn("tool", "tool_result", _result_text(result), about, tool=name)
        return turns

    def _is_new(self, *what: str) -> bool:
        if what in self._said or not what[2]:
            return False
        self._said.add(what)
        return True


def _result_text(result: Any) -> str:
    """The result of a tool as text. It is a list of parts; parts of functions hold it under `response`."""
    parts = result if isinstance(result, list) else [result]
    texts = []
    for part in parts:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        given = response.get("response") if isinstance(response, dict) else None
        if isinstance(given, dict):
            texts.append(as_text(given.get("output", given.get("error", given))))
        else:
            texts.append(content_text([part]) or json.dumps(part, ensure_ascii=False))
    return "\n".join(texts)


class GeminiCli(SessionReader):
    """Finds and reads the sessions of Gemini CLI."""

    agent = _GeminiTurns.agent
    maker = _GeminiTurns

    def discover(self) -> Iterator[SessionFile]:
        """Files in `~/.gemini/tmp/<project>/chats`, those of subagents below their session's, in any order."""
        home = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home())
        found = (home / ".gemini" / "tmp").glob("*/chats/**/*.json*")
        return sessions_of((path for path in found if path.suffix in (".json", ".jsonl")), self.file)

    def lines(self, path: Path) -> Iterable[RecordLine]:
        """Raises `InvalidText` for a document without messages."""
        if path.suffix == ".jsonl":
            return read_lines(path)
        found = read_document(path)
        if not isinstance(found, dict) or not isinstance(found.get("messages"), list):
            raise InvalidText(f"{path}: no session of Gemini CLI: expected an object with messages")
        known = {name: value for name, value in found.items() if name not in ("messages", "lastUpdated")}
        messages = [each for each in found["messages"] if isinstance(each, dict)]
        return lines_of_records([known, *messages])

    def file(self, path: Path) -> SessionFile:
        """A file as a session, by the id that it begins with; without one by its name."""
        first = next(iter(self.lines(path)), None)
        session = first.record.get("sessionId") if first else None
        session_id = session if isinstance(session, str) and session else path.name.partition(".")[0]
        folder = path.parent
        if folder.parent.name == "chats":
            session_id, folder = f"{folder.name}/subagents/{session_id}", folder.parent
        place = _directory_of(folder.parent) or folder.parent.name
        return SessionFile(path, session_id, self.agent, path.stat().st_mtime, place)
