"""Look up a query in the search filters, and turn the rows into candidate frames. Fetches nothing itself: a walk yields
what is missing (`frame_table`)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from monocontext.engine.candidates import Narrowing
from monocontext.engine.fetch.requests import FILTER_GAP_BYTES, FetchItem, Missing
from monocontext.format.directories import filters_in
from monocontext.format.filters.query import Literal, literals
from monocontext.format.filters.query import Query as Query
from monocontext.format.index import Frame, Page
from monocontext.format.refs import FilterDirectory, FilterRef
from monocontext.records import dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.engine.frame_table import Finding, FrameTable
    from monocontext.engine.page_tree import Column
    from monocontext.format.filters.layout import FilterLayout
    from monocontext.format.filters.planner import Planner, Records

LEAST_FRAMES = 8
"""A search in fewer frames uses no filter: the lookup would be a round trip of its own."""
FEW = 4
"""The most frames that a lookup of some of the rows may leave: they are requested together anyway."""
IN_VAIN = 0.1
"""The most frames that those rows may name by chance: a round trip costs as much as half a frame."""
PAGES_BESIDE = 16
"""The most index pages that a search requests with its rows: 1.4 MB, the pages of 16 GB of text. For more of them, the
rows say which ones are needed."""
SECTIONS_AT_ONCE = 64
"""Directories of filters that are fetched at once: 4 MB, for 64 TB of text."""
DENSE = 0.4
"""Share of frames from which on candidates are no candidates: a pass without gaps is cheaper."""
MOST_MANY = 1 << 17
"""The most candidates that are still listed for a caller that chooses among them: 32 GB of text. To list them takes 0.2
s."""


@dataclass(frozen=True, slots=True)
class FilterBlock:
    """A block of a filter, as the cache keeps it."""

    rows: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FilterHits:
    """The answer of filters to a query, as the cache keeps it: a loop of `find` looks it up again and again."""

    runs: tuple[tuple[int, int], ...]
    has_rows: bool
    """Whether there are rows for the query."""
    size_bytes: int
    """The approximate size of the answer and its query in memory."""


class _Section:
    """Neighbouring filters that are looked up together: all filters of a text, or those that a directory names."""

    def __init__(self, first: int, stop: int, directory: FilterDirectory | None, planner: Planner | None):
        self.first, self.stop = first, stop
        """The frames that it answers for."""
        self.directory, self.planner = directory, planner
        self.parts: list[_Section] = []
        """Open directories of directories."""

    @property
    def is_open(self) -> bool:
        return self.planner is not None or bool(self.parts)

    def item(self, frames: int) -> FetchItem:
        """The directory, to fetch; once it is decoded the section is open."""
        directory = self.directory
        assert directory is not None

        def decode(body: memoryview) -> FilterBlock:
            entries = filters_in(directory, bytes(body))
            if directory.level > 1:
                self.parts = _sections(entries, self.first, self.stop, frames)
            else:
                refs = [ref for ref in entries if isinstance(ref, FilterRef)]
                self.planner = _planner(refs, frames, self.first, self.stop)
            return FilterBlock(b"", 200)

        size = directory.size_bytes
        return FetchItem(("directory", directory.id), directory.key, 0, size, 10 * size, decode)

    def within(self, first: int, stop: int) -> Iterator[_Section]:
        """The sections that answer for frames [first, stop), in order, or the directories that name them."""
        if self.first < stop and first < self.stop:
            if self.parts:
                for part in self.parts:
                    yield from part.within(first, stop)
            else:
                yield self


def _planner(refs: Sequence[FilterRef], frames: int, first: int, stop: int) -> Planner:
    from monocontext.format.filters.planner import Planner  # which a process that never searches has no use for

    return Planner(refs, frames, first, stop)


def _sections(entries: Sequence[FilterRef | FilterDirectory], first: int, stop: int, frames: int) -> list[_Section]:
    """Sections that answer for frames [first, stop): one for each directory, and one for the filters after them."""
    directories = [entry for entry in entries if isinstance(entry, FilterDirectory)]
    refs = [entry for entry in entries if isinstance(entry, FilterRef)]
    starts = [first, *(entry.first_frame for entry in directories[1:])]
    if directories and refs:
        starts.append(directories[-1].stop_frame)
    stops = [*starts[1:], stop]
    found = [
        _Section(low, high, directory, None) for low, high, directory in zip(starts, stops, directories, strict=False)
    ]
    if refs or not directories:
        found.append(_Section(starts[-1], stop, None, _planner(refs, frames, starts[-1], stop)))
    return found


class FilterLookup:
    """The search filters of one text: which of their blocks a query takes, and where they let a search look."""

    elsewhere: Callable[[Query, bool], tuple[tuple[int, int], ...] | None] | None = None
    """Looks up filters outside of this text, with requests of its own.

    Returns the frames of a query as half-open runs, and whether its matches stay within a line; None if the filters
    cannot tell.
    """

    def __init__(self, table: FrameTable, fetcher: Fetcher):
        self._table = table
        self._fetcher = fetcher
        self._planned: list[_Section] = []
        manifest = table.manifest
        self._has_filters = bool(manifest.filters or manifest.filter_directories)

    @property
    def _sections(self) -> list[_Section]:
        """All sections, planned by the first search."""
        with self._fetcher.lock:
            if not self._planned:
                manifest, frames = self._table.manifest, self._table.frames
                self._planned = _sections((*manifest.filter_directories, *manifest.filters), 0, frames, frames)
        return self._planned

    @property
    def _last(self) -> _Section:
        """All filters of a text without directories, else the last ones."""
        return self._sections[-1]

    def narrow(
        self, query: Query | None, start: int, stop: int, within_line: bool, records: Records, needs_text: bool
    ) -> Finding[Narrowing | None]:
        """Where matches may begin in characters [start, stop), a non-empty range.

        `needs_text`: filters are not worth a lookup where all of that text is in memory. None if something missing
        cannot be fetched.
        """
        frames = self._table.frames
        if reason := self._useless(query, frames):
            return Narrowing(0, None, reason)
        assert query is not None
        if self.elsewhere is not None:
            return (yield from self._narrow_elsewhere(query, start, stop, within_line))
        if len(self._sections) > 1 or self._last.planner is None:
            return (yield from self._narrow_by_sections(query, start, stop, within_line, records))
        key = ("told", query, within_line)
        beside = self._pages_beside(start, stop)
        if beside:
            with self._fetcher.lock:
                hits = self._fetcher.cache.get(key)
            if hits is None:
                hits = yield from self._look_up(self._whole, query, within_line, records, beside)
                if hits is None:
                    return None
                with self._fetcher.lock:
                    self._fetcher.cache.put(key, hits)
        within = yield from self._table.find_range(start, stop)
        if within is None:
            return None
        if reason := self._useless(query, len(within)):
            return Narrowing(0, None, reason)
        with self._fetcher.lock:
            if self._fetcher.is_closed:
                self._fetcher.check_open()
            cache = self._fetcher.cache
            hits = cache.get(key)
            if hits is None and needs_text and cache.has_all(within):
                return Narrowing(0, None, "all of the text is in memory")
        if not isinstance(hits, FilterHits):
            hits = yield from self._look_up(self._whole, query, within_line, records)
            if hits is None:
                return None
            with self._fetcher.lock:
                cache.put(key, hits)
        return self._narrow_to(hits.runs, hits.has_rows, within)

    @property
    def _whole(self) -> Planner:
        planner = self._last.planner
        assert planner is not None
        return planner

    def _narrow_by_sections(
        self, query: Query, start: int, stop: int, within_line: bool, records: Records
    ) -> Finding[Narrowing | None]:
        """Like `narrow`, for a text with directories of filters: one directory after the other, if they cover these
        characters. Each takes one wave, or two if its directory is not in memory."""
        within = yield from self._table.find_range(start, stop)
        if within is None:
            return None
        runs: list[tuple[int, int]] = []
        has_rows = False
        while closed := [one for one in self._sections_of(within) if not one.is_open]:
            yield Missing(tuple(one.item(self._table.frames) for one in closed[:SECTIONS_AT_ONCE]))
            if not all(one.is_open for one in closed[:SECTIONS_AT_ONCE]):
                return None
        for section in self._sections_of(within):
            assert section.planner is not None
            key = ("told", query, within_line, section.first)
            with self._fetcher.lock:
                self._fetcher.check_open()
                hits = self._fetcher.cache.get(key)
            if not isinstance(hits, FilterHits):
                hits = yield from self._look_up(section.planner, query, within_line, records)
                if hits is None:
                    return None
                with self._fetcher.lock:
                    self._fetcher.cache.put(key, hits)
            has_rows = has_rows or hits.has_rows
            runs += hits.runs
        return self._narrow_to(runs, has_rows, within)

    def beginnings(self, first: int, stop: int) -> list[int]:
        """The frames between `first` and `stop` at which the filters of another directory begin; none for a text
        without directories."""
        within = (one for section in self._sections for one in section.within(first, stop))
        return [one.first for one in within if one.first > first]

    def _sections_of(self, within: range) -> list[_Section]:
        return [part for one in self._sections for part in one.within(within.start, within.stop)]

    def is_asked_elsewhere(self, query: Query | None, within_line: bool) -> bool:
        """Whether `narrow` would send requests of its own. A thread that holds the lock may not wait for them."""
        if self.elsewhere is None or query is None:
            return False
        with self._fetcher.lock:
            return ("told", query, within_line) not in self._fetcher.cache

    def _narrow_elsewhere(self, query: Query, start: int, stop: int, within_line: bool) -> Finding[Narrowing | None]:
        """Like `narrow`, with filters outside of this text, for any layout of its pages and filters."""
        assert self.elsewhere is not None
        key = ("told", query, within_line)
        with self._fetcher.lock:
            self._fetcher.check_open()
            hits = self._fetcher.cache.get(key)
        if not isinstance(hits, FilterHits):
            runs = self.elsewhere(query, within_line)
            hits = _hits(((0, self._table.frames),) if runs is None else runs, runs is not None)
            with self._fetcher.lock:
                self._fetcher.cache.put(key, hits)
        within = yield from self._table.find_range(start, stop)
        if within is None:
            return None
        if reason := self._useless(query, len(within)):
            return Narrowing(0, None, reason)
        return self._narrow_to(hits.runs, hits.has_rows, within)

    def _useless(self, query: Query | None, frames: int) -> str:
        """Why filters do not help in this many frames; empty if they do."""
        if query is None:
            return "it has no text that every match holds"
        if not self._has_filters and self.elsewhere is None:
            return "the context has no search filters"
        if frames < LEAST_FRAMES:
            return f"filters are asked where a text has {LEAST_FRAMES} frames or more"
        return ""

    def _pages_beside(self, start: int, stop: int) -> list[FetchItem]:
        """The index pages that a search in characters [start, stop) will need, if none of them is in memory.

        They are requested together with the rows, so that the offsets of candidates are known at once. None where there
        are many or unknown pages, where a round trip costs nothing, or where so short a search may use no filter.
        """
        frames = (stop - start) * self._table.frames // max(self._table.characters, 1)
        if not self._fetcher.link.is_far or frames < 2 * LEAST_FRAMES:
            return []
        return self._table.pages_missing(start, stop, PAGES_BESIDE)

    def _look_up(
        self, planner: Planner, query: Query, within_line: bool, records: Records, beside: Sequence[FetchItem] = ()
    ) -> Finding[FilterHits | None]:
        """The answer of some filters. Only literals far after a match's beginning take records of frames."""
        asked: dict[FilterLayout, list[int]] = {}
        for layout, row in planner.rows_to_read(query):
            asked.setdefault(layout, []).append(row)
        places = [
            (layout, block, *address)
            for layout, rows in asked.items()
            for block, address in layout.addresses(rows).items()
        ]
        items = [_block_item(*place) for place in places]
        if (
            not beside
            and (early := self._look_in_memory(planner, query, within_line, records, asked, places)) is not None
        ):
            return early
        brought = yield Missing((*items, *beside), some_will_do=True)
        if brought is not None:  # for a waiting caller: None for what is still in progress
            brought = brought[: len(items)]
        while brought is None or None in brought:  # the slowest row of many takes half as long again as most
            if (early := self._look_in_memory(planner, query, within_line, records, asked, places)) is not None:
                return early
            if brought is not None:
                left = [i for i, found in enumerate(brought) if found is None]
                more = yield Missing(tuple(items[i] for i in left), some_will_do=True)
                assert more is not None  # a waiting caller continues to wait
                for i, found in zip(left, more, strict=True):
                    brought[i] = found
                continue
            with self._fetcher.lock:
                here = [self._fetcher.cache.get(item.key) for item in items]
                missing = tuple(item for item, entry in zip(items, here, strict=True) if entry is None)
                if any(item.key not in self._fetcher.scheduler for item in missing):
                    return None
            if missing:
                yield Missing(missing, some_will_do=True)
            else:
                brought = here
        looked_up = _rows_in(asked, {place[:2]: found for place, found in zip(places, brought, strict=False)})
        seen: set[Hashable] = set()
        while True:
            try:
                frames = planner.candidates(query, looked_up, records, within_line)
            except NotInMemory as missing:
                if missing.item.key in seen:
                    return None
                seen.add(missing.item.key)
                yield Missing((missing.item,))
            else:
                size = sum([len(literal.text) for literal in literals(query)])
                runs = ((planner.first, planner.stop),) if frames is None else _runs(frames, planner.first)
                return _hits(runs, bool(asked), size)

    def _look_in_memory(
        self,
        planner: Planner,
        query: Query,
        within_line: bool,
        records: Records,
        asked: Mapping[FilterLayout, Sequence[int]],
        places: Sequence[tuple[FilterLayout, int, str, int]],
    ) -> FilterHits | None:
        """The candidates from the rows in memory, if these are enough: few frames, none of them by chance. A model
        looks for words that it has just read, or for another ending of a word that it found."""
        if not isinstance(query, Literal) or query.latest:
            return None
        with self._fetcher.lock:
            cache = self._fetcher.cache
            blocks = {
                (layout, block): found
                for layout, block, key, _ in places
                if isinstance(found := cache.peek((key, block)), FilterBlock)
            }
        if not blocks or len(blocks) == len(places):
            return None
        rows = _rows_in(asked, blocks)
        try:
            frames = planner.candidates(query, rows, records, within_line)
        except NotInMemory:
            return None
        if frames is None or int(frames.sum()) > FEW or planner.frames_in_vain(rows) > IN_VAIN:
            return None
        return _hits(_runs(frames, planner.first), bool(asked), len(query.text))

    def cost_bytes(self, query: Query) -> int:
        """Bytes of the rows that a look-up takes."""
        last = self._last
        if last.planner is None:
            return self._table.frames  # some of them unseen: too much for a guess
        told = sum(layout.block_bytes for layout, _ in last.planner.rows_to_read(query))
        return told * self._table.frames // max(last.stop - last.first, 1)

    def _narrow_to(self, hits: Sequence[tuple[int, int]], has_rows: bool, within: range) -> Narrowing:
        """The same candidates, restricted to a range of frames."""
        first, last = within.start, within.stop
        low = bisect_right(hits, first, key=lambda run: run[1])
        high = bisect_left(hits, last, key=lambda run: run[0])
        runs = [(max(a, first), min(b, last)) for a, b in hits[low:high]]
        frames, left = len(within), sum(b - a for a, b in runs)
        if left <= DENSE * frames:
            return Narrowing(frames, runs, "")
        reason = f"{left:,} of {frames:,} frames may hold it"
        if not has_rows:
            reason = "filters know of texts of 5 bytes or more, of 3 letters"
        return Narrowing(frames, None, reason, runs if left <= MOST_MANY else None)


