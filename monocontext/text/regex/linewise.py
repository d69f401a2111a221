r"""Apply patterns to each line of a text by itself, as grep does. Pure.

A line ends before `\n` and never contains it, so a line matches as `re` matches that string alone. Of three ways with
equal results the first that applies is taken:
- every match has one of a few literals: find those (`bytes.find` runs at 1-10 GB/s), and run the engine on their lines;
- the pattern cannot tell a line among others from the same line alone: run the engine on all lines at once;
- else run the engine line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from monocontext.engine.scan import find
from monocontext.format.filters.query import All, FrequencyQuery, Literal, Query, requires
from monocontext.format.filters.query import Any as AnyOf
from monocontext.text.regex import literals, tree
from monocontext.text.regex.plan import sees_newline
from monocontext.text.regex.tree import At, Seq
from monocontext.text.regex.widths import walk
from monocontext.text.windows import Window

MOST_ANCHORS = 12
"""The most literals to find side by side; with more, one pass of the engine is as fast."""
SHORTEST_ANCHOR = 2
"""Characters below which a literal is in too many lines to be worth finding."""
FEW_LINES = 16
"""Lines of a window that are decoded one by one; where more have a literal, the rest is decoded as a whole."""

_CASE_MATES = "\u0130\u0131\u017f\u212a"
"""Characters beyond ASCII that `re.IGNORECASE` takes for ASCII letters: i, i, s, k."""
_CASE_MATES_UTF8 = tuple(mate.encode() for mate in _CASE_MATES)


LineMatch = tuple[int, int, str, re.Match[str]]
"""A line with a match: its first character, in the offsets of the window; the lines between the beginning of the search
and this one; the line; and the first match in it."""


@dataclass(frozen=True)
class Linewise:
    """Patterns, any of which makes a line a hit. Raises `ValueError` for one that can only match across lines."""

    patterns: Sequence[re.Pattern[str]]
    query: Query | None = field(init=False)
    """The literals that every hit has in its line; None: unknown."""
    _anchors: tuple[Literal, ...] = field(init=False)
    """Every match has one of these; empty: they are not worth finding."""
    _sees_one_line: bool = field(init=False)
    """The first pattern, the only one, cannot tell a line among others from the same line alone."""

    def __post_init__(self) -> None:
        trees = [tree.parse(pattern) for pattern in self.patterns]
        queries = [None if nodes is None else literals.required(nodes) for nodes in trees]
        for pattern, query in zip(self.patterns, queries, strict=True):
            if requires(query, "\n"):
                raise ValueError(
                    f"{pattern.pattern!r} needs a newline, but grep matches within a line: look for a part without one"
                )
        anchors = [_anchors(query) for query in queries]
        flat = tuple(one for some in anchors for one in some)
        is_worth_it = all(anchors) and len(flat) <= MOST_ANCHORS and _shortest(flat) >= SHORTEST_ANCHOR
        every = tuple(query for query in queries if query is not None)
        query = None if len(every) < len(queries) or not every else every[0] if len(every) == 1 else AnyOf(every)
        nodes = trees[0] if len(trees) == 1 else None
        object.__setattr__(self, "query", query)
        object.__setattr__(self, "_anchors", flat if is_worth_it else ())
        object.__setattr__(self, "_sees_one_line", nodes is not None and _sees_one_line(nodes))

    # -- one line --------------------------------------------------------------------------------------------------

    def search(self, line: str, start: int = 0) -> re.Match[str] | None:
        """The first match at or after `start`; of several that begin at one character, that of the first pattern."""
        if len(self.patterns) == 1:
            return self.patterns[0].search(line, start)
        found = [match for pattern in self.patterns if (match := pattern.search(line, start))]
        return min(found, key=lambda match: match.start(), default=None)

    @property
    def _search_one(self) -> Callable[[str], re.Match[str] | None]:
        """`search`, without a step in between where there is one pattern."""
        return self.patterns[0].search if len(self.patterns) == 1 else self.search

    def finditer(self, line: str) -> Iterator[re.Match[str]]:
        """Matches that are not empty, left to right, not overlapping."""
        at = 0
        while at <= len(line) and (match := self.search(line, at)):
            if match.end() > match.start():
                yield match
            at = max(match.end(), match.start() + 1)

    @property
    def needles(self) -> tuple[str, ...]:
        """The pattern that `hits` looks for in a window as it is."""
        return tuple([literal.text for literal in self._anchors if not literal.flags])

    # -- many lines ------------------------------------------------------------------------------------------------

    def hits(self, window: Window, low: int, high: int) -> Iterator[LineMatch]:
        r"""The lines with a match among whole lines: positions [low, high) of a window's data, which end in `\n`."""
        needles = self._needles(window.data)
        if needles is not None:
            return self._anchor_hits(window, low, high, needles)
        text = window.data[low:high]
        text = text if isinstance(text, str) else str(text, "utf-8")
        start = window.character(low)
        return self._block_hits(text, start) if self._sees_one_line else self._line_hits(text, start)

    def may_begin_in(self, part: Any, goes_on: bool) -> bool:
        """False only if no match begins in a part of a line; `goes_on`: the line does not end with it."""
        needles = self._needles(part)
        if needles is None or any(needle in hay for hay, needle in needles):
            return True
        if not goes_on:
            return False
        anchored = zip(self._anchors, needles, strict=True)
        return any(literal.latest > 0 or _overlaps(hay, needle) for literal, (hay, needle) in anchored)

    def _needles(self, data: Any) -> list[tuple[Any, Any]] | None:
        """For each anchor the data to search and the needle; None where only the engine can tell."""
        if not self._anchors:
            return None
        is_text = isinstance(data, str)
        folded: Any = None
        needles = []
        for literal in self._anchors:
            text = literal.text
            if literal.flags:
                folded = _fold_ascii(data) if folded is None else folded
                if folded is None or not text.isascii():
                    return None
                text = text.lower()
            needle = text if is_text else text.encode("utf-8", "surrogatepass")
            needles.append((folded if literal.flags else data, needle))
        return needles

    def _anchor_hits(self, window: Window, low: int, high: int, needles: list[tuple[Any, Any]]) -> Iterator[LineMatch]:
        data = window.data
        search = self._search_one
        newline = "\n" if isinstance(data, str) else b"\n"
        searches = [
            partial(window.find if hay is data else partial(find, hay), needle, stop=high) for hay, needle in needles
        ]
        nearest = _nearest(searches)
        at, number = low, 0  # the beginning of a line, and the lines before it
        following = low
        tries = 0
        while (place := nearest(following)) >= 0:
            tries += 1
            if tries > FEW_LINES and not isinstance(data, str):
                number += data.count(newline, at, following)
                yield from self._text_hits(str(data[following:high], "utf-8"), window.character(following), number)
                return
            start = data.rfind(newline, following, place) + 1 or following
            following = data.find(newline, place) + 1
            line = data[start : following - 1] if isinstance(data, str) else str(data[start : following - 1], "utf-8")
            if match := search(line):
                number += data.count(newline, at, start)
                yield window.character(start), number, line, match
                at = start

    def _text_hits(self, text: str, first: int, number: int) -> Iterator[LineMatch]:
        """The same for whole lines as `str`, after so many others."""
        needles = self._needles(text)
        if needles is None:  # a letter beyond ASCII that matches one within
            found = self._line_hits(text, first)
            yield from ((start, number + before, line, match) for start, before, line, match in found)
            return
        search = self._search_one
        nearest = _nearest([partial(find, hay, needle) for hay, needle in needles])
        rfind, count_of = text.rfind, text.count
        at = counted = 0
        while (place := nearest(at)) >= 0:
            start = rfind("\n", at, place) + 1 or at
            stop = text.find("\n", place)
            line = text[start:stop]
            at = stop + 1
            if match := search(line):
                number += count_of("\n", counted, start)
                counted = start
                yield first + start, number, line, match

    def _block_hits(self, text: str, first: int) -> Iterator[LineMatch]:
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
            yield first + start, number, line, match
            at = stop + 1
            number += 1

    def _line_hits(self, text: str, start: int) -> Iterator[LineMatch]:
        for number, line in zip(count(), text[:-1].split("\n"), strict=False):
            if match := self.search(line):
                yield start, number, line, match
            start += len(line) + 1


