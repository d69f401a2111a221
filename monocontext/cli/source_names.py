"""Find the source file of a character in a text without documents, from the last header line before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext

_NEAR = 1 << 16
"""Characters before a place that are read at once. Text further back is searched with `rfind`."""


class SourceNames:
    """Looks up the source file of characters. Calls must be in ascending order."""

    def __init__(self, context: Monocontext, header: str):
        """`header` is the form of a header, with `{path}` for the name. Only the line with `{path}` is looked for."""
        form = next(line for line in header.split("\n") if "{path}" in line)
        self._before, _, after = form.partition("{path}")
        self._form = re.compile(f"{re.escape(self._before)}(.+){re.escape(after)}")
        self._context = context
        self._at: int | None = None
        """The last character that was looked up."""
        self._name: str | None = None
        """The file of that character."""

    def at(self, place: int) -> str | None:
        """The file of a character; None before the first header (GETs: the frames between the two)."""
        if self._at is None:
            self._at = 0
            self._name = self._header(0) if self._context.startswith(self._before) else None
        end = place + 1
        while end > self._at and (start := self._last_start(end)) is not None:
            name = self._header(start)
            if name is not None:
                self._name = name
                break
            end = start
        self._at = place
        return self._name

    def _last_start(self, end: int) -> int | None:
        """The start of the last line before `end` that looks like a header, but not before the last lookup."""
        assert self._at is not None
        mark, stop = "\n" + self._before, end - 1 + len(self._before)
        near = max(self._at, end - _NEAR)
        offset = self._context[near:stop].rfind(mark)
        if offset >= 0:
            return near + offset + 1
        offset = self._context.rfind(mark, self._at, near + len(mark) - 1) if near > self._at else -1
        return offset + 1 if offset >= 0 else None

    def _header(self, start: int) -> str | None:
        """The name in the line that begins at `start`, or None if it is not a header."""
        stop = self._context.find("\n", start)
        line = self._context[start : stop if stop >= 0 else None]
        match = self._form.fullmatch(line) if isinstance(line, str) else None
        return match[1] if match else None
