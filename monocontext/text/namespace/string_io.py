"""`io.StringIO` over a lazy text: a file that reads on demand."""

from __future__ import annotations

import io
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, cast

from monocontext.errors import ContextTooLarge
from monocontext.text.namespace.lazy_values import is_small, is_text, read_whole

if TYPE_CHECKING:
    from monocontext.text.str_methods import StrLike

_BUFFERED = 1 << 20
"""Lines and reads up to this many characters are real `str`, from the buffer."""


class _StringIOClass(ABCMeta):
    def __call__(cls, *args: Any, **options: Any) -> Any:
        if cls is not StringIO:
            return super().__call__(*args, **options)
        return _make_string_io(*args, **options)

    def __instancecheck__(cls, value: object) -> bool:
        if cls is StringIO and isinstance(value, io.StringIO | LazyStringIO):
            return True
        return super().__instancecheck__(value)


class StringIO(io.StringIO, metaclass=_StringIOClass):
    """`io.StringIO`. For a text above its limit it is a `LazyStringIO`; `write` takes lazy texts up to their limit."""

    def write(self, s: Any) -> int:
        return super().write(read_whole(s, "StringIO.write", "write in pieces") if is_text(s) else s)


def _make_string_io(initial_value: Any = "", newline: str | None = "\n") -> Any:
    if is_text(initial_value):
        if newline == "\n" and not is_small(initial_value):
            return LazyStringIO(initial_value)
        instead = "leave newline= out, which keeps line ends as they are"
        initial_value = read_whole(initial_value, f"io.StringIO(context, newline={newline!r})", instead)
    return type.__call__(StringIO, initial_value, newline)


def _check_size(size: int | None) -> int:
    return sys.maxsize if size is None or size < 0 else size.__index__()


class LazyStringIO(io.TextIOBase):
    r"""A text as a file to read. Positions are characters, and lines end with `\n`, as in `io.StringIO`.

    Iteration, `readline` and `read(n)` stream, fetched ahead (1 GET for about 8 MiB stored), and give real `str`. Only
    a line or `read` above a million characters and above the text's limit is a lazy text. `seek` and `tell` cost the
    same as `len` of the text. Read-only: `write` and `truncate` raise `io.UnsupportedOperation`.
    """

    line_buffering = False

    def __init__(self, text: StrLike):
        self._text = text
        self._start = 0
        self._buffer = ""
        """Characters from `_start` on; those before `_offset` were read."""
        self._offset = 0
        self._ahead: Iterator[str] | None = None
        """The text after the buffer."""

    def read(self, size: int | None = -1, /) -> str:
        """The next `size` characters. A negative size or None gives the rest (lazy, above the limit)."""
        self._check_open()
        size = _check_size(size)
        if size <= _BUFFERED:
            while len(self._buffer) - self._offset < size and self._fill():
                pass
            return self._take(size)
        return self._jump(min(self.tell() + size, len(self._text)))

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        """The next line with its end, at most `size` characters of it; empty at the end of the text."""
        self._check_open()
        most = _check_size(size)
        searched = self._offset
        while (newline := self._buffer.find("\n", searched)) < 0:
            ahead = len(self._buffer) - self._offset
            if ahead >= most:
                return self._take(most)
            if ahead > _BUFFERED:
                newline = self._text.find("\n", self._start + len(self._buffer))
                stop = newline + 1 or len(self._text)
                return self._jump(min(stop, self.tell() + most))
            if not self._fill():
                return self._take(most)
            searched = ahead
        return self._take(min(newline + 1 - self._offset, most))

    def __next__(self) -> str:  # type: ignore[override]
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def readlines(self, hint: int | None = -1, /) -> list[str]:  # type: ignore[override]
        """Lines as a real list; `ContextTooLarge` where the rest of the file is above the text's limit."""
        left = len(self._text) - self.tell()
        if (hint is None or hint <= 0) and left > self._text._limit:
            raise ContextTooLarge(
                f"readlines() would make {left:,} characters, more than the limit of {self._text._limit:,} "
                "(materialize_limit): iterate the file instead: for line in file"
            )
        return list(super().readlines(-1 if hint is None else hint))

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Move to a character, or by 0 relative to the position or the end. Raises as `io.StringIO` does."""
        self._check_open()
        if whence not in (0, 1, 2):
            raise ValueError(f"Invalid whence ({whence}, should be 0, 1 or 2)")
        if cookie < 0 and whence == 0:
            raise ValueError(f"Negative seek position {cookie}")
        if cookie and whence:
            raise OSError("Can't do nonzero cur-relative seeks")
        if whence == 0:
            self._move(cookie)
        elif whence == 2:
            self._move(len(self._text))
        return self.tell()

    def tell(self) -> int:
        self._check_open()
        return self._start + self._offset

    def getvalue(self) -> StrLike:
        """The text itself, without a read."""
        self._check_open()
        return self._text

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    @property
    def flush(self) -> Callable[[], None]:
        """Does nothing, since the file is read-only. `polars` looks this method up before it reads everything, and
        panics in Rust if that read raises. So the error comes here, where `polars` passes an exception on."""
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.partition(".")[0] == "polars" and not self.closed and len(self._text) > self._text._limit:
            raise ContextTooLarge(
                f"polars reads a file as one text, which would make {len(self._text):,} characters, more than the "
                f"limit of {self._text._limit:,} (materialize_limit): give it parts, "
                "polars.read_csv(io.StringIO(header + context[a:b]))"
            )
        return super().flush

    def write(self, s: str, /) -> NoReturn:
        self._refuse("write")

    def truncate(self, size: int | None = None, /) -> NoReturn:
        self._refuse("truncate")

    def close(self) -> None:
        self._buffer = ""
        self._ahead = None
        super().close()

    def __repr__(self) -> str:
        return f"<StringIO over {self._text!r}>"

    def _fill(self) -> bool:
        """Append the next window to the buffer, and drop what was read."""
        if self._ahead is None:
            here = self._start + len(self._buffer)
            self._ahead = self._text.span.texts(here) if not here or here < len(self._text) else iter(())
        more = next(self._ahead, "")
        self._start += self._offset
        self._buffer = self._buffer[self._offset :] + more
        self._offset = 0
        return bool(more)

    def _take(self, size: int) -> str:
        taken = self._buffer[self._offset : self._offset + size]
        self._offset += len(taken)
        return taken

    def _jump(self, stop: int) -> str:
        """Read up to `stop`, past the buffer."""
        start = self.tell()
        if start >= stop:
            return ""
        self._move(stop)
        return cast(str, self._text._part(start, stop))

    def _move(self, position: int) -> None:
        if self._start <= position <= self._start + len(self._buffer):
            self._offset = position - self._start
            return
        self._start, self._buffer, self._offset, self._ahead = position, "", 0, None

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _refuse(self, what: str) -> NoReturn:
        self._check_open()
        raise io.UnsupportedOperation(f"{what}: a StringIO over a lazy text is read-only")
