"""Parse Python that a model wrote, without warnings."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()


@contextmanager
def hide_syntax_warnings() -> Iterator[None]:
    r"""Hide SyntaxWarnings inside: models write `"\d+"` often, and a warning would mark a good cell as failed."""
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def parse(code: str, filename: str = "<cell>") -> ast.Module:
    """The tree of `code`. Raises SyntaxError, also where the parser raises another error."""
    try:
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code, filename)
    except (ValueError, RecursionError, MemoryError) as exc:  # a NUL character; brackets nested too deeply
        raise SyntaxError(f"this source cannot be parsed: {exc or type(exc).__name__}") from None


def compiles(code: str) -> bool:
    """Whether `code` is complete, well-formed source."""
    try:
        parse(code)
    except SyntaxError:
        return False
    return True
