"""Cut code into statements while it streams in, line by line.

A simple statement of the outermost level is complete at the end of its line, a compound one when the next begins. While
a compound statement grows, its source so far is a draft: each draft is half as long again as the one before, so all
drafts together cost a small multiple of the last.
"""

from __future__ import annotations

import ast
import re
import warnings
from threading import Lock
from typing import Protocol

MOST_LINE = 1 << 15
"""Most characters of a line, and of a statement; the rest of a longer one is dropped."""
_MOST_DRAFT = 1 << 13
"""Most characters of a draft."""
_MOST_SOURCE = 200_000
"""Most characters of a block that is parsed."""

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
        self._text += line[: MOST_LINE - len(self._text)]
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
        if self._compound_size > MOST_LINE:
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
