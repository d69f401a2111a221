"""Find the places in a context of the text that a cell showed, for code that went through all of the context.

Such code received everything, so its reads do not show where the answer came from. But the text that it printed or kept
occurs somewhere in the ranges that it read. Each line is searched for by parts of it, first by the part around the
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
"""Longest place, in characters."""
_MOST_LINES = 12
_MOST_GETS = 16
"""No search begins after this many GETs."""
_SEED_CHARACTERS = 200
_LEAST = 12
"""A part of a line of this many characters is distinctive; a shorter one must occur at one place only."""
_AROUND = (24, 8)
"""Characters on each side of the answer's words in a search, tried in turn."""
_LINE = 500
"""Characters of its line on each side of a short find that belong to its place."""
_NUMBER = re.compile(r"[\d.,:%$+-]*")
_ATOM_BEFORE = re.compile(r"[\w./@:-]*\w[-./@:]?$")
_ATOM_BEHIND = re.compile(r"[-./@:]?\w[\w./@:-]*(?<=\w)")
_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")


def find_shown(
    text: Any, shown: str, ranges: Sequence[Range], words: Words, *, has_numbers: bool = True
) -> list[Range]:
    """The places in `ranges` of the lines that were shown; only of those with words of the answer, if there are any.

    `has_numbers`: whether to look for bare numbers, which code may have counted instead of read.

    Searches at most twice `MOST_SEARCHED` characters. Costs no GET for text in the cache, else some 16.
    """
    if not ranges or size(ranges) > MOST_SEARCHED:
        return []
    lines = _lines(shown)
    lines = [line for line in lines if words.score(line)] or lines
    lines = sorted(dict.fromkeys(lines), key=lambda line: (-words.score(line), -len(line)))[:_MOST_LINES]
    search = _Search(text, ranges)
    for way in _ways(lines, words, has_numbers):
        found = [(line, seed, search.find(seed)) for line, seed in way]
        places = [_extend(text, shown, line, seed, at) for line, seed, at in found if at >= 0]
        if places:
            return list(dict.fromkeys(places))
    return []


def _lines(shown: str) -> list[str]:
    """The lines that were shown, and the lines inside string literals, such as those of a printed list."""
    found = shown.splitlines()
    for literal in _LITERAL.findall(shown):
        try:
            found += str(ast.literal_eval(literal)).splitlines()
        except (ValueError, SyntaxError):  # an apostrophe of prose
            continue
    return [line.strip() for line in found if line.strip()]


def _ways(lines: Sequence[str], words: Words, has_numbers: bool) -> Iterator[list[tuple[str, str]]]:
    """Ways to search, the surest first: pairs of a line and the part of it to search for."""
    for around in _AROUND:
        places = ((line, place) for line in lines for place in words.places(line)[:1])
        way = [(line, line[max(0, start - around) : stop + around].strip()) for line, (start, stop) in places]
        yield [(line, seed) for line, seed in way if len(seed) >= _LEAST]
    yield [(line, line[:_SEED_CHARACTERS]) for line in lines if len(line) >= _LEAST]
    middles = ((line, line[len(line) // 4 : -len(line) // 4][:_SEED_CHARACTERS].strip()) for line in lines)
    yield [(line, seed) for line, seed in middles if len(seed) >= _LEAST]
    atoms = ((line, _atom(line, place)) for line in lines for place in words.places(line)[:1])
    yield [(line, atom) for line, atom in atoms if has_numbers or not _NUMBER.fullmatch(atom)]


def _atom(line: str, place: Range) -> str:
    """The word at an offset with its joined parts, such as `QX-7741`."""
    start, stop = place
    before, behind = _ATOM_BEFORE.search(line[:start]), _ATOM_BEHIND.match(line[stop:])
    return (before[0] if before else "") + line[start:stop] + (behind[0] if behind else "")


class _Search:
    """Searches ranges of a text, up to a limit of characters and of GETs."""

    def __init__(self, text: Any, ranges: Sequence[Range]) -> None:
        self._text, self._ranges = text, ranges
        self._left = 2 * MOST_SEARCHED
        self._gets = self._count_gets()

    def find(self, seed: str) -> int:
        """The offset of the first occurrence; -1 if there is none, or several of a short seed."""
        at = self._next(seed, 0)
        return -1 if at >= 0 and len(seed) < _LEAST and self._next(seed, at + 1) >= 0 else at

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


def _extend(text: Any, shown: str, line: str, seed: str, at: int) -> Range:
    """The find, extended as far as the text and the shown line agree; a find of few characters gets its line."""
    half = (MOST_SHOWN - len(seed)) // 2
    low = max(0, at - half)
    around = str(text[low : at + len(seed) + half])
    there = shown if seed in shown else line
    start, stop = at - low, at - low + len(seed)
    first = there.find(seed)
    last = first + len(seed)
    while start > 0 and first > 0 and around[start - 1] == there[first - 1]:
        start, first = start - 1, first - 1
    while stop < len(around) and last < len(there) and around[stop] == there[last]:
        stop, last = stop + 1, last + 1
    if stop - start < 2 * _LEAST:
        start = max(around.rfind("\n", 0, start) + 1, start - _LINE)
        end = around.find("\n", stop)
        stop = min(len(around) if end < 0 else end, stop + _LINE)
    while start < stop and around[start].isspace():
        start += 1
    while stop > start and around[stop - 1].isspace():
        stop -= 1
    return low + start, low + stop
