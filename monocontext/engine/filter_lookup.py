"""Look up a query in the search filters, and turn the rows into candidate frames.

A look-up is a walk (see `frame_table`): it yields the items that it needs, and fetches nothing itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from monocontext.engine.candidates import Narrowing
from monocontext.engine.fetch.cache import CachedBytes
from monocontext.engine.fetch.scheduler import FILTER_GAP_BYTES, FetchItem, Missing
from monocontext.format.filters.query import Literal, Query, literals
from monocontext.format.index import Frame, Page
from monocontext.format.refs import FilterDirectory, FilterRef
from monocontext.records import dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.engine.frame_table import Finding, FrameTable
    from monocontext.engine.page_tree import Column
    from monocontext.format.filters.layout import FilterLayout
    from monocontext.format.filters.planner import Planner, Records

_LEAST_FRAMES = 8
"""A search in fewer frames uses no filter: the look-up would be a round trip of its own."""
FEW_CANDIDATES = 4
"""The most candidates at which a look-up stops before all of its rows have arrived: so few frames are requested at
once."""
MOST_BY_CHANCE = 0.1
"""It stops only if at most this many candidates are expected by chance: a round trip costs as much as half a frame."""
WHOLE_BYTES = 512 << 10
"""The rows of a filter of up to this size are fetched by one request. Edits leave such filters."""
PAGES_WITH_ROWS = 16
"""The most index pages that a search requests with its rows: 1.4 MB, the pages of 16 GB of text. Of more pages, the
rows say which are needed."""
SECTIONS_AT_ONCE = 64
"""Directories of filters that are fetched at once: 4 MB, for 64 TB of text."""
DENSE_SHARE = 0.4
"""The share of frames above which a search reads all of them: a pass without gaps is cheaper."""
MOST_LISTED = 1 << 17
"""The most candidates that are listed if they are dense: 32 GB of text. Listing them takes 0.2 s."""

Runs = tuple[tuple[int, int], ...]
"""Half-open runs of frame numbers, rising."""


@dataclass(frozen=True, slots=True)
class FilterHits:
    """The answer of filters to a query, in the cache: a loop of `find` needs it again and again."""

    runs: Runs
    """The frames in which a match may begin."""
    has_rows: bool
    """Whether the filters have rows for the query."""
    size_bytes: int
    """The approximate size of the answer and its query in memory."""


class _Section:
    """Neighbouring filters that are looked up together: all filters of a text, or those that a directory names."""

    def __init__(
        self,
        first: int,
        stop: int,
        directory: FilterDirectory | None,
        planner: Planner | None,
        others: Sequence[FilterRef] = (),
    ):
        self.first, self.stop = first, stop
        """The frames that the filters cover."""
        self.directory, self.planner, self.others = directory, planner, others
        """`others`: filters in the root that may also have columns of these frames."""
        self.parts: list[_Section] = []
        """The sections that a directory of directories names."""

    @property
    def is_open(self) -> bool:
        """Whether its filters, or its parts, are known."""
        return self.planner is not None or bool(self.parts)

    def item(self, frames: int) -> FetchItem:
        """The directory to fetch, in a text of so many frames."""
        directory = self.directory
        assert directory is not None

        def decode(body: memoryview) -> CachedBytes:
            """Open the section: fill `parts` or set `planner`. Returns an empty marker for the cache."""
            from monocontext.format.directories import entries_in  # most texts have no directories

            entries = entries_in(directory, bytes(body))
            if directory.level > 1:
                self.parts = _sections([*entries, *self.others], self.first, self.stop, frames)
            else:
                refs = [ref for ref in entries if isinstance(ref, FilterRef)]
                self.planner = _planner([*refs, *self.others], frames, self.first, self.stop)
            return CachedBytes(b"", 200)

        size = directory.size_bytes
        return FetchItem(("directory", directory.id), directory.key, 0, size, 10 * size, decode)

    def within(self, first: int, stop: int) -> Iterator[_Section]:
        """The smallest known sections that cover frames [first, stop), in order."""
        if self.first < stop and first < self.stop:
            if self.parts:
                for part in self.parts:
                    yield from part.within(first, stop)
            else:
                yield self


def _planner(refs: Sequence[FilterRef], frames: int, first: int, stop: int) -> Planner:
    from monocontext.format.filters.planner import Planner  # not loaded by a process that never searches

    return Planner(refs, frames, first, stop)


def _sections(entries: Sequence[FilterRef | FilterDirectory], first: int, stop: int, frames: int) -> list[_Section]:
    """The sections that cover frames [first, stop): one for each directory, and one for the frames after them.

    Filters beside directories may have columns of any frames.
    """
    directories = [entry for entry in entries if isinstance(entry, FilterDirectory)]
    refs = [entry for entry in entries if isinstance(entry, FilterRef)]
    starts = [first, *(entry.first_frame for entry in directories[1:])]
    if directories and directories[-1].stop_frame < stop:
        starts.append(directories[-1].stop_frame)
    stops = [*starts[1:], stop]
    results = [
        _Section(low, high, directory, None, refs)
        for low, high, directory in zip(starts, stops, directories, strict=False)
    ]
    if len(starts) > len(directories):
        results.append(_Section(starts[-1], stop, None, _planner(refs, frames, starts[-1], stop)))
    return results


class NotInMemory(Exception):
    """An index page, or its directory, has to be fetched before a frame's record is known."""

    def __init__(self, item: FetchItem):
        self.item = item


