"""Transcripts as agents write them, for tests."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import zstandard

Record = dict[str, Any]


def session_id(number: int) -> str:
    return f"84ede0c3-0000-4000-8000-{number:012d}"


class Claude:
    """A Claude Code session that is being written."""

    def __init__(self, number: int = 1, cwd: str = "/home/dev/proj", day: str = "2026-02-14") -> None:
        self.session_id = session_id(number)
        self.cwd = cwd
        self.day = day
        self.records: list[Record] = []
        self.last: str | None = None

    def add(self, kind: str, **fields: Any) -> Record:
        at = len(self.records)
        record: Record = {
            "parentUuid": self.last, "isSidechain": False, "userType": "external", "cwd": self.cwd,
            "sessionId": self.session_id, "version": "2.1.240", "gitBranch": "main", "type": kind,
            "uuid": str(uuid.uuid5(uuid.UUID(self.session_id), str(at))),
            "timestamp": f"{self.day}T10:{at // 60 % 60:02d}:{at % 60:02d}.000Z", **fields,
        }  # fmt: skip
        self.last = record["uuid"]
        self.records.append(record)
        return record

    def bare(self, **record: Any) -> Record:
        """A record of the harness, without uuid."""
        self.records.append(record)
        return record

    def user(self, content: Any, **fields: Any) -> Record:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def says(self, text: str, **fields: Any) -> Record:
        return self.blocks([{"type": "text", "text": text}], **fields)

    def calls(self, tool: str, arguments: Any, call: str = "toolu_1", **fields: Any) -> Record:
        return self.blocks([{"type": "tool_use", "id": call, "name": tool, "input": arguments}], **fields)

    def result(self, content: Any, call: str = "toolu_1", **fields: Any) -> Record:
        return self.user([{"type": "tool_result", "tool_use_id": call, "content": content}], **fields)

    def blocks(self, blocks: list[Any], **fields: Any) -> Record:
        message = {"role": "assistant", "id": "msg_1", "type": "message", "model": "claude-sonnet-5", "content": blocks}
        return self.add("assistant", message=message, requestId="req_1", **fields)

    def write(self, folder: Path, tail: str = "", name: str = "") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"{self.session_id}.jsonl")
        path.write_text(as_lines(self.records) + tail, "utf-8")
        return path


def small(number: int = 1, turns: int = 4, **options: Any) -> Claude:
    """A short session about one bug."""
    session = Claude(number, **options)
    session.user(f"Please fix bug number {number}")
    for turn in range(turns - 2):
        session.says(f"Step {turn} on bug {number}.")
    session.says(f"We decided to use method {number} instead of a lock.")
    return session


def as_lines(records: Iterable[Record]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def everything(store: Any) -> bytes:
    """All bytes and names in a store, as they are and inflated."""
    found = []
    for info in store.list():
        found += [info.key.encode(), data := store.get(info.key).data, inflated(data)]
    return b"\n".join(found)


def inflated(data: bytes) -> bytes:
    """The content of the zstd frames that follow each other in some bytes; nothing for other bytes."""
    text = b""
    with suppress(zstandard.ZstdError):
        while data:
            frame = zstandard.ZstdDecompressor().decompressobj()
            text += frame.decompress(data)
            data = frame.unused_data
    return text
