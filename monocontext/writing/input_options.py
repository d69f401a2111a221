"""Options for reading input: encoding, headers, and which files of a folder are taken."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, TypedDict

from monocontext.globs import Globs
from monocontext.records import dataclass, field

HEADER = "=== FILE: {path} ===\n"
"""The line before each file of a directory, by default."""


class ReadingOptions(TypedDict, total=False):
    """The fields of `InputOptions` as keywords."""

    encoding: str
    errors: Literal["strict", "replace"]
    header: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    ignored: bool
    follow_links: bool
    note: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class InputOptions:
    """Options for reading input."""

    encoding: str = "utf-8"
    errors: str = "strict"
    """What to do with bytes that are not text: `replace` puts U+FFFD in their place. `strict` refuses a file that is
    named by itself; one that is found in a folder is left out and named."""
    header: str = HEADER
    """Line before each file of a directory; `{path}` is relative to that directory. Empty: no line."""
    include: tuple[str, ...] = ()
    """Globs of a directory's files to take, as in `.gitignore` (`globs`): `*.{py,md}`, `src/**`. Empty: all."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders to leave out; they come after those of `include`."""
    ignored: bool = False
    """Also take files that git ignores, in a folder with a git repository."""
    follow_links: bool = False
    """Take files and folders that links in a directory lead to, also outside it. Else links are left out and named."""
    note: Callable[[str], None] = field(default=lambda text: warnings.warn(text, stacklevel=2))
    """Called with a line for each thing that was changed or left out: a byte order mark, links, binary files. By
    default it warns."""

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace"):
            raise ValueError(f"errors must be 'strict' or 'replace', not {self.errors!r}")
        try:
            "".encode(self.encoding)  # a look-up would find rot13, base64 and their like too, which give no text
        except (LookupError, UnicodeError):
            raise ValueError(f"unknown encoding {self.encoding!r}") from None
        for name in ("include", "exclude"):
            if isinstance(value := getattr(self, name), str):  # each character would be a glob, `*` among them
                raise TypeError(f"{name} must be a list of globs, not a str: write {name}=[{value!r}]")
        self.selects("")  # so that a wrong glob is an error here

    def selects(self, relative: str) -> bool:
        """Whether a file of a directory is taken, by its path below that directory."""

        if not self.include and not self.exclude:
            return True
        return _globs(tuple(self.include), tuple(self.exclude)).select(relative)


@lru_cache(8)
def _globs(include: tuple[str, ...], exclude: tuple[str, ...]) -> Globs:

    return Globs(include, exclude)
