"""Find the sessions of Codex, which it calls rollouts, and make turns from their records."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from monocontext.sessions.codex_threads import thread_name
from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, content_text, sessions_of
from monocontext.sessions.records import Record
from monocontext.sessions.turn import Turn

FOLDERS = ("sessions", "archived_sessions")
"""The folders in which the agent keeps sessions, below its own."""
_SET_UP = re.compile(r"\s*<(environment_context|user_instructions|permissions)\b|# AGENTS\.md")
_INTERRUPTED = re.compile(r"\s*<turn_aborted\b")
_NOTICE = re.compile(r"\s*<subagent_notification>\s*(\{.*\})\s*</subagent_notification>\s*", re.S)
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
    "tool_search_call": "arguments",
    "image_generation_call": "revised_prompt",
}
"""The types of items that are calls of tools, each with the field that has the arguments."""
_COMPLETED = {
    "CommandExecution": "exec_command",
    "FileChange": "apply_patch",
    "McpToolCall": "mcp",
    "DynamicToolCall": "tool",
    "WebSearch": "web_search",
}
"""The types of completed items that are calls of tools, each with the name of the tool that it does not give."""
_RESULTS = frozenset(["function_call_output", "custom_tool_call_output", "tool_search_output"])
LEFT_OUT = {
    "reasoning": "encrypted",
    "ghost_snapshot": "a commit of the program's own",
    "additional_tools": "descriptions of tools",
    "configuration_update": "settings",
    "compaction_trigger": "the compaction itself is a turn",
    "other": "empty",
    "world_state": "settings",
    "token_usage_record": "counts",
    "inter_agent_communication_metadata": "the message itself is a turn",
    "dynamic_tools_updated": "descriptions of tools",
    "security_risk_score": "a score",
    "state": "settings, of an early version",
}
"""Types of items and records that make no turn, and why. They are in the archive; other types count as unknown."""
_TWIN_SECONDS = 0.5
"""The most time between two records of one event."""
_TWIN_RECORDS = 4
"""A file has each message twice or more, as an item and as events. The second is so much later at most, by its time or,
if it has none, by its number."""
_REPLAY_SECONDS = 1.0
"""A fork first copies its parent's records, all at once. A record that is so much later is its own."""


def home() -> Path:
    """The folder of Codex of this user."""
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


def _rollouts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("**/rollout-*.jsonl*") if path.name.endswith((".jsonl", ".jsonl.zst")))


@dataclass(frozen=True, slots=True)
class _Message:
    """A message that the file may have again, in another form."""

    role: str
    text: str
    seconds: float | None
    number: int
    """Number of the record."""
    forms: set[str]
    """The forms in which it was read: `item`, `event`, `completed`."""

    def is_twin_of(self, other: _Message) -> bool:
        """Whether both are the same message in different forms."""
        if (self.role, self.text) != (other.role, other.text) or self.forms & other.forms:
            return False
        if self.seconds is None or other.seconds is None:
            return abs(self.number - other.number) <= _TWIN_RECORDS
        return abs(self.seconds - other.seconds) <= _TWIN_SECONDS


