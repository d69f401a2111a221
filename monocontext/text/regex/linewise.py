r"""Search each line of a text for patterns, as grep does. Pure.

A line does not contain the `\n` at its end, and matches as `re` matches that string alone. There are three ways to
search a window of lines, all with the same results. The first that applies is taken:
- Every match contains one of a few literals, the *anchors*. `find` looks for these at 1-10 GB/s, and `re` searches only
  their lines.
- The pattern matches a line among others as it matches that line alone. `re` searches all lines at once.
- Otherwise `re` searches line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from monocontext.engine.scan import find
from monocontext.errors import InvalidParameters
from monocontext.format.filters.query import All, AnyOf, FrequencyQuery, Literal, Query, requires
from monocontext.records import NamedTuple
from monocontext.text.regex.plan import plan as make_plan
from monocontext.text.windows import Window, overlap

MOST_ANCHORS = 12
"""The most anchors. With more, one pass of `re` is as fast."""
SHORTEST_ANCHOR = 2
"""The fewest characters of an anchor. A shorter literal is in too many lines."""

_CASE_MATES = "\u0130\u0131\u017f\u212a"
"""The characters beyond ASCII that match ASCII letters with `re.IGNORECASE`: i, i, s and k."""

LineMatch = tuple[int, int, str, re.Match[str]]
"""A line with a match: its first character in the text, the number of searched lines before it, the line itself, and
its first match. A plain tuple, since a frequent word has millions."""


class _AnchorSearch(NamedTuple):
    """A search for an anchor in some data: both UTF-8 bytes or both `str`, and both in lower case to ignore case."""

    data: Any
    needle: Any


class Linewise:
    """Patterns to search lines for. A line is a hit if any of them matches. Raises `InvalidParameters` for a pattern
    that can only match across lines."""

    def __init__(self, patterns: Sequence[re.Pattern[str]]):
        self.patterns = patterns
        self.plans = [make_plan(pattern) for pattern in patterns]
        queries = [plan.query for plan in self.plans]
        if any(requires(query, "\n") for query in queries):
            raise InvalidParameters(
                "the pattern needs a newline, but grep matches within a line: look for a part of it that has no newline"
            )
        usable = tuple(query for query in queries if query is not None)
        joined = usable[0] if len(usable) == 1 else AnyOf(usable)
        self.query: Query | None = joined if len(usable) == len(queries) else None
        """The literals that the line of every hit contains; None if unknown."""
        by_query = [_anchors(query) for query in queries]
        anchors = tuple(chain.from_iterable(by_query))
        is_faster = all(by_query) and len(anchors) <= MOST_ANCHORS and _shortest(anchors) >= SHORTEST_ANCHOR
        self._anchors = anchors if is_faster else ()
        """Literals, one of which every match contains; empty if a search for them is no faster."""
        self._sees_one_line = len(patterns) == 1 and self.plans[0].sees_one_line
        """Whether there is one pattern, which matches a line among others as it matches that line alone."""

    def search(self, line: str, start: int = 0) -> re.Match[str] | None:
        """The first match at or after `start`. Of matches that begin at the same character, the first pattern's."""
        if len(self.patterns) == 1:
            return self.patterns[0].search(line, start)
        results = [match for pattern in self.patterns if (match := pattern.search(line, start))]
        return min(results, key=lambda match: match.start(), default=None)

    def finditer(self, line: str) -> Iterator[re.Match[str]]:
        """The matches that are not empty, from left to right, without overlaps."""
        offset = 0
        while offset <= len(line) and (match := self.search(line, offset)):
            if match.end() > match.start():
                yield match
            offset = max(match.end(), match.start() + 1)

    def hits(self, window: Window, low: int, high: int) -> Iterator[LineMatch]:
        r"""The lines with a match in positions [low, high) of the window's data: whole lines, each with its `\n`."""
        searches = self._anchor_searches(window.data)
        if searches is not None and all(find(data, needle, low, high) < 0 for data, needle in searches):
            return iter(())
        text = window.data[low:high]
        text = text if isinstance(text, str) else str(text, "utf-8")
        start = window.character(low)
        searches = self._anchor_searches(text)
        if searches is not None:
            return self._anchor_hits(text, start, searches)
        return self._block_hits(text, start) if self._sees_one_line else self._line_hits(text, start)

    def may_begin_in(self, part: Any, goes_on: bool) -> bool:
        """Whether a match may begin in a part of a line. `goes_on`: the line continues after the part."""
        searches = self._anchor_searches(part)
        if searches is None or any(needle in data for data, needle in searches):
            return True
        if not goes_on:
            return False
        anchored = zip(self._anchors, searches, strict=True)
        return any(literal.latest > 0 or overlap(data, needle) > 0 for literal, (data, needle) in anchored)

    def _anchor_searches(self, data: Any) -> list[_AnchorSearch] | None:
        """A search for each anchor. None if there are no anchors, or `find` cannot ignore case in this data."""
        if not self._anchors:
            return None
        is_text = isinstance(data, str)
        folded: Any = None
        searches = []
        for literal in self._anchors:
            searched, text = data, literal.text
            if literal.flags:
                folded = _fold_ascii(data) if folded is None else folded
                if folded is None or not text.isascii():
                    return None
                searched, text = folded, text.lower()
            searches.append(_AnchorSearch(searched, text if is_text else text.encode("utf-8", "surrogatepass")))
        return searches

    def _anchor_hits(self, text: str, first: int, searches: list[_AnchorSearch]) -> Iterator[LineMatch]:
        """The first way: search the lines with an anchor."""
        search = self.patterns[0].search if len(self.patterns) == 1 else self.search  # the former is faster
        nearest = _nearest([partial(find, data, needle) for data, needle in searches])
        rfind, count = text.rfind, text.count
        offset = counted = number = 0
        while (location := nearest(offset)) >= 0:
            start = rfind("\n", offset, location) + 1 or offset
            stop = text.find("\n", location)
            line = text[start:stop]
            offset = stop + 1
            if match := search(line):
                number += count("\n", counted, start)
                counted = start
                yield first + start, number, line, match

    def _block_hits(self, text: str, first: int) -> Iterator[LineMatch]:
        """The second way: search all lines at once."""
        pattern = self.patterns[0]
        offset = number = 0
        last = len(text) - 1  # the last newline
        while offset <= last and (nearest := pattern.search(text, offset, last)):
            start = text.rfind("\n", offset, nearest.start()) + 1 or offset
            stop = text.find("\n", nearest.start())
            line = text[start:stop]
            match = pattern.search(line)
            assert match is not None, pattern
            number += text.count("\n", offset, start)
            yield first + start, number, line, match
            offset = stop + 1
            number += 1

    def _line_hits(self, text: str, start: int) -> Iterator[LineMatch]:
        """The third way: search line by line."""
        for number, line in enumerate(text[:-1].split("\n")):
            if match := self.search(line):
                yield start, number, line, match
            start += len(line) + 1


