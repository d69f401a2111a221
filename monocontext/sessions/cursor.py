"""Find the transcripts of Cursor's agent, and make turns from their records: a message a line, without time.

The editor's database of chats (`state.vscdb`) is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, content_text, sessions_of
from monocontext.sessions.records import Record
from monocontext.sessions.turn import Turn

_QUERY = re.compile(r"</?user_query>\n?")


def is_ours(record: Record) -> bool:
    """Whether Cursor's agent writes such records."""
    message = record.get("message")
    return "role" in record and isinstance(message, dict) and "content" in message


class _CursorTurns(TurnMaker):
    agent = "cursor"

    def feed(self, record: Record) -> list[Turn]:
        self._see_time(record)
        if record.get("type") == "unreadable":
            return self._unreadable_turn(record)
        if not is_ours(record):
            self._see_unknown(record.get("type"))
            return []
        role = "user" if record["role"] == "user" else "assistant"
        content = record["message"]["content"]
        turns: list[Turn] = []
        for block in content if isinstance(content, list) else [{"type": "text", "text": content_text(content)}]:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "tool_use":
                turns += self._call_turn(block, record)
            elif kind == "tool_result":
                turns += self._result_turn(block, record)
            elif kind == "text":
                text = _QUERY.sub("", str(block.get("text") or ""))
                if role == "user":
                    self._see_prompt(text)
                turns += self._turn(role, "text", text, record)
            elif kind not in ("thinking", "redacted_thinking"):
                self._see_unknown(kind)
        return turns


class Cursor(SessionReader):
    """Finds and reads the transcripts of Cursor's agent."""

    agent = _CursorTurns.agent
    maker = _CursorTurns

    def discover(self) -> Iterator[SessionFile]:
        """The sessions in `~/.cursor/projects/<project>/agent-transcripts`, in any order."""
        projects = Path.home() / ".cursor" / "projects"
        return sessions_of(projects.glob("*/agent-transcripts/**/*.jsonl"), self)

    def file(self, path: Path) -> SessionFile:
        """The session in a file, whose name is the id. A subagent is named after its session, too."""
        name, folder = path.stem, path.parent
        if folder.name == "subagents":
            name, folder = f"{folder.parent.name}/subagents/{name}", folder.parent
        if folder.parent.name == "agent-transcripts":
            folder = folder.parent
        project = folder.parent.name if folder.name == "agent-transcripts" else ""
        return SessionFile(path, name, self.agent, path.stat().st_mtime, project)
