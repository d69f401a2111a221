"""Read any conversation as JSON lines, one message with `role` and `content` on each."""

from __future__ import annotations

import hashlib
from pathlib import Path

from monocontext.sessions.reader import SessionReader, TurnMaker, as_text, blocks_of, content_text, part, word
from monocontext.sessions.records import Record, dumps
from monocontext.sessions.turn import Turn

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}


class _ChatTurns(TurnMaker):
    def _turns(self, record: Record) -> list[Turn]:
        if not is_message(record):
            self._see_unknown(record.get("type"))
            return []
        role = record["role"].strip().lower()
        role = _ROLES.get(role, role)
        role = role if role in ("user", "assistant", "system", "tool") else "user"
        text = content_text(record.get("content"))
        if role == "tool":
            return self._turn("tool", "tool_result", text, record, tool=word(record, "name"))
        if role == "user":
            self._see_prompt(text)
        turns = self._turn(role, "text", text, record)
        for block in blocks_of(record.get("content")):
            if block.get("type") == "tool_use":
                turns += self._call_turn(block, record)
            elif block.get("type") == "tool_result":
                turns += self._result_turn(block, record)
        for call in blocks_of(record.get("tool_calls")):
            if function := part(call, "function"):
                arguments = as_text(function.get("arguments"))
                turns += self._turn("assistant", "tool_use", arguments, record, tool=word(function, "name"))
        return turns


class Chat(SessionReader):
    """Reads messages of the chat APIs from a file that somebody names."""

    agent = "chat"
    maker = _ChatTurns

    def session_id(self, path: Path) -> str:
        """The file's name and a hash of the first message, since many files are named `chat.jsonl`."""
        first = next(iter(self.lines(path)), None)
        digest = hashlib.sha256(dumps(first.record) if first else b"").hexdigest()
        return f"{path.name.partition('.')[0] or 'chat'}-{digest[:8]}"


def is_message(record: Record) -> bool:
    """Whether a record is a message of a chat API."""
    has_content = "content" in record or isinstance(record.get("tool_calls"), list)
    return isinstance(record.get("role"), str) and has_content
