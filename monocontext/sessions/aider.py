"""Read the history that Aider keeps in a repository, `.aider.chat.history.md`, as one session.

A line `# aider chat started at` is written at each start of Aider. Lines with `#### ` are the user's, lines with `> `
the program's, and all others the model's.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from monocontext.errors import InvalidText
from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker
from monocontext.sessions.records import Record, RecordLine, dumps, lines_of_records, read_text
from monocontext.sessions.turn import Turn

NAME = ".aider.chat.history.md"
START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*$", re.M)
_ROLES = {"aider.user": "user", "aider.assistant": "assistant", "aider.output": "system"}


def _records(path: Path) -> Iterator[Record]:
    text = read_text(path)
    at, kind, block = "", "", list[str]()

    def flush() -> Iterator[Record]:
        message = "\n".join(block).strip("\n ")
        block.clear()
        if message:
            yield {"type": kind, "timestamp": at, "text": message}

    if not any(START.match(line) for line in text.splitlines()):
        raise InvalidText(f"{path}: no history of Aider: no line `# aider chat started at`")
    for line in text.splitlines():
        if started := START.match(line):
            yield from flush()
            at, kind = f"{started[1]}T{started[2]}", ""
            yield {"type": "aider.start", "timestamp": at}
            continue
        if line.startswith("#### "):
            line_kind, text_of_line = "aider.user", line[5:].rstrip()
        elif line.startswith("> ") or line == ">":
            line_kind, text_of_line = "aider.output", line[2:].rstrip()
        else:  # a blank line belongs to the message before it
            line_kind, text_of_line = "aider.assistant" if line.strip() else kind, line
        if line_kind != kind:
            yield from flush()
            kind = line_kind
        block.append(text_of_line)
    yield from flush()


class _AiderTurns(TurnMaker):
    agent = "aider"

    def feed(self, record: Record) -> list[Turn]:
        self._see_time(record)
        kind = str(record.get("type"))
        if kind == "aider.start":
            return []
        if kind not in _ROLES:
            self._see_unknown(kind)
            return []
        text = str(record.get("text") or "")
        if kind == "aider.user":
            self._see_prompt(text)
        return self._turn(_ROLES[kind], "text", text, record)


class Aider(SessionReader):
    """Finds and reads Aider's history of a repository."""

    agent = _AiderTurns.agent
    maker = _AiderTurns

    def discover(self) -> Iterator[SessionFile]:
        """The history of the repository that this process works in, or `AIDER_CHAT_HISTORY_FILE`."""
        path = Path(os.environ.get("AIDER_CHAT_HISTORY_FILE") or Path.cwd() / NAME)
        if path.is_file():
            yield self.file(path)

    def lines(self, path: Path) -> Iterable[RecordLine]:
        """The records of a history. Raises `InvalidText` for a file that is not UTF-8, or no history of Aider."""
        return lines_of_records(_records(path))

    def file(self, path: Path) -> SessionFile:
        """The session in a history. Its id is a hash of the first records: all histories have the same file name."""
        digest = hashlib.sha256(b"\n".join(dumps(record) for record in islice(_records(path), 3))).hexdigest()
        return SessionFile(path, f"aider-{digest[:16]}", self.agent, path.stat().st_mtime, str(path.resolve().parent))
