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
from typing import Any, Literal, NamedTuple, cast

from monocontext.errors import MonocontextError

Kind = Literal["text", "tool_use", "tool_result", "thinking", "summary"]
# `[Turn 12 - ASSISTANT] 2026-02-14T10:00:03Z tool_use Bash sidechain=yes`, `[Turn 1 - USER]`; not `[Turn the lamp on]`
_HEAD = re.compile(r"^\[Turn (\d+) - ([A-Z]+)\](?: (\S+))?(?: (\w+))?(?: (\S+))?((?: \w+=\S+)*)$", re.M)
_LIKE_HEAD = re.compile(r"^( *)(?=\[Turn |=== SESSION: )", re.M)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message or action in a session."""

    session_id: str
    number: int  # its number in the session, from 1; never changes
    role: str  # `user`, `assistant`, `system` or `tool`
    kind: Kind
    text: str
    time: str = ""  # the time as the agent wrote it, ISO 8601; empty if it wrote none
    tool: str = ""  # the name of the tool, for a call and for its result
    marks: tuple[str, ...] = ()
    """`sidechain=yes`; `back_to=<number>`: the conversation returned to that turn, and abandoned those between."""

    @property
    def id(self) -> str:
        """The id of the turn, unique within its project: `<session>:<number>`."""
        return f"{self.session_id}:{self.number}"

    def to_dict(self) -> dict[str, Any]:
        """The turn as a dict: the fields that DeepRecurse's functions return, and `kind`, `tool` and `id`."""
        return {
            "turn_number": self.number, "role": self.role, "content": self.text, "timestamp": self.time,
            "session_id": self.session_id, "kind": self.kind, "tool": self.tool, "id": self.id}  # fmt: skip


def render(turns: Iterable[Turn]) -> str:
    """The turns as text, with a blank line after each."""
    parts = []
    for turn in turns:
        time, tool = (re.sub(r"\s+", "_", word.strip()) or "-" for word in (turn.time, turn.tool))
        head = f"[Turn {turn.number} - {turn.role.upper()}] {time} {turn.kind} {tool}"
        marks = "".join(f" {mark}" for mark in turn.marks)
        parts.append(f"{head}{marks}\n{shield(turn.text)}\n\n")
    return "".join(parts)


def shield(text: str) -> str:
    """`text` with one more space before each line that looks like the heading of a turn or session."""
    return _LIKE_HEAD.sub(r" \1", text.replace("\r\n", "\n"))


def parse(text: str, session_id: str) -> Iterator[Turn]:
    """Yield the turns in a text that `render` returned."""
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=True):
        number, role, time, kind, tool, marks = head.groups()
        time, tool = ("" if word in (None, "-") else word for word in (time, tool))
        body = _LIKE_HEAD.sub(lambda m: m[1][1:], text[head.end() + 1 : end].removesuffix("\n\n"))
        known_kind = cast(Kind, kind or "text")
        yield Turn(session_id, int(number), role.lower(), known_kind, body, time, tool, tuple(marks.split()))


class TimeSpan(NamedTuple):
    """A span of time from `first` to `last`, both included, in seconds since 1970."""

    first: float
    last: float

    def may_have_turns(self, started: str, ended: str) -> bool:
        """Whether a session that began and ended at these times may have turns here; True if a time is missing."""
        first, last = seconds_of(started), seconds_of(ended)
        return first is None or last is None or (first <= self.last and last >= self.first)

    def turns_of(self, turns: list[Turn]) -> list[Turn]:
        """The turns within the span. A turn without a time takes the time of the last turn before it that has one."""
        results, seconds = list[Turn](), None
        for turn in turns:
            own_seconds = seconds_of(turn.time)
            seconds = seconds if own_seconds is None else own_seconds
            if self == ALWAYS or (seconds is not None and self.first <= seconds <= self.last):
                results.append(turn)
        return results


ALWAYS = TimeSpan(float("-inf"), float("inf"))


def span_of(since: Any, until: Any) -> TimeSpan:
    """The span from `since` to `until`. A date is a whole day, None is no limit. Raises `MonocontextError`."""
    first = ALWAYS.first if since is None else _seconds(since)
    last = ALWAYS.last if until is None else _seconds(until)
    is_date = not isinstance(until, int | float) and len(str(until)) == len("2026-02-14")  # also a `datetime.date`
    return TimeSpan(first, last + 86_399.999999 if is_date else last)  # the last microsecond of the day


def _seconds(when: Any) -> float:
    """A time as seconds since 1970; a date means its beginning in UTC. Raises `MonocontextError`."""
    seconds = float(when) if isinstance(when, int | float) else seconds_of(str(when))
    if seconds is None:
        raise MonocontextError(f"expected a time such as 2026-02-14 or 2026-02-14T10:00:00Z, not {when!r}")
    return seconds


def seconds_of(time: str) -> float | None:
    """A time in ISO 8601 as seconds since 1970; None for any other text. A time without a zone is UTC."""
    try:
        when = datetime.fromisoformat(time)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
