"""Find the code of a reply while it streams, line by line, and cut it into statements.

- Fences are ``` or ~~~, tagged `python`, `py`, `repl` ... or untagged; also indented or after a list marker.
- Code ends at a closing fence outside of strings and comments, also at the end of a line of code.
- A reply that begins as code instead of a sentence, or with a line that is only a tag, is code until a fence comes.
- A simple statement of the outermost level is passed on at the end of its line, a compound one when the next begins,
  and in drafts while it grows: each half as long again as the one before, so that all drafts together cost a small
  multiple of the last. Incomplete code waits, and is never refused.
"""

from __future__ import annotations

import ast
import re
import warnings
from enum import Enum, auto
from threading import Lock
from typing import Protocol

_MOST_LINE = 1 << 15
"""Characters of a line, and of a statement; the rest of a longer one is dropped."""
_MOST_DRAFT = 1 << 13
_MOST_SOURCE = 200_000
"""Characters of a block that is parsed."""
_MOST_PROSE = 300
"""The characters of a line of prose that are checked: a fence, or a sign of code, is at its beginning."""

_OPENING = re.compile(r"([ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(`{3,}|~{3,})[ \t]*([^`]*)$")
_TAG = re.compile(r"[{\s]*\.?([^\s:{},;]*)")
_TAGS = re.compile(r"(?:repl|i?py|i?python|tool_code)\d?(?:\.\d+)?", re.IGNORECASE)
_BEGINS_AS_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*\s*[-+*/|]?=")
_KEYWORD = re.compile(r"(?:import|from|for|while|if|with|def|class|try|async|assert|del)\b|@")
_TOKEN = re.compile(r"""#|'''|\"""|'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|[(\[{]|[)\]}]|`{3,}|~{3,}""")
"""The marks within a line of code: comments, strings, brackets, fences."""
_COMPOUND = re.compile(r"(?:for|while|if|with|def|class|try|async)\b|@|match\b[^=]*:\s*$")
_GOES_ON = re.compile(r"(?:else|elif|except|finally|case)\b")
_NOISY = re.compile(r"\\|\d[A-Za-z]")
"""Warnings of the parser: unknown escapes, and words right after a number."""

_lock = Lock()


class BlockListener(Protocol):
    """The receiver of the pieces of a block."""

    def begin_block(self) -> None: ...
    def read_statement(self, source: str) -> None: ...
    def read_draft(self, source: str, latest: str) -> None: ...
    def end_block(self) -> None: ...


class _Place(Enum):
    PROSE = auto()
    CODE = auto()
    OTHER = auto()


class Fences:
    """Hands the lines of code to a `BlockSource`, without margin and without fences.

    `fenced=False` says that replies are code all through, `True` that they never begin with code; None looks.
    """

    def __init__(self, source: BlockSource, fenced: bool | None) -> None:
        self._source = source
        self._fenced = fenced
        self.begin()

    def begin(self) -> None:
        """A new reply."""
        self._line: list[str] = []
        self._size = 0
        self._undecided = self._fenced is None
        self._just_closed = False
        self._place = _Place.PROSE
        self._fence = "```"
        self._margin, self._is_margin_known = 0, False
        if self._fenced is False:
            self._open(0)

    def push(self, text: str) -> None:
        """More of the reply."""
        *ended, rest = text.split("\n")
        for part in ended:
            self._add(part)
            self._end_line()
        self._add(rest)

    def _add(self, part: str) -> None:
        self._line.append(part[: _MOST_LINE - self._size])
        self._size += len(self._line[-1])
        is_short = self._place is _Place.CODE and self._size < 2 * len(self._fence) + self._margin
        if is_short and not self._source.is_in_string and "".join(self._line).strip() == self._fence:
            self._end_line()

    def end(self) -> None:
        """The reply is complete; a block that is still open ends here."""
        self._end_line()
        if self._place is _Place.CODE:
            self._source.close()
            self._place = _Place.PROSE

    def _end_line(self) -> None:
        line = "".join(self._line).replace("\r", "")
        self._line, self._size = [], 0
        if self._place is _Place.CODE:
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
            self._source.close()
            self._place, self._just_closed = _Place.PROSE, self._fenced is not False
            self._read_prose(fence)

    def _read_prose(self, line: str) -> None:
        opening = _OPENING.match(line)
        just_closed, self._just_closed = self._just_closed, opening is None and self._just_closed and not line.strip()
        if opening is not None:
            self._undecided = False
            margin, fence, info = opening.groups()
            found = _TAG.match(info)
            tag = found[1] if found else ""
            if _TAGS.fullmatch(tag) if tag else not just_closed:
                self._fence = fence
                self._open(len(margin))
            elif not just_closed:
                self._fence, self._place = fence, _Place.OTHER
        elif self._undecided and line.strip() and (_TAGS.fullmatch(line.strip()) or not line.lstrip().startswith("#")):
            self._undecided = False
            whole = line if line.rstrip()[-1:] != ":" else line + " pass"
            if _TAGS.fullmatch(line.strip()):  # code follows that lacks the marks of its fence
                self._open(0)
            elif _BEGINS_AS_CODE.match(line) or (_KEYWORD.match(line) and parse(whole) is not None):
                self._open(0)
                self._read_code(line)

    def _open(self, margin: int) -> None:
        self._place = _Place.CODE
        self._source.open()
        self._margin, self._is_margin_known = margin, False


