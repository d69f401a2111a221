"""The source of a text of documents. A loop that searches each document asks the filters once for all, and is read
ahead."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING

from monocontext.engine.candidates import Candidates
from monocontext.engine.documents import DocumentTable
from monocontext.engine.frame import FrameText
from monocontext.format.filters.query import Literal, Query
from monocontext.text.source import StoredSource
from monocontext.text.windows import Window

if TYPE_CHECKING:
    from monocontext.engine.reader import Reader
    from monocontext.engine.remote.reader import ServedReader

_MOST_QUERIES = 4096
"""The most queries whose filters are remembered; a loop may search each document for many words. If there are more, all
are forgotten."""
_MIN_IN_ORDER = 2
"""Reading ahead starts when this many documents were read in order, with the current one."""
_FAR_CHARACTERS = 4 << 20
"""If a loop jumps further than this many characters past what was read ahead, reading ahead starts over there."""
_LARGE_CHARACTERS = 1 << 20
"""Documents longer than this many characters are not part of a loop: a search in one reads ahead by itself."""


class DocumentFilter:
    """Tells which documents may match one query, from the filters. `found` None: they rule out nothing."""

    def __init__(self, reader: Reader | ServedReader, table: DocumentTable, found: Candidates | None):
        self._reader = reader
        self._found = found
        self.loop = LoopReader(reader, found)
        """Reads ahead of a loop over these documents."""
        if found is not None:
            regions = list(found.regions())
            self._starts, self._stops = [region.start for region in regions], [region.stop for region in regions]
            self._first = table.first_ending_after(self._starts)
            self._last = table.first_ending_after([stop - 1 for stop in self._stops])
            """In both, for each region: the numbers of the first and the last document that it touches."""

    def rules_out(self, number: int) -> bool:
        """Whether the filters rule out a match in document `number`."""
        if self._found is None:
            return False
        i = bisect_right(self._first, number) - 1
        return i < 0 or number > self._last[i]

    def within(self, start: int, stop: int) -> Candidates | None:
        """The candidates whose matches begin in [start, stop); None: no filter applies, look everywhere."""
        if self._found is None:
            return None
        found = copy(self._found)
        found.start, found.stop = start, stop
        low, high = bisect_right(self._stops, start), bisect_left(self._starts, stop)
        found.runs = []
        if low < high and start < stop:
            first, last = self._reader.locate(start).number, self._reader.locate(stop - 1).number + 1
            runs = ((max(a, first), min(b, last)) for a, b in self._found.runs[low:high])
            found.runs = [(a, b) for a, b in runs if a < b]
        return found


class LoopReader:
    """Reads ahead of a loop over documents."""

    def __init__(self, reader: Reader | ServedReader, found: Candidates | None):
        """`found`: the places to read; None means all of the text."""
        self._reader = reader
        self._found = found
        self._lock = threading.Lock()
        self._ahead: Iterator[FrameText] | None = None
        """The frames that are being read ahead."""
        self._read_up_to = 0
        """The character up to which they have been taken."""
        self._last_frames: list[FrameText] = []
        """Frames that were read ahead and may hold text of the last document."""
        self._last_start = self._in_order = 0
        """The character at which the last document began, and how many documents were read in order, with it."""

    def read_ahead(self, start: int, stop: int) -> list[FrameText]:
        """Fetch the frames of characters [start, stop), which are read next, and start to fetch those after them.

        Returns these frames; an empty list if documents are not read in order, or another thread is at it.
        """
        if not self._lock.acquire(blocking=False):
            return []
        try:
            self._in_order = (
                self._in_order + 1 if start >= self._last_start and stop - start <= _LARGE_CHARACTERS else 0
            )
            self._last_start = start
            if self._in_order < _MIN_IN_ORDER or start - self._read_up_to > _FAR_CHARACTERS:
                self._ahead, self._last_frames = None, []
            if self._in_order < _MIN_IN_ORDER:
                return []
            if self._ahead is None:
                self._ahead = self._reader.frames(start, self._reader.characters, only=self._found)
                self._read_up_to = start
            while self._read_up_to < stop:
                text = next(self._ahead, None)
                self._read_up_to = text.frame.stop if text else self._reader.characters
                if text:
                    self._last_frames.append(text)
            if self._last_frames and self._last_frames[0].frame.stop <= start:
                self._last_frames = [text for text in self._last_frames if text.frame.stop > start]
            return self._last_frames
        finally:
            self._lock.release()


class DocumentSource(StoredSource):
    """Stored text of which each document is a span. Safe for use by many threads."""

    __slots__ = ("_filters", "_first_asker", "_frames_ahead", "_literal_filters", "table")

    def __init__(self, reader: Reader | ServedReader, table: DocumentTable):
        super().__init__(reader)
        self.table = table
        self._filters: dict[Hashable, DocumentFilter] = {}
        self._literal_filters: dict[str, DocumentFilter] = {}
        self._first_asker: dict[Hashable, tuple[str, int]] = {}
        """By query, the asker that came first. Only when a second one asks are the filters fetched."""
        self._frames_ahead: list[FrameText] = []
        """Frames of the document that is read next; the cache may be too small to keep frames that were read ahead."""

    def read(self, start: int, stop: int) -> str:
        """As `StoredSource.read`, from `_frames_ahead` if they hold all of it."""
        at, parts = start, []
        for text in self._frames_ahead:
            frame = text.frame
            if frame.start <= at < frame.stop:
                end = min(stop, frame.stop)
                parts.append(text.slice(at - frame.start, end - frame.start))
                at = end
        return "".join(parts) if at == stop else super().read(start, stop)

    def windows(
        self,
        start: int,
        stop: int,
        *,
        reverse: bool = False,
        eager: bool = False,
        only: Candidates | None = None,
        needles: Sequence[str] | None = None,
    ) -> Iterator[Window]:
        """As `StoredSource.windows`; a range in a frame that was read ahead needs no request."""
        for text in self._frames_ahead:
            if text.frame.start <= start < stop <= text.frame.stop:
                if only is not None:
                    only.looked_at()
                return iter((Window.of_frame(text, start, stop),))
        return super().windows(start, stop, reverse=reverse, eager=eager, only=only, needles=needles)

    def rules_out(self, needle: str, number: int) -> bool:
        """Whether filters rule out that a document contains `needle`.

        False for the first document that is searched for it: filters are fetched with the second.
        """
        matching = self._literal_filters.get(needle)
        if matching is None:
            matching = self._filter_of(Literal(needle), False, ("document", number))
            if matching is None:
                return False
            if len(self._literal_filters) >= _MOST_QUERIES:
                self._literal_filters.clear()
            self._literal_filters[needle] = matching
        return matching.rules_out(number)

    def ruled_out_already(self, query: Query, within_line: bool, number: int) -> bool:
        """Whether filters rule out a match in a document. False if no earlier search asked the filters (no GET)."""
        matching = self._filters.get((query, within_line))
        return matching is not None and matching.rules_out(number)

    def read_ahead(self, needle: str, start: int, stop: int) -> None:
        """Fetch the document at [start, stop), which is searched next, and start to fetch others that may contain
        `needle`."""
        matching = self._literal_filters.get(needle)
        if matching is not None:
            self._frames_ahead = matching.loop.read_ahead(start, stop)

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """As `StoredSource.candidates`, from filters asked once for all documents.

        None also for the first range that asks.
        """
        matching = None if query is None or stop <= start else self._filter_of(query, within_line, ("range", start))
        if matching is None:
            return None
        found = matching.within(start, stop)
        if found is None or found.runs:
            self._frames_ahead = matching.loop.read_ahead(start, stop)
        return found

    def _filter_of(self, query: Query, within_line: bool, asker: tuple[str, int]) -> DocumentFilter | None:
        """The filter of a query; None for its first asker.

        `asker`: ("document", number) or ("range", first character).
        """
        key = query, within_line
        matching = self._filters.get(key)
        if matching is None:
            if self._first_asker.setdefault(key, asker) == asker:
                if len(self._first_asker) > _MOST_QUERIES:
                    self._first_asker.clear()
                return None
            reader = self.reader
            matching = DocumentFilter(reader, self.table, reader.candidates(query, 0, reader.characters, within_line))
            if len(self._filters) >= _MOST_QUERIES:
                self._filters.clear()
            self._filters[key] = matching
        return matching