def _nearest(searches: Sequence[Callable[[int], int]]) -> Callable[[int], int]:
    """A function that gives the first place that any of the searches finds from a position on; -1: none does.

    Positions passed to it must not decrease.
    """
    if len(searches) == 1:
        return searches[0]
    ahead = [(-1, search) for search in searches]

    def nearest(at: int) -> int:
        found = [(place if place >= at else search(at), search) for place, search in ahead]
        ahead[:] = [one for one in found if one[0] >= 0]
        return min((place for place, _ in ahead), default=-1)

    return nearest


def _anchors(query: Query | None) -> tuple[Literal, ...]:
    """A few long literals, one of which is in every match."""
    match query:
        case None | FrequencyQuery():
            return ()
        case Literal():
            return (query,)
        case All(queries):
            return max(map(_anchors, queries), key=lambda some: (_shortest(some), -len(some)))
        case AnyOf(queries):
            return tuple(literal for one in queries for literal in _anchors(one))


def _shortest(some: Sequence[Literal]) -> int:
    return min((len(literal.text) for literal in some), default=0)


def _sees_one_line(nodes: Seq) -> bool:
    """Whether the pattern matches no newline, and has no anchors but word boundaries."""
    places = [node for node in walk(nodes) if isinstance(node, At)]
    return not sees_newline(nodes) and all(_is_word_boundary(place) for place in places)


def _is_word_boundary(place: At) -> bool:
    r"""Whether this is `\b`, which treats a newline as an end. Not `\B`, which never matches in an empty line."""
    return place.where == "boundary" and tree.build_plain((place,)).match("a") is not None


def _fold_ascii(data: Any) -> Any:
    """The data with ASCII letters lowered, position by position; None where other characters match ASCII letters."""
    if data.isascii():
        return data.lower()
    if any(mate in data for mate in (_CASE_MATES if isinstance(data, str) else _CASE_MATES_UTF8)):
        return None
    return data.lower()


def _overlaps(part: Any, needle: Any) -> bool:
    """Whether the part ends with a prefix of the needle."""
    return any(part.endswith(needle[:size]) for size in range(min(len(needle) - 1, len(part)), 0, -1))
