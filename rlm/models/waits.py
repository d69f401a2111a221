"""Read how long an endpoint asks to wait: in headers, in the body of its error, or in words. Pure but for the clock."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime

_PART = r"(\d{1,9}(?:\.\d{1,9})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)"
_DURATION = re.compile(rf"(?:{_PART}[, ]*(?:and )?){{1,4}}", re.IGNORECASE)
_WORDS = re.compile(
    rf"(?:(?:try|retry)(?:ing)?(?: again| your request)? (?:in|after)|retry[-_ ]?(?:after|delay)\W{{1,4}}"
    rf"|resets? (?:in|after)|wait(?: for)?|available in) ?(?:about |another |at least )?"
    rf"(?P<wait>{_DURATION.pattern})(?![a-z])",
    re.IGNORECASE,
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_EPOCH = 1e9
"""From this number on, a wait is a time: seconds since 1970, or milliseconds from its thousandfold on."""


def retry_after_seconds(headers: Mapping[str, str], told: object = None, message: str = "") -> float | None:
    """The seconds to wait, by the headers, by a field of the body (`told`) or by the message; None if none says so.

    What limits the next call alone goes before the state of all limits (`x-ratelimit-reset-*`), of which the spent ones
    count, or all where the headers do not say which is spent.
    """
    milliseconds = headers.get("retry-after-ms")
    for text in (f"{milliseconds}ms" if milliseconds else None, headers.get("retry-after"), told):
        if text is not None and (seconds := read_wait(str(text))) is not None:
            return seconds
    if words := _WORDS.search(message):
        return read_wait(words["wait"])
    resets: dict[bool, list[float]] = {True: [], False: []}
    for name, value in headers.items():
        of = re.fullmatch(r"(?:x-|anthropic-)?ratelimit-(?:(.+)-)?reset(?:-(.+))?", name.lower())
        seconds = read_wait(value) if of else None
        if of and seconds is not None:
            remaining = headers.get(name.lower().replace("reset", "remaining"))
            resets[remaining is not None and remaining.strip() in ("0", "0.0")].append(seconds)
    return max(resets[True] or resets[False], default=None)


def read_wait(text: str) -> float | None:
    """The seconds in a number, a duration (`6m0s`, `2 minutes`), a date or a time since 1970; None for other text."""
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if number >= _EPOCH:
        number = (number if number < 1000 * _EPOCH else number / 1000) - time.time()
    if not math.isnan(number):
        return max(0.0, number)
    if _DURATION.fullmatch(text):
        return sum(float(count) * _seconds(unit.lower()) for count, unit in re.findall(_PART, text, re.IGNORECASE))
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        from email.utils import parsedate_to_datetime  # 8 ms, for a date of HTTP

        try:
            when = parsedate_to_datetime(text)
        except ValueError:
            return None
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - time.time())


def _seconds(unit: str) -> float:
    return 0.001 if unit.startswith(("ms", "mil")) else _SECONDS[unit[0]]