class _CodexTurns(TurnMaker):
    agent = "codex"

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._thread = session_id.rpartition("/")[2]
        self._is_placed = False
        self._replay_began: float | None = None
        self._is_replay = False
        self._is_prompt_inherited = False
        self._before_prompts: list[int] = []
        self._messages: deque[_Message] = deque(maxlen=64)
        """The last messages."""
        self._shown: set[str] = set()
        """The ids of calls whose completed form came first."""
        self._number = 0

    def feed(self, record: Record) -> list[Turn]:
        self._number += 1
        self._see_time(record)
        kind = record.get("type")
        if kind == "unreadable":
            return self._unreadable_turn(record)
        payload = record.get("payload")
        item = payload if isinstance(payload, dict) else record  # early versions had no envelope
        if kind == "session_meta" or (kind is None and "id" in record):
            self._see_session(item, record)
            return []
        self._end_replay(item, record)
        if kind == "turn_context":
            self._see_context(item)
        elif kind == "compacted":
            return self._turn("system", "summary", content_text(item.get("message")) or "[compacted]", record)
        elif kind == "event_msg":
            return self._event_turns(item, record)
        elif kind == "inter_agent_communication":
            return self._agent_turns(item, record, "event")
        elif kind == "response_item" or item is record:
            return self._item_turns(item, record)
        elif str(kind) not in LEFT_OUT:
            self._see_unknown(kind)
        return []

    # -- the place of the session --------------------------------------------------------------------------------------

    def _see_session(self, item: Record, record: Record) -> None:
        """Read where a session is. A fork also has its parent's description, before or after its own: that one decides
        neither its place nor its title."""
        is_own = item.get("id") in (None, self._thread)
        if self._is_placed and not is_own:
            self._is_replay, self._replay_began = True, _seconds(record)
            return
        if is_own and self._is_placed and not self.began_in:  # earlier values are the parent's
            self.cwd = self.branch = self.remote = self.title = self.first_prompt = ""
        git = item.get("git")
        git = git if isinstance(git, dict) else {}
        self.cwd, self.branch = _word(item, "cwd") or self.cwd, _word(git, "branch") or self.branch
        self.remote = _word(git, "repository_url") or self.remote
        if is_own:
            self.began_in = self.began_in or self.cwd
        if item.get("thread_source") == "subagent":
            self.title = _word(item, "agent_path") or _word(item, "agent_nickname")
        self._is_placed, self._is_replay = True, False

    def _see_context(self, item: Record) -> None:
        if not self._is_replay:
            self.cwd, self.model = _word(item, "cwd") or self.cwd, _word(item, "model") or self.model

    def _end_replay(self, item: Record, record: Record) -> None:
        if not self._is_replay:
            return
        offset, began = _seconds(record), self._replay_began
        self._is_replay = not (
            item.get("thread_id") == self._thread
            or (offset is not None and began is not None and offset > began + _REPLAY_SECONDS)
        )

    def _see_prompt(self, text: str) -> None:
        if self._is_prompt_inherited and not self._is_replay:
            self.first_prompt = ""
        super()._see_prompt(text)
        self._is_prompt_inherited = self._is_replay

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _event_turns(self, item: Record, record: Record) -> list[Turn]:
        kind = item.get("type")
        if kind == "user_message":
            return self._message_turns("user", content_text(item.get("message")), record, "event")
        if kind == "agent_message":
            return self._message_turns("assistant", content_text(item.get("message")), record, "event")
        if kind == "error":
            return self._turn("system", "text", f"[error] {content_text(item.get('message'))}", record)
        if kind == "turn_aborted":
            return self._once("system", "[interrupted]", record, "event")
        if kind == "thread_rolled_back":
            return self._rolled_back(item, record)
        if kind == "thread_name_updated" and not self._is_replay:
            self.title = _word(item, "thread_name")[:200] or self.title
        if kind == "item_completed" and isinstance(item.get("item"), dict):
            return self._completed_turns(item["item"], record)
        return []  # the file has all other events as items, too

    def _completed_turns(self, item: Record, record: Record) -> list[Turn]:
        """The turns of an item that its thread shows; most files have it a second time, as the model saw it."""
        kind = str(item.get("type"))
        if kind in ("UserMessage", "AgentMessage"):
            role = "user" if kind == "UserMessage" else "assistant"
            return self._message_turns(role, content_text(item.get("content") or item.get("text")), record, "completed")
        if kind not in _COMPLETED or str(item.get("id")) in self._tools:
            return []
        self._shown.add(str(item.get("id")))
        tool = self._tools[str(item.get("id"))] = str(item.get("tool") or _COMPLETED[kind])
        asked = next((item[name] for name in ("command", "arguments", "query", "changes") if item.get(name)), "")
        reported = next(
            (item[name] for name in ("aggregated_output", "result", "error", "stdout") if item.get(name)), ""
        )
        turns = self._turn("assistant", "tool_use", as_text(asked) or "[no arguments]", record, tool=tool)
        return turns + self._turn("tool", "tool_result", _output_text(reported), record, tool=tool)

    def _item_turns(self, item: Record, record: Record) -> list[Turn]:
        kind = str(item.get("type") or item.get("record_type"))
        call = str(item.get("call_id"))
        if kind == "message":
            role = str(item.get("role", "assistant"))
            return self._message_turns(role, content_text(item.get("content")), record, "item")
        if kind == "agent_message":
            return self._agent_turns(item, record, "item")
        if self._shown & {call, str(item.get("id"))}:
            return []
        if kind in _CALLS:
            tool = self._tools[str(item.get("id"))] = self._tools[call] = str(
                item.get("name") or kind.removesuffix("_call")
            )
            asked = as_text(item.get(_CALLS[kind]) or "")
            turns = self._turn("assistant", "tool_use", asked or "[no arguments]", record, tool=tool)
            if kind == "image_generation_call" and item.get("result"):
                turns += self._turn("tool", "tool_result", "[image]", record, tool=tool)
            return turns
        if kind in _RESULTS:
            is_search = kind == "tool_search_output"
            text = _tools_found(item.get("tools")) if is_search else _output_text(item.get("output"))
            return self._turn("tool", "tool_result", text, record, tool=self._tools.get(call, ""))
        if kind in ("compaction", "context_compaction"):
            return self._turn("system", "summary", "[conversation compacted]", record)
        if kind not in LEFT_OUT:
            self._see_unknown(kind)
        return []

    def _message_turns(self, role: str, text: str, record: Record, form: str) -> list[Turn]:
        if role not in ("user", "assistant") or (role == "user" and _SET_UP.match(text)):
            return []
        if role == "user" and _INTERRUPTED.match(text):
            return self._once("system", "[interrupted]", record, form)
        if role == "user" and (notice := _NOTICE.fullmatch(text)):
            return self._once("assistant", _notice_text(notice[1]), record, form)
        before = self.n
        turns = self._once(role, text, record, form)
        if turns and role == "user":
            self._before_prompts.append(before)
            self._see_prompt(text)
        return turns

    def _agent_turns(self, item: Record, record: Record, form: str) -> list[Turn]:
        """The turn of a message between agents: a task, or its result."""
        who = f"[{item.get('author')} to {item.get('recipient')}]"
        return self._once("assistant", f"{who}\n{content_text(item.get('content')).strip()}", record, form)

    def _once(self, role: str, text: str, record: Record, form: str) -> list[Turn]:
        message = _Message(role, text.strip(), _seconds(record), self._number, {form})
        for other in self._messages:
            if message.is_twin_of(other):
                other.forms.add(form)
                return []
        self._messages.append(message)
        return self._turn(role, "text", text, record)

    def _rolled_back(self, item: Record, record: Record) -> list[Turn]:
        count = item.get("num_turns")
        if not isinstance(count, int) or count < 1:
            return []
        abandoned = self._before_prompts[-count:]
        del self._before_prompts[-count:]
        marks = (f"back_to={abandoned[0]}",) if abandoned else ()
        return self._turn("system", "summary", "[rolled back]", record, marks=marks)


