"""Read the body of an answer: events of a stream, or one JSON value. For anything else, report what came instead."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rlm.errors import LLMError
from rlm.models.endpoint_errors import WRONG_URL, CallTarget, EndpointError, ErrorReport, one_line, read_error_event

_MOST_BYTES = 256 << 20  # far more than a model writes
_HEAD_BYTES = 8  # enough to distinguish a stream from JSON and from a web page
_SHOWN_CHARACTERS = 100  # the part of a body that an error quotes
_MARGIN = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and spaces, which may stand before the body
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class BodyPart:
    """An event of a stream, a comment in it, its end, or a whole body."""

    value: Any = None  # JSON; None for a comment, which keeps the connection alive
    is_event: bool = True  # whether it is an event of a stream; else it is the whole body
    is_done: bool = False  # the mark of the end, `[DONE]`


def read_body(chunks: Iterable[bytes], target: CallTarget, timeout_seconds: float) -> Iterator[BodyPart]:
    """Yield the parts of a body that arrives in `chunks`. Raises EndpointError for an event named `error`; LLMError for
    a web page or anything else but JSON or events, and when only comments arrive for `timeout_seconds`."""
    pieces = _limit_size(chunks, target)
    start = b""
    for piece in pieces:
        start = (start + piece).lstrip(_MARGIN)
        if len(start) >= _HEAD_BYTES:
            break
    if re.match(rb"(?:data|event|id|retry|error)?:", start):
        yield from _read_stream(chain([start], pieces), target, timeout_seconds)
        return
    body = start + b"".join(pieces)
    if not body:
        raise LLMError(f"{target}: the answer is empty, neither stream nor JSON ({WRONG_URL})", transient=True)
    yield BodyPart(_parse(body, target), is_event=False)


def read_text(text: str) -> str:
    """A text as one line; for a web page, its title or its contents without tags."""
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        return one_line(text)
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    if title and title[1].strip():
        return one_line(title[1])
    return one_line(re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text[:20_000], flags=re.IGNORECASE | re.DOTALL))


def _limit_size(chunks: Iterable[bytes], target: CallTarget) -> Iterator[bytes]:
    """Yield the chunks. Raises LLMError when a body is too large for one of a model: no timeout ends an endless one."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > _MOST_BYTES:
            raise LLMError(f"{target}: the answer has more than {_MOST_BYTES >> 20} MiB ({WRONG_URL})")
        yield chunk


def _read_stream(pieces: Iterable[bytes], target: CallTarget, timeout_seconds: float) -> Iterator[BodyPart]:
    heard_at = time.monotonic()
    for text, name in _read_events(pieces):
        if text is None:
            if time.monotonic() - heard_at > timeout_seconds:
                silence = f"sent no part of its reply for {timeout_seconds:g} seconds; raise timeout="
                raise LLMError(f"{target.endpoint} {silence}", transient=True)
            yield BodyPart()
            continue
        heard_at = time.monotonic()
        data = text.strip()
        if name == "error":
            raise EndpointError(_read_error(data))
        if not data:
            continue
        if data.startswith("[DONE]"):
            yield BodyPart(is_done=True)
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            problem = f"the stream holds an event that is not JSON: {read_text(data)[:_SHOWN_CHARACTERS]!r}"
            raise LLMError(f"{target}: {problem}", transient=True) from None
        yield BodyPart(value)


def _read_error(data: str) -> ErrorReport:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = read_text(data)
    return read_error_event(value)


def _parse(body: bytes, target: CallTarget) -> Any:
    """The JSON of a whole body. Raises LLMError, which says what came instead."""
    text, is_torn = body.decode("utf-8", "replace"), False  # torn: the JSON ends in the middle
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        if isinstance(exc, json.JSONDecodeError) and text[0] in "{[":
            is_torn = exc.pos >= len(text.rstrip()) or exc.msg.startswith("Unterminated string")
    display = repr(read_text(text)[:_SHOWN_CHARACTERS])
    if text[0] == "<":
        raise LLMError(f"{target}: received a web page instead of an answer: {display} ({WRONG_URL})")
    if is_torn:
        raise LLMError(f"{target}: the answer ended in the middle: {display}", transient=True)
    raise LLMError(f"{target}: the answer is not JSON: {display} ({WRONG_URL})")


def _read_events(pieces: Iterable[bytes]) -> Iterator[tuple[str | None, str]]:
    """The data and the name of each event of a stream; None and no name for a comment. The empty line after the last
    event may be missing. A field `error`, and a line that is no field at all, count as events of the name `error`:
    servers and proxies write errors into a stream that has begun."""
    data: list[str] = []
    name = ""
    for line in _read_lines(pieces):
        if not line:
            if data or name == "error":
                yield "\n".join(data), name
            data, name = [], ""
        elif line.startswith(":"):
            yield None, ""
        else:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
            elif field == "error":
                yield value, "error"
            elif field not in ("id", "retry") and line.strip():
                data, name = [line] if name != "error" else [*data, line], "error"
    if data or name == "error":
        yield "\n".join(data), name


def _read_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines of a stream. They may end in any of the usual ways, also across two pieces."""
    rest: list[bytes] = []  # pieces of a line that has not ended, joined once: a long line takes linear time
    after_return = False
    for piece in pieces:
        if not piece:
            continue
        skipped = after_return and piece[:1] == b"\n"  # the second half of a line end
        after_return = piece.endswith(b"\r")
        first, *others = _LINE_END.split(piece[skipped:])
        rest.append(first)
        for line in others:
            yield b"".join(rest).decode("utf-8", "replace").removeprefix("\ufeff")
            rest = [line]
    if last := b"".join(rest):
        yield last.decode("utf-8", "replace").removeprefix("\ufeff")
