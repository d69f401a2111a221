"""Find the sessions of Codex, its rollout files, and make turns out of their records."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from monocontext.sessions.reader import SessionFile, TurnMaker, as_text, content_text, sessions_of
from monocontext.sessions.records import Record, RecordLine, read_lines
from monocontext.sessions.turn import Turn

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SET_UP = re.compile(r"\s*<(environment_context|user_instructions|permissions|turn_aborted)\b|# AGENTS\.md")
_CALLS = frozenset(["function_call", "custom_tool_call", "local_shell_call", "web_search_call"])
_RESULTS = frozenset(["function_call_output", "custom_tool_call_output"])
_NEIGHBOURS = 4
"""User and agent text stand twice in a file, as an item and as an event, a few records apart."""


class Codex:
    """Finds and reads the sessions of Codex."""

    agent = "codex"

    def __init__(self, root: Path | None = None) -> None:
        self._root = root

    def discover(self) -> Iterator[SessionFile]:
        """Rollouts, archived ones too, in no order."""
        root = self._root or Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        for folder in ("sessions", "archived_sessions"):
            found = sorted((root / folder).glob("**/rollout-*.jsonl*"))
            yield from sessions_of(
                (path for path in found if path.name.endswith((".jsonl", ".jsonl.zst"))), session_file
            )

    def maker(self, session_id: str) -> TurnMaker:
        return _CodexTurns(session_id)

    def lines(self, path: Path) -> Iterable[RecordLine]:
        return read_lines(path)


def session_file(path: Path) -> SessionFile:
    return SessionFile(path, session_id_of(path), Codex.agent, path.stat().st_mtime)


def session_id_of(path: Path) -> str:
    """The uuid in the name of the file, else the name."""
    found = _UUID.findall(path.name)
    return found[-1] if found else path.name.partition(".jsonl")[0]


class _CodexTurns(TurnMaker):
    agent = Codex.agent

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._recent: deque[tuple[str, str]] = deque(maxlen=_NEIGHBOURS)

    def feed(self, record: Record) -> list[Turn]:
        self._see_time(record)
        kind = record.get("type")
        if kind == "unreadable":
            return self._unreadable_turn(record)
        payload = record.get("payload")
        item = payload if isinstance(payload, dict) else record  # early versions had no envelope
        if kind in ("session_meta", "turn_context") or (kind is None and "id" in record):
            self._see_place(item)
            return []
        if kind == "compacted":
            return self._turn("system", "summary", content_text(item.get("message")) or "[compacted]", record)
        if kind == "event_msg":
            return self._event_turns(item, record)
        if kind == "world_state":
            return []
        return self._item_turns(item, record)

    def _see_place(self, item: Record) -> None:
        git = item.get("git")
        branch = git.get("branch") if isinstance(git, dict) else None
        for ours, value in (("cwd", item.get("cwd")), ("branch", branch), ("model", item.get("model"))):
            if isinstance(value, str) and value:
                setattr(self, ours, value)

    def _event_turns(self, item: Record, record: Record) -> list[Turn]:
        kind = item.get("type")
        if kind == "user_message":
            return self._message_turns("user", content_text(item.get("message")), record)
        if kind == "agent_message":
            return self._message_turns("assistant", content_text(item.get("message")), record)
        if kind == "error":
            return self._turn("system", "text", f"[error] {content_text(item.get('message'))}", record)
        return []

    def _item_turns(self, item: Record, record: Record) -> list[Turn]:
        kind = str(item.get("type"))
        call = str(item.get("call_id"))
        if kind == "message":
            return self._message_turns(str(item.get("role", "assistant")), content_text(item.get("content")), record)
        if kind in _CALLS:
            tool = self._tools[call] = str(item.get("name") or kind.removesuffix("_call"))
            arguments = next((item[name] for name in ("arguments", "input", "action") if name in item), "")
            return self._turn("assistant", "tool_use", as_text(arguments), record, tool=tool)
        if kind in _RESULTS:
            return self._turn(
                "tool", "tool_result", _output_text(item.get("output")), record, tool=self._tools.get(call, "")
            )
        if kind not in ("reasoning", "ghost_snapshot"):
            self._see_unknown(kind)
        return []

    def _message_turns(self, role: str, text: str, record: Record) -> list[Turn]:
        is_set_up = role not in ("user", "assistant") or (role == "user" and _SET_UP.match(text))
        message = (role, text.strip())
        if is_set_up or message in self._recent:
            return []
        self._recent.append(message)
        if role == "user":
            self._see_prompt(text)
        return self._turn(role, "text", text, record)


def _output_text(output: Any) -> str:
    """The output of a tool: text, or an object around it, which some versions write as JSON text."""
    if isinstance(output, str) and output.startswith('{"output"'):
        try:
            output = json.loads(output)
        except ValueError:
            return content_text(output)
    if isinstance(output, dict):
        return content_text(output.get("output", output.get("content"))) or as_text(output)
    return content_text(output)
