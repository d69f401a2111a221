"""Find the code of a reply while it streams in, line by line.

- A fence is ``` or ~~~, tagged `python`, `py`, `repl` ... or untagged; it may be indented or follow a list marker.
- Code ends at a closing fence outside of strings and comments, which may follow code on its line.
- A reply that begins as code instead of a sentence, or with a line that is only a tag, is code until a fence comes.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from monocontext.engine.hints.statements import MOST_LINE, BlockSource, parse

_MOST_PROSE = 300
"""The characters of a line of prose that are checked: a fence, or a sign of code, is at its beginning."""

_OPENING = re.compile(r"(?P<margin>[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
"""A line that opens a fence, after an optional list marker."""
_TAG = re.compile(r"[{\s]*\.?(?P<tag>[^\s:{},;]*)")
"""The tag of a fence, also as `{.python}`."""
_CODE_TAG = re.compile(r"(?:repl|i?py|i?python|tool_code)\d?(?:\.\d+)?", re.IGNORECASE)
_BEGINS_AS_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*\s*[-+*/|]?=")
"""A call, a subscript or an assignment."""
_KEYWORD = re.compile(r"(?:import|from|for|while|if|with|def|class|try|async|assert|del)\b|@")


class _Place(Enum):
    PROSE = auto()
    CODE = auto()
    OTHER = auto()
    """In a fence with the tag of another language."""


class CodeFinder:
    """Finds the lines of code in a reply and passes them to a `BlockSource`, without margin and without fences.

    `fenced=False`: replies are nothing but code; `True`: they never begin with code; None: their beginning decides.
    """

    def __init__(self, source: BlockSource, fenced: bool | None) -> None:
        self._source = source
        self._fenced = fenced
        self.begin()

    def begin(self) -> None:
        """Begin a new reply."""
        self._line: list[str] = []
        """The pieces of the current line, which have `_size` characters."""
        self._size = 0
        self._may_begin_as_code = self._fenced is None
        self._is_closing_line = False
        """Whether the current line began with a fence that closed a block; the rest of the line is still to come."""
        self._place = _Place.PROSE
        self._fence = "```"
        self._margin, self._is_margin_known = 0, False
        """The characters by which the current block is indented."""
        if self._fenced is False:
            self._open(0)

    def push(self, text: str) -> None:
        """Read the next piece of the reply."""
        *ended, rest = text.split("\n")
        for part in ended:
            self._add(part)
            self._end_line()
        self._add(rest)

    def _add(self, part: str) -> None:
        """Add a piece to the current line. A closing fence ends its block at once: the line may have no end."""
        self._line.append(part[: MOST_LINE - self._size])
        self._size += len(self._line[-1])
        # Only a short line can be a bare fence: long ones are not joined for each piece.
        may_be_fence = self._place is _Place.CODE and self._size < 2 * len(self._fence) + self._margin
        if may_be_fence and not self._source.is_in_string and "".join(self._line).strip() == self._fence:
            self._close()
            self._is_closing_line = True

    def end(self) -> None:
        """End the reply, and a block that is still open."""
        self._end_line()
        if self._place is _Place.CODE:
            self._close()

    def _end_line(self) -> None:
        line = "".join(self._line).replace("\r", "")
        self._line, self._size = [], 0
        if self._is_closing_line:
            self._is_closing_line = False
            self._read_closing_fence(line.lstrip())
        elif self._place is _Place.CODE:
            self._read_code(line)
        elif self._place is _Place.PROSE:
            self._read_prose(line[:_MOST_PROSE])
        elif line.rstrip().endswith(self._fence):
            self._place = _Place.PROSE

    def _read_code(self, line: str) -> None:
        if not self._is_margin_known and line.strip():
            self._margin = max(len(line) - len(line.lstrip(" \t")), self._margin)
            self._is_margin_known = True
        line = line[min(len(line) - len(line.lstrip(" \t")), self._margin) :]
        code, fence = self._source.split(line, self._fence)
        if code or not fence:
            self._source.push(code + "\n")
        if fence:
            self._close()
            self._read_closing_fence(fence)

    def _read_closing_fence(self, line: str) -> None:
        """Read a fence that closed a block, with the rest of its line. With a tag it also opens the next block; in
        replies of nothing but code, any fence does."""
        self._read_prose(line[:_MOST_PROSE], just_closed=self._fenced is not False)

    def _read_prose(self, line: str, *, just_closed: bool = False) -> None:
        opening = _OPENING.match(line)
        if opening is not None:
            self._may_begin_as_code = False
            found = _TAG.match(opening["info"])
            tag = found["tag"] if found else ""
            is_code = _CODE_TAG.fullmatch(tag) is not None if tag else not just_closed
            if is_code:
                self._fence = opening["fence"]
                self._open(len(opening["margin"]))
            elif tag:
                self._fence, self._place = opening["fence"], _Place.OTHER
        elif self._may_begin_as_code and (code := line.strip()):
            is_tag = _CODE_TAG.fullmatch(code) is not None
            if code.startswith("#"):
                return  # a comment or a heading: the next line decides
            self._may_begin_as_code = False
            if is_tag:
                self._open(0)
            elif _begins_as_code(line):
                self._open(0)
                self._read_code(line)

    def _open(self, margin: int) -> None:
        self._place = _Place.CODE
        self._source.open()
        self._margin, self._is_margin_known = margin, False

    def _close(self) -> None:
        self._source.close()
        self._place = _Place.PROSE


def _begins_as_code(line: str) -> bool:
    """Whether a first line of a reply is code, not a sentence."""
    whole = line + " pass" if line.rstrip().endswith(":") else line
    return _BEGINS_AS_CODE.match(line) is not None or (_KEYWORD.match(line) is not None and parse(whole) is not None)
