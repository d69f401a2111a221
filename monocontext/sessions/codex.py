"""Find the sessions of Codex, which it calls rollouts, and make turns from their records."""

from __future__ import annotations

import json
import math
import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, blocks_of, text_of
from monocontext.sessions.records import Record, object_in, read_lines, string_in
from monocontext.sessions.turn import Turn, seconds_of

_FOLDERS = ("sessions", "archived_sessions")  # of rollouts, in the folder of `home`
_SET_UP = re.compile(r"\s*<(environment_context|user_instructions|permissions)\b|# AGENTS\.md")
_NOTICE = re.compile(r"\s*<subagent_notification>\s*(\{.*\})\s*</subagent_notification>\s*", re.S)
_CALLS = {  # the types of items that are calls of tools, each with the field that has the arguments
    "function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action",
    "web_search_call": "action", "tool_search_call": "arguments", "image_generation_call": "revised_prompt",
}  # fmt: skip
_COMPLETED = {  # the types of completed items that are calls of tools, each with its tool, which it may not name
    "CommandExecution": "exec_command", "FileChange": "apply_patch", "McpToolCall": "mcp", "DynamicToolCall": "tool",
    "WebSearch": "web_search"}  # fmt: skip
_MESSAGES = {"user_message": "user", "agent_message": "assistant", "UserMessage": "user", "AgentMessage": "assistant"}
_RESULTS = frozenset(["function_call_output", "custom_tool_call_output", "tool_search_output"])
LEFT_OUT = frozenset([  # types of items and records that make no turn: settings, counts, what is encrypted or elsewhere
    "reasoning", "ghost_snapshot", "additional_tools", "configuration_update", "compaction_trigger", "other", "state",
    "world_state", "token_usage_record", "inter_agent_communication_metadata", "dynamic_tools_updated",
    "security_risk_score"])  # fmt: skip
_TWIN_SECONDS = 0.5  # the most time between two forms of a message
_TWIN_RECORDS = 4  # the most records from one form of a message to the next, if they have no time
_REPLAY_SECONDS = 1.0  # a fork's record that is this much later than its parent's description is not a copy
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEAD_RECORDS = 8  # the first records of a file, which describe its thread; in a fork perhaps after its parent
_MOST_LEVELS = 10  # levels of subagents of subagents


def home() -> Path:
    """The folder in which Codex keeps this user's files."""
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


@dataclass(slots=True)
class _Message:
    """A message, which a file may have in several forms: as `item`, `event` and `completed`."""

    role: str
    text: str
    seconds: float | None  # its time, in seconds since 1970; None if the record has none
    record_number: int
    forms: set[str]  # the forms that were read so far


