"""Look up a query in the search filters of a text: in which frames may its matches begin?

A look-up fetches nothing: it returns its result, or the items that it lacks (see `frame_table`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from monocontext.engine.candidates import Narrowing, Runs
from monocontext.engine.fetch.cache import CachedBytes
from monocontext.engine.fetch.requests import FILTER_GAP_BYTES, FetchItem, Missing
from monocontext.engine.fetch.workers import LOCK
from monocontext.engine.frame_table import NotInMemory
from monocontext.format.directories import entries_in
from monocontext.format.filters.query import Literal, Query, leaves
from monocontext.format.refs import FilterDirectory, FilterRef
from monocontext.records import dataclass, field

if TYPE_CHECKING:
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.engine.filter_planner import Frames, Planner, Records
    from monocontext.engine.frame_table import FrameTable, GetLoaded
    from monocontext.format.filters.layout import FilterLayout

_WAVES = 3  # the most round trips for rows: the sparsity of rows, the first rows, others
_LEAST_FRAMES = 8  # a search in fewer frames uses no filter, since the look-up would be a round trip of its own
SECTIONS_AT_ONCE = 64  # directories of filters that are fetched at once: 4 MB, for 64 TB of text
DENSE_SHARE = 0.4  # the share of frames above which a search reads all of them: a pass without gaps is cheaper
MOST_LISTED = 1 << 17
"""The most candidates that are listed if they are dense: 32 GB of text. Listing them takes 0.2 s."""
_DIRECTORY_GROWTH = 10  # an open directory takes some 10 times its stored bytes in memory
_OBJECT_BYTES, _RUN_BYTES = 200, 150  # the memory of an entry in the cache without its content, and of one run

_Rows = dict[tuple["FilterLayout", int], bytes]  # the rows of filters, by filter and number


@dataclass(frozen=True, slots=True)
class FilterSearch:
    """A search that asks the filters, for matches that begin in characters [start, stop), a non-empty range."""

    query: Query | None  # what every match holds; None if that is not known
    start: int
    stop: int
    within_line: bool = False  # whether a match, and what decides it, stays within a line
    needs_text: bool = False
    """Whether the text is read next, so that filters are not worth a look-up if all of it is in memory."""


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The answer of filters to a query. It is kept in the cache, since a loop of `find` needs it again and again."""

    runs: Runs  # the frames in which a match may begin
    has_rows: bool  # whether the filters have rows for the query
    size_bytes: int  # the approximate size of the answer and its query in memory