def _output_text(output: Any) -> str:
    """The text of a tool's output. Some versions write an object around it, or that object as JSON text."""
    if isinstance(output, str) and output.startswith('{"output"'):
        try:
            output = json.loads(output)
        except ValueError:
            return content_text(output)
    if isinstance(output, dict):
        return content_text(output.get("output", output.get("content"))) or as_text(output)
    return content_text(output)


def _tools_found(tools: Any) -> str:
    """The names of the tools that a search found; the tools of a namespace follow its name."""
    names: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            within = tool.get("tools")
            inner = f" ({_tools_found(within)})" if isinstance(within, list) and within else ""
            names.append(f"{tool.get('name')}{inner}")
    return ", ".join(names) or "[no tools]"


def _notice_text(text: str) -> str:
    """The result of a subagent, as the program reports it to the parent."""
    try:
        outcome = json.loads(text)
    except ValueError:
        return text
    status = outcome.get("status")
    result = next(iter(status.values()), None) if isinstance(status, dict) else status
    return f"[{outcome.get('agent_path')}]\n{as_text(result)}"


def _seconds(record: Record) -> float | None:
    try:
        return datetime.fromisoformat(str(record.get("timestamp"))).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _word(found: Record, name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""


class Codex(SessionReader):
    """Finds and reads the sessions of Codex."""

    agent = _CodexTurns.agent
    maker = _CodexTurns

    def discover(self) -> Iterator[SessionFile]:
        """The sessions, including archived ones and those of subagents, in any order."""
        for folder in FOLDERS:
            yield from sessions_of(_rollouts(home() / folder), self)

    def below(self, file: SessionFile) -> Iterator[SessionFile]:
        """The sessions of a session's subagents. They began later, which the names of the files show."""
        folder = next((above for above in file.path.parents if above.name in FOLDERS), file.path.parent)
        later = (path for path in _rollouts(folder) if path.name > file.path.name)
        for item in sessions_of(later, self):
            if item.session_id.startswith(f"{file.session_id}/subagents/"):
                yield item

    def file(self, path: Path) -> SessionFile:
        return SessionFile(path, thread_name(path), self.agent, path.stat().st_mtime)
