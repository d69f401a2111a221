"""Decode escapes and join wrapped lines in copies of a text, so that a search finds the secrets they hide. Pure.

A copy is a `DecodedView`, which maps its offsets back to the text. It covers only the surroundings of escapes or wraps:
elsewhere it would equal the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple

# Escapes of JSON and of programming languages, and those that colour a terminal.
_ESCAPE = re.compile(
    r"\\(?:u(?P<unicode>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})|(?P<letter>[\"'\\/bfnrt]|0(?!\d)))"
    r"|\x1b\[[0-9;?]{0,40}[A-Za-z]"
)
_WIDTHLESS = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_INVISIBLE = re.compile(rf"(?:\x00|\^@|{_WIDTHLESS.pattern})+")
_SWAPPED = {code << 8: code for code in (9, 10, 13, *range(32, 127))}
_SWAPPED_RUN = re.compile(f"[{''.join(map(chr, _SWAPPED))}]{{8}}")
# Escapes of URLs, of mail in quoted-printable, and of XML.
_ENCODED = re.compile(
    r"(?:%|=(?=3D|22|27|20))(?P<byte>[0-9a-fA-F]{2})"
    r"|&(?:quot|apos|amp|lt|gt|equals|colon|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});"
)
_ENCODED_SIGNS = ("%", "&", "=3D", "=22", "=27")
"""One of these is in every text that `_ENCODED` matches."""
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
_TERMINAL_CHARACTERS = 60
"""No terminal is narrower."""
_TOKEN_CHARACTERS = 11
"""The shortest word that begins a known kind of secret."""
_AROUND = 400
"""Characters of a view on each side of an escape: more than a secret and its name have."""


class DecodedView(NamedTuple):
    """A piece of a text in which some marks (escapes, NULs, line wraps) are replaced."""

    text: str
    starts: list[int]
    """The start in `text` of each run of copied or decoded characters."""
    sources: list[int]
    """The start of the same run in the original."""

    def place(self, offset: int) -> int:
        """The offset in the original of an offset in `text`."""
        run = bisect_right(self.starts, offset) - 1
        return self.sources[run] + offset - self.starts[run]


def long_words(text: str) -> DecodedView:
    """The words long enough for a token, one on each line; they make up about a third of source code."""
    words = [word for word in text.split() if len(word) >= _TOKEN_CHARACTERS]
    starts, sources, length, place = [0], [0], 0, 0
    for word in words:
        place = text.find(word, place)
        starts.append(length)
        sources.append(place)
        length += len(word) + 1
        place += len(word)
    return DecodedView("\n".join(words), starts, sources)


def decode_escapes(text: str) -> Iterator[DecodedView]:
    """Views with one level of escapes decoded: those of JSON and terminals, or if there are none, of URLs and XML."""
    marks = list(_ESCAPE.finditer(text)) if "\\" in text or "\x1b" in text else []
    if not marks and any(sign in text for sign in _ENCODED_SIGNS):
        marks = list(_ENCODED.finditer(text))
    yield from _make_views(text, marks, _decode_mark)


def drop_invisible(text: str) -> Iterator[DecodedView]:
    """Views without soft hyphens, characters of no width, and NULs, which some programs print as `^@`.

    UTF-16 that was read as another encoding has a NUL at each letter.
    """
    if "\0" in text or "^@" in text or (not text.isascii() and _WIDTHLESS.search(text)):
        yield from _make_views(text, list(_INVISIBLE.finditer(text)), lambda _: "")


def swap_bytes(text: str) -> str | None:
    """The text with ASCII letters of byte-swapped UTF-16 restored, at the same offsets; None if it has none."""
    return None if text.isascii() or not _SWAPPED_RUN.search(text) else text.translate(_SWAPPED)


def join_wraps(text: str) -> Iterator[DecodedView]:
    """Views in which words are whole that a terminal, a mail program or a shell's `\\` cut in two."""
    if "\n" in text:
        yield from _make_views(text, [cut for cut in _WRAP.finditer(text) if _is_wrap(text, cut)], lambda _: "")


def _make_views(text: str, marks: list[re.Match[str]], decode: Callable[[re.Match[str]], str]) -> Iterator[DecodedView]:
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
        yield DecodedView("".join(parts), starts, sources)
        first = last + 1


def _decode_mark(mark: re.Match[str]) -> str:
    groups = mark.groupdict()
    if code := groups.get("unicode") or groups["byte"]:
        return chr(int(code, 16))
    if letter := groups.get("letter"):
        return _LETTERS.get(letter, letter)
    return unescape(mark[0]) if mark[0].startswith("&") else ""


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