class FilterLookup:
    """The search filters of one text: which blocks of them a query needs, and in which frames its matches begin."""

    def __init__(self, table: FrameTable, fetcher: Fetcher):
        self._table = table
        self._fetcher = fetcher
        self._sections: list[_Section] = []
        manifest = table.manifest
        self._has_filters = bool(manifest.filters or manifest.filter_directories)

    def narrow(self, search: FilterSearch, get_loaded: GetLoaded, records: Records) -> Narrowing | Missing:
        """The frames in which matches may begin, or the missing items.

        `get_loaded` returns the value of an item that is in memory, by its key. `records` are those of frames: the
        frame table, which fetches index pages, or `RecordsInMemory`.
        """
        reason = self._reason_against_filters(search.query, self._table.frames)
        if reason:  # so no index page is needed
            return Narrowing(frames=0, runs=None, reason=reason)
        within = self._table.range_in_memory(search.start, search.stop, get_loaded)
        if isinstance(within, Missing):
            return within
        reason = self._reason_against_filters(search.query, len(within))
        if reason:
            return Narrowing(frames=0, runs=None, reason=reason)
        sections = self._sections_of(within)
        unopened = [section for section in sections if section.planner is None and not section.parts]
        if unopened:
            return Missing(tuple(section.item(self._table.frames) for section in unopened[:SECTIONS_AT_ONCE]))
        runs: Runs = []
        has_rows = False
        for section in sections:
            answer: FilterAnswer | Missing | None = self._remembered(search, section)
            if answer is None:
                with LOCK:
                    if search.needs_text and all(number in self._fetcher.cache for number in within):
                        return Narrowing(frames=0, runs=None, reason="all of the text is in memory")
                answer = self._look_up(search, section, get_loaded, records)
            if isinstance(answer, Missing):
                return answer
            has_rows = has_rows or answer.has_rows
            runs += answer.runs
        return _restrict(runs, has_rows, within)

    def borders(self, frames: range) -> list[int]:
        """The numbers of those frames, after the first, at which other filters begin to apply."""
        return [section.first for section in self._sections_of(frames) if section.first > frames.start]

    def _reason_against_filters(self, query: Query | None, frames: int) -> str:
        """The reason why filters do not help in this many frames; empty if they do."""
        if query is None:
            return "no text occurs in every match of the pattern"
        if not self._has_filters:
            if self._table.manifest.has_earlier_filters:
                return "an earlier version wrote the search filters: `monocontext index --filters URL` renews them"
            return "the context has no search filters"
        if frames < _LEAST_FRAMES:
            return f"filters help only in {_LEAST_FRAMES} frames or more, and the searched text has {frames}"
        return ""

    def _sections_of(self, frames: range) -> list[_Section]:
        """The smallest known sections that cover these frames, in order."""
        return [part for section in self._all_sections for part in section.within(frames.start, frames.stop)]

    @property
    def _all_sections(self) -> list[_Section]:
        """All sections of the text, in order; the first search makes them."""
        with LOCK:
            if not self._sections:
                manifest, frames = self._table.manifest, self._table.frames
                refs: list[FilterRef | FilterDirectory] = [*manifest.filter_directories, *manifest.filters]
                self._sections = _make_sections(refs, 0, frames, frames)
        return self._sections

    def _remembered(self, search: FilterSearch, section: _Section) -> FilterAnswer | None:
        """The answer of a section; None if it is not in the cache."""
        with LOCK:
            self._fetcher.check_open()
            answer = self._fetcher.cache.get(_answer_key(search, section))
        return answer if isinstance(answer, FilterAnswer) else None

    def _look_up(
        self, search: FilterSearch, section: _Section, get_loaded: GetLoaded, records: Records
    ) -> FilterAnswer | Missing:
        """The answer of a section, which the cache keeps, or the missing items."""
        query = search.query
        assert query is not None  # `narrow` has checked
        assert section.planner is not None  # `narrow` opens sections first
        rows = _rows_for(section.planner, query, get_loaded)
        if isinstance(rows, Missing):
            if len(self._table.manifest.pages) > 1:
                return rows
            page = self._table.page_or_item("frames", 0, get_loaded)  # a hit needs the only index page next
            return Missing((*rows.items, page)) if isinstance(page, FetchItem) else rows
        try:
            frames = section.planner.candidates(query, rows, records, search.within_line)
        except NotInMemory as error:
            return Missing((error.item,))
        # None: the filters cannot tell
        runs = [(section.first, section.stop)] if frames is None else _runs_of_true(frames, section.first)
        query_bytes = sum([len(leaf.text) for leaf in leaves(query) if isinstance(leaf, Literal)])
        answer = FilterAnswer(runs, bool(rows), _RUN_BYTES * len(runs) + query_bytes + _OBJECT_BYTES)
        with LOCK:
            self._fetcher.cache.put(_answer_key(search, section), answer)
        return answer


def _answer_key(search: FilterSearch, section: _Section) -> Hashable:
    return "answer", search.query, search.within_line, section.first


def _restrict(runs: Runs, has_rows: bool, within: range) -> Narrowing:
    """What the answers of filters leave of the frames in `within`."""
    first, last = within.start, within.stop
    low = bisect_right(runs, first, key=lambda run: run[1])
    high = bisect_left(runs, last, key=lambda run: run[0])
    candidates = runs[low:high]
    if candidates:  # only the first and the last can reach beyond the range
        candidates[0] = (max(candidates[0][0], first), candidates[0][1])
        candidates[-1] = (candidates[-1][0], min(candidates[-1][1], last))
    frames, remaining = len(within), sum(stop - start for start, stop in candidates)
    if remaining <= DENSE_SHARE * frames:
        return Narrowing(frames, runs=candidates, reason="")
    reason = f"a match may begin in {remaining:,} of {frames:,} frames"
    if not has_rows:
        reason = "the text to find is too short for the filters: they need 5 bytes, or a word of 3 letters"
    return Narrowing(frames, runs=None, reason=reason, dense_runs=candidates if remaining <= MOST_LISTED else None)


