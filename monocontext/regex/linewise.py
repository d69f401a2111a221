r"""Patterns as they apply to each line of a text by itself, the way of grep. Pure.

A line ends before `\n` and never holds it, so what a line gives is what `re` gives on that string alone. The ways below
differ in what they look at, never in what they find. The first that is possible is taken:
- every match has one of a few literals: look for those (`bytes.find` runs at 1-10 GB/s), and give the lines that have
  one to the engine;
- the pattern cannot tell a line among others from the same line alone: give the engine all lines at once;
- else the engine gets line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from monocontext.needs import All, Literal, Need
from monocontext.needs import Any as AnyOf
from monocontext.regex import literals, tree
from monocontext.regex.plan import sees_newline
from monocontext.regex.tree import At, Seq
from monocontext.regex.widths import walk
from monocontext.search import Window

MOST_ANCHORS = 12
"""Literals that are looked for side by side; with more, one pass of the engine is as fast."""
SHORTEST_ANCHOR = 2
"""Characters below which a literal stands in too many lines to be worth looking for."""

_CASE_MATES = "\u0130\u0131\u017f\u212a"
"""What else than ASCII `re.IGNORECASE` takes for an ASCII letter: i, i, s, k."""
_CASE_MATES_UTF8 = tuple(mate.encode() for mate in _CASE_MATES)


class Found(NamedTuple):
    """A line with a match."""

    start: int
    """Its first character, where the window's characters are counted."""
    number: int
    """Lines that lie between the place searched from and it."""
    line: str
    match: re.Match[str]
    """The first one in it."""


@dataclass(frozen=True)
class Linewise:
    """Some patterns, any of which makes a line a hit."""

    patterns: Sequence[re.Pattern[str]]
    need: Need | None = field(init=False)
    """What each hit has in one line; None: nothing is known."""
    _anchors: tuple[Literal, ...] = field(init=False)
    """Every match has one of these; empty: they are not worth looking for."""
    _sees_one_line: bool = field(init=False)
    """The first pattern, the only one, cannot tell a line among others from the same line alone."""

    def __post_init__(self) -> None:
        trees = [tree.parse(pattern) for pattern in self.patterns]
        needs = [None if nodes is None else literals.required(nodes) for nodes in trees]
        anchors = [_anchors(need) for need in needs]
        flat = tuple(one for some in anchors for one in some)
        is_worth_it = all(anchors) and len(flat) <= MOST_ANCHORS and _shortest(flat) >= SHORTEST_ANCHOR
        known = tuple(need for need in needs if need is not None)
        need = None if len(known) < len(needs) or not known else known[0] if len(known) == 1 else AnyOf(known)
        nodes = trees[0] if len(trees) == 1 else None
        object.__setattr__(self, "need", need)
        object.__setattr__(self, "_anchors", flat if is_worth_it else ())
        object.__setattr__(self, "_sees_one_line", nodes is not None and _sees_one_line(nodes))

    # -- one line --------------------------------------------------------------------------------------------------

    def search(self, line: str, start: int = 0) -> re.Match[str] | None:
        """The first match at or after `start`; of those that begin in one place, that of the first pattern."""
        if len(self.patterns) == 1:
            return self.patterns[0].search(line, start)
        found = [match for pattern in self.patterns if (match := pattern.search(line, start))]
        return min(found, key=lambda match: match.start(), default=None)

    def finditer(self, line: str) -> Iterator[re.Match[str]]:
        """Matches that are not empty, left to right, not overlapping."""
        at = 0
        while at <= len(line) and (match := self.search(line, at)):
            if match.end() > match.start():
                yield match
            at = max(match.end(), match.start() + 1)

    # -- many lines ------------------------------------------------------------------------------------------------

    def hits(self, window: Window, low: int, high: int) -> Iterator[Found]:
        r"""The lines with a match among whole lines: positions [low, high) of a window's data, which end in `\n`."""
        sought = self._sought(window.data)
        if sought is not None:
            return self._around(window, low, high, sought)
        text = window.data[low:high]
        text = text if isinstance(text, str) else str(text, "utf-8")
        start = window.character(low)
        return self._at_once(text, start) if self._sees_one_line else self._one_by_one(text, start)

    def may_begin_in(self, part: Any, goes_on: bool) -> bool:
        """False only if no match begins in a part of a line; `goes_on`: the line does not end with it."""
        sought = self._sought(part)
        if sought is None or any(needle in hay for hay, needle in sought):
            return True
        if not goes_on:
            return False
        anchored = zip(self._anchors, sought, strict=True)
        return any(literal.latest > 0 or _overlaps(hay, needle) for literal, (hay, needle) in anchored)

    def _sought(self, data: Any) -> list[tuple[Any, Any]] | None:
        """What to look for and in what, for each anchor; None where only the engine can tell."""
        if not self._anchors:
            return None
        is_text = isinstance(data, str)
        folded: Any = None
        sought = []
        for literal in self._anchors:
            text = literal.text
            if literal.flags:
                folded = _folded(data) if folded is None else folded
                if folded is None or not text.isascii():
                    return None
                text = text.lower()
            needle = text if is_text else text.encode("utf-8", "surrogatepass")
            sought.append((folded if literal.flags else data, needle))
        return sought

    def _around(self, window: Window, low: int, high: int, sought: list[tuple[Any, Any]]) -> Iterator[Found]:
        data = window.data
        newline = "\n" if isinstance(data, str) else b"\n"
        nearest = _nearest(sought, high)
        at, number = low, 0  # a line's beginning, and how many are before it
        following = low
        while (place := nearest(following)) >= 0:
            start = data.rfind(newline, following, place) + 1 or following
            following = data.find(newline, place) + 1
            line = data[start : following - 1] if isinstance(data, str) else str(data[start : following - 1], "utf-8")
            if match := self.search(line):
                number += data.count(newline, at, start)
                yield Found(window.character(start), number, line, match)
                at = start

    def _at_once(self, text: str, first: int) -> Iterator[Found]:
        pattern = self.patterns[0]
        at = number = 0
        last = len(text) - 1  # the last newline
        while at <= last and (nearest := pattern.search(text, at, last)):
            start = text.rfind("\n", at, nearest.start()) + 1 or at
            stop = text.find("\n", nearest.start())
            line = text[start:stop]
            match = pattern.search(line)
            assert match is not None, pattern
            number += text.count("\n", at, start)
            yield Found(first + start, number, line, match)
            at = stop + 1
            number += 1

    def _one_by_one(self, text: str, start: int) -> Iterator[Found]:
        for number, line in zip(count(), text[:-1].split("\n"), strict=False):
            if match := self.search(line):
                yield Found(start, number, line, match)
            start += len(line) + 1


