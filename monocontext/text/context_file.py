"""A text as a file, for libraries that read files: `csv`, `json` line by line, `pandas.read_csv`."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from operator import index

from monocontext.errors import ContextTooLarge
from monocontext.text.str_methods import StrLike


class ContextFile(io.TextIOBase):
    r"""A seekable text file over a context, to read: an `io.TextIOBase` whose positions are characters.

    Lines end with `\n`, which is part of them, as with `open(..., newline="\n")`. Reading in order streams ahead of the
    caller (1 GET for about 8 MiB stored). Results are real `str`: a `read()` or a line above the text's
    `materialize_limit` raises `ContextTooLarge`. Closing the file leaves the context open.
    """

    mode = "r"
    encoding = "utf-8"
    errors = "strict"

    def __init__(self, text: StrLike, name: str = ""):
        self._text = text
        self.name = name
        """The URL of the text; empty for a derived text."""
        self._start = 0
        self._buffer = ""
        """The text from character `_start` on. Its first `_offset` characters were read."""
        self._offset = 0
        self._ahead: Iterator[str] | None = None
        """The text after the buffer."""

    def read(self, size: int | None = -1, /) -> str:
        """The next `size` characters. A negative size or None gives the rest."""
        remaining = len(self._text) - self.tell()
        return self._take(remaining if size is None or size < 0 else min(index(size), remaining))

    def __next__(self) -> str:  # type: ignore[override]
        """The next line. Most lines of a loop come straight from the buffer, without the checks of `readline`."""
        stop = self._buffer.find("\n", self._offset) + 1
        if not stop:
            return super().__next__()
        line, self._offset = self._buffer[self._offset : stop], stop
        return line

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        """The next line with its end, at most `size` characters of it; empty at the end of the text."""
        most = sys.maxsize if size is None or size < 0 else index(size)
        remaining = len(self._text) - self.tell()
        searched = self._offset
        while (newline := self._buffer.find("\n", searched)) < 0:
            ahead = len(self._buffer) - self._offset
            if ahead >= min(most, remaining):
                return self._take(min(most, remaining))
            self._fill(ahead + 1)
            searched = ahead
        return self._take(min(newline + 1 - self._offset, most))

    def readlines(self, hint: int | None = -1, /) -> list[str]:  # type: ignore[override]
        """Lines as a real list; `ContextTooLarge` where the rest of the file is above the text's limit."""
        if hint is None or hint <= 0:
            self._check_size(len(self._text) - self.tell())
        return list(super().readlines(-1 if hint is None else hint))

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Move to character `cookie`, or to the end if it is 0 and `whence` 2. Raises the errors of `io.StringIO`."""
        self._check_open()
        if whence not in (0, 1, 2):
            raise ValueError(f"Invalid whence ({whence}, should be 0, 1 or 2)")
        if cookie < 0 and whence == 0:
            raise ValueError(f"Negative seek position {cookie}")
        if cookie and whence:
            raise OSError("Can't do nonzero cur-relative seeks")
        position = index(cookie) if whence == 0 else len(self._text) if whence == 2 else self.tell()
        if self._start <= position <= self._start + len(self._buffer):
            self._offset = position - self._start
        else:
            self._start, self._buffer, self._offset, self._ahead = position, "", 0, None
        return position

    def tell(self) -> int:
        self._check_open()
        return self._start + self._offset

    def getvalue(self) -> StrLike:
        """The text itself, where `io.StringIO` returns a `str` (no GET)."""
        self._check_open()
        return self._text

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._buffer = ""
        self._ahead = None
        super().close()

    def _take(self, size: int) -> str:
        """The next `size` characters; the text must have as many."""
        if size <= 0:
            return ""
        self._fill(size)
        text = self._buffer[self._offset : self._offset + size]
        self._offset += len(text)
        return text

    def _fill(self, size: int) -> None:
        """Fill the buffer until it has `size` unread characters, and drop those that were read."""
        parts = [self._buffer[self._offset :]]
        have = len(parts[0])
        if have >= size:
            return
        self._check_size(size)
        if self._ahead is None:
            self._ahead = self._text.span.texts(self._start + len(self._buffer))
        while have < size:
            parts.append(next(self._ahead))
            have += len(parts[-1])
        self._start += self._offset
        self._buffer, self._offset = "".join(parts), 0

    def _check_size(self, size: int) -> None:
        if size > self._text._limit:
            raise ContextTooLarge(
                f"this read would make {size:,} characters, more than the limit of {self._text._limit:,} "
                "(materialize_limit): read(n) in pieces, or iterate the file: for line in file"
            )

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
