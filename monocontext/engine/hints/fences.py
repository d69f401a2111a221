"""Tell the code of a reply from its prose while it streams, character by character.

- Fences are ``` or ~~~, tagged `python`, `py`, `repl` ... or not at all; also indented or after a list marker.
- Code ends at a closing fence that stands outside of strings and comments, also at the end of a line of code.
- A reply that begins as code and not with a sentence, or with a line that is a tag alone, is code until a fence comes.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from monocontext.engine.hints.blocks import parse
from monocontext.engine.hints.statements import BlockSource

_OPENING = re.compile(r"([ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(`{3,}|~{3,})[ \t]*([^`]*)$")
_TAG = re.compile(r"[{\s]*\.?([^\s:{},;]*)")
_TAGS = re.compile(r"(?:repl|i?py|i?python|tool_code)\d?(?:\.\d+)?", re.IGNORECASE)
_CODE_SO_FAR = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*\s*[-+*/|]?=")
_KEYWORD = re.compile(r"(?:import|from|for|while|if|with|def|class|try|async|assert|del)\b|@")
_PLAIN = re.compile(r"[^\n\r`~]+\n?")
"""The rest of a line of code, as far as it has no part of a fence."""
_NO_TEXT = " \t\r\n`~"
"""Characters that may precede the text of a line, or end it."""
_MOST_LINE = 300
"""Characters of a line of prose that are looked at; a fence, or what tells code, stands at its beginning."""


class _Place(Enum):
    PROSE = auto()
    CODE = auto()
    OTHER = auto()


class Fences:
    """Hands the characters of code to a `BlockSource`, without margin and without fences.

    `fenced=False` says that replies are code all through, `True` that they never begin with code; None looks.
    """

    _at_start: bool
    _ticks: int

    def __init__(self, source: BlockSource, fenced: bool | None) -> None:
        self._source = source
        self._fenced = fenced
        self.begin()

    def begin(self) -> None:
        """A new reply."""
        self._line: list[str] = []
        self._undecided = self._fenced is None
        self._just_closed = False
        self._place = _Place.PROSE
        self._mark = "`"
        self._length = 3
        if self._fenced is False:
            self._open(0)

    def push(self, text: str) -> None:
        """More of the reply."""
        at = 0
        while at < len(text):
            if self._place is _Place.CODE and self._at_start and not self._ticks and text[at] not in _NO_TEXT:
                self._begin_line()
            if self._place is _Place.CODE and not (self._at_start or self._ticks) and (run := _PLAIN.match(text, at)):
                self._source.push(run[0])
                at = run.end()
                if text[at - 1] == "\n":
                    self._at_start, self._column = True, 0
                continue
            char = text[at]
            at += 1
            if char == "\r":
                continue
            if self._place is _Place.CODE:
                self._push_code(char)
            elif char == "\n":
                line = "".join(self._line)
                self._line.clear()
                self._end_line(line)
            elif len(self._line) < _MOST_LINE:
                self._line.append(char)
                if self._undecided and char in "([=":
                    self._look(_CODE_SO_FAR.fullmatch("".join(self._line)) is not None, "")

    def end(self) -> None:
        """The reply is complete; a block that is still open ends here."""
        if self._place is _Place.CODE:
            self._give_back_ticks()
            self._source.close()
            self._place = _Place.PROSE

    def _look(self, is_code: bool, end: str) -> None:
        if is_code:
            begun = "".join(self._line)
            self._line.clear()
            self._undecided = False
            self._open(0)
            self.push(begun + end)

    def _end_line(self, line: str) -> None:
        if self._place is _Place.OTHER:
            if line.rstrip().endswith(self._mark * self._length):
                self._place = _Place.PROSE
            return
        opening = _OPENING.match(line)
        just_closed, self._just_closed = self._just_closed, False
        if opening is not None:
            self._undecided = False
            margin, fence, info = opening.groups()
            found = _TAG.match(info)
            tag = found[1] if found else ""
            if _TAGS.fullmatch(tag) if tag else not just_closed:
                self._mark, self._length = fence[0], len(fence)
                self._open(len(margin))
            elif not just_closed:
                self._mark, self._length, self._place = fence[0], len(fence), _Place.OTHER
        elif self._undecided and _TAGS.fullmatch(line.strip()):  # code follows that lacks the marks of its fence
            self._undecided = False
            self._open(0)
        elif self._undecided and line.strip() and not line.lstrip().startswith("#"):
            whole = line if line.rstrip()[-1:] != ":" else line + " pass"
            self._line = list(line)
            self._look(_KEYWORD.match(line) is not None and parse(whole) is not None, "\n")
            self._line.clear()
            self._undecided = False

    def _open(self, margin: int) -> None:
        self._place = _Place.CODE
        self._source.open()
        self._margin = margin
        self._is_margin_known = False
        self._column = 0  # characters of margin passed on this line
        self._at_start = True
        self._ticks = 0

    def _push_code(self, char: str) -> None:
        if self._at_start and char in " \t" and (self._column < self._margin or not self._is_margin_known):
            self._column += 1
            return
        if char == self._mark and self._may_close():
            self._ticks += 1
            if self._ticks == self._length:
                self._close()
            return
        if self._ticks:
            self._give_back_ticks()
        if char == "\n":
            self._at_start, self._column = True, 0
        elif self._at_start:
            self._begin_line()
        self._source.push(char)

    def _begin_line(self) -> None:
        """The margin of a line of code is passed."""
        if not self._is_margin_known:
            self._margin, self._is_margin_known = max(self._column, self._margin), True
        self._at_start = False

    def _may_close(self) -> bool:
        if self._mark == "~" and not (self._at_start or self._ticks):
            return False
        if self._ticks:
            return True
        return not self._source.is_in_text

    def _close(self) -> None:
        self._source.close()
        self._place, self._just_closed = _Place.PROSE, self._fenced is not False
        self._line = [self._mark * self._ticks]

    def _give_back_ticks(self) -> None:
        ticks, self._ticks = self._ticks, 0
        self._at_start = self._at_start and not ticks
        for _ in range(ticks):
            self._source.push(self._mark)
