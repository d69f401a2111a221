"""Read the body of an answer: the events of a stream, or one JSON value. Report any other body as an error."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

from rlm.errors import LLMError
from rlm.models.endpoint_errors import WRONG_URL, CallTarget, EndpointError, one_line, read_error_event

_MOST_BYTES = 256 << 20  # far more than a model writes
_HEAD_BYTES = 8  # enough to distinguish a stream from JSON and from a web page
_SHOWN_CHARACTERS = 100  # the part of a body that an error quotes
_MARGIN = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and spaces, which may stand before the body
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class BodyPart:
    """A part of a body: an event, comment (which keeps the connection alive) or end of a stream; or a whole body."""

    type: Literal["event", "comment", "end", "whole"]
    value: Any = None  # the JSON of an event or of a whole body


class _Event(NamedTuple):
    """An event of a stream, or a comment, which has neither data nor a name."""

    data: str = ""
    name: str = ""
    is_comment: bool = False


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
    yield BodyPart("whole", _parse(body, target))


def as_one_line(text: str) -> str:
    """A text as one line; for a web page, its title, or else its contents without tags."""
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        return one_line(text)
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    if title and title[1].strip():
        return one_line(title[1])
    return one_line(re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text[:20_000], flags=re.IGNORECASE | re.DOTALL))


def _limit_size(chunks: Iterable[bytes], target: CallTarget) -> Iterator[bytes]:
    """Yield the chunks. Raises LLMError when they exceed any answer of a model: no timeout would end such a body."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > _MOST_BYTES:
            raise LLMError(f"{target}: the answer has more than {_MOST_BYTES >> 20} MiB ({WRONG_URL})")
        yield chunk


def _read_stream(pieces: Iterable[bytes], target: CallTarget, timeout_seconds: float) -> Iterator[BodyPart]:
    heard_at = time.monotonic()
    for event in _read_events(pieces):
        if event.is_comment:
            if time.monotonic() - heard_at > timeout_seconds:
                silence = f"sent no part of its reply for {timeout_seconds:g} seconds; raise timeout="
                raise LLMError(f"{target.endpoint} {silence}", transient=True)
            yield BodyPart("comment")
            continue
        heard_at = time.monotonic()
        data, is_error = event.data.strip(), event.name == "error"
        if not data and not is_error:
            continue
        if data.startswith("[DONE]") and not is_error:
            yield BodyPart("end")
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            if is_error:
                raise EndpointError(read_error_event(as_one_line(data))) from None
            problem = f"the stream holds an event that is not JSON: {as_one_line(data)[:_SHOWN_CHARACTERS]!r}"
            raise LLMError(f"{target}: {problem}", transient=True) from None
        if is_error:
            raise EndpointError(read_error_event(value))
        yield BodyPart("event", value)


def _parse(body: bytes, target: CallTarget) -> Any:
    """The JSON of a whole body. Raises LLMError, which says what came instead."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        start = repr(as_one_line(text)[:_SHOWN_CHARACTERS])
        if text[0] == "<":
            raise LLMError(f"{target}: received a web page instead of an answer: {start} ({WRONG_URL})") from None
        is_cut = isinstance(exc, json.JSONDecodeError) and (exc.pos >= len(text.rstrip()) or "Unterminated" in exc.msg)
        if is_cut and text[0] in "{[":
            raise LLMError(f"{target}: the answer ended in the middle: {start}", transient=True) from None
        raise LLMError(f"{target}: the answer is not JSON: {start} ({WRONG_URL})") from None


def _read_events(pieces: Iterable[bytes]) -> Iterator[_Event]:
    """Yield the events and comments of a stream. The empty line after the last event may be missing. A field `error`,
    and a line that is not a field, count as events with the name `error`, since servers and proxies write errors into a
    stream that has begun."""
    data: list[str] = []
    name = ""
    for line in chain(_read_lines(pieces), [""]):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:  # the end of an event
            if data or name == "error":
                yield _Event("\n".join(data), name)
            data, name = [], ""
        elif line.startswith(":"):
            yield _Event(is_comment=True)
        elif field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "error":
            yield _Event(value, "error")
        elif field not in ("id", "retry") and line.strip():
            if name != "error":
                data, name = [], "error"
            data.append(line)


def _read_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a stream. A line ends in LF, CR or CRLF, also where a piece ends between CR and LF."""
    rest: list[bytes] = []  # pieces of a line that has not ended, joined once: a long line takes linear time
    after_return = False
    for piece in pieces:
        if not piece:
            continue
        if after_return:  # the LF of a CRLF that began in the last piece
            piece = piece.removeprefix(b"\n")
        after_return = piece.endswith(b"\r")
        first, *others = _LINE_END.split(piece)
        rest.append(first)
        for line in others:
            yield b"".join(rest).decode("utf-8", "replace").removeprefix("\ufeff")
            rest = [line]
    if last := b"".join(rest):
        yield last.decode("utf-8", "replace").removeprefix("\ufeff")
