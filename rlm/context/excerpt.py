"""Shorten text and values to a length, keeping head and tail. Does no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_BRACKETS = {list.__repr__: ("[", "]"), tuple.__repr__: ("(", ")"), set.__repr__: ("{", "}")}
_NOTE = re.compile(r"\n\.\.\. \[([\d,]+) characters omitted\] \.\.\.\n")
_NOTE_CHARACTERS = 50  # the length of a note: a text that was cut once is not cut to the same length again
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
VOLATILE = re.compile(r"<cell \d+\.\d+>| at 0x[0-9a-f]{6,16}(?=[>,])")  # cell numbers, and addresses in a repr
_UNENCODABLE = re.compile(r"[\ud800-\udfff]")


def make_printable(text: str, *, terminal: bool) -> str:
    """`text` with lone surrogates escaped and, for a terminal, control characters, which can hide a line."""
    if terminal:
        text = _CONTROL.sub(_escape, text)
    return _UNENCODABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def shorten(text: str, limit: int) -> str:
    """`text` itself if it is short, else its two ends around a note that counts what this and earlier cuts omit."""
    if len(text) <= limit + _NOTE_CHARACTERS:
        return text
    head, middle = text[: limit - limit // 2], text[limit - limit // 2 : len(text) - limit // 2]
    notes = list(_NOTE.finditer(middle))
    earlier = sum(int(note[1].replace(",", "")) - len(note[0]) for note in notes)
    return join_ends(head, text[len(text) - limit // 2 :], len(middle) + earlier)


def join_ends(head: str, tail: str, omitted: int) -> str:
    """Head and tail with a note between them: `omitted` is a number of characters."""
    return f"{head}\n... [{omitted:,} characters omitted] ...\n{tail}"


def bounded_repr(value: object, limit: int = 200) -> str:
    """The repr of `value`, cut to about `limit` characters. Large builtin containers do not make it slower. For other
    objects it calls their repr, or `_short_repr`, which a stored list has since its repr would read it all. An object
    whose repr raises is shown by the name of its type."""
    parts: list[str] = []
    used = 0
    for part in _repr_parts(value, limit, 0):
        parts.append(part)
        used += len(part)
        if used > limit:
            size = f" of {len(value):,}" if isinstance(value, (list, tuple, Mapping, set, frozenset)) else ""
            return "".join(parts)[:limit] + f"... [a {type(value).__name__}{size}, cut]"
    return "".join(parts)


def _repr_parts(value: object, limit: int, depth: int) -> Iterator[str]:
    """The repr in pieces. A container yields its items one by one, so that the caller can stop."""
    kind = type(value).__repr__
    if isinstance(value, (str, bytes)) and kind in (str.__repr__, bytes.__repr__):
        yield _shorten_literal(value, limit)
    elif depth > 20:
        yield "..."
    elif isinstance(value, dict) and kind is dict.__repr__:
        yield "{"
        for i, (key, item) in enumerate(value.items()):
            yield ", " if i else ""
            yield from _repr_parts(key, limit, depth + 1)
            yield ": "
            yield from _repr_parts(item, limit, depth + 1)
        yield "}"
    elif isinstance(value, (list, tuple, set)) and kind in _BRACKETS and value:
        yield _BRACKETS[kind][0]
        for i, item in enumerate(value):
            yield ", " if i else ""
            yield from _repr_parts(item, limit, depth + 1)
        yield "," * (isinstance(value, tuple) and len(value) == 1) + _BRACKETS[kind][1]
    else:
        short = getattr(type(value), "_short_repr", repr)
        try:
            text = short(value)
        except Exception as exc:
            text = f"<{type(value).__name__}, whose repr raises {type(exc).__name__}>"
        yield text if len(text) <= limit else f"{text[:limit]}..."


def _shorten_literal(value: str | bytes, limit: int) -> str:
    """The repr of a string; if that exceeds `limit` characters, those of its head and tail around a note."""
    if len(value) <= limit and len(literal := repr(value)) <= limit:
        return literal
    unit = "characters" if isinstance(value, str) else "bytes"
    room = max(1, (limit - len(f" ... [{len(value):,} {unit} omitted] ... ")) // 2)
    head, tail = _fit_end(value, room, head=True), _fit_end(value, room, head=False)
    remaining = len(value) - len(head) - len(tail)
    return f"{head!r} ... [{remaining:,} {unit} omitted] ... {tail!r}"


def _fit_end(value: str | bytes, room: int, *, head: bool) -> str | bytes:
    """The longest head or tail of `value` whose repr has at most `room` characters, escapes included."""
    count = max(1, min(room - 2, len(value) // 2))
    while True:
        part = value[:count] if head else value[len(value) - count :]
        if (length := len(repr(part))) <= room or count == 1:
            return part
        count = max(1, min(count - 1, count * room // length))
