"""Explain what a search would read, and in which documents, without reading any text: `Monocontext.explain`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from monocontext.engine.candidates import Narrowing
from monocontext.engine.documents import DocumentTable
from monocontext.engine.fetch.requests import MAX_PART_BYTES, FetchItem, coalesce
from monocontext.engine.reader import Reader
from monocontext.format.filters.query import All, FrequencyQuery, Literal, Query
from monocontext.text.derived import Derived
from monocontext.text.search.terms import parse
from monocontext.text.source import Span, Stored

_SHOWN = 60
"""The most characters of a literal to print."""
NAMED = 5
"""The most documents to name."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The expected reads of a search, and the reason. Prints as a few lines."""

    needs: str
    """The literals that every match has; empty: unknown."""
    scans: str
    """Why all frames are read; empty: search filters leave some out."""
    frames: int
    """Frames of the text; 0 for a text that is not in a store."""
    candidates: int
    """Frames to read: a match may begin in them."""
    stored_bytes: int
    """Stored bytes of all frames."""
    candidate_bytes: int
    """Stored bytes of the candidates."""
    gets: int
    """GETs for the candidates that are not in memory; an estimate where all frames are read."""
    filter_gets: int
    """GETs of this explanation: blocks of filters. The search does not read them again."""
    filter_bytes: int
    documents: int = 0
    """Documents in the text; 0 for a text without documents."""
    candidate_documents: int = 0
    """Documents that reach into a frame to read."""
    first_documents: tuple[str, ...] = ()
    """Names of the first 5 of these."""
    ranked: bool = False
    """A search by words: it begins with candidates that may hold the rarest of them, and may end before the rest."""

    @property
    def pruned(self) -> int:
        """Frames that are left out."""
        return self.frames - self.candidates

    @property
    def share(self) -> float:
        """Stored bytes of the candidates as a share of all, 0 to 1."""
        return self.candidate_bytes / self.stored_bytes if self.stored_bytes else 1.0

    def __str__(self) -> str:
        needs = f"needs {self.needs}" if self.needs else "needs no text in particular"
        if not self.frames:
            return f"{needs}\nscans: {self.scans}"
        if self.scans:
            found = f"scans all {self.frames:,} frames: {self.scans}"
        else:
            found = f"{self.candidates:,} of {self.frames:,} frames may have a match, {self.pruned:,} are left out"
        most = "at most " if self.ranked else ""
        read = f"{self.candidate_bytes:,} of {self.stored_bytes:,} stored bytes, {100 * self.share:.3g} %"
        asked = f"{self.filter_bytes:,} bytes of filters (GETs: {self.filter_gets:,})"
        if self.documents:
            of = ": " * bool(self.first_documents) + ", ".join(map(repr, self.first_documents))
            more = self.candidate_documents - len(self.first_documents)
            of += f", and {more:,} more" if self.first_documents and more else ""
            found += f"\nin {self.candidate_documents:,} of {self.documents:,} documents{of}"
        return f"{needs}\n{found}\nwould read {most}{read} (GETs: {self.gets:,}); to say so took {asked}"


def explain_words(span: Span, query: str) -> Explanation:
    """GETs as of `explain`. Raises `ValueError` for a query without a word to look for."""
    return replace(explain(span, parse(query).any_of, within_line=False), ranked=True)


def explain(span: Span, query: Query | None, within_line: bool = True) -> Explanation:
    """GETs: blocks of filters, and the index pages of candidates; of a part of a text those of all its frames. With
    documents 1 more for each 4,096 where candidates lie."""
    needs = format_query(query)
    part = _locate(span)
    if part is None and isinstance(span.source, Stored):
        return _unread(needs, "the text is served by another process, which reads its filters by itself")
    if part is None:
        return _unread(needs, "the text is derived from others, which no search filter covers")
    reader, start, stop = part
    if stop <= start:
        return _unread(needs, "the text is empty")
    search = reader.stats.search
    before = search.filter_gets, search.filter_bytes
    answer = reader.narrow(query, start, stop, within_line=within_line)
    took = search.filter_gets - before[0], search.filter_bytes - before[1]
    frames = reader.table.numbers(start, stop)
    stored = _stored_bytes(reader, frames)
    chosen, read, gets = _reading_cost(reader, answer, frames, stored)
    documents, reached, named = _documents(reader.documents, _characters(reader, answer, start, stop))
    return Explanation(needs, answer.reason, len(frames), chosen, stored, read, gets, *took, documents, reached, named)


