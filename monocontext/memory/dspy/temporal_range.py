"""Parse a description of a time span in words. Pure.

`all time` · `today` · `yesterday` · `this week`, `this month`, `this year` · `last hour`, `last day`, `last week`,
`last month`, `last year`, `last 3 days`, `past 2 weeks` (back from now) · `2026-02`, `2026-02-14` · `2026-02-01 to
2026-02-14`, also with `..` or `until` · `since 2026-02-01` · `before 2026-02-01`. Days are those of UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

Ends = tuple[datetime | None, datetime | None]
_ALWAYS = frozenset({"", "all", "all time", "any time", "anytime", "ever", "everything", "always"})
_HOURS = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24, "year": 365 * 24}
_INSTANT = timedelta(microseconds=1)
_BACK = re.compile(r"(?:in |over |during )?(?:the )?(?:last|past|previous)(?: (\d{1,5}))? (hour|day|week|month|year)s?")
_PAIR = re.compile(r"(?:from |between )?(\S+) ?(?: to | until | and | - |\.\.|/) ?(\S+)")


def ends_of(words: str, now: datetime) -> Ends | None:
    """The first and the last moment of a span, each None for an open end. None for words that are not known."""
    words = " ".join(words.lower().split())
    if words in _ALWAYS:
        return None, None
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begins = {
        "today": day,
        "this week": day - timedelta(days=day.weekday()),
        "this month": day.replace(day=1),
        "this year": day.replace(month=1, day=1),
    }
    if words in begins:
        return begins[words], now
    if words == "yesterday":
        return day - timedelta(days=1), day - _INSTANT
    if back := _BACK.fullmatch(words):
        return now - timedelta(hours=int(back[1] or 1) * _HOURS[back[2]]), now
    kind, _, rest = words.partition(" ")
    if kind in ("since", "after", "from") and (span := _parse_dates(rest)):
        return span[0], None
    if kind in ("before", "until") and (span := _parse_dates(rest)):
        return None, span[0] - _INSTANT if kind == "before" else span[1]
    if span := _parse_dates(words):
        return span
    if (pair := _PAIR.fullmatch(words)) and (first := _parse_dates(pair[1])) and (last := _parse_dates(pair[2])):
        return first[0], last[1]
    return None


def _parse_dates(text: str) -> tuple[datetime, datetime] | None:
    """The first and the last moment of a month, day or time in ISO 8601; None for any other text."""
    try:
        if re.fullmatch(r"\d{4}-\d{2}", text):
            first = datetime.fromisoformat(text + "-01").replace(tzinfo=UTC)
            return first, (first + timedelta(days=31)).replace(day=1) - _INSTANT
        when = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return (when, when + timedelta(days=1) - _INSTANT) if len(text) == 10 else (when, when)