@dataclass(slots=True, eq=False)
class _Section:
    """Frames whose filters are looked up together: the filters of the root, or those that one directory names."""

    first: int
    stop: int  # the filters cover frames [first, stop)
    directory: FilterDirectory | None  # the directory that names the filters; None if the root does
    planner: Planner | None
    """Plans look-ups in the filters; None until the directory was fetched, and if it names further directories."""
    shared_filters: Sequence[FilterRef] = ()  # filters beside the directory that may also have columns of these frames
    parts: list[_Section] = field(default_factory=list)  # the sections that a directory of directories names

    def item(self, frames: int) -> FetchItem:
        """The item to fetch for the directory of this section. `frames`: the number of frames of the text."""
        directory = self.directory
        assert directory is not None

        def decode(body: memoryview) -> CachedBytes:
            """Open the section: fill `parts` or set `planner`. Returns an empty marker for the cache."""
            entries = entries_in(directory, bytes(body))
            if directory.level > 1:
                self.parts = _make_sections([*entries, *self.shared_filters], self.first, self.stop, frames)
            else:
                refs = [ref for ref in entries if isinstance(ref, FilterRef)]
                self.planner = _make_planner([*refs, *self.shared_filters], frames, self.first, self.stop)
            return CachedBytes(b"", _OBJECT_BYTES)

        size = directory.size_bytes
        return FetchItem(("directory", directory.id), directory.key, 0, size, _DIRECTORY_GROWTH * size, decode)

    def within(self, first: int, stop: int) -> Iterator[_Section]:
        """The smallest known sections that cover any of frames [first, stop), in order."""
        if self.stop <= first or stop <= self.first:
            return
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.within(first, stop)


def _make_planner(refs: Sequence[FilterRef], frames: int, first: int, stop: int) -> Planner:
    from monocontext.engine.filter_planner import Planner  # not loaded by a process that never searches

    return Planner(refs, frames, first, stop)


def _make_sections(
    entries: Sequence[FilterRef | FilterDirectory], first: int, stop: int, frames: int
) -> list[_Section]:
    """The sections that cover frames [first, stop) of `frames`: one for each directory among the entries, and one for
    the frames after them. Filters beside directories may have columns of any frames."""
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
        results.append(_Section(starts[-1], stop, None, _make_planner(refs, frames, starts[-1], stop)))
    return results


def _rows_for(planner: Planner, query: Query, get_loaded: GetLoaded) -> _Rows | Missing:
    """The rows of filters that decide a query, or the missing blocks. A few are read first, others only if needed."""
    rows: _Rows = {}
    for _ in range(_WAVES):
        more = _read_rows(planner.rows_to_read(query, rows), get_loaded)
        if isinstance(more, Missing):
            return more
        rows |= more
        if not more:
            break
    return rows


def _read_rows(wanted: Iterable[tuple[FilterLayout, int]], get_loaded: GetLoaded) -> _Rows | Missing:
    """Rows by filter and number, or the stored blocks that are missing."""
    rows: _Rows = {}
    missing: dict[tuple[FilterLayout, int], FetchItem] = {}
    for layout, number in wanted:
        block = number // layout.rows_per_block
        stored = get_loaded((layout.address(block)[0], block))
        if stored is None:
            missing[layout, block] = _block_item(layout, block)
        else:
            rows[layout, number] = layout.row_in(stored.body, number)
    return Missing(tuple(missing.values())) if missing else rows


def _block_item(layout: FilterLayout, block: int) -> FetchItem:
    key, offset, size = layout.address(block)

    def decode(body: memoryview) -> CachedBytes:
        return CachedBytes(layout.check(bytes(body), block), size + _OBJECT_BYTES)

    gap_bytes = layout.size_bytes if layout.is_small else FILTER_GAP_BYTES
    return FetchItem((key, block), key, offset, size, size, decode, gap_bytes=gap_bytes)


def _runs_of_true(frames: Frames, first: int) -> Runs:
    """The runs of true values in an array of booleans whose first index is `first`."""
    import numpy as np

    edges = np.flatnonzero(np.diff(frames.view(np.int8), prepend=0, append=0)) + first
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
