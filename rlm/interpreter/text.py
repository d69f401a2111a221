"""Text functions for code in an interpreter, in the shape of fleet-rlm: search, peek, chunks. Pure."""

from __future__ import annotations

import json
import re
from typing import Any


def peek(text: str, start: int = 0, length: int = 2000) -> str:
    """`length` characters from `start` on."""
    return text[start : start + length]


def grep(text: str, pattern: str, *, context: int = 0) -> list[str]:
    """Lines that hold `pattern`, a plain text in either case, each with `context` lines before and after it."""
    lines = text.splitlines()
    wanted = pattern.lower()
    found = [at for at, line in enumerate(lines) if wanted in line.lower()]
    return ["\n".join(lines[max(0, at - context) : at + context + 1]) for at in found]


def chunk_by_size(text: str, size: int = 200_000, overlap: int = 0) -> list[str]:
    """Pieces of `size` characters; the first `overlap` of them are the end of the piece before."""
    if size <= 0:
        raise ValueError("size must be positive")
    if overlap < 0:
        raise ValueError("overlap must be non-negative")
    if overlap >= size:
        raise ValueError("overlap must be less than size")
    pieces, at = [], 0
    while at < len(text):
        pieces.append(text[at : at + size])
        if at + size >= len(text):
            break
        at += size - overlap
    return pieces


def chunk_by_headers(text: str, pattern: str = r"^#{1,3} ", flags: int = re.MULTILINE) -> list[dict[str, Any]]:
    """Pieces that begin with a line that matches: `header`, `content`, `start_pos`."""
    return _chunk_by_pattern(text, pattern, flags, "header")


def chunk_by_timestamps(
    text: str, pattern: str = r"^\d{4}-\d{2}-\d{2}[T ]", flags: int = re.MULTILINE
) -> list[dict[str, Any]]:
    """Pieces that begin with a time: `timestamp`, `content`, `start_pos`."""
    return _chunk_by_pattern(text, pattern, flags, "timestamp")


def chunk_by_json_keys(text: str) -> list[dict[str, Any]]:
    """The members of a JSON object: `key`, `content`, `value_type`. Raises ValueError."""
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
    chunks = [{name: "", "content": text[: starts[0]].strip(), "start_pos": 0}] if starts and starts[0] else []
    if not starts:
        return [{name: "", "content": text, "start_pos": 0}] if text else []
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        piece = text[start:stop].strip()
        head, _, rest = piece.partition("\n")
        begins = {"header": head, "content": rest.strip()} if name == "header" else {
            "timestamp": head.split(None, 1)[0] if head else "", "content": piece}  # fmt: skip
        chunks.append({**begins, "start_pos": start})
    return [chunk for chunk in chunks if chunk["content"] or chunk[name]]


FUNCTIONS = (peek, grep, chunk_by_size, chunk_by_headers, chunk_by_timestamps, chunk_by_json_keys)
