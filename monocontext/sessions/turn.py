"""Define a turn of a session, and write turns as text and parse them. Pure.

    [Turn 12 - ASSISTANT] 2026-02-14T10:00:03.000Z tool_use Bash
    {"command": "make test"}

A line of a turn that looks like such a head is written with one more space before it, which parsing removes. So no text
of a turn is taken for another turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

Kind = Literal["text", "tool_use", "tool_result", "thinking", "summary"]

_HEAD = re.compile(r"^\[Turn (\d+) - ([A-Z]+)\](?: (\S+))?(?: (\w+))?(?: (\S+))?((?: \w+=\S+)*)$", re.M)
_LIKE_HEAD = re.compile(r"^( *)(?=\[Turn |=== SESSION: )", re.M)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message or action in a session."""

    session_id: str
    n: int
    """Its number, from 1 in the order of the archive; never changes."""
    role: str
    """`user`, `assistant`, `system` or `tool`."""
    kind: Kind
    text: str
    ts: str = ""
    """The time as the agent wrote it, ISO 8601; empty if it wrote none."""
    tool: str = ""
    """The name of the tool, for a call and for its result."""
    marks: tuple[str, ...] = ()
    """`sidechain=yes`; `back_to=<n>`: the conversation returned to that turn, and the turns between were abandoned."""

    @property
    def id(self) -> str:
        """The turn's name in the whole archive: `<session>:<n>`."""
        return f"{self.session_id}:{self.n}"

    def to_dict(self) -> dict[str, Any]:
        """The fields that DeepRecurse's functions return, and three more: `kind`, `tool`, `id`."""
        return {
            "turn_number": self.n, "role": self.role, "content": self.text, "timestamp": self.ts,
            "session_id": self.session_id, "kind": self.kind, "tool": self.tool, "id": self.id,
        }  # fmt: skip


def render(turns: Iterable[Turn]) -> str:
    """Turns as text, each ending in a blank line."""
    parts = []
    for turn in turns:
        head = f"[Turn {turn.n} - {turn.role.upper()}] {_one_word(turn.ts)} {turn.kind} {_one_word(turn.tool)}"
        marks = "".join(f" {mark}" for mark in turn.marks)
        parts.append(f"{head}{marks}\n{shield(turn.text)}\n\n")
    return "".join(parts)


def shield(text: str) -> str:
    """Text of which no line looks like the head of a turn or session."""
    return _LIKE_HEAD.sub(r" \1", text.replace("\r\n", "\n"))


def parse(text: str, session_id: str) -> Iterator[Turn]:
    """The turns of a rendered text."""
    result = list(_HEAD.finditer(text))
    ends = [head.start() for head in result[1:]] + [len(text)]
    for head, end in zip(result, ends, strict=True):
        n, role, ts, kind, tool, marks = head.groups()
        ts, tool = ("" if word in (None, "-") else word for word in (ts, tool))
        body = _LIKE_HEAD.sub(lambda m: m[1][1:], text[head.end() + 1 : end].removesuffix("\n\n"))
        yield Turn(session_id, int(n), role.lower(), cast(Kind, kind or "text"), body, ts, tool, tuple(marks.split()))


def _one_word(text: str) -> str:
    return re.sub(r"\s+", "_", text.strip()) or "-"
