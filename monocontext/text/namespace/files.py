"""Replace `open` in a namespace, so that its text files accept lazy texts in `write`."""

from __future__ import annotations

import builtins
import io
from collections.abc import Iterable
from typing import Any

from monocontext.text.namespace.lazy_values import is_text, pieces, read_whole


class TextFile(io.TextIOWrapper):
    """A text file that writes a lazy text window by window, never as one `str` (1 GET for about 8 MiB stored)."""

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
    """`open` for a namespace. A lazy text given as the path is read into a `str` first, if it is small enough. A text
    file opened for writing is a `TextFile`; any other file is what `open` returns."""
    if is_text(file):
        file = read_whole(file, "open(context)", "a path is short; to save the text: open(path, 'w').write(context)")
    opened = builtins.open(file, mode, buffering, encoding, errors, newline, closefd, opener)  # noqa: SIM115
    if type(opened) is not io.TextIOWrapper or not opened.writable():
        return opened
    # The same buffer and settings, in the class that accepts lazy texts.
    settings: dict[str, Any] = {
        "encoding": opened.encoding,
        "errors": opened.errors,
        "newline": newline,
        "line_buffering": opened.line_buffering,
    }
    text_file = TextFile(opened.detach(), **settings)
    text_file.mode = mode  # type: ignore[misc]
    return text_file
