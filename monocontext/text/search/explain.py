"""Explain what a search would read, and in which documents, without reading text: `Monocontext.explain`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from monocontext.engine.candidates import Narrowing
from monocontext.engine.documents import DocumentTable
from monocontext.engine.fetch.scheduler import MAX_PART_BYTES, FetchItem, coalesce
from monocontext.engine.reader import Reader
from monocontext.format.filters.query import All, FrequencyQuery, Literal, Query
from monocontext.text.derived import Derived
from monocontext.text.search.terms import parse
from monocontext.text.source import Span, StoredSource

_LITERAL_CHARACTERS = 60
"""The most characters of a literal that are shown."""
NAMED = 5
"""The most documents that are named."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The expected reads of a search, and the reason for them. Prints as a few lines."""

    needs: str
    """The literals that every match has; empty if unknown."""
    scans: str
    """Why all frames are read; empty if search filters leave some out."""
    frames: int = 0
    """The number of frames of the text; 0 for a text that is not in a store."""
    candidates: int = 0
    """The number of frames in which a match may begin. These are read."""
    stored_bytes: int = 0
    """The stored bytes of all frames."""
    candidate_bytes: int = 0
    """The stored bytes of the candidates."""
    gets: int = 0
    """GETs for the candidates that are not in memory; an estimate where all frames are read."""
    filter_gets: int = 0
    """The GETs of this explanation, for blocks of filters. The search does not read them again."""
    filter_bytes: int = 0
    """The bytes of these blocks."""
    documents: int = 0
    """The number of documents in the text; 0 for a text without documents."""
    candidate_documents: int = 0
    """The number of documents that have text in a candidate."""
    first_documents: tuple[str, ...] = ()
    """The names of the first 5 of these."""
    ranked: bool = False
    """Whether this is a search by words. It begins with frames that may hold the rarest word, and may end before the
    others."""

    @property
    def pruned(self) -> int:
        """The number of frames that are left out."""
        return self.frames - self.candidates

    @property
    def share(self) -> float:
        """The candidates' share of the stored bytes, from 0 to 1."""
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
        filters = f"{self.filter_bytes:,} bytes of filters (GETs: {self.filter_gets:,})"
        if self.documents:
            found += f"\nin {self.candidate_documents:,} of {self.documents:,} documents"
            if self.first_documents:
                more = self.candidate_documents - len(self.first_documents)
                found += f": {', '.join(map(repr, self.first_documents))}" + (f", and {more:,} more" if more else "")
        return f"{needs}\n{found}\nwould read {most}{read} (GETs: {self.gets:,}); to say so took {filters}"


def explain_words(span: Span, query: str) -> Explanation:
    """Explain a search by words. GETs are those of `explain`. Raises `ValueError` for a query without a word."""
    return replace(explain(span, parse(query).any_of, within_line=False), ranked=True)


def explain(span: Span, query: Query | None, within_line: bool = True) -> Explanation:
    """Explain a search for a query; None matches anything.

    Reads blocks of filters and the index pages of candidates (1 GET each), or those of all frames if the span is a part
    of a text. In a text with documents also 1 page for 4,096 documents around the candidates.
    """
    needs = format_query(query)
    stored = _locate(span)
    if stored is None and isinstance(span.source, StoredSource):
        return Explanation(needs, "the text is served by another process, which reads its filters by itself")
    if stored is None:
        return Explanation(needs, "the text is derived from others, which no search filter covers")
    reader, start, stop = stored
    if stop <= start:
        return Explanation(needs, "the text is empty")
    stats = reader.stats.search
    gets_before, bytes_before = stats.filter_gets, stats.filter_bytes
    answer = reader.narrow(query, start, stop, within_line=within_line)
    filter_gets, filter_bytes = stats.filter_gets - gets_before, stats.filter_bytes - bytes_before
    frames = reader.table.numbers(start, stop)
    stored_bytes = _stored_bytes(reader, frames)
    candidates, candidate_bytes, gets = _reading_cost(reader, answer, frames, stored_bytes)
    documents, reached, named = _documents(reader.documents, _ranges(reader, answer, start, stop))
    return Explanation(
        needs=needs,
        scans=answer.reason,
        frames=len(frames),
        candidates=candidates,
        stored_bytes=stored_bytes,
        candidate_bytes=candidate_bytes,
        gets=gets,
        filter_gets=filter_gets,
        filter_bytes=filter_bytes,
        documents=documents,
        candidate_documents=reached,
        first_documents=named,
    )


def format_query(query: Query | None) -> str:
    """A query in words, such as `'disk' AND ('error' OR 'failure')`; empty for None."""
    if query is None:
        return ""
    if isinstance(query, Literal):
        text = query.text if len(query.text) <= _LITERAL_CHARACTERS else query.text[:_LITERAL_CHARACTERS] + "..."
        return repr(text) + (" in any case" if query.flags else "")
    if isinstance(query, FrequencyQuery):
        return f"{' OR '.join(map(repr, query.words))} often"
    word = " AND " if isinstance(query, All) else " OR "
    return word.join(
        format_query(one) if isinstance(one, Literal) else f"({format_query(one)})" for one in query.queries
    )


def _locate(span: Span) -> tuple[Reader, int, int] | None:
    """The reader of a text and the range of its characters there, which may differ in case; None for a text that is not
    in a store."""
    source: Any = span.source
    if isinstance(source, Derived):
        base = source.filtered_base
        return None if base is None else _locate(base.between(span.start, span.stop))
    if isinstance(source, StoredSource) and isinstance(source.reader, Reader):
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
    missing_frames = [
        FetchItem(frame.number, frame.object, frame.offset, frame.stored_bytes, frame.bytes, bytes)
        for frame in chosen
        if not reader.holds(frame.number)
    ]
    return len(chosen), sum(frame.stored_bytes for frame in chosen), len(coalesce(missing_frames))


def _ranges(reader: Reader, answer: Narrowing, start: int, stop: int) -> list[tuple[int, int]]:
    """The ranges of characters within [start, stop) that are to be read."""
    if answer.runs is None:
        return [(start, stop)]
    runs = ((reader.frame(first).start, reader.frame(last - 1).stop) for first, last in answer.runs)
    return [(max(first, start), min(last, stop)) for first, last in runs]


def _documents(table: DocumentTable, ranges: list[tuple[int, int]]) -> tuple[int, int, tuple[str, ...]]:
    """The number of all documents, the number of those with text in the ranges, and the names of the first of these."""
    if not table.count:
        return 0, 0, ()
    reached: list[range] = []  # the documents with text in each range, without those of the range before
    bounds = table.first_ending_after([character for start_stop in ranges for character in start_stop])
    for (_, stop), first, last in zip(ranges, bounds[::2], bounds[1::2], strict=True):
        last += last < table.count and table.document(last).start < stop
        reached.append(range(max(first, reached[-1].stop if reached else 0), last))
    named = islice(chain.from_iterable(reached), NAMED)
    return table.count, sum(map(len, reached)), tuple(table.document(number).name for number in named)
