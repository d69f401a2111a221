"""Read the content of a message: its text, thinking and refusal, in the shapes of many APIs. Does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rlm.models.endpoint_errors import get


class ContentParts(NamedTuple):
    """The parts of a message's content, each joined into one text; empty if the message has none."""

    text: str
    thinking: str = ""
    refusal: str = ""


def read_parts(content: object) -> ContentParts:
    """The text, thinking and refusal in a message's content, which is a text, one part, or a list of parts."""
    if content is None or isinstance(content, str):
        return ContentParts(content or "")
    text, thinking, refusal = list[str](), list[str](), list[str]()
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            text.append(part)
            continue
        kind = _as_text(get(part, "type"))
        if "think" in kind or "reason" in kind or get(part, "thought") is True:
            thinking.append(read_thinking(part))
        elif kind == "refusal":
            refusal.append(_as_text(get(part, "refusal")))
        elif kind in ("", "text", "output_text", "input_text"):
            body = get(part, "text")
            text.append(_as_text(get(body, "value") if isinstance(body, Mapping) else body))
    return ContentParts("".join(text), "".join(thinking), "".join(refusal))


def read_thinking(value: object) -> str:
    """The thinking in a value: a text, an object with one of several fields for it, or a list of these; else empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(read_thinking(item) for item in value)
    for name in ("thinking", "reasoning", "text", "content", "summary", "value"):
        field = get(value, name)
        if field and (inside := read_thinking(field)):
            return inside
    return ""


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""
