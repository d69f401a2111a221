"""Find the sessions on this machine, and recognize the agent that wrote a file."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from monocontext.errors import InvalidText, NotFound
from monocontext.sessions.chat import Chat, is_message
from monocontext.sessions.claude_code import ClaudeCode
from monocontext.sessions.codex import Codex
from monocontext.sessions.reader import SessionFile, SessionReader
from monocontext.sessions.records import read_lines

AGENTS: dict[str, SessionReader] = {item.agent: item for item in (ClaudeCode(), Codex(), Chat())}
_CODEX_TYPES = frozenset(["session_meta", "turn_context", "response_item", "event_msg", "compacted"])
_SAMPLE_LINES = 50
"""The lines by which the agent of a transcript is recognised."""


def reader_of(file: SessionFile) -> SessionReader:
    """The reader for the agent of a session."""
    return AGENTS[file.agent]


def discover_sessions(agent: str | None = None) -> list[SessionFile]:
    """The sessions on this machine, the newest first. Raises `NotFound` for an agent that is not known."""
    if agent is not None and agent not in AGENTS:
        raise NotFound(f"no agent {agent!r}: there are {', '.join(AGENTS)}")
    readers = [AGENTS[agent]] if agent else AGENTS.values()
    results = [file for reader in readers for file in reader.discover()]
    return sorted(results, key=lambda file: (-file.modified_seconds, str(file.path)))


def find_sessions(name: str, agent: str | None = None) -> list[SessionFile]:
    """The sessions for an argument of a command: the path of a file, an id, or the beginning of an id.

    A session found by its id comes with those of its subagents. Raises `NotFound`, and `InvalidText` for a file that is
    no session.
    """
    if os.path.isfile(name):
        return [recognize_session(Path(name), agent)]
    if os.sep in name or name.endswith((".jsonl", ".jsonl.zst")):
        raise NotFound(f"no file {name}")
    results = [file for file in discover_sessions(agent) if file.session_id.startswith(name)]
    mains = {file.session_id.partition("/")[0] for file in results}
    if not results:
        raise NotFound(f"no session {name!r} on this machine")
    if len(mains) > 1:
        raise NotFound(f"{name!r} begins the ids of {len(mains)} sessions: {', '.join(sorted(mains)[:3])}...")
    return results


def recognize_session(path: Path, agent: str | None = None) -> SessionFile:
    """The session in a file, whose content tells the agent. Raises `InvalidText` if it is no session, `OSError`."""
    return AGENTS[agent or _recognize_agent(path)].file(path)


def _recognize_agent(path: Path) -> str:
    if not path.name.endswith((".jsonl", ".jsonl.zst")):
        raise InvalidText(f"{path}: expected a file of JSON lines, .jsonl or .jsonl.zst")
    sample = list(islice(read_lines(path), _SAMPLE_LINES))
    readable = [line.record for line in sample if not line.problem]
    if not sample:
        raise InvalidText(f"{path}: an empty file")
    if not readable:
        raise InvalidText(f"{path}: not JSON lines: line {sample[0].number}: {sample[0].problem}")
    for record in readable:
        kind = record.get("type")
        if (str(kind) in _CODEX_TYPES and "payload" in record) or (
            kind is None and {"id", "instructions"} <= record.keys()
        ):
            return Codex.agent
        if not {"sessionId", "uuid", "leafUuid"}.isdisjoint(record):
            return ClaudeCode.agent
        if is_message(record):
            return Chat.agent
    return ClaudeCode.agent  # archived as JSON lines of unknown type