def _nearest(sought: list[tuple[Any, Any]], stop: int) -> Callable[[int], int]:
    """Where the first of some needles lies, from a position on that must not fall; -1: none does before `stop`."""
    if len(sought) == 1:
        hay, needle = sought[0]
        return lambda at: int(hay.find(needle, at, stop))
    ahead = [(-1, hay, needle) for hay, needle in sought]

    def nearest(at: int) -> int:
        found = [(place if place >= at else hay.find(needle, at, stop), hay, needle) for place, hay, needle in ahead]
        ahead[:] = [one for one in found if one[0] >= 0]
        return min((place for place, _, _ in ahead), default=-1)

    return nearest


def _anchors(need: Need | None) -> tuple[Literal, ...]:
    """Literals one of which is in every match: few and long."""
    match need:
        case None:
            return ()
        case Literal():
            return (need,)
        case All(needs):
            return max(map(_anchors, needs), key=lambda some: (_shortest(some), -len(some)))
        case AnyOf(needs):
            return tuple(literal for one in needs for literal in _anchors(one))


def _shortest(some: Sequence[Literal]) -> int:
    return min((len(literal.text) for literal in some), default=0)


def _sees_one_line(nodes: Seq) -> bool:
    """Whether no character of the pattern may be a newline, and all places that it asks for are word boundaries."""
    places = [node for node in walk(nodes) if isinstance(node, At)]
    return not sees_newline(nodes) and all(_is_word_boundary(place) for place in places)


def _is_word_boundary(place: At) -> bool:
    r"""`\b`, to which a newline is what an end is. Not `\B`: to `re` it is not in an empty line."""
    return place.where == "boundary" and tree.build_plain((place,)).match("a") is not None


def _folded(data: Any) -> Any:
    """The data with ASCII letters lowered, position by position; None where others may stand for ASCII letters."""
    if data.isascii():
        return data.lower()
    if any(mate in data for mate in (_CASE_MATES if isinstance(data, str) else _CASE_MATES_UTF8)):
        return None
    return data.lower()


def _overlaps(part: Any, needle: Any) -> bool:
    """Whether the part ends in a beginning of the needle."""
    return any(part.endswith(needle[:size]) for size in range(min(len(needle) - 1, len(part)), 0, -1))