class BlockSource:
    """One block after another, each between `open` and `close`."""

    def __init__(self, reader: BlockListener) -> None:
        self._reader = reader
        self._clear()

    def _clear(self) -> None:
        self._quote = ""  # of the open string of several lines
        self._brackets = 0  # open brackets
        self._text = ""  # of the logical line
        self._compound: list[str] = []
        self._compound_size = self._draft_at = 0
        self._latest: list[str] = []  # lines since the last draft

    @property
    def is_in_string(self) -> bool:
        return self._quote != ""

    def open(self) -> None:
        """A block begins."""
        self._clear()
        self._reader.begin_block()

    def close(self) -> None:
        """The block ends."""
        self._end_line()
        self._end_compound()
        self._reader.end_block()
        self._clear()

    def split(self, line: str, fence: str) -> tuple[str, str]:
        """The code of the next line, without its comment, and the line from a closing fence on."""
        at = 0
        while at < len(line):
            if self._quote:
                closed = re.compile(rf"(?:\\.|[^\\])*?{self._quote}").match(line, at)
                if closed is None:
                    break
                self._quote, at = "", closed.end()
            token = _TOKEN.search(line, at)
            if token is None:
                break
            at = token.end()
            if token[0] == "#":
                return line[: token.start()], ""
            if token[0] in ("'''", '"""'):
                self._quote = token[0]
            elif token[0].startswith(fence) and (fence[0] == "`" or not line[: token.start()].strip()):
                return line[: token.start()], line[token.start() :]
            else:
                self._brackets = max(self._brackets + (token[0] in "([{") - (token[0] in ")]}"), 0)
        return line, ""

    def push(self, line: str) -> None:
        """The next line, after `split`."""
        self._text += line[: _MOST_LINE - len(self._text)]
        if not self._quote and not self._brackets and not self._text.endswith("\\\n"):
            self._end_line()

    def _end_line(self) -> None:
        line, self._text = self._text.rstrip(), ""
        self._quote, self._brackets = "", 0
        if not line:
            return
        is_part = self._compound and (line[0] in " \t" or self._compound[-1][0] == "@" or _GOES_ON.match(line))
        if not is_part:
            self._end_compound()
        if is_part or _COMPOUND.match(line):
            self._grow(line)
        else:
            self._reader.read_statement(line.strip())

    def _grow(self, line: str) -> None:
        self._compound_size += len(line) + 1
        if self._compound_size > _MOST_LINE:
            return
        self._compound.append(line)
        self._latest.append(line)
        if self._draft_at <= self._compound_size <= _MOST_DRAFT and not line.endswith(":"):
            self._draft_at = self._compound_size * 3 // 2
            self._reader.read_draft("\n".join(self._compound), "\n".join(self._latest))
            self._latest.clear()

    def _end_compound(self) -> None:
        compound, self._compound = self._compound, []
        self._latest.clear()
        self._compound_size = self._draft_at = 0
        if compound:
            self._reader.read_statement("\n".join(compound))


def parse(source: str) -> ast.Module | None:
    r"""The tree; None if it is not Python, or too long. No warning is printed about model-written text such as
    `"\d"`."""
    if len(source) > _MOST_SOURCE:
        return None
    try:
        if _NOISY.search(source) is None:
            return ast.parse(source)
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the latter: nested too deeply for the parser
        return None
