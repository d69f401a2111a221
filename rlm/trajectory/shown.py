"""Find the places of the text from which the output of a cell comes, for code that went through all of the text.

The recorded ranges of such a cell are the whole text. But lines that the code printed or kept occur somewhere in these
ranges. The search takes lines as they were printed, or the part of them around the words of the answer, since code
prints numbers, names and quotes around text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rlm.context import protocol
from rlm.trajectory.ranges import Range, size
from rlm.trajectory.words import Words

MOST_SEARCHED = 256_000_000
"""The most characters to search. A cell that read more has text that no cache keeps, so it is not searched."""
MOST_SHOWN = 20_000
"""The most characters of one place."""
_MOST_LINES = 12
_MOST_GETS = 16
"""After this many GETs no other search begins."""
_NEEDLE_CHARACTERS = 200
_DISTINCTIVE = 12
"""The characters of a needle that may occur several times; a shorter needle must occur once."""
_MARGINS = (24, 8)
"""Characters on both sides of the answer's words that a needle includes."""
_LINE_CHARACTERS = 500
"""The characters of its line to show on both sides of a short find."""
_NUMBER = re.compile(r"[\d.,:%$+-]*")
_ATOM_BEFORE = re.compile(r"[\w./@:-]*\w[-./@:]?$")
_ATOM_AFTER = re.compile(r"[-./@:]?\w[\w./@:-]*(?<=\w)")
_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")


def find_shown(
    text: Any, shown: str, ranges: Sequence[Range], words: Words, *, has_numbers: bool = True
) -> list[Range]:
    """The places in `ranges` of the lines in `shown`: of those with words of the answer, if there are any.

    With `has_numbers`, a number alone was read; else the code may have computed it, and it is not searched for. Costs
    searches of at most twice `MOST_SEARCHED` characters, and some 16 GETs for text that is not in the cache.
    """
    if not ranges or size(ranges) > MOST_SEARCHED:
        return []
    lines = _lines(shown)
    lines = [line for line in lines if words.score(line)] or lines
    lines = sorted(dict.fromkeys(lines), key=lambda line: (-words.score(line), -len(line)))[:_MOST_LINES]
    search = _Search(text, ranges)
    for needles in _needles(lines, words, has_numbers):
        found = [(line, needle, search.find(needle)) for line, needle in needles]
        places = [_extend(text, shown, line, needle, at) for line, needle, at in found if at >= 0]
        if places:
            return list(dict.fromkeys(places))
    return []


def _lines(shown: str) -> list[str]:
    """The printed lines, and the lines of string literals in them, as in a list or the repr of a hit."""
    found = shown.splitlines()
    for literal in _LITERAL.findall(shown):
        try:
            found += str(ast.literal_eval(literal)).splitlines()
        except (ValueError, SyntaxError):  # an apostrophe of prose
            continue
    return [line.strip() for line in found if line.strip()]


def _needles(lines: Sequence[str], words: Words, has_numbers: bool) -> Iterator[list[tuple[str, str]]]:
    """Lists of (line, needle), the surest kind of needle first: the text around the answer's words, the beginning of
    the line, its middle, the answer's first word alone."""
    first_words = [(line, place) for line in lines for place in words.places(line)[:1]]
    for margin in _MARGINS:
        yield _distinctive((line, line[max(0, start - margin) : stop + margin]) for line, (start, stop) in first_words)
    yield _distinctive((line, line[:_NEEDLE_CHARACTERS]) for line in lines)
    yield _distinctive((line, line[len(line) // 4 : -len(line) // 4][:_NEEDLE_CHARACTERS]) for line in lines)
    atoms = ((line, _atom(line, place)) for line, place in first_words)
    yield [(line, atom) for line, atom in atoms if has_numbers or not _NUMBER.fullmatch(atom)]


def _distinctive(needles: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    stripped = ((line, needle.strip()) for line, needle in needles)
    return [(line, needle) for line, needle in stripped if len(needle) >= _DISTINCTIVE]


def _atom(line: str, place: Range) -> str:
    """The word at a place together with the parts that belong to it, such as `QX-7741`."""
    start, stop = place
    before, after = _ATOM_BEFORE.search(line[:start]), _ATOM_AFTER.match(line[stop:])
    return (before[0] if before else "") + line[start:stop] + (after[0] if after else "")


class _Search:
    """Searches for needles in ranges of a text, until it has searched too many characters."""

    def __init__(self, text: Any, ranges: Sequence[Range]) -> None:
        self._text, self._ranges = text, ranges
        self._left = 2 * MOST_SEARCHED
        self._gets = self._count_gets()

    def find(self, needle: str) -> int:
        """The first place of a needle, or -1. A short needle must occur once."""
        at = self._next(needle, 0)
        return -1 if at >= 0 and len(needle) < _DISTINCTIVE and self._next(needle, at + 1) >= 0 else at

    def _next(self, needle: str, after: int) -> int:
        for start, stop in self._ranges:
            if stop <= after:
                continue
            if self._left <= 0 or self._count_gets() - self._gets > _MOST_GETS:
                break
            at: int = self._text.find(needle, max(start, after), stop)
            self._left -= (stop if at < 0 else at) - max(start, after)
            if at >= 0:
                return at
        return -1

    def _count_gets(self) -> float:
        return (protocol.reading_cost(self._text) or {}).get("gets", 0)


def _extend(text: Any, shown: str, line: str, needle: str, at: int) -> Range:
    """The place of a find, as far as the text around it equals the output around the needle; at least most of its
    line."""
    half = (MOST_SHOWN - len(needle)) // 2
    low = max(0, at - half)
    around = str(text[low : at + len(needle) + half])
    output = shown if needle in shown else line
    start, stop = at - low, at - low + len(needle)
    first = output.find(needle)
    last = first + len(needle)
    while start > 0 and first > 0 and around[start - 1] == output[first - 1]:
        start, first = start - 1, first - 1
    while stop < len(around) and last < len(output) and around[stop] == output[last]:
        stop, last = stop + 1, last + 1
    if stop - start < 2 * _DISTINCTIVE:
        start = max(around.rfind("\n", 0, start) + 1, start - _LINE_CHARACTERS)
        end = around.find("\n", stop)
        stop = min(len(around) if end < 0 else end, stop + _LINE_CHARACTERS)
    while start < stop and around[start].isspace():
        start += 1
    while stop > start and around[stop - 1].isspace():
        stop -= 1
    return low + start, low + stop