class _CodexTurns(TurnMaker):
    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._thread = session_id.rpartition("/")[2]
        self._is_described = False  # a description of a session was read
        self._is_replay = False  # the records are copies of the parent's, with which a fork begins
        self._forked_at: float | None = None  # the time of the parent's description in a fork
        self._turns_before_prompts: list[int] = []  # the number of turns before each prompt that was not rolled back
        self._messages: deque[_Message] = deque(maxlen=64)  # the last ones: forms of a message are near each other
        self._shown: set[str] = set()  # the ids of calls whose completed form came first
        self._record_number = 0

    def _turns(self, record: Record) -> list[Turn]:
        self._record_number += 1
        record_type, payload = record.get("type"), record.get("payload")
        item = payload if isinstance(payload, dict) else record  # early versions had no envelope
        if record_type == "session_meta" or (record_type is None and "id" in record):
            self._note_session(item)
            return []
        now, forked_at = seconds_of(self._time), self._forked_at
        is_later = now is not None and forked_at is not None and now > forked_at + _REPLAY_SECONDS
        self._is_replay = self._is_replay and not is_later and item.get("thread_id") != self._thread
        if record_type == "turn_context" and not self._is_replay:
            self.cwd = string_in(item, "cwd") or self.cwd
        elif record_type == "compacted":
            return self._add_turn("system", "summary", text_of(item.get("message")) or "[compacted]")
        elif record_type == "event_msg":
            return self._event_turns(item)
        elif record_type == "inter_agent_communication":
            return self._agent_turns(item, "event")
        elif record_type == "response_item" or item is record:
            return self._item_turns(item)
        elif record_type != "turn_context" and str(record_type) not in LEFT_OUT:
            self._note_unknown(record_type)
        return []

    def _note_session(self, item: Record) -> None:
        """Note a session's directory and repository. A fork also has its parent's description, which is ignored."""
        is_own = item.get("id") in (None, self._thread)
        if self._is_described and not is_own:
            self._is_replay, self._forked_at = True, seconds_of(self._time) or math.inf
            return
        if is_own and self._is_described and not self.began_in:  # earlier values are the parent's
            self.cwd = self.branch = self.remote = self.title = self.first_prompt = ""
        git = object_in(item, "git")
        self.cwd, self.branch = string_in(item, "cwd") or self.cwd, string_in(git, "branch") or self.branch
        self.remote = string_in(git, "repository_url") or self.remote
        if is_own:
            self.began_in = self.began_in or self.cwd
        if item.get("thread_source") == "subagent":
            self.title = string_in(item, "agent_path") or string_in(item, "agent_nickname")
        self._is_described, self._is_replay = True, False

    def _event_turns(self, item: Record) -> list[Turn]:
        event_type, text = str(item.get("type")), text_of(item.get("message"))
        if event_type in _MESSAGES:
            return self._message_turns(_MESSAGES[event_type], text, "event")
        if event_type == "error":
            return self._add_turn("system", "text", f"[error] {text}")
        if event_type == "turn_aborted":
            return self._once("system", "[interrupted]", "event")
        if event_type == "thread_name_updated" and not self._is_replay:
            self._note_title(string_in(item, "thread_name"))
        if event_type == "item_completed":
            return self._completed_turns(object_in(item, "item"))
        prompts = item.get("num_turns")
        if event_type == "thread_rolled_back" and isinstance(prompts, int) and prompts >= 1:
            abandoned = self._turns_before_prompts[-prompts:]
            del self._turns_before_prompts[-prompts:]
            marks = (f"back_to={abandoned[0]}",) if abandoned else ()
            return self._add_turn("system", "summary", "[rolled back]", marks=marks)
        return []  # the file has all other events as items, too

    def _completed_turns(self, item: Record) -> list[Turn]:
        """The turns of an item as the screen showed it. Most files also have the item as the model saw it."""
        item_type, item_id = str(item.get("type")), str(item.get("id"))
        if item_type in _MESSAGES:
            text = text_of(item.get("content") or item.get("text"))
            return self._message_turns(_MESSAGES[item_type], text, "completed")
        if item_type not in _COMPLETED or item_id in self._tools:
            return []
        self._shown.add(item_id)
        tool = self._tools[item_id] = str(item.get("tool") or _COMPLETED[item_type])
        arguments = _first(item, "command", "arguments", "query", "changes")
        reported = _output_text(_first(item, "aggregated_output", "result", "error", "stdout"))
        return self._tool_turns(tool, arguments, reported)

    def _tool_turns(self, tool: str, arguments: Any, reported: str) -> list[Turn]:
        turns = self._add_turn("assistant", "tool_use", as_text(arguments) or "[no arguments]", tool=tool)
        return turns + self._add_turn("tool", "tool_result", reported, tool=tool)

    def _item_turns(self, item: Record) -> list[Turn]:
        item_type = str(item.get("type") or item.get("record_type"))
        call, item_id = str(item.get("call_id")), str(item.get("id"))
        if item_type == "message":
            role = str(item.get("role", "assistant"))
            return self._message_turns(role, text_of(item.get("content")), "item")
        if item_type == "agent_message":
            return self._agent_turns(item, "item")
        if self._shown & {call, item_id}:
            return []
        if item_type in _CALLS:
            tool = self._tools[item_id] = self._tools[call] = str(item.get("name") or item_type.removesuffix("_call"))
            is_picture = item_type == "image_generation_call" and item.get("result")
            return self._tool_turns(tool, item.get(_CALLS[item_type]) or "", "[image]" if is_picture else "")
        if item_type in _RESULTS:
            is_search = item_type == "tool_search_output"
            text = _tools_found(item.get("tools")) if is_search else _output_text(item.get("output"))
            return self._add_turn("tool", "tool_result", text, tool=self._tools.get(call, ""))
        if item_type in ("compaction", "context_compaction"):
            return self._add_turn("system", "summary", "[conversation compacted]")
        if item_type not in LEFT_OUT:
            self._note_unknown(item_type)
        return []

    def _message_turns(self, role: str, text: str, form: str) -> list[Turn]:
        if role not in ("user", "assistant") or (role == "user" and _SET_UP.match(text)):
            return []
        if role == "user" and re.match(r"\s*<turn_aborted\b", text):
            return self._once("system", "[interrupted]", form)
        if role == "user" and (notice := _NOTICE.fullmatch(text)):
            return self._once("assistant", _notice_text(notice[1]), form)
        before = self.turn_count
        turns = self._once(role, text, form)
        if turns and role == "user":
            self._turns_before_prompts.append(before)
            if self._forked_at is not None and not self._is_replay:  # the first of its own replaces its parent's
                self.first_prompt, self._forked_at = "", None
            self._note_prompt(text)
        return turns

    def _agent_turns(self, item: Record, form: str) -> list[Turn]:
        who = f"[{item.get('author')} to {item.get('recipient')}]"
        return self._once("assistant", f"{who}\n{text_of(item.get('content')).strip()}", form)

    def _once(self, role: str, text: str, form: str) -> list[Turn]:
        """The turn of a message; none if the file has just had it in another form (`item`, `event` or `completed`)."""
        message = _Message(role, text.strip(), seconds_of(self._time), self._record_number, {form})
        for earlier in self._messages:
            is_near = message.record_number - earlier.record_number <= _TWIN_RECORDS
            if earlier.seconds is not None and message.seconds is not None:
                is_near = abs(message.seconds - earlier.seconds) <= _TWIN_SECONDS
            is_same = (earlier.role, earlier.text) == (role, message.text)
            if is_same and is_near and form not in earlier.forms:
                earlier.forms.add(form)
                return []
        self._messages.append(message)
        return self._add_turn(role, "text", text)


