"""Shorten texts and the reprs of values to a length, and escape what cannot be printed. Does no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_BRACKETS = {list.__repr__: ("[", "]"), tuple.__repr__: ("(", ")"), set.__repr__: ("{", "}")}
_NOTE = re.compile(r"\n\.\.\. \[([\d,]+) characters omitted\] \.\.\.\n")  # as `join_ends` writes it
_NOTE_CHARACTERS = 50  # the longest note; a text with one is not cut to the same length again
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")  # not tab, LF, CRLF
VOLATILE = re.compile(r"<cell \d+\.\d+>| at 0x[0-9a-f]{6,16}(?=[>,])")  # numbers of cells, addresses: "at 0x7f12ab"
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # half of a pair, which has no encoding


def make_printable(text: str, *, terminal: bool) -> str:
    """`text` with lone surrogates escaped; for a terminal also control characters, which can hide a line."""
    if terminal:
        text = _CONTROL.sub(_escape, text)
    return _SURROGATE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def shorten(text: str, limit: int) -> str:
    """`text`; if it exceeds `limit` characters, its head and tail around a note on how many are left out in all."""
    if len(text) <= limit + _NOTE_CHARACTERS:
        return text
    head, middle = text[: limit - limit // 2], text[limit - limit // 2 : len(text) - limit // 2]
    notes = list(_NOTE.finditer(middle))
    omitted_before = sum(int(note[1].replace(",", "")) - len(note[0]) for note in notes)  # a note is no text itself
    return join_ends(head, text[len(text) - limit // 2 :], len(middle) + omitted_before)


def join_ends(head: str, tail: str, omitted: int) -> str:
    """Head and tail, with a note between them that says that `omitted` characters are left out."""
    return f"{head}\n... [{omitted:,} characters omitted] ...\n{tail}"


def bounded_repr(value: object, limit: int = 200) -> str:
    """The repr of `value`, cut to about `limit` characters. The time does not grow with the size of builtin containers.
    An object whose repr raises is shown by the name of its type."""
    parts: list[str] = []
    length = 0
    for part in _repr_parts(value, limit, 0):
        parts.append(part)
        length += len(part)
        if length > limit:
            size = f" of {len(value):,}" if isinstance(value, (list, tuple, Mapping, set, frozenset)) else ""
            return "".join(parts)[:limit] + f"... [a {type(value).__name__}{size}, cut]"
    return "".join(parts)


def _repr_parts(value: object, limit: int, depth: int) -> Iterator[str]:
    """Yield the repr in pieces. A container yields its items one by one, so that the caller can stop. A subclass with a
    repr of its own is not taken apart."""
    own_repr = type(value).__repr__
    if isinstance(value, (str, bytes)) and own_repr in (str.__repr__, bytes.__repr__):
        yield _shorten_literal(value, limit)
    elif depth > 20:  # an item that deep says nothing
        yield "..."
    elif isinstance(value, dict) and own_repr is dict.__repr__:
        yield "{"
        for index, (key, item) in enumerate(value.items()):
            yield ", " if index else ""
            yield from _repr_parts(key, limit, depth + 1)
            yield ": "
            yield from _repr_parts(item, limit, depth + 1)
        yield "}"
    elif isinstance(value, (list, tuple, set)) and own_repr in _BRACKETS and value:
        opening, closing = _BRACKETS[own_repr]
        yield opening
        for index, item in enumerate(value):
            yield ", " if index else ""
            yield from _repr_parts(item, limit, depth + 1)
        yield f",{closing}" if isinstance(value, tuple) and len(value) == 1 else closing
    else:
        try:
            text = repr(value)
        except Exception as exc:
            text = f"<{type(value).__name__}, whose repr raises {type(exc).__name__}>"
        yield text if len(text) <= limit else f"{text[:limit]}..."


def _shorten_literal(value: str | bytes, limit: int) -> str:
    """The repr of a string. If that exceeds `limit` characters: the reprs of its head and tail around a note."""
    if len(value) <= limit and len(literal := repr(value)) <= limit:
        return literal
    unit = "characters" if isinstance(value, str) else "bytes"
    room = max(1, (limit - len(f" ... [{len(value):,} {unit} omitted] ... ")) // 2)
    head, tail = _fit_end(value, room, is_head=True), _fit_end(value, room, is_head=False)
    remaining = len(value) - len(head) - len(tail)
    return f"{head!r} ... [{remaining:,} {unit} omitted] ... {tail!r}"


def _fit_end(value: str | bytes, room: int, *, is_head: bool) -> str | bytes:
    """The longest head, or else tail, of `value` whose repr has at most `room` characters, escapes included."""
    count = max(1, min(room - 2, len(value) // 2))
    while True:
        part = value[:count] if is_head else value[len(value) - count :]
        if (length := len(repr(part))) <= room or count == 1:
            return part
        count = max(1, min(count - 1, count * room // length))