def _unread(needs: str, why: str) -> Explanation:
    return Explanation(needs, why, 0, 0, 0, 0, 0, 0, 0)


def format_query(query: Query | None) -> str:
    """A query in words: `'disk' AND ('error' OR 'failure')`."""
    if query is None:
        return ""
    if isinstance(query, Literal):
        text = query.text if len(query.text) <= _SHOWN else query.text[:_SHOWN] + "..."
        return repr(text) + (" in any case" if query.flags else "")
    if isinstance(query, FrequencyQuery):
        return f"{' OR '.join(map(repr, query.words))} often"
    word = " AND " if isinstance(query, All) else " OR "
    return word.join(
        format_query(one) if isinstance(one, Literal) else f"({format_query(one)})" for one in query.queries
    )


def _locate(span: Span) -> tuple[Reader, int, int] | None:
    """The reader and range of a text, character for character up to case; None: it is not in a store."""
    source: Any = span.source
    if isinstance(source, Derived):
        base = source.filtered_base
        return None if base is None else _locate(base.between(span.start, span.stop))
    if isinstance(source, Stored) and isinstance(source.reader, Reader):
        return source.reader, span.start, span.start + len(span)
    return None


def _stored_bytes(reader: Reader, frames: range) -> int:
    if len(frames) == reader.manifest.frames:
        return reader.manifest.stored_bytes
    return sum(reader.frame(number).stored_bytes for number in frames)


def _reading_cost(reader: Reader, answer: Narrowing, frames: range, stored_bytes: int) -> tuple[int, int, int]:
    """The number of frames to read, their stored bytes, and the GETs for them."""
    if answer.runs is None:
        missing = sum(not reader.holds(number) for number in frames)
        return len(frames), stored_bytes, -(-stored_bytes * missing // len(frames) // MAX_PART_BYTES)
    chosen = [reader.frame(number) for first, stop in answer.runs for number in range(first, stop)]
    wanted = [
        FetchItem(frame.number, frame.object, frame.offset, frame.stored_bytes, frame.bytes, bytes)
        for frame in chosen
        if not reader.holds(frame.number)
    ]
    return len(chosen), sum(frame.stored_bytes for frame in chosen), len(coalesce(wanted))


def _characters(reader: Reader, answer: Narrowing, start: int, stop: int) -> list[tuple[int, int]]:
    """The characters of [start, stop) that are to be read."""
    if answer.runs is None:
        return [(start, stop)]
    runs = ((reader.frame(first).start, reader.frame(last - 1).stop) for first, last in answer.runs)
    return [(max(first, start), min(last, stop)) for first, last in runs]


def _documents(table: DocumentTable, parts: list[tuple[int, int]]) -> tuple[int, int, tuple[str, ...]]:
    """The number of documents, the number that reach into these parts, and the names of the first of these."""
    if not table.count:
        return 0, 0, ()
    found: list[range] = []
    bounds = table.first_ending_after([at for part in parts for at in part])
    for (_, stop), first, last in zip(parts, bounds[::2], bounds[1::2], strict=True):
        last += last < table.count and table.document(last).start < stop
        found.append(range(max(first, found[-1].stop if found else 0), last))
    named = islice((number for part in found for number in part), NAMED)
    return table.count, sum(map(len, found)), tuple(table.document(number).name for number in named)
