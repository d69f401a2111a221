"""Read conversations in general formats: chat JSON (`role`, `content`), text with `USER:` and `ASSISTANT:` lines."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from monocontext.errors import InvalidText
from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, content_text
from monocontext.sessions.records import (
    Record,
    RecordLine,
    dumps,
    lines_of_records,
    read_document,
    read_lines,
    read_text,
)
from monocontext.sessions.turn import Turn

_SPEAKER = re.compile(r"^(USER|HUMAN|ASSISTANT|AI|SYSTEM|TOOL)\s*:[ \t]*", re.M | re.I)
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}


class _ChatTurns(TurnMaker):
    agent = "chat"

    def feed(self, record: Record) -> list[Turn]:
        self._see_time(record)
        if record.get("type") == "unreadable":
            return self._unreadable_turn(record)
        if not _is_message(record):
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


class _PlainTurns(_ChatTurns):
    agent = "text"


class Chat(SessionReader):
    """Reads chat JSON: a list of messages, or an object with one under `messages`, or JSONL with one message on
    each line."""

    agent = _ChatTurns.agent
    maker: type[TurnMaker] = _ChatTurns

    def discover(self) -> Iterator[SessionFile]:
        """No sessions: such files may be anywhere."""
        return iter(())

    def file(self, path: Path) -> SessionFile:
        """The session in a file. Its id has the file's name and a hash of the first message, since many files are named
        `chat.json`."""
        first = next(iter(self.lines(path)), None)
        digest = hashlib.sha256(dumps(first.record) if first else b"").hexdigest()
        session_id = f"{path.name.partition('.')[0] or 'chat'}-{digest[:8]}"
        return SessionFile(path, session_id, self.agent, path.stat().st_mtime)

    def below(self, file: SessionFile) -> Iterator[SessionFile]:
        """No sessions: a conversation has no subagents."""
        return iter(())

    def lines(self, path: Path) -> Iterable[RecordLine]:
        """The messages of a file. Raises `InvalidText` if there is no conversation in it."""
        if path.suffix == ".jsonl":
            return read_lines(path)
        found = read_document(path)
        if isinstance(found, dict):
            found = next((found[name] for name in ("messages", "conversation", "turns") if name in found), None)
        if not isinstance(found, list) or not found or not all(_is_message(each) for each in found):
            raise InvalidText(f"{path}: expected a JSON list of messages with `role` and `content`, found other JSON")
        return lines_of_records({"type": "message", **each} for each in found)


class PlainText(Chat):
    """Reads text in which lines name the speaker."""

    agent = _PlainTurns.agent
    maker = _PlainTurns

    def lines(self, path: Path) -> Iterable[RecordLine]:
        """The messages of a file. Raises `InvalidText` if no line names a speaker."""
        text = read_text(path)
        heads = list(_SPEAKER.finditer(text))
        if not heads:
            raise InvalidText(f"{path}: expected JSON, or lines that begin with USER: or ASSISTANT:, found neither")
        ends = [head.start() for head in heads[1:]] + [len(text)]
        return lines_of_records(
            {"type": "message", "role": _normalize_role(head[1]), "content": text[head.end() : end].strip()}
            for head, end in zip(heads, ends, strict=True)
        )


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and ("content" in value or isinstance(value.get("tool_calls"), list))
    )


def _normalize_role(name: str) -> str:
    name = name.strip().lower()
    name = _ROLES.get(name, name)
    return name if name in ("user", "assistant", "system", "tool") else "user"
