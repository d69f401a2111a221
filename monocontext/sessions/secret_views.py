"""Views of a text in which its secrets are whole: with escapes resolved, and lines joined that something cut. Pure.

A view is a copy of the surroundings of escapes or cuts; elsewhere it would equal the text. It maps its offsets back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

# Escapes of JSON and of programming languages, those that colour a terminal, and those of URLs.
_ESCAPE = re.compile(
    r"\\(?:u(?P<unicode>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})|(?P<letter>[\"'\\/bfnrt]|0(?!\d)))"
    r"|\x1b\[[0-9;?]{0,40}[A-Za-z]"
)
_PERCENT = re.compile("%(?P<byte>[0-9a-fA-F]{2})")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0"}
# A shell's `\` at the end of a line; or the end of a line that a terminal may have cut, with no `NAME=` after it.
# The characters before are checked second: a search for the marks alone is five times faster.
_BEFORE = "[A-Za-z0-9+/=_.:\"'-]"
_MARGIN = (
    r"(?:[+-]|(?:[>|#*\u2502]|//)[ ]|[ ]{0,7}\d{1,6}[\t\u2192])?"
    r"(?:[ \t]{1,40}(?=[A-Za-z0-9+/=_.-]{8,300}\\*[\"']?[ \t]*(?:$|[\r\n,])))?"
)
_CUT = r"(?=[A-Za-z0-9+/=_.-]{2})(?![A-Za-z_][\w.-]{0,60}[ \t]?[=:])"
_WRAP = re.compile(
    r"\\(?<=[ \t]\\)\r?\n[ \t]{0,40}(?=\S)"
    rf"|\\(?<={_BEFORE}\\)\r?\n(?:[+-]|[ ]{{0,7}}\d{{1,6}}[\t\u2192])?[ \t>]{{0,40}}{_CUT}"
    rf"|\n(?<={_BEFORE}\n){_MARGIN}{_CUT}"
    rf"|\r(?<={_BEFORE}\r)\n{_MARGIN}{_CUT}"
)
_WITH_DIGIT = re.compile(r"[A-Za-z0-9+/=_.-]*[0-9][A-Za-z0-9+/=_.-]*")
# One word, to the end of its line.
_WORD_LINE = re.compile(r"[A-Za-z0-9+/=_.-]{4,400}\\*[\"']?[ \t]*(?:$|[\r\n,])")
_TERMINAL_CHARACTERS = 60  # no terminal is narrower
_AROUND = 400  # characters of a view on each side of an escape: more than a secret and its name have


class View(NamedTuple):
    """A piece of a text in which some marks (escapes, cuts) are replaced."""

    text: str
    starts: list[int]  # the start in `text` of each run of copied or decoded characters
    sources: list[int]  # the start of the same run in the original

    def offset(self, offset: int) -> int:
        """The offset in the original of an offset in `text`."""
        run = bisect_right(self.starts, offset) - 1
        return self.sources[run] + offset - self.starts[run]


def decode_escapes(text: str) -> Iterator[View]:
    """Views with one level of escapes decoded: those of JSON and terminals, or if there are none, of URLs."""
    marks = list(_ESCAPE.finditer(text)) if "\\" in text or "\x1b" in text else []
    if not marks and "%" in text:
        marks = list(_PERCENT.finditer(text))
    yield from _make_views(text, marks, _decode)


def join_wraps(text: str) -> Iterator[View]:
    """Views in which words are whole that a terminal, a mail program or a shell's `\\` cut in two."""
    if "\n" in text:
        yield from _make_views(text, [cut for cut in _WRAP.finditer(text) if _is_wrap(text, cut)], lambda _: "")


def _make_views(text: str, marks: list[re.Match[str]], decode: Callable[[re.Match[str]], str]) -> Iterator[View]:
    """One view for each group of neighbouring marks."""
    first = 0
    while first < len(marks):
        last = first
        while last + 1 < len(marks) and marks[last + 1].start() - marks[last].end() < 2 * _AROUND:
            last += 1
        begin = max(marks[first].start() - _AROUND, marks[first - 1].end() if first else 0)
        end = min(marks[last].end() + _AROUND, marks[last + 1].start() if last + 1 < len(marks) else len(text))
        parts, starts, sources, length, done = list[str](), [0], [begin], 0, begin
        for mark in marks[first : last + 1]:
            plain = decode(mark)
            parts += (text[done : mark.start()], plain)
            length += mark.start() - done
            starts += (length, length + len(plain))
            sources += (mark.start(), mark.end())
            length += len(plain)
            done = mark.end()
        parts.append(text[done:end])
        yield View("".join(parts), starts, sources)
        first = last + 1


def _decode(mark: re.Match[str]) -> str:
    groups = mark.groupdict()
    if code := groups.get("unicode") or groups["byte"]:
        return chr(int(code, 16))
    letter = groups.get("letter") or ""
    return _LETTERS.get(letter, letter)


def _is_wrap(text: str, cut: re.Match[str]) -> bool:
    """Whether a word goes on after a line end: the line is full, or has a long word before and one word after it."""
    if cut[0].startswith("\\"):
        return True
    begin = text.rfind("\n", 0, cut.start()) + 1
    if cut.start() - begin >= _TERMINAL_CHARACTERS:
        return True
    words = text[max(begin, cut.start() - _TERMINAL_CHARACTERS) : cut.start()].split()
    rest = _WORD_LINE.match(text, cut.end())
    if not words or len(words[-1]) < 12 or not rest:
        return False
    return _WITH_DIGIT.search(words[-1]) is not None or _WITH_DIGIT.match(rest[0]) is not None
