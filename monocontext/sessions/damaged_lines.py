"""Find the records in a line that is not a JSON object, as a crash, a killed agent or a shell may leave it. Pure.

- NULs around a record, where a file was longer than its written part
- several records with no newline between them, also after one that broke off
- UTF-16, which a shell appended to UTF-8
"""

from __future__ import annotations

import json
import re
from typing import Any

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\0\s\ufeff]*")
_START = re.compile(r'\{\s*"')
_NULS = re.compile("\0+")
_MOST_STARTS = 50
"""The most places that are tried as the beginning of a record after one that broke off."""
_MOST_CHARACTERS = 8 << 20
"""Longest line that is searched for records after a truncated one, in characters."""


def records_in(data: bytes) -> list[dict[str, Any] | str]:
    """The records in a line in order, and the text between them; NULs around records are left out."""
    text = decode(data)
    results: list[dict[str, Any] | str] = []
    offset = _skip(text, 0)
    while offset < len(text):
        end, record = _record_at(text, offset)
        if record is None:
            start = _next_start(text, offset)
            results.append(_without_nuls(text[offset:start]))
            offset = start
        else:
            results.append(record)
            offset = _skip(text, end)
    return results


def decode(data: bytes) -> str:
    """A line as text, without its newline. The line may be UTF-16 within a file of UTF-8."""
    if 2 * data.count(b"\0") >= len(data) - 4 and b"\0\0" not in data:  # every second byte is NUL
        data = data.strip(b"\r\n")
        wide = data[1:] if data.startswith(b"\0") and len(data) % 2 else data
        for encoding in ("utf-16-le", "utf-16-be"):
            text = wide[: len(wide) // 2 * 2].decode(encoding, "replace").rstrip("\r\n")
            if text.startswith(("{", "\ufeff{")):
                return text
    return data.decode("utf-8", "backslashreplace").rstrip("\r\n")


def _skip(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def _record_at(text: str, at: int) -> tuple[int, dict[str, Any] | None]:
    try:
        result, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return at, None
    return end, result if isinstance(result, dict) else None


def _next_start(text: str, at: int) -> int:
    """The beginning of the next record, or the end of the text. Objects within a record do not count."""
    if len(text) > _MOST_CHARACTERS:
        return len(text)
    for tried, start in enumerate(_START.finditer(text, at + 1)):
        if tried == _MOST_STARTS:
            break
        end, record = _record_at(text, start.start())
        if record is not None and _is_whole(record) and (_skip(text, end) == len(text) or text[end] in "{\0 "):
            return start.start()
    return len(text)


def _is_whole(record: dict[str, Any]) -> bool:
    """Whether an object looks like a line that agents write."""
    return "type" in record and bool({"timestamp", "uuid", "sessionId", "payload"} & record.keys())


def _without_nuls(text: str) -> str:
    """A text with its runs of NULs replaced by their number: JSON takes six characters for each NUL."""
    return _NULS.sub(lambda run: f"[{len(run[0]):,} NULs]", text.rstrip("\0")).rstrip("\r\n")