class RecordsInMemory:
    """The records of frames whose index pages are in memory. Raises `NotInMemory` for other frames."""

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


class _RowLookup:
    """The rows of filters that a query needs, and the stored blocks that contain them."""

    def __init__(self, planner: Planner, query: Query):
        self.rows: dict[FilterLayout, list[int]] = {}
        for layout, row in planner.rows_to_read(query):
            self.rows.setdefault(layout, []).append(row)
        self.blocks: dict[tuple[FilterLayout, int], FetchItem] = {}
        for layout, rows in self.rows.items():
            for block, (key, offset) in layout.addresses(rows).items():
                self.blocks[layout, block] = _block_item(layout, block, key, offset)

    def rows_in(self, found: Mapping[Hashable, Any]) -> dict[tuple[FilterLayout, int], bytes]:
        """The rows whose blocks were found; `found` has blocks by the keys of their items."""
        by_layout: dict[FilterLayout, dict[int, bytes]] = {layout: {} for layout in self.rows}
        for (layout, number), item in self.blocks.items():
            if item.key in found:
                by_layout[layout][number] = found[item.key].body
        rows: dict[tuple[FilterLayout, int], bytes] = {}
        for layout, numbers in self.rows.items():
            rows |= layout.rows_in(by_layout[layout], numbers)
        return rows


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for which filters are looked up."""

    query: Query
    within_line: bool
    """Whether a match, and what decides it, stays within a line."""
    records: Records
    """The records of frames: the frame table, which fetches index pages, or `RecordsInMemory`."""


class FilterLookup:
    """The search filters of one text: which of their blocks a query needs, and the frames in which its matches
    begin."""

    elsewhere: Callable[[Query, bool], Runs | None] | None = None
    """Looks up a query, and `within_line`, in filters outside of this text, with separate requests. Returns the
    candidate frames; None if the filters cannot tell."""

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

    def narrow(
        self, query: Query | None, start: int, stop: int, within_line: bool, records: Records, needs_text: bool
    ) -> Finding[Narrowing | None]:
        """Where matches may begin in characters [start, stop), a non-empty range.

        `within_line` and `records`: see `_Search`.
        `needs_text`: the text is read next, so filters are not worth a look-up if all of it is in memory. None if a
        missing item cannot be fetched.
        """
        if reason := self._reason_against_filters(query, self._table.frames):
            return Narrowing(0, None, reason)
        assert query is not None
        search = _Search(query, within_line, records)
        if self.elsewhere is not None:
            return (yield from self._narrow_elsewhere(search, start, stop))
        if len(self._sections) > 1 or self._sections[0].planner is None:
            return (yield from self._narrow_by_sections(search, start, stop))
        [section] = self._sections
        pages = self._pages_to_fetch_with_rows(start, stop)
        if pages and (yield from self._hits(section, search, pages)) is None:
            return None
        within = yield from self._table.find_range(start, stop)
        if within is None:
            return None
        if reason := self._reason_against_filters(query, len(within)):
            return Narrowing(0, None, reason)
        hits = self._remembered(query, within_line)
        if hits is None and needs_text:
            with self._fetcher.lock:
                if self._fetcher.cache.has_all(within):
                    return Narrowing(0, None, "all of the text is in memory")
        if hits is None:
            hits = yield from self._hits(section, search)
        return None if hits is None else _narrow_to(hits.runs, hits.has_rows, within)

    def _narrow_by_sections(self, search: _Search, start: int, stop: int) -> Finding[Narrowing | None]:
        """Like `narrow`, for a text with directories of filters.

        Sections are looked up one after the other: one round of requests each, after those for the directories that
        are not in memory.
        """
        within = yield from self._table.find_range(start, stop)
        if within is None:
            return None
        while closed := [section for section in self._sections_of(within) if not section.is_open]:
            some = closed[:SECTIONS_AT_ONCE]
            yield Missing(tuple(section.item(self._table.frames) for section in some))
            if not all(section.is_open for section in some):
                return None
        runs: list[tuple[int, int]] = []
        has_rows = False
        for section in self._sections_of(within):
            hits = yield from self._hits(section, search)
            if hits is None:
                return None
            has_rows = has_rows or hits.has_rows
            runs += hits.runs
        return _narrow_to(runs, has_rows, within)

    def _narrow_elsewhere(self, search: _Search, start: int, stop: int) -> Finding[Narrowing | None]:
        """Like `narrow`, but the filters of another place answer (`elsewhere`)."""
        assert self.elsewhere is not None
        query, within_line = search.query, search.within_line
        hits = self._remembered(query, within_line)
        if hits is None:
            runs = self.elsewhere(query, within_line)
            hits = _filter_hits(((0, self._table.frames),) if runs is None else runs, runs is not None)
            self._remember(hits, query, within_line)
        within = yield from self._table.find_range(start, stop)
        if within is None:
            return None
        if reason := self._reason_against_filters(query, len(within)):
            return Narrowing(0, None, reason)
        return _narrow_to(hits.runs, hits.has_rows, within)

    def _sections_of(self, frames: range) -> list[_Section]:
        return [part for section in self._sections for part in section.within(frames.start, frames.stop)]

    def beginnings(self, frames: range) -> list[int]:
        """The numbers of the frames, after the first, at which other filters begin to apply; none without
        directories."""
        return [section.first for section in self._sections_of(frames) if section.first > frames.start]

    def _remembered(self, query: Query, within_line: bool, first: int = 0) -> FilterHits | None:
        """The answer of the section that begins at frame `first`, if it is in memory."""
        with self._fetcher.lock:
            self._fetcher.check_open()
            hits = self._fetcher.cache.get(("hits", query, within_line, first))
        return hits if isinstance(hits, FilterHits) else None

    def _remember(self, hits: FilterHits, query: Query, within_line: bool, first: int = 0) -> None:
        with self._fetcher.lock:
            self._fetcher.cache.put(("hits", query, within_line, first), hits)

    def is_asked_elsewhere(self, query: Query | None, within_line: bool) -> bool:
        """Whether `narrow` would send its own requests. A thread that holds the lock may not wait for them."""
        return self.elsewhere is not None and query is not None and self._remembered(query, within_line) is None

    def _reason_against_filters(self, query: Query | None, frames: int) -> str:
        """The reason why filters do not help in this many frames; empty if they do."""
        if query is None:
            return "it has no text that every match holds"
        if not self._has_filters and self.elsewhere is None:
            if self._table.manifest.has_earlier_filters:
                return "its search filters are of an earlier version: `monocontext index --filters URL` renews them"
            return "the context has no search filters"
        if frames < _LEAST_FRAMES:
            return f"filters are asked where a text has {_LEAST_FRAMES} frames or more"
        return ""

    def _pages_to_fetch_with_rows(self, start: int, stop: int) -> list[FetchItem]:
        """The index pages that a search in characters [start, stop) will need, if none of them is in memory.

        They are requested together with the rows, so the offsets of candidates are known at once. Empty if there
        are too many pages or unknown ones, if round trips cost nothing, or if the range is so short that filters may
        not be used.
        """
        frames = (stop - start) * self._table.frames // max(self._table.characters, 1)
        if not self._fetcher.link.is_far or frames < 2 * _LEAST_FRAMES:
            return []
        return self._table.pages_missing(start, stop, PAGES_WITH_ROWS)

    def _hits(self, section: _Section, search: _Search, pages: Sequence[FetchItem] = ()) -> Finding[FilterHits | None]:
        """The answer of a section's filters, remembered or looked up; a look-up also fetches `pages`."""
        hits = self._remembered(search.query, search.within_line, section.first)
        if hits is None:
            assert section.planner is not None
            hits = yield from self._look_up(section.planner, search, pages)
            if hits is not None:
                self._remember(hits, search.query, search.within_line, section.first)
        return hits

    def _look_up(self, planner: Planner, search: _Search, pages: Sequence[FetchItem]) -> Finding[FilterHits | None]:
        """The answer of some filters. Records of frames are needed only if a literal may begin in a later frame than
        its match."""
        lookup = _RowLookup(planner, search.query)
        if not pages and (early := self._try_rows_in_memory(lookup, planner, search)) is not None:
            return early
        results: dict[Hashable, Any] = {}
        missing = list(lookup.blocks.values())
        brought = yield Missing((*missing, *pages), some_will_do=True)
        while True:
            with self._fetcher.lock:
                # `brought` is None if the read-ahead resumed this walk: then look in the cache (see `frame_table`).
                for i, item in enumerate(missing):
                    block = self._fetcher.cache.get(item.key) if brought is None else brought[i]
                    if block is not None:
                        results[item.key] = block
            missing = [item for item in missing if item.key not in results]
            if not missing:
                break
            # The slowest of many rows takes half as long again as most; often the others are enough.
            if (early := self._try_rows_in_memory(lookup, planner, search)) is not None:
                return early
            if brought is None and any(item.key not in self._fetcher.scheduler for item in missing):
                return None
            brought = yield Missing(tuple(missing), some_will_do=True)
        rows = lookup.rows_in(results)
        seen: set[Hashable] = set()
        while True:
            try:
                frames = planner.candidates(search.query, rows, search.records, search.within_line)
            except NotInMemory as error:
                if error.item.key in seen:
                    return None
                seen.add(error.item.key)
                yield Missing((error.item,))
            else:
                literal_bytes = sum([len(literal.text) for literal in literals(search.query)])
                runs = ((planner.first, planner.stop),) if frames is None else _runs(frames, planner.first)
                return _filter_hits(runs, bool(lookup.rows), literal_bytes)

    def _try_rows_in_memory(self, lookup: _RowLookup, planner: Planner, search: _Search) -> FilterHits | None:
        """The answer from the rows in memory if they leave few frames, hardly any by chance; else, or if all rows are
        in memory, None.

        A model looks for words that it has just read, or for another ending of a word that it found.
        """
        query = search.query
        if not isinstance(query, Literal) or query.latest:
            return None
        with self._fetcher.lock:
            entries = {item.key: self._fetcher.cache.peek(item.key) for item in lookup.blocks.values()}
        results = {key: block for key, block in entries.items() if isinstance(block, CachedBytes)}
        if not results or len(results) == len(entries):
            return None
        rows = lookup.rows_in(results)
        try:
            frames = planner.candidates(query, rows, search.records, search.within_line)
        except NotInMemory:
            return None
        if (
            frames is None
            or int(frames.sum()) > FEW_CANDIDATES
            or planner.expected_false_positives(rows) > MOST_BY_CHANCE
        ):
            return None
        return _filter_hits(_runs(frames, planner.first), bool(lookup.rows), len(query.text))

    def cost_bytes(self, query: Query) -> int:
        """The approximate bytes of the rows that a look-up fetches."""
        last = self._sections[-1]
        if last.planner is None:
            return self._table.frames  # the filters are unknown: too much for a guess
        read_bytes = sum(layout.block_bytes for layout, _ in last.planner.rows_to_read(query))
        return read_bytes * self._table.frames // max(last.stop - last.first, 1)


