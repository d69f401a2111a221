"""Cut Python source that streams in into statements; incomplete code waits, and is never refused.

A simple statement of the outermost level is handed on at the end of its line, a compound one when the next begins, and
while it grows in drafts: as far as it goes, each half as long again as the one before, so that all drafts together
cost a small multiple of the last. A subscript is handed on with its closing bracket.
"""

from __future__ import annotations

import re
from typing import Protocol

MOST_STATEMENT = 1 << 15
"""Characters of a statement; the rest of a longer one is dropped."""
_MOST_DRAFT = 1 << 13
_MOST_BRACKETS = 200
"""Within one another; Python takes no more."""
_MOST_NAME = 60
_MOST_SUBSCRIPT = 200
"""Characters of the name before a bracket, and of what stands inside."""

_COMPOUND = re.compile(r"(?:for|while|if|with|def|class|try|async)\b|@|match\b[^=]*:\s*$")
_GOES_ON = re.compile(r"(?:else|elif|except|finally|case)\b")
_SUBSCRIPTED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.lines)?$")
_TRY = re.compile(r"(\s*)(try|except|finally)\b")


class BlockListener(Protocol):
    """The receiver of the pieces of a block."""

    def begin_block(self) -> None: ...
    def read_statement(self, source: str) -> None: ...
    def read_draft(self, source: str, latest: str) -> None: ...
    def read_subscript(self, name: str, inside: str, *, in_compound: bool) -> None: ...
    def end_block(self) -> None: ...


class BlockSource:
    """One block after the other, each between `open` and `close`."""

    def __init__(self, reader: BlockListener) -> None:
        self._reader = reader
        self.open_quietly()

    @property
    def is_in_text(self) -> bool:
        """Inside a string or a comment."""
        return self._comment or (self._quote != "" and not (self._quotes == 2 and len(self._quote) == 1))

    def open(self) -> None:
        """A block begins."""
        self.open_quietly()
        self._reader.begin_block()

    def open_quietly(self) -> None:
        self._text: list[str] = []  # of the logical line
        self._brackets: list[int] = []  # where those that are open stand in it; -1 for one that is no subscript
        self._quote = ""  # of the string we are in: one character, or three of it
        self._quotes = 0  # of the same in a row, at either end of a string
        self._escaped = False
        self._comment = False
        self._compound: list[str] = []
        self._compound_size = 0
        self._draft_at = 0
        self._latest: list[str] = []  # lines since the last draft

    def close(self) -> None:
        """The block ends."""
        self._end_line()
        self._end_compound()
        self._reader.end_block()
        self.open_quietly()

    def push(self, text: str) -> None:
        """More of the block."""
        for char in text:
            self._push(char)

    def _push(self, char: str) -> None:
        if self._comment:
            if char != "\n":
                return
            self._comment = False
        if self._quote and self._push_string(char):
            return
        if char == "\n":
            if self._brackets or self._text[-1:] == ["\\"]:
                self._append(char)
            else:
                self._end_line()
            return
        if char == "#":
            self._comment = True
            return
        if char in "\"'":
            self._quote, self._quotes = char, 1
        elif char in "([{":
            if len(self._brackets) < _MOST_BRACKETS:
                self._brackets.append(len(self._text) if char == "[" else -1)
        elif char in ")]}" and self._brackets:
            opened = self._brackets.pop()
            self._append(char)
            if char == "]" and opened >= 0:
                self._end_subscript(opened)
            return
        self._append(char)

    def _append(self, char: str) -> None:
        if len(self._text) < MOST_STATEMENT:
            self._text.append(char)

    def _push_string(self, char: str) -> bool:
        """Whether the character belongs to the string."""
        quote = self._quote
        if len(quote) == 1 and self._quotes == 1:  # right behind the opening quote
            if char == quote:
                self._quotes = 2
                self._append(char)
                return True
            self._quotes = 0
        elif len(quote) == 1 and self._quotes == 2:  # an empty string, or three quotes
            self._quotes = 0
            self._quote = quote * 3 if char == quote else ""
            if char == quote:
                self._append(char)
            return char == quote
        if char == "\n" and len(quote) == 1 and not self._escaped:
            self._quote = ""  # never closed: no Python, but the next line may be
            return False
        self._append(char)
        if self._escaped:
            self._escaped, self._quotes = False, 0
        elif char == "\\":
            self._escaped, self._quotes = True, 0
        elif char == quote[0]:
            self._quotes += 1
            if len(quote) == 1 or self._quotes == 3:
                self._quote, self._quotes = "", 0
        elif len(quote) == 3:
            self._quotes = 0
        return True

    def _end_subscript(self, opened: int) -> None:
        if len(self._text) - opened > _MOST_SUBSCRIPT:
            return
        named = _SUBSCRIPTED.search("".join(self._text[max(opened - _MOST_NAME, 0) : opened]))
        if named is not None:
            inside = "".join(self._text[opened + 1 : -1])
            in_compound = bool(self._compound) and self._is_part("".join(self._text[:8]))
            self._reader.read_subscript(named[0], inside, in_compound=in_compound)

    def _end_line(self) -> None:
        line = "".join(self._text)
        self._text.clear()
        self._brackets.clear()
        self._quote, self._quotes, self._escaped, self._comment = "", 0, False, False
        if not line.strip():
            return
        if self._compound and not self._is_part(line):
            self._end_compound()
        if self._compound or _COMPOUND.match(line):
            self._grow(line)
        else:
            self._reader.read_statement(line.strip())

    def _is_part(self, line: str) -> bool:
        """Whether the line belongs to the compound statement before it."""
        return line[0] in " \t" or self._compound[-1].startswith("@") or _GOES_ON.match(line) is not None

    def _grow(self, line: str) -> None:
        self._compound_size += len(line) + 1
        if self._compound_size > MOST_STATEMENT:
            return
        self._compound.append(line)
        self._latest.append(line)
        if self._draft_at <= self._compound_size <= _MOST_DRAFT and not line.rstrip().endswith(":"):
            self._draft_at = self._compound_size * 3 // 2
            self._reader.read_draft("\n".join([*self._compound, *_endings(self._compound)]), "\n".join(self._latest))
            self._latest.clear()

    def _end_compound(self) -> None:
        if self._compound:
            source = "\n".join(self._compound)
            self._compound.clear()
            self._latest.clear()
            self._compound_size = self._draft_at = 0
            self._reader.read_statement(source)


def _endings(lines: list[str]) -> list[str]:
    """The missing parts of open `try` statements, innermost first."""
    open_at: list[str] = []
    for line in lines:
        if (word := _TRY.match(line)) is None:
            continue
        margin, keyword = word.groups()
        while open_at and len(open_at[-1]) > len(margin):
            open_at.pop()
        if keyword == "try":
            open_at.append(margin)
        elif open_at and open_at[-1] == margin:
            open_at.pop()
    return [f"{margin}finally: pass" for margin in reversed(open_at)]
