"""Look up a query in the search filters of a text: in which frames may its matches begin?

A look-up fetches nothing: it returns its result, or the items that it lacks (see `frame_table`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import zip_longest
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
SECTIONS_AT_ONCE = 64  # the most directories of filters that are fetched at once: 4 MB, for 64 TB of text
DENSE_SHARE = 0.4  # the share of frames above which a search reads all of them: a pass without gaps is cheaper
MOST_LISTED = 1 << 17
"""The most candidates that are listed if they are dense: 32 GB of text. Listing them takes 0.2 s."""
_DIRECTORY_GROWTH = 10  # an open directory takes some 10 times its stored bytes in memory
_OBJECT_BYTES, _RUN_BYTES = 200, 150  # the memory of an entry in the cache without its content, and of one run

_Rows = dict[tuple["FilterLayout", int], bytes]  # rows by their filter, and their number in it


@dataclass(frozen=True, slots=True)
class FilterSearch:
    """A search for matches that begin in characters [start, stop), a non-empty range."""

    query: Query | None  # the texts that every match contains; None if none is known
    start: int
    stop: int
    within_line: bool = False  # whether neither a match nor its look-arounds cross a newline
    needs_text: bool = False
    """Whether the text is read next. Then filters are not worth a look-up if all of the text is in memory."""


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The answer of a section to a query. The cache keeps it, since a loop over `find` needs it again and again."""

    runs: Runs  # the frames in which a match may begin
    has_rows: bool  # whether the filters have rows for the query
    size_bytes: int  # the approximate size of the answer and its query in memory


class FilterLookup:
    """The search filters of one text: which blocks of them a query needs, and in which frames its matches begin."""

    def __init__(self, table: FrameTable, fetcher: Fetcher):
        self._table = table
        self._fetcher = fetcher
        self._sections: list[_Section] = []
        self._has_filters = bool(table.manifest.filters or table.manifest.filter_directories)

    def narrow(self, search: FilterSearch, get_loaded: GetLoaded, records: Records) -> Narrowing | Missing:
        """The frames in which matches may begin, or the items to fetch before that is known.

        `get_loaded` returns the value of an item by its key, or None if it is not in memory. `records` has the records
        of frames: the frame table, which fetches index pages, or `RecordsInMemory`.
        """
        reason = self._reason_against_filters(search.query, self._table.frames)
        if reason:  # so no index page is needed
            return Narrowing(frames=0, runs=None, reason=reason)
        searched = self._table.range_in_memory(search.start, search.stop, get_loaded)
        if isinstance(searched, Missing):
            return searched
        reason = self._reason_against_filters(search.query, len(searched))
        if reason:
            return Narrowing(frames=0, runs=None, reason=reason)
        sections = self._sections_of(searched)
        unopened = [section for section in sections if section.planner is None]
        if unopened:
            return Missing(tuple(section.directory_item() for section in unopened[:SECTIONS_AT_ONCE]))
        runs: Runs = []
        has_rows = False
        for section in sections:
            answer: FilterAnswer | Missing | None = self._cached_answer(search, section)
            if answer is None and search.needs_text and self._is_cached(searched):
                return Narrowing(frames=0, runs=None, reason="all of the text is in memory")
            if answer is None:
                answer = self._look_up(search, section, get_loaded, records)
            if isinstance(answer, Missing):
                return answer
            has_rows = has_rows or answer.has_rows
            runs += answer.runs
        return _restrict(runs, searched, has_rows=has_rows)

    def borders(self, frames: range) -> list[int]:
        """The frames of a range, after its first, at which other filters begin to apply."""
        return [section.frames.start for section in self._sections_of(frames) if section.frames.start > frames.start]

    def _reason_against_filters(self, query: Query | None, frames: int) -> str:
        """Why filters do not help to search so many frames; empty if they do."""
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
        with LOCK:
            if not self._sections:  # this is the first search
                manifest, text_frames = self._table.manifest, self._table.frames
                refs: list[FilterRef | FilterDirectory] = [*manifest.filter_directories, *manifest.filters]
                self._sections = _make_sections(refs, range(text_frames), text_frames)
        return [part for section in self._sections for part in section.covering(frames)]

    def _cached_answer(self, search: FilterSearch, section: _Section) -> FilterAnswer | None:
        with LOCK:
            self._fetcher.check_open()
            answer = self._fetcher.cache.get(_answer_key(search, section))
        return answer if isinstance(answer, FilterAnswer) else None

    def _is_cached(self, frames: range) -> bool:
        """Whether the texts of all these frames are in memory."""
        with LOCK:
            return all(number in self._fetcher.cache for number in frames)

    def _look_up(
        self, search: FilterSearch, section: _Section, get_loaded: GetLoaded, records: Records
    ) -> FilterAnswer | Missing:
        """The answer of an open section, which the cache keeps from now on, or the missing items."""
        query = search.query
        assert query is not None  # `narrow` checks this, and opens the section
        assert section.planner is not None
        rows = _rows_for(section.planner, query, get_loaded)
        if isinstance(rows, Missing):
            if len(self._table.manifest.pages) > 1:
                return rows
            page = self._table.page_or_item("frames", 0, get_loaded)  # the only one, which a hit needs next
            return Missing((*rows.items, page)) if isinstance(page, FetchItem) else rows
        try:
            frames = section.planner.candidates(query, rows, records, search.within_line)
        except NotInMemory as error:
            return Missing((error.item,))
        # Without `frames`, the filters cannot tell.
        first, stop = section.frames.start, section.frames.stop
        runs = [(first, stop)] if frames is None else _runs_of_true(frames, first)
        query_bytes = sum([len(leaf.text) for leaf in leaves(query) if isinstance(leaf, Literal)])
        answer = FilterAnswer(runs, bool(rows), _RUN_BYTES * len(runs) + query_bytes + _OBJECT_BYTES)
        with LOCK:
            self._fetcher.cache.put(_answer_key(search, section), answer)
        return answer


