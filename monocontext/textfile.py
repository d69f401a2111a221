"""A text as a file, for libraries that read files: `csv`, `json` line by line, `pandas.read_csv`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NoReturn

from monocontext.errors import ContextTooLarge
from monocontext.namespace.string_io import LazyStringIO

if TYPE_CHECKING:
    from monocontext.text import Monocontext


class ContextFile(LazyStringIO):
    r"""A seekable text file over a context, to read: an `io.TextIOBase` whose positions are characters.

    Lines end with `\n` and keep what ends them, as with `open(..., newline="")` save that a lone `\r` ends none.
    Reading in order streams, fetched ahead (1 GET for about 8 MiB stored). What it gives is always a real `str`: a
    `read()` or a line above the text's `materialize_limit` is `ContextTooLarge`. Closing it leaves the context open.
    """

    mode = "r"
    encoding = "utf-8"
    errors = "strict"
    newlines = None

    def __init__(self, text: Monocontext):
        super().__init__(text)
        self.name = text.url
        """Where the text lies; empty for a derived one."""

    def _jump(self, stop: int) -> str:
        limit = self._text._limit
        if stop - self.tell() > limit:
            raise ContextTooLarge(
                f"this read would make {stop - self.tell():,} characters, the limit is {limit:,} (materialize_limit): "
                "read(n) in pieces, or iterate the file: for line in file"
            )
        return super()._jump(stop)

    def writable(self) -> bool:
        return False

    def _refuse(self, what: str) -> NoReturn:
        self._check_open()
        raise io.UnsupportedOperation(f"{what}: a context is read-only")

    def __repr__(self) -> str:
        return f"<ContextFile over {self._text!r}>"


class OpenOrFile:
    """`Monocontext.open(url)` opens a context, and `context.open()` is a file over one."""

    def __init__(self, opening: Any):
        self._opening = opening
        self.__doc__ = opening.__doc__

    def __get__(self, text: Monocontext | None, owner: type[Monocontext]) -> Any:
        opening = self._opening.__get__(None, owner)
        if text is None:
            return opening

        def open(*arguments: Any, **options: Any) -> Any:
            """The text as a seekable text file (no GET): `open()`; with a URL, what `Monocontext.open` gives."""
            if arguments in ((), ("r",), ("rt",)) and not options:
                return ContextFile(text)
            return opening(*arguments, **options)

        return open