def _first(item: Record, *names: str) -> Any:
    return next((item[name] for name in names if item.get(name)), "")


def _output_text(output: Any) -> str:
    """The text of a tool's output, which some versions wrap in an object, or in the JSON of an object."""
    if isinstance(output, str) and output.startswith('{"output"'):
        with suppress(ValueError):
            output = json.loads(output)
    if isinstance(output, dict):
        return text_of(output.get("output", output.get("content"))) or as_text(output)
    return text_of(output)


def _tools_found(tools: Any) -> str:
    """The names of the tools that a search found: `read, github (list, get)`, where `github` is a namespace."""
    named = [(tool.get("name"), blocks_of(tool.get("tools"))) for tool in blocks_of(tools)]
    return ", ".join(f"{name} ({_tools_found(below)})" if below else str(name) for name, below in named) or "[no tools]"


def _notice_text(text: str) -> str:
    """The result of a subagent as text, from the JSON in which Codex reports it to the parent agent."""
    try:
        outcome = json.loads(text)
    except ValueError:
        return text
    status = outcome.get("status")
    result = next(iter(status.values()), None) if isinstance(status, dict) else status
    return f"[{outcome.get('agent_path')}]\n{as_text(result)}"


class Codex(SessionReader):
    """Finds and reads the sessions of Codex."""

    agent = "codex"
    maker = _CodexTurns

    def discover(self) -> Iterator[SessionFile]:
        """The sessions, including archived ones and those of subagents, in any order."""
        for folder in _FOLDERS:
            yield from self.files(_rollouts(home() / folder))

    def below(self, file: SessionFile) -> Iterator[SessionFile]:
        """The sessions of a session's subagents. Only files that began later, by their names, are read."""
        folder = next((above for above in file.path.parents if above.name in _FOLDERS), file.path.parent)
        later = self.files(path for path in _rollouts(folder) if path.name > file.path.name)
        return (item for item in later if item.session_id.startswith(f"{file.session_id}/subagents/"))

    def session_id(self, path: Path) -> str:
        """The id: `<uuid>`, or for a subagent `<session>/subagents/<uuid>`. Without a uuid, the name of the file."""
        own = _thread_of(path)
        main = _main_thread(path, own)
        return own if main == own else f"{main}/subagents/{own}"


def _rollouts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("**/rollout-*.jsonl*") if path.name.endswith((".jsonl", ".jsonl.zst")))


def _thread_of(path: Path) -> str:
    matches = _UUID.findall(path.name)
    return matches[-1] if matches else path.name.partition(".jsonl")[0]


def _main_thread(path: Path, thread: str, levels: int = _MOST_LEVELS) -> str:
    """The thread of the main session to which a thread belongs: `thread` itself, unless it is a subagent's."""
    heads = list[Record]()
    with suppress(OSError):  # a damaged or unfinished file: what precedes the damage counts
        for line in islice(read_lines(path), _HEAD_RECORDS):
            if line.record.get("type") == "session_meta":
                heads.append(object_in(line.record, "payload"))
    head = next((item for item in heads if item.get("id") == thread), heads[0] if heads else {})
    own, source = head.get("id"), object_in(head, "source")
    if not source.get("subagent") and head.get("thread_source") != "subagent":
        return thread
    if (session := string_in(head, "session_id")) and session != own:
        return session
    # A version that does not name the session; the parent may be a subagent, too.
    spawn = object_in(object_in(source, "subagent"), "thread_spawn")
    named = (string_in(head, "parent_thread_id"), string_in(spawn, "parent_thread_id"))
    parent = next((item for item in named if item and item != own), thread)
    above = next((item for item in path.parent.glob("rollout-*.jsonl*") if _thread_of(item) == parent), None)
    return _main_thread(above, parent, levels - 1) if above and levels and parent != thread else parent
