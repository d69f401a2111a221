"""`open` whose text files take lazy texts."""

from __future__ import annotations

import builtins
import io
from collections.abc import Iterable
from typing import Any

from monocontext.text.namespace.lazy_values import is_text, pieces, read_whole


class TextFile(io.TextIOWrapper):
    """A text file that writes a lazy text window by window (1 GET for about 8 MiB stored), never as one `str`."""

    def write(self, text: Any, /) -> int:
        """Write a `str` or a lazy text of any size; returns its characters."""
        if not is_text(text):
            return super().write(text)
        for piece in pieces(text):
            super().write(piece)
        return len(text)

    def writelines(self, lines: Iterable[Any], /) -> None:
        """Write `str` and lazy texts, those of a lazy list included."""
        if is_text(lines):
            self.write(lines)
            return
        for line in lines:
            self.write(line)


def open_file(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """`open` for a namespace. A lazy text is a path, up to its limit. A text file open for writing is a `TextFile`; any
    other is what `open` gives."""
    if is_text(file):
        file = read_whole(file, "open(context)", "a path is short: is it what the file is to hold?")
    opened = builtins.open(file, mode, buffering, encoding, errors, newline, closefd, opener)  # noqa: SIM115
    if type(opened) is not io.TextIOWrapper or not opened.writable():
        return opened
    settings: dict[str, Any] = {
        "encoding": opened.encoding,
        "errors": opened.errors,
        "newline": newline,
        "line_buffering": opened.line_buffering,
    }
    text = TextFile(opened.detach(), **settings)
    text.mode = mode  # type: ignore[misc]
    return text
