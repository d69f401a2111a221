"""Define hints: the ranges, lines and searches that code is about to read.

Offsets are characters of the context; ranges are half-open and within it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Ranges:
    """One slice, or slices of equal width at equal distances, in the order in which they are read.

    They are never listed: 1 TB in chunks of 100,000 characters is ten million of them.
    """

    start: int
    """First character of the first range."""
    width: int
    """Characters of each range, at least 1."""
    step: int
    """Characters from the start of a range to the next; negative if the code walks backward; `width` for one range."""
    count: int
    """Number of ranges, at least 1."""
    is_literal: bool
    """Whether it is a single slice that the block certainly reads; False in loops and under conditions."""

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The ranges one by one, as (start, stop)."""
        for k in range(self.count):
            start = self.start + k * self.step
            yield start, start + self.width


@dataclass(frozen=True, slots=True)
class Lines:
    """A run of lines, as `context.lines[start:stop]` or `context.splitlines()[start:stop]` reads it."""

    start: int
    """First line."""
    stop: int
    """Line after the last."""


Reach = Literal["all", "some", "first", "unplaced"]
"""The matches that a search looks for: all (`count`, `split`, `findall`), some (`find` in a loop, `finditer` in one
that may be left), the first (`find`, `in`, `search`), or those from a place that depends on data:
`context.rfind(header, 0, at)` with an `at` that is still to be found."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A text that is looked for: `find`, `index`, `count`, `in`, `split`, `replace` ..."""

    text: str
    """The text to look for; in lower or upper case if the context was converted to it."""
    ignore_case: bool
    """Whether the context was converted before: `context.lower().find(text)`."""
    backward: bool
    """Whether it is looked for from the end: `rfind`, `rindex`, `rsplit`, `rpartition`, `endswith`."""
    start: int
    """First character of the range in which it is looked for."""
    stop: int
    """The character after that range."""
    reach: Reach = field(default="all", compare=False)
    hits: int = field(default=0, compare=False)
    """The number of matches that a loop looks at, unless there are fewer; 0 if that is unknown."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that is applied to the context."""

    pattern: str
    """Its source, which may be malformed."""
    flags: int
    """The flags that the code passes: `int(re.I | re.S)`."""
    start: int
    """First character of the range to which it is applied."""
    stop: int
    """The character after that range."""
    reach: Reach = field(default="all", compare=False)


@dataclass(frozen=True, slots=True)
class Whole:
    """A pass over everything in order: lines, pieces or characters in a loop, `json.loads(context)`, an f-string."""

    backward: bool = False
    """Whether it goes from the end to the beginning."""
    reach: Reach = "all"
    """Whether it may end at any item ("some")."""


Hint = Ranges | Lines | Needle | Pattern | Whole
"""One expected read of a piece of code."""
