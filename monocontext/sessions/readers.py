"""Find the sessions on this machine, and recognize the agent that wrote a file."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from monocontext.errors import InvalidText, NotFound
from monocontext.sessions import aider, cursor, gemini_cli, opencode
from monocontext.sessions.aider import Aider
from monocontext.sessions.chat import Chat, PlainText
from monocontext.sessions.claude_code import ClaudeCode
from monocontext.sessions.codex import Codex
from monocontext.sessions.cursor import Cursor
from monocontext.sessions.gemini_cli import GeminiCli
from monocontext.sessions.opencode import OpenCode
from monocontext.sessions.reader import SessionFile, SessionReader
from monocontext.sessions.records import Record, read_bytes, read_document, read_lines

AGENTS: dict[str, SessionReader] = {
    each.agent: each
    for each in (ClaudeCode(), Codex(), GeminiCli(), OpenCode(), Cursor(), Aider(), Chat(), PlainText())
}
_CODEX_TYPES = frozenset(["session_meta", "turn_context", "response_item", "event_msg", "compacted"])
_SAMPLE_LINES = 50
"""The lines by which the agent of a transcript is recognised."""
_SAMPLE_BYTES = 64 << 10
"""The most of a Markdown file that is searched for the marks of aider."""


def reader_of(file: SessionFile) -> SessionReader:
    """The reader for the agent of a session."""
    return AGENTS[file.agent]


def discover_sessions(agent: str | None = None) -> list[SessionFile]:
    """The sessions on this machine, the newest first. Raises `NotFound` for an agent that is not known."""
    if agent is not None and agent not in AGENTS:
        raise NotFound(f"no agent {agent!r}: there are {', '.join(AGENTS)}")
    readers = [AGENTS[agent]] if agent else AGENTS.values()
    found = [file for reader in readers for file in reader.discover()]
    return sorted(found, key=lambda file: (-file.modified_seconds, str(file.path)))


def find_sessions(name: str, agent: str | None = None) -> list[SessionFile]:
    """The sessions for an argument of a command: the path of a file, an id, or the beginning of an id.

    A session found by its id comes with those of its subagents. Raises `NotFound`, and `InvalidText` for a file that is
    no session.
    """
    if os.path.isfile(name):
        return [recognize_session(Path(name), agent)]
    if os.sep in name or name.endswith((".jsonl", ".json", ".txt")):
        raise NotFound(f"no file {name}")
    found = [file for file in discover_sessions(agent) if file.session_id.startswith(name)]
    mains = {file.session_id.partition("/")[0] for file in found}
    if not found:
        raise NotFound(f"no session {name!r} on this machine")
    if len(mains) > 1:
        raise NotFound(f"{name!r} begins the ids of {len(mains)} sessions: {', '.join(sorted(mains)[:3])}...")
    return found


def recognize_session(path: Path, agent: str | None = None) -> SessionFile:
    """The session in a file, whose content tells the agent. Raises `InvalidText` if it is no session, `OSError`."""
    return AGENTS[agent or _recognize_agent(path)].file(path)


def _recognize_agent(path: Path) -> str:
    if path.suffix == ".json":
        found = read_document(path)
        if isinstance(found, dict) and gemini_cli.is_ours(found):
            return GeminiCli.agent
        return OpenCode.agent if opencode.is_export(found) else Chat.agent
    if path.suffix == ".md" and aider.START.search(read_bytes(path)[:_SAMPLE_BYTES].decode("utf-8", "replace")):
        return Aider.agent
    if not path.name.endswith((".jsonl", ".jsonl.zst")):
        return PlainText.agent
    sample = list(islice(read_lines(path), _SAMPLE_LINES))
    readable = [line.record for line in sample if not line.problem]
    for record in readable:
        if kind := kind_of(record):
            return kind
    if not sample:
        raise InvalidText(f"{path}: an empty file")
    if not readable:
        raise InvalidText(f"{path}: not JSON lines: line {sample[0].number}: {sample[0].problem}")
    return ClaudeCode.agent  # archived as JSON lines of unknown type


def kind_of(record: Record) -> str:
    """The agent that writes such a record; empty if the record does not tell."""
    kind = record.get("type")
    if (str(kind) in _CODEX_TYPES and "payload" in record) or (
        kind is None and {"id", "instructions"} <= record.keys()
    ):
        return Codex.agent
    if kind in (opencode.SESSION, opencode.PART):
        return OpenCode.agent
    if str(kind).startswith("aider."):
        return Aider.agent
    if gemini_cli.is_ours(record):
        return GeminiCli.agent
    if "sessionId" in record or "uuid" in record or "leafUuid" in record:
        return ClaudeCode.agent
    if cursor.is_ours(record):
        return Cursor.agent
    if "role" in record and "content" in record:
        return Chat.agent
    return ""
