"""A text as a file, for libraries that read files: `csv`, `json` line by line, `pandas.read_csv`."""

from __future__ import annotations

import io
from typing import NoReturn

from monocontext.errors import ContextTooLarge
from monocontext.text.namespace.string_io import LazyStringIO
from monocontext.text.str_methods import StrLike


class ContextFile(LazyStringIO):
    r"""A seekable text file over a context, to read: an `io.TextIOBase` whose positions are characters.

    Lines end with `\n`, which is part of them, as with `open(..., newline="\n")`. Reading in order streams ahead of the
    caller (1 GET for about 8 MiB stored). Results are real `str`: a `read()` or a line above the text's
    `materialize_limit` raises `ContextTooLarge`. Closing the file leaves the context open.
    """

    mode = "r"
    encoding = "utf-8"
    errors = "strict"
    newlines = None

    def __init__(self, text: StrLike, name: str):
        super().__init__(text)
        self.name = name
        """The URL of the text; empty for a derived text."""

    def _jump(self, stop: int) -> str:
        limit = self._text._limit
        if stop - self.tell() > limit:
            raise ContextTooLarge(
                f"this read would make {stop - self.tell():,} characters, more than the limit of {limit:,} "
                "(materialize_limit): read(n) in pieces, or iterate the file: for line in file"
            )
        return super()._jump(stop)

    def writable(self) -> bool:
        return False

    def _refuse(self, what: str) -> NoReturn:
        self._check_open()
        raise io.UnsupportedOperation(f"{what}: a context is read-only")

    def __repr__(self) -> str:
        return f"<ContextFile over {self._text!r}>"
