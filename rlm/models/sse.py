"""Read server-sent events out of bytes. Pure; the end of a line may be cut like any other bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LINE = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One event, or a comment."""

    data: str | None
    """The lines of its data; None for a comment, which only says that the endpoint is alive."""
    name: str = ""
    """The endpoint's name for the event; empty if it has none."""


def read_events(pieces: Iterable[bytes]) -> Iterator[Event]:
    """The events of a stream, cut anywhere. The last one counts also where the empty line after it is missing.

    Lines end in LF, CR or both. Bytes that are no UTF-8 become U+FFFD. A field `error` (of old versions of llama.cpp)
    is an event of that name, and so is a line that is no field: servers and proxies write errors into a stream that has
    begun.
    """
    data: list[str] = []
    name = ""
    for line in _read_lines(pieces):
        if not line:
            if data:
                yield Event("\n".join(data), name)
            data, name = [], ""
        elif line.startswith(":"):
            yield Event(None)
        else:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
            elif field == "error":
                yield Event(value, "error")
            elif field not in ("id", "retry") and line.strip():
                data, name = [line] if name != "error" else [*data, line], "error"
    if data:
        yield Event("\n".join(data), name)


def _read_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    rest: list[bytes] = []
    """Pieces of a line that has not ended: joined once, so that a long line costs no more than its length."""
    after_return = False
    for piece in pieces:
        if not piece:
            continue
        skipped = after_return and piece[:1] == b"\n"  # the second half of a line end
        after_return = piece.endswith(b"\r")
        first, *others = _LINE.split(piece[skipped:])
        rest.append(first)
        for line in others:
            yield _decode(b"".join(rest))
            rest = [line]
    if last := b"".join(rest):
        yield _decode(last)


def _decode(line: bytes) -> str:
    return line.decode("utf-8", "replace").removeprefix("\ufeff")
