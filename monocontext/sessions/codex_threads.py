"""Find the session of a Codex thread: its own, or that of its parent if a subagent runs in it."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from monocontext.sessions.records import Record, read_lines

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEAD_RECORDS = 8
"""The description of a thread is among so many first records of its file, after its parent's for a fork."""
_MOST_LEVELS = 10
"""Levels of subagents of subagents."""


def thread_name(path: Path) -> str:
    """The id of the session in a file: `<uuid>`, for a subagent `<session>/subagents/<uuid>`.

    A file without a uuid in its name has the name as its id.
    """
    own = _own_id(path)
    main = _main_thread(path, own)
    return own if main == own else f"{main}/subagents/{own}"


def _own_id(path: Path) -> str:
    matches = _UUID.findall(path.name)
    return matches[-1] if matches else path.name.partition(".jsonl")[0]


def _main_thread(path: Path, thread: str) -> str:
    for _ in range(_MOST_LEVELS):
        head = _head_of(path, thread)
        parent = _parent_of(head)
        if not parent:
            break
        session = head.get("session_id")
        if isinstance(session, str) and session and session != head.get("id"):
            return session
        thread = parent  # in a version that does not name the session; the parent may be a subagent, too
        above = next((item for item in path.parent.glob("rollout-*.jsonl*") if _own_id(item) == parent), None)
        if above is None:
            break
        path = above
    return thread


def _head_of(path: Path, thread: str) -> Record:
    """The description of a thread in its file."""
    results: list[Record] = []
    for line in islice(read_lines(path), _HEAD_RECORDS):
        payload = line.record.get("payload")
        if line.record.get("type") == "session_meta" and isinstance(payload, dict):
            if payload.get("id") == thread:
                return payload
            results.append(payload)
    return results[0] if results else {}


def _parent_of(head: Record) -> str:
    """The thread that started a subagent; empty for a session, forks included."""
    source = head.get("source")
    subagent = source.get("subagent") if isinstance(source, dict) else None
    if subagent is None and head.get("thread_source") != "subagent":
        return ""
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    named = [head.get("parent_thread_id"), spawn.get("parent_thread_id") if isinstance(spawn, dict) else None]
    session, own = head.get("session_id"), head.get("id")
    return next((item for item in [*named, session] if isinstance(item, str) and item and item != own), "")
