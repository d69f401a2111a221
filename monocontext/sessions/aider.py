"""Read the history that Aider keeps in a repository, `.aider.chat.history.md`, as one session of many launches.

`# aider chat started at` begins a launch; lines with `#### ` are the user's, with `> ` the program's, the others the
model's.
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
        said = "\n".join(block).strip("\n ")
        block.clear()
        if said:
            yield {"type": kind, "timestamp": at, "text": said}

    if not any(START.match(line) for line in text.splitlines()):
        raise InvalidText(f"{path}: no history of Aider: no line `# aider chat started at`")
    for line in text.splitlines():
        if started := START.match(line):
            yield from flush()
            at, kind = f"{started[1]}T{started[2]}", ""
            yield {"type": "aider.start", "timestamp": at}
            continue
        if line.startswith("#### "):
            is_of, words = "aider.user", line[5:].rstrip()
        elif line.startswith("> ") or line == ">":
            is_of, words = "aider.output", line[2:].rstrip()
        else:
            is_of, words = "aider.assistant" if line.strip() or kind == "aider.assistant" else kind, line
        if is_of != kind:
            yield from flush()
            kind = is_of
        block.append(words)
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
        """Raises `InvalidText` for bytes that are not UTF-8, and for a file that is not such a history."""
        return lines_of_records(_records(path))

    def file(self, path: Path) -> SessionFile:
        """A history as a session, named by how it begins: two repositories have two."""
        digest = hashlib.sha256(b"\n".join(dumps(record) for record in islice(_records(path), 3))).hexdigest()
        return SessionFile(path, f"aider-{digest[:16]}", self.agent, path.stat().st_mtime, str(path.resolve().parent))
