"""Where the matches of one search may begin: runs of frames, in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass

from monocontext.index import ENDS_LINE, Frame
from monocontext.stats import SearchStats


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring frames that are candidates, as characters [start, stop) of the text."""

    start: int
    stop: int
    begins_line: bool
    r"""A `\n` stands before it (or nothing)."""
    ends_line: bool
    r"""Its last character is `\n`."""


class Candidates:
    """Frames of a stored text that may hold the beginning of a match. Elsewhere none begins.

    Offsets are those of a text derived from the stored one where `moved` says so. The one who searches says what it
    finds (`found`), so that statistics know what was looked at in vain.
    """

    def __init__(
        self,
        runs: list[tuple[int, int]],
        start: int,
        stop: int,
        frame: Callable[[int], Frame],
        locate: Callable[[int], Frame],
        stats: SearchStats,
    ):
        self.runs = runs
        """Numbers of frames, half-open, rising."""
        self.start, self.stop = start, stop
        """Characters that the search is confined to."""
        self._frame = frame
        self._locate = locate
        self._stats = stats
        self._shift = 0
        self._last: Frame | None = None

    @property
    def frames(self) -> int:
        return sum(stop - start for start, stop in self.runs)

    def moved(self, characters: int) -> Candidates:
        """The same for a text whose first character is this one of the text it was made from."""
        found = copy(self)
        found._shift += characters
        found.start -= characters
        found.stop -= characters
        return found

    def regions(self) -> Iterator[Region]:
        """Where to look, in order (index pages of the ends of runs, 1 GET each)."""
        for first, stop in self.runs:
            head, last = self._frame(first), self._frame(stop - 1)
            before = self._frame(first - 1) if first else None
            start, end = head.start - self._shift, last.stop - self._shift
            yield Region(
                max(start, self.start),
                min(end, self.stop),
                start >= self.start and (before is None or bool(before.flags & ENDS_LINE)),
                end <= self.stop and bool(last.flags & ENDS_LINE),
            )

    def found(self, character: int) -> None:
        """A match begins here. Called in the order of the text, or backwards."""
        character += self._shift
        last = self._last
        if last is None or not last.start <= character < last.stop:
            self._last = self._locate(character)
            self._stats.hits += 1

    def looked_at(self) -> None:
        """A frame of these was handed to the search."""
        self._stats.looked_at += 1
