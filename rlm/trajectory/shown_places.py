"""Find the place in a context of the text that a cell showed, for code that went through all of it, line by line.

A pass gives code everything, which says nothing. But the text that the code printed or kept of it occurs somewhere in
the ranges that it read. Lines are searched for as they were printed, else the part of them around the answer's words,
since code writes numbers, names and quotes around them.
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
"""Characters of ranges; where more was read it is not looked up, since it is no longer in a cache."""
MOST_SHOWN = 20_000
"""Characters of one place, at most."""
_MOST_LINES = 12
_MOST_GETS = 16
"""After this many searches no other begins."""
_SEED_CHARACTERS = 200
_LEAST = 12
"""The characters of a part of a line that is distinctive by itself; a shorter one must occur at one place only."""
_AROUND = (24, 8)
"""Characters before and after the answer's words that are looked for."""
_LINE = 500
"""Characters to both sides of a short find that are shown, as far as its line goes."""
_NUMBER = re.compile(r"[\d.,:%$+-]*")
_ATOM_BEFORE = re.compile(r"[\w./@:-]*\w[-./@:]?$")
_ATOM_BEHIND = re.compile(r"[-./@:]?\w[\w./@:-]*(?<=\w)")
_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")


def find_shown(
    text: Any, shown: str, ranges: Sequence[Range], words: Words, *, has_numbers: bool = True
) -> list[Range]:
    """The places in `ranges` of what was shown: of lines with words of the answer, where some have any.

    `has_numbers`: a number alone was read; else it may have been counted, and is not looked for.

    Costs searches of `ranges`, together at most twice `MOST_SEARCHED`, and no GET for what is in the cache; where it is
    not, the search ends soon.
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
    """Lines that were printed, and lines in literals: in a list, or in the repr of a hit."""
    found = shown.splitlines()
    for literal in _LITERAL.findall(shown):
        try:
            found += str(ast.literal_eval(literal)).splitlines()
        except (ValueError, SyntaxError):  # an apostrophe of prose
            continue
    return [line.strip() for line in found if line.strip()]


def _ways(lines: Sequence[str], words: Words, has_numbers: bool) -> Iterator[list[tuple[str, str]]]:
    """What to look for of each line, the surest way first; a line is known by parts of it, see `_extend`."""
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
    """Looks for seeds in ranges of a text, until it has looked at too much of it."""

    def __init__(self, text: Any, ranges: Sequence[Range]) -> None:
        self._text, self._ranges = text, ranges
        self._left = 2 * MOST_SEARCHED
        self._gets = self._count_gets()

    def find(self, seed: str) -> int:
        """The first place, or -1; of a short seed the only one."""
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
    """As much around a find as was shown of it; of a few characters their line."""
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
