"""Turn expected reads into the frames that they need, in order. Fetches nothing itself.

A route yields the frames to prefetch, and `Missing` items that must be in memory before it continues. It ends if they
have not arrived when it is continued.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import chain
from typing import TYPE_CHECKING

from monocontext.engine.fetch.requests import FetchItem, Missing
from monocontext.engine.fetch.workers import LOCK
from monocontext.engine.filter_lookup import FilterLookup, RecordsInMemory
from monocontext.format.filters.query import Query
from monocontext.format.index import Frame, Page

if TYPE_CHECKING:
    from monocontext.engine.fetch.cache import Cache
    from monocontext.engine.frame_table import FrameTable
    from monocontext.engine.hints import Reach
    from monocontext.engine.page_tree import Column

CANDIDATES_BYTES = 8 << 20
"""The most text of a search's candidates that is fetched ahead; a search that reads all of them then fetches the rest.
"""
FIRST_BYTES = 512 << 10
"""The same limit for a search that may end at its first match: two frames of the usual size, since the first may be
read in vain."""

Route = Generator[Frame | Missing, None, None]


class Routes:
    """Routes through one text. Their owner holds the lock while it walks them."""

    def __init__(self, table: FrameTable, filters: FilterLookup, cache: Cache):
        self._table = table
        self._filters = filters
        self._cache = cache
        self.characters = table.characters

    def numbered(self, numbers: Iterable[int]) -> Route:
        """Frames by number."""
        for number in numbers:
            page = yield from self._page("frames", number)
            if page is None:
                return
            yield page[number - page.first_frame]

    def between(self, start: int, stop: int, backward: bool = False) -> Route:
        """The frames that hold characters [start, stop), in order or from the end."""
        start, stop = max(start, 0), min(stop, self.characters)
        while start < stop:
            page = yield from self._page("characters", stop - 1 if backward else start)
            if page is None:
                return
            for i in page.between(start, stop, backward):
                yield page[i]
            if backward:
                stop = page.starts[0]
            else:
                start = page.starts[-1]

    def ranges(self, start: int, width: int, step: int, count: int) -> Route:
        """The frames of `count` ranges of `width` characters, each `step` characters after the one before. Consecutive
        ranges in one frame take constant time, and yield the frame once."""
        low = high = 0  # the characters of the last frame
        number = 0
        while number < count:
            first = start + number * step
            for frame in self.between(first, first + width):
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
        self, query: Query | None, start: int, stop: int, within_line: bool, backward: bool, reach: Reach
    ) -> Route:
        """The first frames that a search reads, after rows of filters: candidates if filters name some, else all frames
        from its beginning, if that is known. `reach`: see `hints.Reach`."""
        if stop <= start or self._filters.is_asked_elsewhere(query, within_line):
            return
        asked: set[object] = set()
        while True:
            narrowed = self._filters.narrow(
                query, start, stop, within_line, have=self._peek, records=RecordsInMemory(self._table), needs_text=False
            )
            if not isinstance(narrowed, Missing):
                break
            keys = {item.key for item in narrowed.items}
            if keys <= asked:
                return
            asked |= keys
            yield narrowed
        if narrowed.runs is not None:
            runs = [range(*run) for run in narrowed.runs]
            numbers = chain.from_iterable(map(reversed, reversed(runs)) if backward else runs)
            yield from _first(self.numbered(numbers), FIRST_BYTES if reach == "first" else CANDIDATES_BYTES)
        elif reach == "first":
            yield from _first(self.between(start, stop, backward), FIRST_BYTES)
        elif reach == "all":
            yield from self.between(start, stop, backward)

    def _peek(self, key: object) -> object:
        with LOCK:
            return self._cache.peek(key)

    def _page(self, column: Column, value: int) -> Generator[Missing, None, Page | None]:
        """The index page of a character or frame; None if it did not arrive."""
        requested = None
        while isinstance(page := self._table.page_or_item(column, value, self._peek), FetchItem):
            if page.key == requested:
                return None
            requested = page.key
            yield Missing((page,))
        return page


def _first(route: Route, most_bytes: int) -> Route:
    """A route, limited to an amount of text."""
    for step in route:
        if not isinstance(step, Missing):
            most_bytes -= step.bytes
            if most_bytes < 0:
                return
        yield step
