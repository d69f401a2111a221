"""Turn expected reads into the frames that they need, in order. Fetches nothing itself.

A route is a walk over frames (see `frame_table`): it yields the frames to prefetch, and `Missing` items that must be in
memory before it continues.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from monocontext.engine.fetch.scheduler import Missing
from monocontext.engine.filter_lookup import FEW_CANDIDATES, FilterLookup, RecordsInMemory
from monocontext.format.filters.query import Literal, Query

if TYPE_CHECKING:
    from monocontext.engine.frame_table import Frames, FrameTable
    from monocontext.engine.hints import Reach

CANDIDATES_BYTES = 8 << 20
"""The most text of a search's candidates that is fetched ahead; a search that reads all of them then fetches the rest.
"""
FIRST_BYTES = 512 << 10
"""The same limit for a search that may end at its first match: two frames of the usual size, since the first may be
read in vain."""


class Routes:
    """Routes through one text. Its owner holds the lock while it walks them."""

    def __init__(self, table: FrameTable, filters: FilterLookup):
        self._table = table
        self._filters = filters
        self.characters = table.characters
        self.frames, self.whole = table.numbered, table.between

    def ranges(self, start: int, width: int, step: int, count: int) -> Frames:
        """The frames of `count` ranges of `width` characters, each `step` characters after the one before. Consecutive
        ranges in one frame take constant time, and yield the frame once."""
        low = high = 0  # the characters of the last frame
        number = 0
        while number < count:
            first = start + number * step
            for frame in self._table.between(max(first, 0), min(first + width, self.characters)):
                if not isinstance(frame, Missing):
                    if low <= frame.start and frame.stop <= high:
                        continue
                    low, high = frame.start, frame.stop
                yield frame
            number += 1
            if step > 0 and high > first:
                number = max(number, (high - width - start) // step + 1)  # the first that ends beyond the frame
            elif step < 0 and low <= first:
                number = max(number, (start - low) // -step + 1)  # the first that begins before the frame

    def search(
        self,
        query: Query | None,
        start: int,
        stop: int,
        within_line: bool,
        backward: bool,
        reach: Reach = "all",
    ) -> Frames:
        """The first frames that a search reads, after rows of filters: candidates if filters name some, else all frames
        from its beginning, if that is known. `reach`: see `hints.Reach`."""
        if stop <= start or self._filters.is_asked_elsewhere(query, within_line):
            return
        narrowed = yield from self._filters.narrow(
            query, start, stop, within_line, RecordsInMemory(self._table), needs_text=False
        )
        if narrowed is None:
            return
        if narrowed.runs is not None:
            runs = [range(*run) for run in narrowed.runs]
            numbers = chain.from_iterable(map(reversed, reversed(runs)) if backward else runs)
            yield from _first(self.frames(numbers), FIRST_BYTES if reach == "first" else CANDIDATES_BYTES)
        elif reach != "unplaced":
            yield from self.whole(start, stop, backward)

    def name(self, word: str) -> Frames:
        """The frames that may hold a name, if filters leave few."""
        query = Literal(word)
        if self._filters.is_asked_elsewhere(query, False):
            return
        narrowed = yield from self._filters.narrow(
            query, 0, self.characters, False, RecordsInMemory(self._table), needs_text=False
        )
        runs = narrowed.runs if narrowed is not None else None
        if runs is not None and sum(stop - start for start, stop in runs) <= FEW_CANDIDATES:
            yield from self.frames(number for run in runs for number in range(*run))

    def name_bytes(self, word: str) -> int:
        """The approximate bytes that looking up a name in the filters fetches."""
        return self._filters.cost_bytes(Literal(word))


def _first(route: Frames, most_bytes: int) -> Frames:
    """A route, limited to an amount of text."""
    for step in route:
        if not isinstance(step, Missing):
            most_bytes -= step.bytes
            if most_bytes < 0:
                return
        yield step
