"""Find the sessions of Claude Code, and make turns from their records.

The format is internal to Claude Code, so unknown records are kept in the archive and left out of the turns. The archive
holds more than the agent shows: records that compaction dropped and abandoned branches are turns as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, content_text, sessions_of
from monocontext.sessions.records import Record, read_lines
from monocontext.sessions.turn import Turn

_NOT_A_PROMPT = re.compile(
    r"\s*(<(local-command-stdout|session-start-hook|tick|goal|ide_opened_file|ide_selection|command-\w+)\b"
    r"|\[Request interrupted by user)"
)
_COMMAND = re.compile(r"<command-name>([^<]+)</command-name>")
LEFT_OUT = frozenset([
    "attachment", "progress", "file-history-snapshot", "permission-mode", "mode", "agent-name", "agent-color",
    "frame-link", "agent-setting", "pr-link", "tag", "last-prompt", "agent_metadata", "api-request",
    "api-request-blob", "api-request-shape", "atis-latch", "cost-state", "rate_limit_event", "result",
    "stream_event", "tools-used",
])  # fmt: skip
"""Records that make no turn: data of the harness and of the screen. They are in the archive."""


def _roots() -> list[Path]:
    if folder := os.environ.get("CLAUDE_CONFIG_DIR"):
        return [Path(folder)]
    return [path for path in (Path.home() / ".claude", Path.home() / ".config" / "claude") if path.is_dir()]


def session_id_of(path: Path) -> str:
    """The id of a session, `<id>/subagents/agent-x` for a subagent; versions of Claude Code put its file in different
    folders."""
    if not path.stem.startswith("agent-"):
        return path.stem
    for above in path.parents:
        if above.name == "subagents":
            below = path.relative_to(above).with_suffix("")
            return f"{above.parent.name}/subagents/{below.as_posix()}"
    # Older versions put it next to the session, whose id is in the records.
    for line in read_lines(path):
        main = line.record.get("sessionId")
        if isinstance(main, str) and main:
            return f"{main.partition('/')[0] or 'unknown'}/subagents/{path.stem}"
    return path.stem


class _ClaudeTurns(TurnMaker):
    agent = "claude-code"

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._turn_of: dict[str, int] = {}
        """The number of the last turn at or before a record, by the record's uuid."""
        self._last = ""
        """The uuid of the last record of the main conversation."""

    def feed(self, record: Record) -> list[Turn]:
        self._see_place(record)
        kind = record.get("type")
        marks = ("sidechain=yes",) if record.get("isSidechain") else ()
        if kind == "unreadable":
            turns = self._unreadable_turn(record)
        elif kind == "user":
            turns = self._user_turns(record, marks + self._back_mark(record))
        elif kind == "assistant":
            turns = self._assistant_turns(record, marks)
        elif kind == "system":
            turns = self._system_turns(record)
        elif kind == "queue-operation":
            steering = record.get("content") if record.get("operation") == "remove" else None
            turns = self._turn("user", "text", content_text(steering), record)
        else:
            turns = []
            if str(kind) not in LEFT_OUT and not self._take_title(record):
                self._see_unknown(kind)
        uuid = record.get("uuid")
        if isinstance(uuid, str):
            parent = record.get("parentUuid")
            before = self._turn_of.get(parent, 0) if isinstance(parent, str) else self.n
            self._turn_of[uuid] = self.n if turns else before
            if not record.get("isSidechain"):
                self._last = uuid
        return turns

    def _see_place(self, record: Record) -> None:
        self._see_time(record)
        for ours, theirs in (("cwd", "cwd"), ("branch", "gitBranch")):
            if isinstance(record.get(theirs), str) and record[theirs]:
                setattr(self, ours, record[theirs])
        self.began_in = self.began_in or self.cwd

    def _take_title(self, record: Record) -> bool:
        """Take the title from a record; returns whether it has one. Such a record has nothing else."""
        for field in ("customTitle", "aiTitle", "summary"):
            if isinstance(record.get(field), str):
                self.title = " ".join(record[field].split())[:200]
                return True
        return False

    def _back_mark(self, record: Record) -> tuple[str, ...]:
        """The mark of a prompt that does not follow the last record: the turns after its parent were abandoned."""
        parent = record.get("parentUuid")
        content = (record.get("message") or {}).get("content") if isinstance(record.get("message"), dict) else None
        is_result = isinstance(content, list) and any(
            isinstance(block, dict) and block.get("type") == "tool_result" for block in content
        )
        if is_result or record.get("isSidechain") or not isinstance(parent, str) or parent == self._last:
            return ()
        to = self._turn_of.get(parent)
        return (f"back_to={to}",) if to is not None and to < self.n else ()

    def _user_turns(self, record: Record, marks: tuple[str, ...]) -> list[Turn]:
        if record.get("isMeta"):
            return []
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if record.get("isCompactSummary"):
            return self._turn("user", "summary", content_text(content), record, marks=marks)
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content_text(content)}]
        turns: list[Turn] = []
        words: list[Any] = []
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                prefix = "[error]\n" if block.get("is_error") else ""
                turns += self._result_turn(block, record, prefix, marks=marks)
            else:
                words.append(block)
        text = content_text(words)
        if text and "sidechain=yes" not in marks:
            if not _NOT_A_PROMPT.match(text):
                self._see_prompt(text)
            elif command := _COMMAND.search(text):
                self._see_prompt(command[1])
        return turns + self._turn("user", "text", text, record, marks=marks)

    def _assistant_turns(self, record: Record, marks: tuple[str, ...]) -> list[Turn]:
        message = record.get("message")
        if not isinstance(message, dict):
            return []
        if isinstance(message.get("model"), str):
            self.model = message["model"]
        content = message.get("content")
        turns: list[Turn] = []
        for block in content if isinstance(content, list) else [{"type": "text", "text": content_text(content)}]:
            if not isinstance(block, dict):
                continue
            if block.get("type") in ("tool_use", "server_tool_use"):
                turns += self._call_turn(block, record, marks=marks)
            elif block.get("type") not in ("thinking", "redacted_thinking"):
                turns += self._turn("assistant", "text", content_text([block]), record, marks=marks)
        return turns

    def _system_turns(self, record: Record) -> list[Turn]:
        subtype = record.get("subtype")
        if subtype == "compact_boundary":
            details = record.get("compactMetadata")
            details = details if isinstance(details, dict) else {}
            trigger, tokens = details.get("trigger", "?"), details.get("preTokens", "?")
            text = f"[conversation compacted: {trigger}, {tokens} tokens before]"
            return self._turn("system", "summary", text, record)
        is_error = record.get("level") == "error" or "error" in str(subtype)
        if is_error:
            text = content_text(record.get("content")) or as_text(record.get("error") or record.get("cause") or "")
            return self._turn("system", "text", f"[{subtype or 'error'}] {text}", record)
        return []


class ClaudeCode(SessionReader):
    """Finds and reads the sessions of Claude Code."""

    agent = _ClaudeTurns.agent
    maker = _ClaudeTurns

    def discover(self) -> Iterator[SessionFile]:
        """Sessions and those of their subagents, in any order. A file that vanishes meanwhile is left out."""
        for root in _roots():
            yield from sessions_of(sorted((root / "projects").glob("*/**/*.jsonl")), self)

    def file(self, path: Path) -> SessionFile:
        return SessionFile(path, session_id_of(path), self.agent, path.stat().st_mtime)
