"""Read how many seconds an endpoint asks to wait, in headers, fields and messages of its errors. Does no I/O."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime

_AMOUNT = r"(\d{1,9}(?:\.\d{1,9})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)"
_DURATION = re.compile(rf"(?:{_AMOUNT}[, ]*(?:and )?){{1,4}}", re.IGNORECASE)  # "2m30s", "1 hour and 5 minutes"
_WAIT_WORDS = re.compile(  # such as "try again in 2m30s"
    rf"(?:(?:try|retry)(?:ing)?(?: again| your request)? (?:in|after)|retry[-_ ]?(?:after|delay)\W{{1,4}}"
    rf"|resets? (?:in|after)|wait(?: for)?|available in) ?(?:about |another |at least )?"
    rf"(?P<wait>{_DURATION.pattern})(?![a-z])",
    re.IGNORECASE,
)
_RESET_HEADER = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:.+-)?reset(?:-.+)?", re.IGNORECASE)
"""A header such as `x-ratelimit-reset-tokens` and `anthropic-ratelimit-requests-reset`."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}  # of a unit, by its first letter
_EPOCH = 1e9  # a number this large is a time, in seconds since 1970; from 1,000 times this on, in milliseconds


def retry_after_seconds(headers: Mapping[str, str], field: object = None, message: str = "") -> float | None:
    """Seconds to wait, read from `Retry-After` (header names in lower case), else a `field` of the body, else the
    message, else the headers `x-ratelimit-reset-*`; None if none of them gives a time."""
    milliseconds = headers.get("retry-after-ms")
    for text in (f"{milliseconds}ms" if milliseconds else None, headers.get("retry-after"), field):
        seconds = None if text is None else read_wait(str(text))
        if seconds is not None:
            return seconds
    if words := _WAIT_WORDS.search(message):
        return read_wait(words["wait"])
    return _seconds_to_reset(headers)


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
        return sum(
            float(count) * (0.001 if unit.lower().startswith(("ms", "mil")) else _SECONDS[unit[0].lower()])
            for count, unit in re.findall(_AMOUNT, text, re.IGNORECASE)
        )
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        from email.utils import parsedate_to_datetime  # 8 ms, needed only for an HTTP date

        try:
            when = parsedate_to_datetime(text)
        except ValueError:
            return None
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - time.time())


def _seconds_to_reset(headers: Mapping[str, str]) -> float | None:
    """The longest time to the reset of a spent limit, or of any limit if the headers do not say which are spent."""
    if reset := re.search(r"\b(?:t|reset)=(\d+)", headers.get("ratelimit", "")):  # the header of the IETF's draft
        return float(reset[1])
    of_spent: list[float] = []
    of_others: list[float] = []
    for name, value in headers.items():
        seconds = read_wait(value) if _RESET_HEADER.fullmatch(name) else None
        if seconds is not None:
            remaining = headers.get(name.lower().replace("reset", "remaining"), "")
            waits = of_spent if remaining.strip() in ("0", "0.0") else of_others
            waits.append(seconds)
    return max(of_spent or of_others, default=None)
