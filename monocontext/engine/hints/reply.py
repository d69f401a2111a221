"""Find the code of a reply while it streams, line by line, and cut it into statements.

- A fence is ``` or ~~~, tagged `python`, `py`, `repl` ... or untagged; it may be indented or follow a list marker.
- Code ends at a closing fence outside of strings and comments, which may follow code on its line.
- A reply that begins as code instead of a sentence, or with a line that is only a tag, is code until a fence comes.
- A simple statement of the outermost level is complete at the end of its line, a compound one when the next begins.
  While a compound statement grows, its source so far is a draft: each draft is half as long again as the one before, so
  all drafts together cost a small multiple of the last.
"""

from __future__ import annotations

import ast
import re
import warnings
from enum import Enum, auto
from threading import Lock
from typing import Protocol

_MOST_LINE = 1 << 15
"""Most characters of a line, and of a statement; the rest of a longer one is dropped."""
_MOST_DRAFT = 1 << 13
"""Most characters of a draft."""
_MOST_SOURCE = 200_000
"""Most characters of a block that is parsed."""
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
_TOKEN = re.compile(r"""#|'''|\"""|'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|[(\[{]|[)\]}]|`{3,}|~{3,}""")
"""The marks within a line of code: comments, strings, brackets, fences."""
_COMPOUND = re.compile(r"(?:for|while|if|with|def|class|try|async)\b|@|match\b[^=]*:\s*$")
_CONTINUES = re.compile(r"(?:else|elif|except|finally|case)\b")
"""A line that continues a compound statement."""
_NOISY = re.compile(r"\\|\d[A-Za-z]")
"""Source for which the parser may warn: unknown escapes, and words right after a number."""

_lock = Lock()


class BlockListener(Protocol):
    """Receives the statements of a block."""

    def begin_block(self) -> None: ...

    def read_statement(self, source: str) -> None: ...

    def read_draft(self, source: str, latest: str) -> None:
        """`source`: an incomplete statement. `latest`: its lines since the last draft."""

    def end_block(self) -> None: ...


class _Place(Enum):
    PROSE = auto()
    CODE = auto()
    OTHER = auto()
    """In a fence with the tag of another language."""


class Fences:
    """Passes the lines of code in a reply to a `BlockSource`, without margin and without fences.

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
        self._just_closed = False
        """Whether a fence was closed, and only empty lines followed."""
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
        """Add a piece to the current line. A closing fence ends its line at once: a reply may end with it."""
        self._line.append(part[: _MOST_LINE - self._size])
        self._size += len(self._line[-1])
        may_close = self._place is _Place.CODE and self._size < 2 * len(self._fence) + self._margin
        if may_close and not self._source.is_in_string and "".join(self._line).strip() == self._fence:
            self._end_line()

    def end(self) -> None:
        """End the reply, and a block that is still open."""
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
            self._may_begin_as_code = False
            found = _TAG.match(opening["info"])
            tag = found["tag"] if found else ""
            if _CODE_TAG.fullmatch(tag) if tag else not just_closed:
                self._fence = opening["fence"]
                self._open(len(opening["margin"]))
            elif not just_closed:
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


def _begins_as_code(line: str) -> bool:
    """Whether a first line of a reply is code, not a sentence."""
    whole = line + " pass" if line.rstrip().endswith(":") else line
    return _BEGINS_AS_CODE.match(line) is not None or (_KEYWORD.match(line) is not None and parse(whole) is not None)


class BlockSource:
    """Cuts the lines of blocks, each between `open` and `close`, into statements for a listener."""

    def __init__(self, listener: BlockListener) -> None:
        self._listener = listener
        self._clear()

    def _clear(self) -> None:
        self._quote = ""
        """The quotes of an open string of several lines."""
        self._brackets = 0
        """The number of open brackets."""
        self._text = ""
        """The logical line so far."""
        self._compound: list[str] = []
        """The lines of an open compound statement."""
        self._compound_size = self._draft_at = 0
        self._latest: list[str] = []
        """Its lines since the last draft."""

    @property
    def is_in_string(self) -> bool:
        """Whether a string of several lines is open."""
        return self._quote != ""

    def open(self) -> None:
        """Begin a block."""
        self._clear()
        self._listener.begin_block()

    def close(self) -> None:
        """End the block."""
        self._end_line()
        self._end_compound()
        self._listener.end_block()
        self._clear()

    def split(self, line: str, fence: str) -> tuple[str, str]:
        """The code of the next line without its comment, and the rest of the line if that begins with a closing
        fence."""
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
        """Read the next line, as `split` returned it."""
        self._text += line[: _MOST_LINE - len(self._text)]
        if not self._quote and not self._brackets and not self._text.endswith("\\\n"):
            self._end_line()

    def _end_line(self) -> None:
        line, self._text = self._text.rstrip(), ""
        self._quote, self._brackets = "", 0
        if not line:
            return
        is_part = self._compound and (line[0] in " \t" or self._compound[-1][0] == "@" or _CONTINUES.match(line))
        if not is_part:
            self._end_compound()
        if is_part or _COMPOUND.match(line):
            self._grow(line)
        else:
            self._listener.read_statement(line.strip())

    def _grow(self, line: str) -> None:
        self._compound_size += len(line) + 1
        if self._compound_size > _MOST_LINE:
            return
        self._compound.append(line)
        self._latest.append(line)
        if self._draft_at <= self._compound_size <= _MOST_DRAFT and not line.endswith(":"):
            self._draft_at = self._compound_size * 3 // 2
            self._listener.read_draft("\n".join(self._compound), "\n".join(self._latest))
            self._latest.clear()

    def _end_compound(self) -> None:
        compound, self._compound = self._compound, []
        self._latest.clear()
        self._compound_size = self._draft_at = 0
        if compound:
            self._listener.read_statement("\n".join(compound))


def parse(source: str) -> ast.Module | None:
    r"""The tree of a program; None if it is not Python, or too long. Prints no warning about source such as `"\d"`."""
    if len(source) > _MOST_SOURCE:
        return None
    try:
        if _NOISY.search(source) is None:
            return ast.parse(source)
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # MemoryError: nested too deeply for the parser
        return None
