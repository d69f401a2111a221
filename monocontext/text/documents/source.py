"""The source of documents. It looks a query up in search filters once for all documents, and reads ahead of a loop."""

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

QUERIES = 4096
"""Queries whose answers are remembered: a loop over documents may ask for each of a list of words."""
IN_ORDER = 2
"""Reading ahead starts with this many documents read in order."""
FAR = 4 << 20
"""If a loop jumps further than this many characters past what was read ahead, reading ahead starts over there."""
LARGE = 1 << 20
"""A search in a document longer than this many characters reads ahead by itself."""


class Answer:
    """The documents in which filters allow a match of one query. Reads ahead of a loop over them."""

    def __init__(self, reader: Reader | ServedReader, table: DocumentTable, found: Candidates | None):
        self._reader = reader
        self._found = found
        self._lock = threading.Lock()
        self._ahead: Iterator[FrameText] | None = None
        """The frames that are being read ahead."""
        self._reached = 0
        """The character up to which they have been taken."""
        self._held: list[FrameText] = []
        """Frames of the last document."""
        self._at = self._in_order = 0
        """The beginning of the last document, and the number of documents read in order up to it."""
        if found is not None:
            regions = list(found.regions())
            self._starts, self._stops = [region.start for region in regions], [region.stop for region in regions]
            self._first = table.first_ending_after(self._starts)
            self._last = table.first_ending_after([stop - 1 for stop in self._stops])
            """The numbers of the first and the last document that each region touches."""

    def rules_out(self, number: int) -> bool:
        """Whether a document has no match."""
        if self._found is None:
            return False
        i = bisect_right(self._first, number) - 1
        return i < 0 or number > self._last[i]

    def within(self, start: int, stop: int) -> Candidates | None:
        """The places where matches that begin in [start, stop) may begin; None means anywhere."""
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

    def read_ahead(self, start: int, stop: int) -> list[FrameText]:
        """Fetch the frames of characters [start, stop), which are read next, and start to fetch those after them.

        Returns the frames; none while documents are not read in order, or if another thread is reading ahead.
        """
        if not self._lock.acquire(blocking=False):
            return []
        try:
            self._in_order = self._in_order + 1 if start >= self._at and stop - start <= LARGE else 0
            self._at = start
            if self._in_order < IN_ORDER or start - self._reached > FAR:
                self._ahead, self._held = None, []
            if self._in_order < IN_ORDER:
                return []
            if self._ahead is None:
                self._ahead = self._reader.frames(start, self._reader.characters, only=self._found)
                self._reached = start
            while self._reached < stop:
                text = next(self._ahead, None)
                self._reached = text.frame.stop if text else self._reader.characters
                if text:
                    self._held.append(text)
            if self._held and self._held[0].frame.stop <= start:
                self._held = [text for text in self._held if text.frame.stop > start]
            return self._held
        finally:
            self._lock.release()


class DocumentSource(StoredSource):
    """Stored text of which each document is a span. Safe for use by many threads."""

    __slots__ = ("_answers", "_asked", "_held", "_literals", "table")

    def __init__(self, reader: Reader | ServedReader, table: DocumentTable):
        super().__init__(reader)
        self.table = table
        self._answers: dict[Hashable, Answer] = {}
        self._literals: dict[str, Answer] = {}
        self._asked: dict[Hashable, int] = {}
        self._held: list[FrameText] = []
        """Frames of the document that is read next; the cache may be too small to keep frames that were read ahead."""

    def read(self, start: int, stop: int) -> str:
        at, parts = start, []
        for text in self._held:
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
        for text in self._held:
            if text.frame.start <= start < stop <= text.frame.stop:
                if only is not None:
                    only.looked_at()
                return iter((Window.of_frame(text, start, stop),))
        return super().windows(start, stop, reverse=reverse, eager=eager, only=only, needles=needles)

    def rules_out(self, needle: str, number: int) -> bool:
        """Whether filters rule out that a document contains `needle`.

        False for the first document that is searched for a needle: blocks of filters are fetched with the second.
        """
        answer = self._literals.get(needle)
        if answer is None:
            answer = self._answer(Literal(needle), False, number)
            if answer is None:
                return False
            if len(self._literals) >= QUERIES:
                self._literals.clear()
            self._literals[needle] = answer
        return answer.rules_out(number)

    def holds_none(self, query: Query, within_line: bool, number: int) -> bool:
        """Whether filters rule out a match in a document. False if no earlier search asked the filters (no GET)."""
        answer = self._answers.get((query, within_line))
        return answer is not None and answer.rules_out(number)

    def read_ahead(self, needle: str, start: int, stop: int) -> None:
        """Fetch the document at [start, stop), which is searched next, and start to fetch others that may contain
        `needle`."""
        answer = self._literals.get(needle)
        if answer is not None:
            self._held = answer.read_ahead(start, stop)

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        answer = None if query is None or stop <= start else self._answer(query, within_line, -1 - start)
        if answer is None:
            return None
        found = answer.within(start, stop)
        if found is None or found.runs:
            self._held = answer.read_ahead(start, stop)
        return found

    def _answer(self, query: Query, within_line: bool, asker: int) -> Answer | None:
        """The answer of the filters to a query; None at the first request. `asker` is the number of the document that
        requests it, or -1 - start for a range of characters."""
        key = query, within_line
        answer = self._answers.get(key)
        if answer is None:
            if self._asked.setdefault(key, asker) == asker:
                if len(self._asked) > QUERIES:
                    self._asked.clear()
                return None
            reader = self.reader
            answer = Answer(reader, self.table, reader.candidates(query, 0, reader.characters, within_line))
            if len(self._answers) >= QUERIES:
                self._answers.clear()
            self._answers[key] = answer
        return answer