def _nearest(searches: Sequence[Callable[[int], int]]) -> Callable[[int], int]:
    """Make a function that returns the nearest result of the searches from a position on, or -1. Positions must not
    decrease from call to call."""
    if len(searches) == 1:
        return searches[0]
    # The next result of each search, without the searches that find nothing more.
    ahead = [(-1, search) for search in searches]

    def nearest(position: int) -> int:
        results = [(location if location >= position else search(position), search) for location, search in ahead]
        ahead[:] = [(location, search) for location, search in results if location >= 0]
        return min((location for location, _ in ahead), default=-1)

    return nearest


def _anchors(query: Query | None) -> tuple[Literal, ...]:
    """Literals, one of which every match contains: of several sets, the one whose shortest literal is the longest."""
    match query:
        case None | FrequencyQuery():
            return ()
        case Literal():
            return (query,)
        case All(queries):
            return max(map(_anchors, queries), key=lambda anchors: (_shortest(anchors), -len(anchors)))
        case AnyOf(queries):
            return tuple(chain.from_iterable(map(_anchors, queries)))


def _shortest(anchors: Sequence[Literal]) -> int:
    return min((len(literal.text) for literal in anchors), default=0)


def _fold_ascii(data: Any) -> Any:
    """The data with the same positions and ASCII letters in lower case; None if it has a character of `_CASE_MATES`."""
    if data.isascii():
        return data.lower()
    is_text = isinstance(data, str)
    has_mate = any((mate if is_text else mate.encode()) in data for mate in _CASE_MATES)
    return None if has_mate else data.lower()
