"""Search and split texts: functions for code in an interpreter, with the names of fleet-rlm."""

from __future__ import annotations

import json
import re
from typing import Any


def peek(text: str, start: int = 0, length: int = 2000) -> str:
    """`length` characters from `start` on."""
    return text[start : start + length]


def grep(text: str, pattern: str, *, context: int = 0) -> list[str]:
    """Lines that contain the text `pattern` in any case, each with `context` lines before and after it."""
    lines = text.splitlines()
    wanted = pattern.lower()
    found = [at for at, line in enumerate(lines) if wanted in line.lower()]
    return ["\n".join(lines[max(0, at - context) : at + context + 1]) for at in found]


def chunk_by_size(text: str, size: int = 200_000, overlap: int = 0) -> list[str]:
    """Pieces of `size` characters, each beginning with the last `overlap` characters of the one before."""
    if size <= 0:
        raise ValueError("size must be positive")
    if overlap < 0:
        raise ValueError("overlap must be non-negative")
    if overlap >= size:
        raise ValueError("overlap must be less than size")
    last_start = max(len(text) - overlap, 1) if text else 0
    return [text[at : at + size] for at in range(0, last_start, size - overlap)]


def chunk_by_headers(text: str, pattern: str = r"^#{1,3} ", flags: int = re.MULTILINE) -> list[dict[str, Any]]:
    """Pieces that begin with a matching line: dicts with `header`, `content`, `start_pos`."""
    return _chunk_by_pattern(text, pattern, flags, "header")


def chunk_by_timestamps(
    text: str, pattern: str = r"^\d{4}-\d{2}-\d{2}[T ]", flags: int = re.MULTILINE
) -> list[dict[str, Any]]:
    """Pieces that begin with a time: dicts with `timestamp`, `content`, `start_pos`."""
    return _chunk_by_pattern(text, pattern, flags, "timestamp")


def chunk_by_json_keys(text: str) -> list[dict[str, Any]]:
    """The members of a JSON object: dicts with `key`, `content`, `value_type`. Raises ValueError."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"Invalid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"Expected JSON object, got {type(found).__name__}")
    return [
        {"key": key, "content": json.dumps(value, indent=2), "value_type": type(value).__name__}
        for key, value in found.items()
    ]


def _chunk_by_pattern(text: str, pattern: str, flags: int, name: str) -> list[dict[str, Any]]:
    starts = [found.start() for found in re.finditer(pattern, text, flags)]
    if not starts:
        return [{name: "", "content": text, "start_pos": 0}] if text else []
    chunks: list[dict[str, Any]] = []
    if starts[0]:
        chunks.append({name: "", "content": text[: starts[0]].strip(), "start_pos": 0})
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        piece = text[start:stop].strip()
        first_line, _, rest = piece.partition("\n")
        if name == "header":
            label, content = first_line, rest.strip()
        else:
            label, content = first_line.split(None, 1)[0] if first_line else "", piece
        chunks.append({name: label, "content": content, "start_pos": start})
    return [chunk for chunk in chunks if chunk["content"] or chunk[name]]


FUNCTIONS = (peek, grep, chunk_by_size, chunk_by_headers, chunk_by_timestamps, chunk_by_json_keys)
