"""Find the sessions on this machine, recognize the agent that wrote a file, and read any chat in JSON lines."""

from __future__ import annotations

import hashlib
import os
from itertools import islice
from pathlib import Path

from monocontext.errors import InvalidText, NotFound
from monocontext.sessions.claude_code import ClaudeCode
from monocontext.sessions.codex import Codex
from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, blocks_of, text_of
from monocontext.sessions.records import Record, dumps, object_in, read_lines, string_in
from monocontext.sessions.turn import Turn

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}
_CODEX_TYPES = frozenset(["session_meta", "turn_context", "response_item", "event_msg", "compacted"])
_SAMPLE_LINES = 50  # the first lines of a transcript, by which its agent is recognized


class _ChatTurns(TurnMaker):
    def _turns(self, record: Record) -> list[Turn]:
        if not _is_message(record):
            self._note_unknown(record.get("type"))
            return []
        role, text = record["role"].strip().lower(), text_of(record.get("content"))
        role = _ROLES.get(role, role if role in ("user", "assistant", "system", "tool") else "user")
        if role == "tool":
            return self._add_turn("tool", "tool_result", text, tool=string_in(record, "name"))
        if role == "user":
            self._note_prompt(text)
        turns = self._add_turn(role, "text", text)
        for block in blocks_of(record.get("content")):
            if block.get("type") == "tool_use":
                turns += self._call_turns(block)
            elif block.get("type") == "tool_result":
                turns += self._result_turns(block, text_of(block.get("content")))
        for call in blocks_of(record.get("tool_calls")):
            if function := object_in(call, "function"):
                arguments = as_text(function.get("arguments"))
                turns += self._add_turn("assistant", "tool_use", arguments, tool=string_in(function, "name"))
        return turns


class Chat(SessionReader):
    """Reads a file that the user names, with a message of a chat API on each line: its `role` and `content`."""

    agent = "chat"
    maker = _ChatTurns

    def session_id(self, path: Path) -> str:
        """The file's name and a hash of the first message, since many files are named `chat.jsonl`."""
        first = next(self.lines(path), None)
        digest = hashlib.sha256(dumps(first.record) if first else b"").hexdigest()
        return f"{path.name.partition('.')[0] or 'chat'}-{digest[:8]}"


SESSION_READERS: dict[str, SessionReader] = {item.agent: item for item in (ClaudeCode(), Codex(), Chat())}


def discover_sessions(agent: str | None = None) -> list[SessionFile]:
    """The sessions of an agent, or of all, on this machine, newest first. Raises `NotFound` for an unknown agent."""
    if agent is not None and agent not in SESSION_READERS:
        raise NotFound(f"no agent {agent!r}: choose from {', '.join(SESSION_READERS)}")
    readers = [SESSION_READERS[agent]] if agent else SESSION_READERS.values()
    results = [file for reader in readers for file in reader.discover()]
    return sorted(results, key=lambda file: (-file.modified_seconds, str(file.path)))


def find_sessions(name: str, agent: str | None = None) -> list[SessionFile]:
    """The session in the file `name`, or the session whose id begins with `name` and those of its subagents.
    `agent`: the agent that wrote it, if known. Raises `NotFound`, and `InvalidText` for a file that is no session."""
    if os.path.isfile(name):
        return [recognize_session(Path(name), agent)]
    if os.sep in name or name.endswith((".jsonl", ".jsonl.zst")):
        raise NotFound(f"no such file: {name}")
    results = [file for file in discover_sessions(agent) if file.session_id.startswith(name)]
    mains = {file.session_id.partition("/")[0] for file in results}
    if not results:
        raise NotFound(f"no session {name!r} on this machine: pass the id of a session, or its beginning")
    if len(mains) > 1:
        raise NotFound(f"{len(mains)} session ids begin with {name!r}: give more of the id, as in {min(mains)}")
    return results


def recognize_session(path: Path, agent: str | None = None) -> SessionFile:
    """The session in a file. `agent`: by default recognized by the records. Raises `OSError`, and `InvalidText`."""
    return SESSION_READERS[agent or _recognize_agent(path)].file(path)


def _recognize_agent(path: Path) -> str:
    if not path.name.endswith((".jsonl", ".jsonl.zst")):
        raise InvalidText(f"{path}: expected a file of JSON lines, *.jsonl or *.jsonl.zst")
    sample = list(islice(read_lines(path), _SAMPLE_LINES))
    readable = [line.record for line in sample if not line.problem]
    if not readable:
        problem = f"not JSON lines: line {sample[0].number}: {sample[0].problem}" if sample else "the file is empty"
        raise InvalidText(f"{path}: {problem}")
    for record in readable:
        kind = record.get("type")
        is_head = kind is None and {"id", "instructions"} <= record.keys()
        if is_head or (str(kind) in _CODEX_TYPES and "payload" in record):
            return Codex.agent
        if not {"sessionId", "uuid", "leafUuid"}.isdisjoint(record):
            return ClaudeCode.agent
        if _is_message(record):
            return Chat.agent
    return ClaudeCode.agent  # records of unknown types are archived as they are


def _is_message(record: Record) -> bool:
    has_content = "content" in record or isinstance(record.get("tool_calls"), list)
    return isinstance(record.get("role"), str) and has_content
