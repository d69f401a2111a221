"""Make views of a text: parts with escapes decoded, or with the words joined that a line end cuts. Does no I/O."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

_CONTEXT_CHARACTERS = 400  # of a view on each side of an escape: more than a secret and its name have
_TERMINAL_CHARACTERS = 60  # no terminal is narrower
_LEAST_WORD_CHARACTERS = 12  # of a word before a line end that may cut it, if the line is not full

_ESCAPE = re.compile(r"""(?x)
    \\(?: u(?P<unicode>[0-9a-fA-F]{4}) | x(?P<byte>[0-9a-fA-F]{2})  # \u0041 and \x41 of JSON and programs
        | (?P<letter>["'\\/bfnrt]|0(?!\d)) )                        # \n, \" and \0; not \d or \012
    | \x1b\[[0-9;?]{0,40}[A-Za-z]                                   # ESC[1;31m, which colours a terminal
    | &(?:quot|apos|lt|gt|amp|\#34|\#39);                           # &quot; of HTML""")
_PERCENT = re.compile("%(?P<byte>[0-9a-fA-F]{2})")  # %3D of URLs
_ENTITIES = {"&quot;": '"', "&#34;": '"', "&apos;": "'", "&#39;": "'", "&lt;": "<", "&gt;": ">", "&amp;": "&"}
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0"}

_BEFORE = "[A-Za-z0-9+/=_.:\"'-]"
_AFTER = r"(?=[A-Za-z0-9+/=_.-]{2})(?![A-Za-z_][\w.-]{0,60}[ \t]?[=:])"  # a word, and no further `NAME=`
_MARGIN = r"""
    (?:[+-] | (?:[>|#*\u2502]|//)[ ] | [ ]{0,7}\d{1,6}[\t\u2192])?  # `+` of a diff, `> ` of mail, `12\t` of `cat -n`
    (?:[ \t]{1,40}(?=[A-Za-z0-9+/=_.-]{8,300}\\*["']?[ \t]*(?:$|[\r\n,])))?  # an indent, if one word fills the line
"""
# Characters before a mark are checked after it: a search for the marks alone is five times faster.
_WRAP = re.compile(
    rf"""(?x)
    \\(?<=[ \t]\\)\r?\n[ \t]{{0,40}}(?=\S)  # a blank and `\` of a shell: the next argument follows
    | \\(?<={_BEFORE}\\)\r?\n(?:[+-]|[ ]{{0,7}}\d{{1,6}}[\t\u2192])?[ \t>]{{0,40}}{_AFTER}  # `\` within a word
    | \n(?<={_BEFORE}\n){_MARGIN}{_AFTER}  # a line end that may cut a word
    | \r(?<={_BEFORE}\r)\n{_MARGIN}{_AFTER}"""
)
_WITH_DIGIT = re.compile(r"[A-Za-z0-9+/=_.-]*[0-9][A-Za-z0-9+/=_.-]*")
_WORD_LINE = re.compile(r"[A-Za-z0-9+/=_.-]{4,400}\\*[\"']?[ \t]*(?:$|[\r\n,])")  # one word, to the end of its line


class View(NamedTuple):
    """A part of a text in which escapes are decoded, or wraps removed."""

    text: str
    starts: list[int]  # the start in `text` of each run of copied or decoded characters
    sources: list[int]  # the start of the same run in the original

    def offset(self, offset: int) -> int:
        """The offset in the original of an offset in `text`."""
        run = bisect_right(self.starts, offset) - 1
        return self.sources[run] + offset - self.starts[run]


def decode_escapes(text: str) -> Iterator[View]:
    """Yield views with one level of escapes decoded: those of JSON, terminals and HTML, or if none, those of URLs."""
    marks = list(_ESCAPE.finditer(text)) if any(sign in text for sign in "\\\x1b&") else []
    if not marks and "%" in text:
        marks = list(_PERCENT.finditer(text))
    yield from _make_views(text, marks, _decode)


def join_wraps(text: str) -> Iterator[View]:
    """Yield views in which words are joined again that a terminal, a mail program or a shell's `\\` cut in two."""
    if "\n" in text:
        yield from _make_views(text, [cut for cut in _WRAP.finditer(text) if _is_wrap(text, cut)], lambda _: "")


def _make_views(text: str, marks: list[re.Match[str]], decode: Callable[[re.Match[str]], str]) -> Iterator[View]:
    """Yield a view around each group of marks that are near each other, with the text of `decode` for each mark."""
    first = 0
    for last, mark in enumerate(marks):
        if last + 1 < len(marks) and marks[last + 1].start() - mark.end() < 2 * _CONTEXT_CHARACTERS:
            continue
        done = max(0, marks[first].start() - _CONTEXT_CHARACTERS)
        runs = list[tuple[str, int]]()  # each with its start in the original
        for escape in marks[first : last + 1]:
            runs += [(text[done : escape.start()], done), (decode(escape), escape.start())]
            done = escape.end()
        runs.append((text[done : done + _CONTEXT_CHARACTERS], done))
        starts = list(accumulate((len(run) for run, _ in runs[:-1]), initial=0))
        yield View("".join(run for run, _ in runs), starts, [source for _, source in runs])
        first = last + 1


def _decode(escape: re.Match[str]) -> str:
    """The character that an escape stands for; empty for a colour of a terminal."""
    groups = escape.groupdict()
    if code := groups.get("unicode") or groups["byte"]:
        return chr(int(code, 16))
    letter = groups.get("letter") or _ENTITIES.get(escape[0], "")
    return _LETTERS.get(letter, letter)


def _is_wrap(text: str, cut: re.Match[str]) -> bool:
    """Whether a word goes on after a line end: the line is full, or has a long word before and one word after it."""
    line_start = text.rfind("\n", 0, cut.start()) + 1
    if cut[0].startswith("\\") or cut.start() - line_start >= _TERMINAL_CHARACTERS:
        return True
    words = text[max(line_start, cut.start() - _TERMINAL_CHARACTERS) : cut.start()].split()
    rest = _WORD_LINE.match(text, cut.end())
    if not words or len(words[-1]) < _LEAST_WORD_CHARACTERS or not rest:
        return False
    return _WITH_DIGIT.search(words[-1]) is not None or _WITH_DIGIT.match(rest[0]) is not None
