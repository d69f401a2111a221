"""Hints: ranges, lines and searches that code is about to read.

Offsets are characters of the context, half-open, within it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Ranges:
    """One slice, or equal slices at equal distances, in the order in which they are read.

    However many they are, they are never listed: 1 TB in chunks of 100,000 characters is ten million of them.
    """

    start: int
    """First character of the first range."""
    width: int
    """Characters of each range, at least 1."""
    step: int
    """From one range to the next; negative where the code walks backward; `width` where there is only one."""
    count: int
    """Number of ranges, at least 1."""
    is_literal: bool
    """Whether it is a single slice that the block surely reads; False in loops and under conditions."""

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
"""To every place (`count`, `split`, `findall`), to some (`find` in a loop, `finditer` in one that may be left), to the
first (`find`, `in`, `search`), or from where data says: `context.rfind(header, 0, at)` with an `at` that is still to be
found."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A text that is looked for: `find`, `index`, `count`, `in`, `split`, `replace` ..."""

    text: str
    """The text to look for; in lower or upper case where the context was converted to it."""
    ignore_case: bool
    """The context was converted before: `context.lower().find(text)`."""
    backward: bool
    """From the end: `rfind`, `rindex`, `rsplit`, `rpartition`, `endswith`."""
    start: int
    """Looked for from here ..."""
    stop: int
    """... to here."""
    reach: Reach = field(default="all", compare=False)
    """How far looking goes."""
    hits: int = field(default=0, compare=False)
    """So many places a loop looks at: it ends before only where there are no more. 0: it is not known to."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that is applied to the context."""

    pattern: str
    """Its source; not known to be well-formed."""
    flags: int
    """As the code passes them: `int(re.I | re.S)`."""
    start: int
    """Applied from here ..."""
    stop: int
    """... to here."""
    reach: Reach = field(default="all", compare=False)
    """How far applying it goes."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A pass over everything in order: lines, pieces or characters in a loop, `json.loads(context)`, an f-string."""

    backward: bool = False
    """Last to first."""
    reach: Reach = "all"
    """How far it goes: "some" where it may end at any item."""


Hint = Ranges | Lines | Needle | Pattern | Whole
"""One expected read of a piece of code."""