def _answer_key(search: FilterSearch, section: _Section) -> Hashable:
    return "answer", search.query, search.within_line, section.frames.start


def _restrict(runs: Runs, searched: range, *, has_rows: bool) -> Narrowing:
    """The candidates `runs` in the searched frames, or why all of these frames have to be read."""
    low = bisect_right(runs, searched.start, key=lambda run: run[1])
    high = bisect_left(runs, searched.stop, key=lambda run: run[0])
    candidates = runs[low:high]
    if candidates:  # only the first and the last can reach beyond the range
        candidates[0] = (max(candidates[0][0], searched.start), candidates[0][1])
        candidates[-1] = (candidates[-1][0], min(candidates[-1][1], searched.stop))
    frames, remaining = len(searched), sum(stop - start for start, stop in candidates)
    if remaining <= DENSE_SHARE * frames:
        return Narrowing(frames, runs=candidates, reason="")
    reason = f"a match may begin in {remaining:,} of {frames:,} frames"
    if not has_rows:
        reason = "the text to find is too short for the filters: they need 5 bytes, or a word of 3 letters"
    return Narrowing(frames, runs=None, reason=reason, dense_runs=candidates if remaining <= MOST_LISTED else None)


@dataclass(slots=True, eq=False)
class _Section:
    """Frames whose filters are looked up together: the filters of the root, or those that one directory names.

    A directory opens its section. That assigns one complete field, so no look-up in another thread sees half of it.
    """

    frames: range  # the frames that the filters cover
    text_frames: int  # the number of frames of the whole text
    directory: FilterDirectory | None  # the directory that names the filters; None if the root does
    planner: Planner | None
    """Plans look-ups in the filters; None if the section is not open, or has parts."""
    shared_filters: Sequence[FilterRef] = ()  # filters beside the directory that may also have columns of these frames
    parts: list[_Section] = field(default_factory=list)  # the sections that an open directory of directories names

    def directory_item(self) -> FetchItem:
        """The item to fetch for the directory of this section; decoding it opens the section."""
        directory = self.directory
        assert directory is not None
        size = directory.size_bytes
        return FetchItem(("directory", directory.id), directory.key, 0, size, _DIRECTORY_GROWTH * size, self._open)

    def _open(self, body: memoryview) -> CachedBytes:
        """Open the section with the stored bytes of its directory. Returns an empty marker for the cache."""
        assert self.directory is not None
        entries = [*entries_in(self.directory, bytes(body)), *self.shared_filters]
        if self.directory.level > 1:
            self.parts = _make_sections(entries, self.frames, self.text_frames)
        else:
            refs = [entry for entry in entries if isinstance(entry, FilterRef)]
            self.planner = _make_planner(refs, self.frames, self.text_frames)
        return CachedBytes(b"", _OBJECT_BYTES)

    def covering(self, frames: range) -> Iterator[_Section]:
        """The smallest known sections that cover any of these frames, in order."""
        if self.frames.stop <= frames.start or frames.stop <= self.frames.start:
            return
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.covering(frames)


def _make_planner(refs: Sequence[FilterRef], frames: range, text_frames: int) -> Planner:
    from monocontext.engine.filter_planner import Planner  # not loaded by a process that never searches

    return Planner(refs, frames, text_frames)


def _make_sections(entries: Sequence[FilterRef | FilterDirectory], frames: range, text_frames: int) -> list[_Section]:
    """The sections that cover `frames`: one for each directory among the entries, and one for the frames after them.
    Filters beside directories may have columns of any frames."""
    directories = [entry for entry in entries if isinstance(entry, FilterDirectory)]
    refs = [entry for entry in entries if isinstance(entry, FilterRef)]
    results: list[_Section] = []
    first = frames.start
    for directory, following in zip_longest(directories, directories[1:]):
        stop = following.first_frame if following else min(directory.stop_frame, frames.stop)
        results.append(_Section(range(first, stop), text_frames, directory, planner=None, shared_filters=refs))
        first = stop
    if first < frames.stop:
        rest = range(first, frames.stop)
        results.append(_Section(rest, text_frames, directory=None, planner=_make_planner(refs, rest, text_frames)))
    return results


def _rows_for(planner: Planner, query: Query, get_loaded: GetLoaded) -> _Rows | Missing:
    """The rows of filters that decide a query, or the missing blocks. A few are read first, others only if needed."""
    rows: _Rows = {}
    for _ in range(_WAVES):
        new_rows = _read_rows(planner.rows_to_read(query, rows), get_loaded)
        if isinstance(new_rows, Missing):
            return new_rows
        rows |= new_rows
        if not new_rows:
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
