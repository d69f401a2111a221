"""Turn expected reads into the frames that they need, in order. Nothing is fetched or awaited here.

A route is a walk (`frame_table`): an iterator of frames to prefetch and of `Missing` items. The read-ahead fetches
these, and continues once they are in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monocontext.engine.fetch.requests import Missing
from monocontext.engine.filter_lookup import FEW, FilterLookup, RecordsInMemory
from monocontext.format.filters.query import Literal
from monocontext.format.filters.query import Query as Query

if TYPE_CHECKING:
    from monocontext.engine.frame_table import Frames, FrameTable
    from monocontext.engine.hints.hint import Reach

CANDIDATES_BYTES = 8 << 20
"""Text of a search's candidates that is fetched ahead: where it looks at all of them, it goes on by itself."""
FIRST_BYTES = 512 << 10
"""The first bytes of a search that may end at its first match: two frames of the usual size, since now and then one is
read in vain."""


class Routes:
    """Routes through one text. Its owner holds the lock while it walks them."""

    def __init__(self, table: FrameTable, filters: FilterLookup):
        self._table = table
        self._filters = filters
        self.characters = table.characters
        self.frames, self.whole = table.numbered, table.between

    def ranges(self, start: int, width: int, step: int, count: int) -> Frames:
        """The frames of `count` ranges of `width` characters, each `step` after the one before; each frame once if
        ranges are adjacent. Ranges in an earlier frame are skipped, in any number."""
        low = high = 0
        k = 0
        while k < count:
            first = start + k * step
            for frame in self._table.between(max(first, 0), min(first + width, self.characters)):
                if not isinstance(frame, Missing):
                    stop = frame.start + frame.characters
                    if low <= frame.start and stop <= high:
                        continue
                    low, high = frame.start, stop
                yield frame
            k += 1
            if step > 0 and high > first:
                k = max(k, (high - width - start) // step + 1)  # the first that reaches beyond the frame
            elif step < 0 and low <= first:
                k = max(k, (start - low) // -step + 1)

    def lines(self, start: int, stop: int) -> Frames:
        """The frames of lines [start, stop)."""
        newlines = self._table.manifest.newlines
        first: int | None = 0
        if start > 0:
            if start > newlines:
                return
            first = yield from self._table.find_newline(start - 1)
        last: int | None = self._table.frames - 1
        if first is not None and stop <= newlines:
            last = yield from self._table.find_newline(stop - 1)
        if first is not None and last is not None:
            yield from self.frames(range(first, last + 1))

    def search(
        self,
        query: Query | None,
        start: int,
        stop: int,
        within_line: bool,
        backward: bool,
        reach: Reach = "all",
    ) -> Frames:
        """The first reads of a search: rows of filters, then the first candidates. Where no filter can tell, all frames
        from its beginning, if that is known."""
        if stop <= start or self._filters.is_asked_elsewhere(query, within_line):
            return
        narrowed = yield from self._filters.narrow(
            query, start, stop, within_line, RecordsInMemory(self._table), needs_text=False
        )
        if narrowed is None:
            return
        if narrowed.runs is not None:
            runs = reversed(narrowed.runs) if backward else narrowed.runs
            numbers = (n for run in runs for n in (range(run[1] - 1, run[0] - 1, -1) if backward else range(*run)))
            yield from _first(self.frames(numbers), FIRST_BYTES if reach == "first" else CANDIDATES_BYTES)
        elif reach != "unplaced":
            yield from self.whole(start, stop, backward)

    def name(self, word: str) -> Frames:
        """The frames that hold a name, if filters name few."""
        query = Literal(word)
        if self._filters.is_asked_elsewhere(query, False):
            return
        narrowed = yield from self._filters.narrow(
            query, 0, self.characters, False, RecordsInMemory(self._table), needs_text=False
        )
        if narrowed is not None and narrowed.runs is not None and sum(b - a for a, b in narrowed.runs) <= FEW:
            yield from self.frames(number for run in narrowed.runs for number in range(*run))

    def name_bytes(self, word: str) -> int:
        """The reads of looking up a name in the filters."""
        return self._filters.cost_bytes(Literal(word))


def _first(route: Frames, most_bytes: int) -> Frames:
    """A route, limited to an amount of text."""
    for step in route:
        if not isinstance(step, Missing):
            most_bytes -= step.bytes
            if most_bytes < 0:
                return
        yield step
