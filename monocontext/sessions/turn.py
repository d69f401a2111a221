"""Define the turn of a session, write turns as text and parse them, and select turns by time. Does no I/O.

    [Turn 12 - ASSISTANT] 2026-02-14T10:00:03.000Z tool_use Bash
    {"command": "make test"}

A line of a turn's text that looks like such a heading is written with one more leading space, which parsing removes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from monocontext.errors import MonocontextError

Kind = Literal["text", "tool_use", "tool_result", "thinking", "summary"]
Span = tuple[float, float]  # first and last moment, in seconds since 1970
ALWAYS: Span = (float("-inf"), float("inf"))
_HEAD = re.compile(r"^\[Turn (\d+) - ([A-Z]+)\](?: (\S+))?(?: (\w+))?(?: (\S+))?((?: \w+=\S+)*)$", re.M)
_LIKE_HEAD = re.compile(r"^( *)(?=\[Turn |=== SESSION: )", re.M)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message or action in a session."""

    session_id: str
    n: int  # its number, from 1 in the order of the archive; never changes
    role: str  # `user`, `assistant`, `system` or `tool`
    kind: Kind
    text: str
    ts: str = ""  # the time as the agent wrote it, ISO 8601; empty if it wrote none
    tool: str = ""  # the name of the tool, for a call and for its result
    marks: tuple[str, ...] = ()
    """`sidechain=yes`; `back_to=<n>`: the conversation returned to that turn, and the turns between were abandoned."""

    @property
    def id(self) -> str:
        """The id of the turn, unique within its project: `<session>:<n>`."""
        return f"{self.session_id}:{self.n}"

    def to_dict(self) -> dict[str, Any]:
        """The turn as a dict: the fields that DeepRecurse's functions return, and `kind`, `tool` and `id`."""
        return {
            "turn_number": self.n, "role": self.role, "content": self.text, "timestamp": self.ts,
            "session_id": self.session_id, "kind": self.kind, "tool": self.tool, "id": self.id}  # fmt: skip


def render(turns: Iterable[Turn]) -> str:
    """The turns as text, with a blank line after each."""
    parts = []
    for turn in turns:
        ts, tool = (re.sub(r"\s+", "_", word.strip()) or "-" for word in (turn.ts, turn.tool))
        head = f"[Turn {turn.n} - {turn.role.upper()}] {ts} {turn.kind} {tool}"
        marks = "".join(f" {mark}" for mark in turn.marks)
        parts.append(f"{head}{marks}\n{shield(turn.text)}\n\n")
    return "".join(parts)


def shield(text: str) -> str:
    """`text` with one more space before each line that looks like the heading of a turn or session."""
    return _LIKE_HEAD.sub(r" \1", text.replace("\r\n", "\n"))


def parse(text: str, session_id: str) -> Iterator[Turn]:
    """Yield the turns in a text that `render` returned."""
    result = list(_HEAD.finditer(text))
    ends = [head.start() for head in result[1:]] + [len(text)]
    for head, end in zip(result, ends, strict=True):
        n, role, ts, kind, tool, marks = head.groups()
        ts, tool = ("" if word in (None, "-") else word for word in (ts, tool))
        body = _LIKE_HEAD.sub(lambda m: m[1][1:], text[head.end() + 1 : end].removesuffix("\n\n"))
        yield Turn(session_id, int(n), role.lower(), cast(Kind, kind or "text"), body, ts, tool, tuple(marks.split()))


def span_of(since: Any, until: Any) -> Span:
    """The span from `since` to `until`, a date being a whole day and None no limit. Raises `MonocontextError`."""
    first = ALWAYS[0] if since is None else _seconds(since)
    is_day = not isinstance(until, int | float) and len(str(until)) == len("2026-02-14")  # also a `datetime.date`
    return first, ALWAYS[1] if until is None else _seconds(until) + 86_399.999999 * is_day


def _seconds(when: Any) -> float:
    """A time as seconds since 1970; a date means its beginning in UTC. Raises `MonocontextError`."""
    seconds = float(when) if isinstance(when, int | float) else seconds_of(str(when))
    if seconds is None:
        raise MonocontextError(f"expected a time such as 2026-02-14 or 2026-02-14T10:00:00Z, not {when!r}")
    return seconds


def seconds_of(ts: str) -> float | None:
    """A time in ISO 8601 as seconds since 1970; None for any other text. A time without a zone is UTC."""
    try:
        when = datetime.fromisoformat(ts)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def touches(started: str, ended: str, span: Span) -> bool:
    """Whether a session that began and ended at these times may have turns in a span; True if a time is missing."""
    first, last = seconds_of(started), seconds_of(ended)
    return first is None or last is None or (first <= span[1] and last >= span[0])


def turns_within(turns: list[Turn], span: Span) -> list[Turn]:
    """The turns within a span. A turn without a time takes the time of the last turn before it that has one."""
    result, last = [], None
    for turn in turns:
        seconds = seconds_of(turn.ts)
        last = last if seconds is None else seconds
        if span == ALWAYS or (last is not None and span[0] <= last <= span[1]):
            result.append(turn)
    return result
