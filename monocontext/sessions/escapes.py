"""Make copies of a text with escapes decoded or wrapped lines joined, so that a search finds secrets hidden by them.

A copy is a `DecodedView`, which maps its offsets back to the text. It covers only the surroundings of escapes or wraps:
elsewhere it would equal the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\"'\\/bfnrt]|0(?!\d)))|\x1b\[[0-9;?]{0,40}[A-Za-z]")
_WIDTHLESS = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_INVISIBLE = re.compile(rf"(?:\x00|\^@|{_WIDTHLESS.pattern})+")
_SWAPPED = {code << 8: code for code in (9, 10, 13, *range(32, 127))}
_SWAPPED_RUN = re.compile(f"[{''.join(map(chr, _SWAPPED))}]{{8}}")
_ENCODED = re.compile(
    r"(?:%|=(?=3D|22|27|20))([0-9a-fA-F]{2})()()"
    r"|&(?:quot|apos|amp|lt|gt|equals|colon|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});"
)
_ENCODED_SIGNS = ("%", "&", "=3D", "=22", "=27")
"""One of these is in every text that `_ENCODED` may change: URLs, XML, and mail in quoted-printable."""
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
_RUN = re.compile(r"[A-Za-z0-9+/=_.-]*[0-9][A-Za-z0-9+/=_.-]*")
_WHOLE = re.compile(r"[A-Za-z0-9+/=_.-]{4,400}\\*[\"']?[ \t]*(?:$|[\r\n,])")
_LINE = 60
"""Characters. No terminal is narrower."""
_TOKEN = 11
"""Characters of the shortest word that begins a known kind of secret."""
_AROUND = 400
"""Characters on each side of an escape. More than a secret and its name have."""


class DecodedView(NamedTuple):
    """A piece of a text with some marks (escapes, NULs, line wraps) replaced."""

    text: str
    at: list[int]
    """The start in `text` of each run of copied or decoded characters."""
    source: list[int]
    """The start of the same run in the original."""

    def place(self, position: int) -> int:
        """The offset in the original of an offset in `text`."""
        run = bisect_right(self.at, position) - 1
        return self.source[run] + position - self.at[run]


def long_words(text: str) -> DecodedView:
    """The words long enough for a token, one on each line; they make up about a third of source code."""
    words = [word for word in text.split() if len(word) >= _TOKEN]
    at, source, length, place = [0], [0], 0, 0
    for word in words:
        place = text.find(word, place)
        at.append(length)
        source.append(place)
        length += len(word) + 1
        place += len(word)
    return DecodedView("\n".join(words), at, source)


def decode_escapes(text: str) -> Iterator[DecodedView]:
    """Views with one level of escapes resolved: JSON and terminals; without any of these, URLs and XML."""
    marks = list(_ESCAPE.finditer(text)) if "\\" in text or "\x1b" in text else []
    if not marks and any(sign in text for sign in _ENCODED_SIGNS):
        marks = list(_ENCODED.finditer(text))
    yield from _make_views(text, marks, _decode_mark)


def drop_invisible(text: str) -> Iterator[DecodedView]:
    """Views without invisible characters: soft hyphens, characters without width, and NULs (or `^@`, as some programs
    print them). UTF-16 that is read as another encoding has a NUL at each letter."""
    if "\0" in text or "^@" in text or (not text.isascii() and _WIDTHLESS.search(text)):
        yield from _make_views(text, list(_INVISIBLE.finditer(text)), lambda _: "")


def swap_bytes(text: str) -> str | None:
    """The text with ASCII letters of byte-swapped UTF-16 restored, at the same offsets; None if it has none."""
    return None if text.isascii() or not _SWAPPED_RUN.search(text) else text.translate(_SWAPPED)


def join_wraps(text: str) -> Iterator[DecodedView]:
    """Words that a terminal, a mail program or a shell's `\\` cut in two, in one."""
    if "\n" in text:
        yield from _make_views(text, [cut for cut in _WRAP.finditer(text) if _is_wrap(text, cut)], lambda _: "")


def _make_views(text: str, marks: list[re.Match[str]], decode: Callable[[re.Match[str]], str]) -> Iterator[DecodedView]:
    first = 0
    while first < len(marks):
        last = first
        while last + 1 < len(marks) and marks[last + 1].start() - marks[last].end() < 2 * _AROUND:
            last += 1
        begin = max(marks[first].start() - _AROUND, marks[first - 1].end() if first else 0)
        end = min(marks[last].end() + _AROUND, marks[last + 1].start() if last + 1 < len(marks) else len(text))
        parts, at, source, length, done = list[str](), [0], [begin], 0, begin
        for mark in marks[first : last + 1]:
            plain = decode(mark)
            parts += (text[done : mark.start()], plain)
            length += mark.start() - done
            at += (length, length + len(plain))
            source += (mark.start(), mark.end())
            length += len(plain)
            done = mark.end()
        parts.append(text[done:end])
        yield DecodedView("".join(parts), at, source)
        first = last + 1


def _decode_mark(mark: re.Match[str]) -> str:
    if code := mark.re.groups and (mark[1] or mark[2]):
        return chr(int(code, 16))
    if mark[3]:
        return _LETTERS.get(mark[3], mark[3])
    return unescape(mark[0]) if mark[0].startswith("&") else ""


def _is_wrap(text: str, cut: re.Match[str]) -> bool:
    if cut[0].startswith("\\"):
        return True
    begin = text.rfind("\n", 0, cut.start()) + 1
    if cut.start() - begin >= _LINE:
        return True
    run = text[max(begin, cut.start() - _LINE) : cut.start()].split()[-1:]
    rest = _WHOLE.match(text, cut.end())
    return bool(run and len(run[0]) >= 12 and rest and (_RUN.search(run[0]) or _RUN.match(rest[0])))
