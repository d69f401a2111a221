"""Read any conversation as JSON lines, one message with `role` and `content` on each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, content_text
from monocontext.sessions.records import Record, dumps
from monocontext.sessions.turn import Turn

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}


class _ChatTurns(TurnMaker):
    agent = "chat"

    def feed(self, record: Record) -> list[Turn]:
        self._see_time(record)
        if record.get("type") == "unreadable":
            return self._unreadable_turn(record)
        if not is_message(record):
            self._see_unknown(record.get("type"))
            return []
        role = _normalize_role(str(record.get("role")))
        content = record.get("content")
        text = content_text(content)
        if role == "user":
            self._see_prompt(text)
        if role == "tool":
            return self._turn("tool", "tool_result", text, record, tool=str(record.get("name") or ""))
        turns = self._turn(role, "text", text, record)
        for block in content if isinstance(content, list) else ():
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "tool_use":
                turns += self._call_turn(block, record)
            elif kind == "tool_result":
                turns += self._result_turn(block, record)
        calls = record.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                arguments = as_text(function.get("arguments"))
                turns += self._turn("assistant", "tool_use", arguments, record, tool=str(function.get("name") or ""))
        return turns


class Chat(SessionReader):
    """Reads messages of the chat APIs from a file that somebody names."""

    agent = _ChatTurns.agent
    maker = _ChatTurns

    def discover(self) -> Iterator[SessionFile]:
        """No sessions: such files may be anywhere."""
        return iter(())

    def file(self, path: Path) -> SessionFile:
        """The session in a file. Its id has the file's name and a hash of the first message, since many files are named
        `chat.jsonl`."""
        first = next(iter(self.lines(path)), None)
        digest = hashlib.sha256(dumps(first.record) if first else b"").hexdigest()
        session_id = f"{path.name.partition('.')[0] or 'chat'}-{digest[:8]}"
        return SessionFile(path, session_id, self.agent, path.stat().st_mtime)

    def below(self, file: SessionFile) -> Iterator[SessionFile]:
        """No sessions: a conversation has no subagents."""
        return iter(())


def is_message(value: Any) -> bool:
    """Whether a record is a message of a chat API."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and ("content" in value or isinstance(value.get("tool_calls"), list))
    )


def _normalize_role(name: str) -> str:
    name = name.strip().lower()
    name = _ROLES.get(name, name)
    return name if name in ("user", "assistant", "system", "tool") else "user"
