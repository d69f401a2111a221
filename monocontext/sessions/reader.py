"""Define how the sessions of an agent are found on this machine, and how turns are made from their records."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monocontext.errors import InvalidText
from monocontext.sessions.records import Record, RecordLine, read_lines, string_in
from monocontext.sessions.turn import Kind, Turn

_TITLE_CHARACTERS = 200  # the most characters of a title or first prompt, which lists of sessions show
_TYPE_CHARACTERS = 100  # the most characters of the name of an unknown type, which may be any JSON
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The file of a session on this machine."""

    path: Path
    session_id: str  # `<id>`, or `<id>/subagents/agent-x` for the stream of a subagent
    agent: str  # `claude-code`, `codex` or `chat`
    modified_seconds: float  # the last write, in seconds since 1970; 0 for an unreadable file


class TurnMaker(ABC):
    """Makes turns from the records of one session, which are fed in order, and collects its metadata."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.turn_count = 0  # the number of turns so far
        self.title = self.first_prompt = self.branch = ""
        self.cwd = self.began_in = ""  # the last and the first directory of the agent; the first decides the project
        self.remote = ""  # URL of the repository, if the records name it
        self.started = self.ended = ""  # the earliest and the latest time of a record, as written
        self.unknown = Counter[str]()  # the number of records of each type that this version does not know
        self._time = ""  # of the current record
        self._tools: dict[str, str] = {}  # the names of tools by the ids of their calls

    def feed(self, record: Record) -> list[Turn]:
        """Take the next record, and return its turns: one, several or none."""
        self._time = time = string_in(record, "timestamp")
        if _ISO.match(time):
            self.started, self.ended = min(self.started or time, time), max(self.ended, time)
        if record.get("type") != "unreadable":
            return self._turns(record)
        self._note_unknown("unreadable")
        problem, text = record.get("problem", "unknown"), text_of(record.get("text"))
        return self._add_turn("system", "text", f"[unreadable line: {problem}]\n{text}")

    @abstractmethod
    def _turns(self, record: Record) -> list[Turn]:
        """The turns of the next readable record."""

    def _add_turn(self, role: str, kind: Kind, text: str, *, tool: str = "", marks: tuple[str, ...] = ()) -> list[Turn]:
        """Make a turn of the current record, and return it as a list of one; an empty list for a blank text."""
        if not text.strip():
            return []
        self.turn_count += 1
        return [Turn(self.session_id, self.turn_count, role, kind, text, self._time, tool, marks)]

    def _call_turns(self, block: Record, marks: tuple[str, ...] = ()) -> list[Turn]:
        tool = self._tools[str(block.get("id"))] = str(block.get("name") or "")
        return self._add_turn("assistant", "tool_use", as_text(block.get("input")), tool=tool, marks=marks)

    def _result_turns(self, block: Record, text: str, marks: tuple[str, ...] = ()) -> list[Turn]:
        tool = self._tools.get(str(block.get("tool_use_id")), "")
        return self._add_turn("tool", "tool_result", text, tool=tool, marks=marks)

    def _note_unknown(self, record_type: object) -> None:
        self.unknown[str(record_type)[:_TYPE_CHARACTERS]] += 1

    def _note_title(self, text: str) -> None:
        self.title = " ".join(text.split())[:_TITLE_CHARACTERS] or self.title

    def _note_prompt(self, text: str) -> None:
        self.first_prompt = self.first_prompt or " ".join(text.split())[:_TITLE_CHARACTERS]


class SessionReader(ABC):
    """Finds and reads the sessions of one agent. The methods here find none, and read files of JSON lines."""

    agent: str
    maker: type[TurnMaker]  # the class that makes turns from the records of a session

    @abstractmethod
    def session_id(self, path: Path) -> str:
        """The id of the session in a file. Raises `OSError`, and `InvalidText` if the file is not a session."""

    def file(self, path: Path) -> SessionFile:
        """The session in a file. Raises what `session_id` raises."""
        name = self.session_id(path).encode("utf-8", "backslashreplace").decode()  # a file's name may be any bytes
        return SessionFile(path, name, self.agent, path.stat().st_mtime)

    def files(self, paths: Iterable[Path]) -> Iterator[SessionFile]:
        """Yield the sessions in files. Skips files that are missing or hold none; unreadable files raise when used."""
        for path in paths:
            try:
                yield self.file(path)
            except (FileNotFoundError, InvalidText):
                continue
            except OSError:
                yield SessionFile(path, path.name.partition(".")[0], self.agent, 0.0)

    def discover(self) -> Iterator[SessionFile]:
        """The sessions of this machine's user, in any order."""
        return iter(())

    def below(self, file: SessionFile) -> Iterator[SessionFile]:
        """The sessions of a session's subagents."""
        return self.files(sorted(file.path.with_suffix("").glob("subagents/**/agent-*.jsonl")))

    def lines(self, path: Path) -> Iterator[RecordLine]:
        """Yield the records of a file in order. Raises `OSError`."""
        return read_lines(path)


def text_of(content: Any) -> str:
    """The text of a message's content: a string, a block or a list of blocks. A picture becomes its type: `[image]`."""
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return "" if content is None else as_text(content)
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            parts.append(block["text"])
        elif isinstance(block, dict) and block.get("type") in ("image", "input_image", "image_url", "document"):
            parts.append(f"[{block['type']}]")
    return "\n".join(parts)


def as_text(value: Any) -> str:
    """A value as text: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def blocks_of(content: Any) -> list[Record]:
    """The objects in a list of blocks; none if `content` is not a list."""
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
