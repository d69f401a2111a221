"""`open` for a namespace, whose text files take lazy texts in `write`."""

from __future__ import annotations

import builtins
import io
from collections.abc import Iterable
from typing import Any

from monocontext.text.lazy_kinds import LazyText


class TextFile(io.TextIOWrapper):
    """A text file that writes a lazy text window by window, never as one `str` (1 GET for about 8 MiB stored)."""

    def write(self, text: Any, /) -> int:
        """Write a `str` or a lazy text of any size; returns its characters."""
        if not isinstance(text, LazyText):
            return super().write(text)
        return sum(map(super().write, text.chunks()))

    def writelines(self, lines: Iterable[Any], /) -> None:
        """Write `str` and lazy texts."""
        for line in [lines] if isinstance(lines, LazyText) else lines:
            self.write(line)


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
