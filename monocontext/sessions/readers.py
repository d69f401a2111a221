"""All readers: which of them reads a file, and which sessions there are on this machine."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from monocontext.errors import InvalidText, NotFound
from monocontext.sessions import chat, claude_code, codex
from monocontext.sessions.chat import Chat, PlainText
from monocontext.sessions.claude_code import ClaudeCode
from monocontext.sessions.codex import Codex
from monocontext.sessions.reader import Reader, SessionFile
from monocontext.sessions.records import Record, read_lines

AGENTS: dict[str, Reader] = {each.agent: each for each in (ClaudeCode(), Codex(), Chat(), PlainText())}
_CODEX_TYPES = frozenset(["session_meta", "turn_context", "response_item", "event_msg", "compacted"])
_LOOKED_AT = 50


def reader_of(file: SessionFile) -> Reader:
    return AGENTS[file.agent]


def discovered(agent: str | None = None) -> list[SessionFile]:
    """The sessions on this machine, the newest first. Raises `NotFound` for an agent that is not known."""
    if agent is not None and agent not in AGENTS:
        raise NotFound(f"no agent {agent!r}: there are {', '.join(AGENTS)}")
    readers = [AGENTS[agent]] if agent else AGENTS.values()
    found = [file for reader in readers for file in reader.discover()]
    return sorted(found, key=lambda file: (-file.modified_seconds, str(file.path)))


def named(name: str, agent: str | None = None) -> list[SessionFile]:
    """The sessions that a word on a command line means: a file, or an id or the beginning of one.

    A main session comes with those of its subagents. Raises `NotFound`, and `InvalidText` for a file of no known form.
    """
    if os.path.isfile(name):
        return [recognized(Path(name), agent)]
    if os.sep in name or name.endswith((".jsonl", ".json", ".txt")):
        raise NotFound(f"no file {name}")
    found = [file for file in discovered(agent) if file.session_id.startswith(name)]
    mains = {file.session_id.partition("/")[0] for file in found}
    if not found:
        raise NotFound(f"no session {name!r} on this machine")
    if len(mains) > 1:
        raise NotFound(f"{name!r} begins the ids of {len(mains)} sessions: {', '.join(sorted(mains)[:3])}...")
    return found


def recognized(path: Path, agent: str | None = None) -> SessionFile:
    """A file as a session, by its content. Raises `InvalidText` where it is none, `OSError`."""
    kind = agent or _kind(path)
    modified = path.stat().st_mtime
    if kind == ClaudeCode.agent:
        return SessionFile(path, claude_code.session_id_of(path), kind, modified)
    if kind == Codex.agent:
        return SessionFile(path, codex.session_id_of(path), kind, modified)
    return SessionFile(path, chat.session_id_of(path, AGENTS[kind].lines(path)), kind, modified)


def _kind(path: Path) -> str:
    if path.suffix == ".json":
        return Chat.agent
    if not path.name.endswith((".jsonl", ".jsonl.zst")):
        return PlainText.agent
    looked = list(islice(read_lines(path), _LOOKED_AT))
    readable = [line.record for line in looked if not line.problem]
    for record in readable:
        if kind := kind_of(record):
            return kind
    if not looked:
        raise InvalidText(f"{path}: an empty file")
    if not readable:
        raise InvalidText(f"{path}: not JSON lines: line {looked[0].number}: {looked[0].problem}")
    return ClaudeCode.agent  # JSON lines of no known kind are kept as such


def kind_of(record: Record) -> str:
    """The agent that writes such records; empty where a record does not tell."""
    kind = record.get("type")
    if (str(kind) in _CODEX_TYPES and "payload" in record) or (
        kind is None and {"id", "instructions"} <= record.keys()
    ):
        return Codex.agent
    if "sessionId" in record or "uuid" in record or "leafUuid" in record:
        return ClaudeCode.agent
    if "role" in record and "content" in record:
        return Chat.agent
    return ""
