"""Find where the text that a cell printed occurs in the context, for code that read all of the context.

Such code received everything, so its reads do not show where the answer came from. But the text that it printed or kept
occurs somewhere in the ranges that it read. The search is for a part of each printed line, first the part around the
answer's words, since code prints numbers, names and quotes around the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rlm.context import protocol
from rlm.trajectory.answer_words import Words
from rlm.trajectory.ranges import Range, size

MOST_SEARCHED = 256_000_000
"""The most characters of ranges that are searched: if more was read, it is no longer in a cache."""
MOST_SHOWN = 20_000
"""Longest range that is found, in characters."""
_MOST_LINES = 12
"""The most lines that are searched for: those with most of the answer's words, the longest first."""
_MOST_GETS = 16
"""No search begins after this many GETs."""
_SEED_CHARACTERS = 200
"""Longest part of a line that is searched for, unless it is around the answer's words."""
_DISTINCTIVE_CHARACTERS = 12
"""A part of a line of this many characters is distinctive; a shorter one must occur only once."""
_MARGINS = (24, 8)
"""Characters on each side of the answer's words in a search, tried in turn."""
_LINE_MARGIN = 500
"""The most characters of its line that a short find gets on each side."""
_NUMBER = re.compile(r"[\d.,:%$+-]*")
_ATOM_BEFORE = re.compile(r"[\w./@:-]*\w[-./@:]?$")
_ATOM_AFTER = re.compile(r"[-./@:]?\w[\w./@:-]*(?<=\w)")
_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")


def find_shown(
    text: Any, printed: str, ranges: Sequence[Range], words: Words, *, has_numbers: bool = True
) -> list[Range]:
    """Where the printed lines occur in `ranges`; only those with words of the answer, if there are any.

    `has_numbers`: whether to look for bare numbers, which code may have counted instead of read.

    Searches at most twice `MOST_SEARCHED` characters. Costs no GET for text in the cache, else about `_MOST_GETS`.
    """
    if not ranges or size(ranges) > MOST_SEARCHED:
        return []
    lines = _lines(printed)
    lines = [line for line in lines if words.score(line)] or lines
    lines = sorted(dict.fromkeys(lines), key=lambda line: (-words.score(line), -len(line)))[:_MOST_LINES]
    search = _Search(text, ranges)
    for attempt in _attempts(lines, words, has_numbers):
        found = [(line, seed, search.find(seed)) for line, seed in attempt]
        extended = [_extend(text, printed, line, seed, at) for line, seed, at in found if at >= 0]
        if extended:
            return list(dict.fromkeys(extended))
    return []


def _lines(printed: str) -> list[str]:
    """The lines that were printed, and the lines inside string literals, such as those of a printed list."""
    found = printed.splitlines()
    for literal in _LITERAL.findall(printed):
        try:
            found += str(ast.literal_eval(literal)).splitlines()
        except (ValueError, SyntaxError):  # an apostrophe of prose
            continue
    return [line.strip() for line in found if line.strip()]


def _attempts(lines: Sequence[str], words: Words, has_numbers: bool) -> Iterator[list[tuple[str, str]]]:
    """Attempts, the surest first: pairs of a line and the part of it to search for."""
    spans = [(line, span) for line in lines for span in words.places(line)[:1]]
    for margin in _MARGINS:
        attempt = [(line, line[max(0, start - margin) : stop + margin].strip()) for line, (start, stop) in spans]
        yield [(line, seed) for line, seed in attempt if len(seed) >= _DISTINCTIVE_CHARACTERS]
    yield [(line, line[:_SEED_CHARACTERS]) for line in lines if len(line) >= _DISTINCTIVE_CHARACTERS]
    middles = ((line, line[len(line) // 4 : -len(line) // 4][:_SEED_CHARACTERS].strip()) for line in lines)
    yield [(line, seed) for line, seed in middles if len(seed) >= _DISTINCTIVE_CHARACTERS]
    atoms = ((line, _atom(line, span)) for line, span in spans)
    yield [(line, atom) for line, atom in atoms if has_numbers or not _NUMBER.fullmatch(atom)]


def _atom(line: str, span: Range) -> str:
    """The word at a span of a line with the parts that are joined to it, such as `QX-7741`."""
    start, stop = span
    before, after = _ATOM_BEFORE.search(line[:start]), _ATOM_AFTER.match(line[stop:])
    return (before[0] if before else "") + line[start:stop] + (after[0] if after else "")


class _Search:
    """Searches ranges of a text, up to a limit of characters and of GETs."""

    def __init__(self, text: Any, ranges: Sequence[Range]) -> None:
        self._text, self._ranges = text, ranges
        self._left = 2 * MOST_SEARCHED
        self._gets = self._count_gets()

    def find(self, seed: str) -> int:
        """The offset of the first occurrence; -1 if there is none, or several of a short seed."""
        at = self._next(seed, 0)
        return -1 if at >= 0 and len(seed) < _DISTINCTIVE_CHARACTERS and self._next(seed, at + 1) >= 0 else at

    def _next(self, seed: str, after: int) -> int:
        for start, stop in self._ranges:
            if stop <= after:
                continue
            if self._left <= 0 or self._count_gets() - self._gets > _MOST_GETS:
                break
            at: int = self._text.find(seed, max(start, after), stop)
            self._left -= (stop if at < 0 else at) - max(start, after)
            if at >= 0:
                return at
        return -1

    def _count_gets(self) -> float:
        return (protocol.reading_cost(self._text) or {}).get("gets", 0)


def _extend(text: Any, printed: str, line: str, seed: str, at: int) -> Range:
    """The range of a find, extended as far as the text and what was printed agree, at most `MOST_SHOWN` characters; a
    find of few characters gets its line."""
    half = (MOST_SHOWN - len(seed)) // 2
    low = max(0, at - half)
    around = str(text[low : at + len(seed) + half])
    found = at - low, at - low + len(seed)
    start, stop = _grow_while_equal(around, found, printed if seed in printed else line, seed)
    if stop - start < 2 * _DISTINCTIVE_CHARACTERS:
        start, stop = _to_line(around, start, stop)
    start, stop = _strip(around, start, stop)
    return low + start, low + stop


def _grow_while_equal(around: str, found: Range, printed_around: str, seed: str) -> Range:
    """The range of `seed` in the text, with the characters on both sides that are also around it in what was
    printed."""
    start, stop = found
    first = printed_around.find(seed)
    last = first + len(seed)
    while start > 0 and first > 0 and around[start - 1] == printed_around[first - 1]:
        start, first = start - 1, first - 1
    while stop < len(around) and last < len(printed_around) and around[stop] == printed_around[last]:
        stop, last = stop + 1, last + 1
    return start, stop


def _to_line(around: str, start: int, stop: int) -> Range:
    """A range, extended to its line, by at most `_LINE_MARGIN` characters on each side."""
    end = around.find("\n", stop)
    return (
        max(around.rfind("\n", 0, start) + 1, start - _LINE_MARGIN),
        min(len(around) if end < 0 else end, stop + _LINE_MARGIN),
    )


def _strip(around: str, start: int, stop: int) -> Range:
    """A range without the white space at both ends."""
    while start < stop and around[start].isspace():
        start += 1
    while stop > start and around[stop - 1].isspace():
        stop -= 1
    return start, stop
