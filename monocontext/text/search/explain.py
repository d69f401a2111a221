"""Explain what a `grep` would read, without reading text: `Monocontext.explain`."""

from __future__ import annotations

from dataclasses import dataclass

from monocontext.engine.fetch.requests import MAX_PART_BYTES, FetchItem, coalesce
from monocontext.engine.reader import Reader
from monocontext.format.filters.query import All, FrequencyQuery, Literal, Query
from monocontext.text.source import Span, StoredSource

_LITERAL_CHARACTERS = 60
"""The most characters of a literal that are shown."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The expected reads of a search, and the reason for them. Prints as three lines."""

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
        result = f"{self.candidates:,} of {self.frames:,} frames may have a match, {self.pruned:,} are left out"
        if self.scans:
            result = f"scans all {self.frames:,} frames: {self.scans}"
        read = f"{self.candidate_bytes:,} of {self.stored_bytes:,} stored bytes, {100 * self.share:.3g} %"
        filters = f"{self.filter_bytes:,} bytes of filters (GETs: {self.filter_gets:,})"
        return f"{needs}\n{result}\nwould read {read} (GETs: {self.gets:,}); to say so took {filters}"


def explain(span: Span, query: Query | None) -> Explanation:
    """Explain a search for a query; None matches anything.

    Reads blocks of filters and the index pages of candidates (1 GET each), or those of all frames if the span is a part
    of a text.
    """
    needs, source = format_query(query), span.source
    if not isinstance(source, StoredSource):
        return Explanation(needs, "the text is derived from another")
    reader = source.reader
    if not isinstance(reader, Reader):
        return Explanation(needs, "the text is served by another process, which reads its filters by itself")
    if not len(span):
        return Explanation(needs, "the text is empty")
    stats = reader.stats.search
    gets_before, bytes_before = stats.filter_gets, stats.filter_bytes
    answer = reader.narrow(query, span.start, span.stop, within_line=True)
    filter_gets, filter_bytes = stats.filter_gets - gets_before, stats.filter_bytes - bytes_before
    frames = reader.table.numbers(span.start, span.stop)
    if len(frames) == reader.manifest.frames:
        stored_bytes = reader.manifest.stored_bytes
    else:
        stored_bytes = sum(reader.frame(number).stored_bytes for number in frames)
    if answer.runs is None:
        missing = sum(not reader.holds(number) for number in frames)
        candidates, candidate_bytes = len(frames), stored_bytes
        gets = -(-stored_bytes * missing // len(frames) // MAX_PART_BYTES)
    else:
        chosen = [reader.frame(number) for first, stop in answer.runs for number in range(first, stop)]
        candidates, candidate_bytes = len(chosen), sum(frame.stored_bytes for frame in chosen)
        items = (
            FetchItem(frame.number, frame.object, frame.offset, frame.stored_bytes, frame.bytes, bytes)
            for frame in chosen
            if not reader.holds(frame.number)
        )
        gets = len(coalesce([*items]))
    return Explanation(
        needs, answer.reason, len(frames), candidates, stored_bytes, candidate_bytes, gets, filter_gets, filter_bytes
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
    parts = (format_query(item) if isinstance(item, Literal) else f"({format_query(item)})" for item in query.queries)
    return word.join(parts)
