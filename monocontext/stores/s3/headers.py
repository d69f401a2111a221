"""Check the head of an S3 response before its body is used: the same rules for our transport and for boto3."""

from __future__ import annotations

import re
import time
from typing import Any

from monocontext.errors import DamagedData, StoreFailure
from monocontext.stores.checks import check_end

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DATE = re.compile(
    rf"[A-Z][a-z]{{2}}, (\d\d) ({'|'.join(_MONTHS)}) ([12]\d{{3}}) ([01]\d|2[0-3]):([0-5]\d):([0-5]\d) GMT"
)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")

Span = tuple[int, int]
"""First byte and number of bytes, of at least one."""


def check_response(
    url: str, span: Span | None, status: int, content_range: str | None, length: int | None
) -> int | None:
    """Compare a response with the requested range, or with the whole; returns the length of the whole object.

    `length` is the announced length of the body, `None` where the server does not say. Raises `DamagedData`.
    """
    expected = 206 if span else 200
    if status != expected:
        raise DamagedData(f"{url}: expected HTTP {expected}, found HTTP {status}")
    if span is None:
        return length
    start, count = span
    found = _CONTENT_RANGE.fullmatch(content_range or "")
    if found and int(found[1]) == start:
        check_end(url, start, count, int(found[3]))
    if not found or (int(found[1]), int(found[2])) != (start, start + count - 1):
        raise DamagedData(f"{url}: expected Content-Range bytes {start}-{start + count - 1}/*, found {content_range}")
    if length is not None and length != count:
        raise DamagedData(f"{url}: expected {count:,} bytes from byte {start:,}, found {length:,}")
    return int(found[3])


def modified_seconds(answer: dict[str, Any], url: str) -> float:
    """When boto3 says that an object was stored, in seconds since 1970. Raises `StoreFailure` where it does not say:
    `gc` must not take such an object for an old one."""
    if "LastModified" not in answer:
        raise StoreFailure(f"{url}: the response is damaged: it has no Last-Modified")
    return float(answer["LastModified"].timestamp())


def seconds_of(date: str | None) -> float:
    """An HTTP date in seconds since 1970; 0 without a date, and for what is not one."""
    if not date:
        return 0.0
    if found := _DATE.fullmatch(date):
        day, month, year, hour, minute, second = found.groups()
        days = _days(int(year), _MONTHS.index(month), int(day))
        seconds = days * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second)
        return float(seconds) if time.gmtime(seconds).tm_mday == int(day) else 0.0
    from email.utils import parsedate_to_datetime  # 8 ms that dates of the usual form need not pay

    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return 0.0


def response_seconds(answer: Any) -> float:
    """Time of a response to boto3 by the server's clock, in seconds since 1970; 0 where it does not say."""
    return seconds_of(answer["ResponseMetadata"].get("HTTPHeaders", {}).get("date"))


def bare_etag(etag: Any, url: str) -> str:
    """An ETag without quotes, which servers do not set alike in all responses. Raises `DamagedData` without an ETag."""
    if not etag:
        raise DamagedData(f"{url}: the answer carries no ETag")
    return str(etag).strip('"')


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970 in the Gregorian calendar; `month` counts from 0. Years begin in March: leap days come last."""
    year, month = (year, month - 2) if month >= 2 else (year - 1, month + 10)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719469
