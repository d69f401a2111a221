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
    first = ALWAYS[0] if since is None else _seconds(since)
    is_day = not isinstance(until, int | float) and len(str(until)) == len("2026-02-14")  # also a `datetime.date`
    return first, ALWAYS[1] if until is None else _seconds(until) + 86_399.999999 * is_day


def _seconds(when: Any) -> float:
    """Seconds since 1970 of a time; for a date of its beginning. Raises `MonocontextError`."""
    seconds = float(when) if isinstance(when, int | float) else seconds_of(str(when))
    if seconds is None:
        raise MonocontextError(f"not a time: {when!r}; write 2026-02-14 or 2026-02-14T10:00:00Z")
    return seconds


def seconds_of(ts: str) -> float | None:
    """Seconds since 1970 of a time in ISO 8601; None for any other text. A time without a zone is UTC."""
    try:
        when = datetime.fromisoformat(ts)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def touches(started: str, ended: str, span: Span) -> bool:
    """Whether a part that began and ended at these times may be within a span; a part without times always may."""
    first, last = seconds_of(started), seconds_of(ended)
    return first is None or last is None or (first <= span[1] and last >= span[0])


def turns_within(turns: list[Turn], span: Span) -> list[Turn]:
    """The turns in a span. A turn without a time counts at the time of the turn before it."""
    result, last = [], None
    for turn in turns:
        seconds = seconds_of(turn.ts)
        last = last if seconds is None else seconds
        if span == ALWAYS or (last is not None and span[0] <= last <= span[1]):
            result.append(turn)
    return result
