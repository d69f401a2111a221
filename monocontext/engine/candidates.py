"""Represent the frames in which matches of a search may begin, as runs in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import TypeVar

from monocontext.engine.stats import SearchStats
from monocontext.format.index import ENDS_LINE, Frame
from monocontext.records import dataclass

_T = TypeVar("_T")
Runs = list[tuple[int, int]]  # half-open runs of frame numbers, in ascending order


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring candidate frames, as characters [start, stop) of the text."""

    start: int
    stop: int
    begins_line: bool
    r"""Whether the region is known to begin a line. False if the search begins inside its first frame."""
    ends_line: bool
    r"""Whether the region is known to end with `\n`. False if the search ends inside its last frame."""
    frame_count: int


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The frames that search filters leave for a search."""

    frames: int  # the number of frames that the filters were asked about; 0 if they were not asked
    runs: Runs | None  # the frames in which a match may begin; None if a search has to read all frames
    reason: str  # why `runs` is None; else empty
    dense_runs: Runs | None = None
    """The frames in which a match may begin, if `runs` is None because they are most of all frames."""


class Candidates:
    """The frames of a stored text in which a match may begin; no match begins elsewhere.

    After `shifted_by` or `mapped`, characters are those of a text derived from the stored one. The search reports each
    match (`record_match`), so statistics tell how many frames were searched in vain.
    """

    def __init__(
        self,
        runs: Runs,
        start: int,
        stop: int,
        frame: Callable[[int], Frame],
        locate: Callable[[int], Frame],
        stats: SearchStats,
    ):
        """The search covers characters [start, stop). `frame` returns the record of a frame by the number of the frame,
        `locate` by a character of the stored text."""
        self.runs = runs
        self.start, self.stop = start, stop
        self.ends_at_first = False  # whether the search looks for only one match
        self._frame = frame
        self._locate = locate
        self._stats = stats
        self._to_here: Callable[[int], int] = int  # maps offsets in the stored text to those in the derived text
        self._to_stored: Callable[[int], int] = int  # maps them back; `int` changes nothing
        self._last_hit: Frame | None = None  # the frame of the last match

    @property
    def frame_count(self) -> int:
        """The number of candidates."""
        return sum(stop - start for start, stop in self.runs)

    def shifted_by(self, characters: int) -> Candidates:
        """The same candidates for a text that begins at character `characters` of this one."""
        return self.mapped(lambda character: character - characters, lambda character: character + characters)

    def mapped(self, to_here: Callable[[int], int], to_stored: Callable[[int], int]) -> Candidates:
        """The same candidates for a text derived from this one. `to_here` maps offsets of this text to those of the
        derived one, `to_stored` maps them back; both are monotonic."""
        result, inner_to_here, inner_to_stored = copy(self), self._to_here, self._to_stored
        result._to_here = lambda character: to_here(inner_to_here(character))
        result._to_stored = lambda character: inner_to_stored(to_stored(character))
        result.start, result.stop = to_here(self.start), to_here(self.stop)
        return result

    def regions(self) -> Iterator[Region]:
        """Yield each run of candidates as a range of characters, in order (1 GET for each index page with an end)."""
        for first, stop in self.runs:
            last = self._frame(stop - 1)
            follows_line = first == 0 or bool(self._frame(first - 1).flags & ENDS_LINE)
            start, end = self._to_here(self._frame(first).start), self._to_here(last.stop)
            yield Region(
                start=max(start, self.start),
                stop=min(end, self.stop),
                begins_line=start >= self.start and follows_line,
                ends_line=end <= self.stop and bool(last.flags & ENDS_LINE),
                frame_count=stop - first,
            )

    def with_neighbours(self, within_line: bool) -> Candidates:
        """These candidates, and the frames beside them that decide a match: the one before a run unless it ends a line,
        and the one after a run unless the run ends a line and matches stay in one. Statistics do not count these."""
        runs: Runs = []
        for first, stop in self.runs:
            last = self._frame(stop - 1)
            if first and not self._frame(first - 1).flags & ENDS_LINE:
                first -= 1
            if last.stop < self._to_stored(self.stop) and not (within_line and last.flags & ENDS_LINE):
                stop += 1
            if runs and first <= runs[-1][1]:
                first = runs.pop()[0]
            runs.append((first, stop))
        result = copy(self)
        result.runs, result._stats = runs, SearchStats()
        return result

    def record_match(self, character: int) -> None:
        """Record a match that begins at this character (at most 1 GET). Call this in text order, or backward."""
        character = self._to_stored(character)
        frame = self._last_hit
        if frame is None or not frame.start <= character < frame.stop:
            self._last_hit = self._locate(character)
            self._stats.hits += 1

    def count_each(self, frames: Iterator[_T]) -> Iterator[_T]:
        """Yield these frames, and count each as searched when the search receives it."""
        for frame in frames:
            self.count_looked_at()
            yield frame

    def count_looked_at(self, frames: int = 1) -> None:
        """Count `frames` candidates as searched."""
        self._stats.looked_at += frames