def _narrow_to(runs: Sequence[tuple[int, int]], has_rows: bool, within: range) -> Narrowing:
    """The answer of filters, restricted to a range of frames."""
    first, last = within.start, within.stop
    low = bisect_right(runs, first, key=lambda run: run[1])
    high = bisect_left(runs, last, key=lambda run: run[0])
    candidates = [(max(start, first), min(stop, last)) for start, stop in runs[low:high]]
    frames, remaining = len(within), sum(stop - start for start, stop in candidates)
    if remaining <= DENSE_SHARE * frames:
        return Narrowing(frames, candidates, "")
    reason = f"{remaining:,} of {frames:,} frames may hold it"
    if not has_rows:
        reason = "the filters have no rows for so short a text; they need 5 bytes, or 3 letters"
    return Narrowing(frames, None, reason, candidates if remaining <= MOST_LISTED else None)


def _filter_hits(runs: Runs, has_rows: bool, query_bytes: int = 0) -> FilterHits:
    return FilterHits(runs, has_rows, 150 * len(runs) + query_bytes + 200)


def _block_item(layout: FilterLayout, block: int, key: str, offset: int) -> FetchItem:
    size = layout.block_bytes

    def decode(body: memoryview) -> CachedBytes:
        return CachedBytes(layout.check(bytes(body), block), size + 200)

    gap_bytes = layout.size_bytes if layout.size_bytes <= WHOLE_BYTES else FILTER_GAP_BYTES
    return FetchItem((key, block), key, offset, size, size, decode, gap_bytes=gap_bytes)


def _runs(frames: Any, first: int) -> Runs:
    """The runs of true values in an array of booleans whose first index is `first`."""
    import numpy as np

    edges = np.flatnonzero(np.diff(frames.view(np.int8), prepend=0, append=0)) + first
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
