"""Parse spans of time, and select the turns in a span. Pure. Times are those that agents wrote: they may be invalid."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.sessions.turn import Turn

Span = tuple[float, float]
"""First and last moment, in seconds since 1970."""
ALWAYS: Span = (float("-inf"), float("inf"))


def span_of(since: Any, until: Any) -> Span:
    """The span between two times, each of which may be None for no limit. Raises `MonocontextError` for no time."""
    return (
        ALWAYS[0] if since is None else _seconds(since, end=False),
        ALWAYS[1] if until is None else _seconds(until, end=True),
    )


def _seconds(when: Any, *, end: bool) -> float:
    """Seconds since 1970 of a time; for a date of its beginning, with `end` of its end. Raises `MonocontextError`."""
    if isinstance(when, datetime):
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if isinstance(when, int | float):
        return float(when)
    seconds = seconds_of(str(when))
    if seconds is None:
        raise MonocontextError(f"not a time: {when!r}; write 2026-02-14 or 2026-02-14T10:00:00Z")
    return seconds + 86_399.999999 if end and len(str(when)) == 10 else seconds


def seconds_of(ts: str) -> float | None:
    """Seconds since 1970 of a time in ISO 8601; None for any other text. A time without a zone is UTC."""
    try:
        when = datetime.fromisoformat(ts)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _bounds(started: str, ended: str) -> Span | None:
    least, most = seconds_of(started), seconds_of(ended)
    return None if least is None or most is None else (least, most)


def touches(started: str, ended: str, span: Span) -> bool:
    """Whether a part that began and ended at these times may be within a span; a part without times always may."""
    bounds = _bounds(started, ended)
    return bounds is None or (bounds[0] <= span[1] and bounds[1] >= span[0])


def inside(started: str, ended: str, span: Span) -> bool:
    """Whether a part that began and ended at these times is completely within a span."""
    bounds = _bounds(started, ended)
    return bounds is not None and span[0] <= bounds[0] and bounds[1] <= span[1]


def turns_within(turns: list[Turn], span: Span) -> list[Turn]:
    """The turns in a span. A turn without a time counts at the time of the turn before it."""
    result, last = [], None
    for turn in turns:
        seconds = seconds_of(turn.ts)
        last = last if seconds is None else seconds
        if span == ALWAYS or (last is not None and span[0] <= last <= span[1]):
            result.append(turn)
    return result
