"""What the head of an S3 answer must say before a byte of its body is believed: one rule for both ways of asking."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Any

from monocontext.errors import DamagedData
from monocontext.stores.checks import check_end

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")

Span = tuple[int, int]
"""First byte and number of bytes, of at least one."""


def check_answer(url: str, span: Span | None, status: int, content_range: str | None, length: int | None) -> int | None:
    """Compare an answer with the range that was asked for, or with the whole; returns the length of the whole object.

    `length` is that of the body as announced, `None` when the server does not say. Raises `DamagedData`.
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


def seconds_of(date: str | None) -> float:
    """An HTTP date in seconds since 1970; 0 where there is none or it is not one."""
    try:
        return parsedate_to_datetime(date).timestamp() if date else 0.0
    except ValueError:
        return 0.0


def answered_at(answer: Any) -> float:
    """What the server's clock showed when it gave this answer to boto3; 0 where it did not say."""
    return seconds_of(answer["ResponseMetadata"].get("HTTPHeaders", {}).get("date"))


def bare_etag(etag: Any, url: str) -> str:
    """Without quotes: some servers quote an ETag in one answer and not in another. Raises `DamagedData` without one."""
    if not etag:
        raise DamagedData(f"{url}: the answer carries no ETag")
    return str(etag).strip('"')