def _hits(runs: tuple[tuple[int, int], ...], has_rows: bool, query_bytes: int = 0) -> FilterHits:
    return FilterHits(runs, has_rows, 150 * len(runs) + query_bytes + 200)


class NotInMemory(Exception):
    """The index page with the records of frames, or its directory."""

    def __init__(self, item: FetchItem):
        self.item = item


class RecordsInMemory:
    """The records of frames, as far as their index pages are in memory; else `NotInMemory`."""

    def __init__(self, table: FrameTable):
        self._table = table

    def prefetch_pages(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._page("frames", number)

    def frame(self, number: int) -> Frame:
        page = self._page("frames", number)
        return page[number - page.first_frame]

    def number_at(self, character: int) -> int:
        page = self._page("characters", character)
        return page.first_frame + page.at_character(character)

    def _page(self, column: Column, value: int) -> Page:
        page = self._table.cached_page_or_request(column, value)
        if not isinstance(page, Page):
            raise NotInMemory(page)
        return page


def _rows_in(
    asked: Mapping[FilterLayout, Sequence[int]], blocks: Mapping[tuple[FilterLayout, int], FilterBlock]
) -> dict[tuple[FilterLayout, int], bytes]:
    """The requested rows whose blocks have arrived."""
    by_layout: dict[FilterLayout, dict[int, bytes]] = {layout: {} for layout in asked}
    for (layout, number), block in blocks.items():
        by_layout[layout][number] = block.rows
    found: dict[tuple[FilterLayout, int], bytes] = {}
    for layout, rows in asked.items():
        found |= layout.rows_in(by_layout[layout], rows)
    return found


def _block_item(layout: FilterLayout, block: int, key: str, offset: int) -> FetchItem:
    size = layout.block_bytes

    def decode(body: memoryview) -> FilterBlock:
        return FilterBlock(layout.check(bytes(body), block), size + 200)

    return FetchItem((key, block), key, offset, size, size, decode, gap_bytes=FILTER_GAP_BYTES)


def _runs(frames: Any, first: int) -> tuple[tuple[int, int], ...]:
    """The stretches of an array of booleans that are true, half-open, counted from `first`."""
    import numpy as np

    edges = np.flatnonzero(np.diff(frames.view(np.int8), prepend=0, append=0)) + first
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
