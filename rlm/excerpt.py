"""Text and values brought to a length, with head and tail kept. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_BRACKETS = {list.__repr__: ("[", "]"), tuple.__repr__: ("(", ")"), set.__repr__: ("{", "}")}


_STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
_UNENCODABLE = re.compile(r"[\ud800-\udfff]")


def printable(text: str, *, terminal: bool) -> str:
    """`text` with what no encoding holds spelled out and, for a terminal, what would steer it: a model writes what the
    text it reads may have told it to, and an escape sequence can fill a clipboard or hide a line."""
    if terminal:
        text = _STEERING.sub(_spelled, text)
    return _UNENCODABLE.sub(_spelled, text)


def _spelled(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def cut(text: str, limit: int) -> str:
    """`text`, or its head and tail of together `limit` characters with the omitted count between."""
    if len(text) <= limit:
        return text
    return joined(text[: limit - limit // 2], text[len(text) - limit // 2 :], len(text) - limit)


def joined(head: str, tail: str, omitted: int) -> str:
    """Head and tail with the note that stands for the `omitted` characters between them."""
    return f"{head}\n... [{omitted:,} characters omitted] ...\n{tail}"


def bounded_repr(value: object, limit: int = 200) -> str:
    """The repr of `value` in about `limit` characters, at a cost that does not grow with the builtin containers in it.

    Other objects answer for the cost of their own repr. A repr that raises becomes the name of the type.
    """
    parts: list[str] = []
    used = 0
    for part in _parts(value, limit, 0):
        parts.append(part)
        used += len(part)
        if used > limit:
            size = f" of {len(value):,}" if isinstance(value, (list, tuple, Mapping, set, frozenset)) else ""
            return "".join(parts)[:limit] + f"... [a {type(value).__name__}{size}, cut]"
    return "".join(parts)


def _parts(value: object, limit: int, depth: int) -> Iterator[str]:
    """The repr in pieces; a container gives its items one by one, so that the reader can stop."""
    kind = type(value).__repr__
    if isinstance(value, (str, bytes)) and kind in (str.__repr__, bytes.__repr__):
        yield _literal(value, limit)
    elif depth > 20:
        yield "..."
    elif isinstance(value, dict) and kind is dict.__repr__:
        yield "{"
        for i, (key, item) in enumerate(value.items()):
            yield ", " if i else ""
            yield from _parts(key, limit, depth + 1)
            yield ": "
            yield from _parts(item, limit, depth + 1)
        yield "}"
    elif isinstance(value, (list, tuple, set)) and kind in _BRACKETS and value:
        yield _BRACKETS[kind][0]
        for i, item in enumerate(value):
            yield ", " if i else ""
            yield from _parts(item, limit, depth + 1)
        yield "," * (isinstance(value, tuple) and len(value) == 1) + _BRACKETS[kind][1]
    else:
        try:
            text = repr(value)
        except Exception as exc:
            text = f"<{type(value).__name__}, whose repr raises {type(exc).__name__}>"
        yield text if len(text) <= limit else f"{text[:limit]}..."


def _literal(value: str | bytes, limit: int) -> str:
    """The repr of a string, of its head and tail alone when it is long."""
    if len(value) <= limit:
        return repr(value)
    half = max(1, (limit - 50) // 2)
    unit = "characters" if isinstance(value, str) else "bytes"
    return f"{value[:half]!r} ... [{len(value) - 2 * half:,} {unit} omitted] ... {value[-half:]!r}"
