"""`print` and `open` for a namespace: a large lazy value is shown in part, and written to a file window by window."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Iterable
from typing import Any

from monocontext.text.lazy_kinds import LazyItems, LazyMapping, LazyText
from monocontext.text.str_methods import StrLike

PRINT_CHARACTERS = 20_000
"""The most characters to show of a lazy value: a twentieth of a typical context window, as `rlm` shows."""


def print_values(*values: Any, sep: Any = None, end: Any = None, file: Any = None, flush: Any = False) -> None:
    """`print` that cuts lazy values after `PRINT_CHARACTERS`, and says what it omits (GETs: those of a slice). A file
    other than stdout and stderr receives the whole text, window by window."""
    if any(isinstance(value, LazyText) for value in values) and file not in (None, sys.stdout, sys.stderr):
        for number, value in enumerate(values):
            for piece in value.chunks() if isinstance(value, LazyText) else [str(value)]:
                file.write(piece)
            if number < len(values) - 1:
                file.write(" " if sep is None else sep)
        values = ()
    print(*map(_shorten, values), sep=sep, end=end, file=file, flush=flush)


def _shorten(value: Any) -> Any:
    if isinstance(value, StrLike):
        head = value.span.read(0, min(PRINT_CHARACTERS, len(value)))
        omitted, following = len(value) - len(head), f"[{len(head)}:{2 * len(head)}]"
        return f"{head}\n[{omitted:,} more characters omitted; slice it to see more: {following}]" if omitted else head
    if isinstance(value, LazyMapping):
        return f"{{{_shorten_items(f'{key!r}: {item!r}' for key, item in value.items())}}}"
    return f"[{_shorten_items(map(repr, value))}]" if isinstance(value, LazyItems) else value


def _shorten_items(items: Iterable[str]) -> str:
    """The first items, joined. The others are not counted, since that can take a whole pass."""
    parts: list[str] = []
    room = PRINT_CHARACTERS
    for item in items:
        if room < 0:
            return ", ".join([*parts, "... the rest is omitted; take an item or a slice to see more"])
        parts.append(item[:room])
        room -= len(item)
    return ", ".join(parts)


class TextFile(io.TextIOWrapper):
    """A text file that writes a lazy text window by window, never as one `str` (1 GET for about 8 MiB stored)."""

    def write(self, text: Any, /) -> int:
        """Write a `str` or a lazy text of any size; returns the number of characters."""
        if not isinstance(text, LazyText):
            return super().write(text)
        return sum(map(super().write, text.chunks()))


def open_file(file: Any, mode: str = "r", *options: Any, **named: Any) -> Any:
    """`open` for a namespace. A text file opened for writing is a `TextFile`; any other is what `open` returns."""
    opened = builtins.open(file, mode, *options, **named)  # noqa: SIM115
    if type(opened) is not io.TextIOWrapper or not opened.writable():
        return opened
    newline = named.get("newline", options[3] if len(options) > 3 else None)
    encoding, errors, buffering = opened.encoding, opened.errors, opened.line_buffering
    text_file = TextFile(opened.detach(), encoding, errors, newline, buffering)
    text_file.mode = mode  # type: ignore[misc]
    return text_file
