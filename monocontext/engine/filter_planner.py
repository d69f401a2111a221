"""Find the candidates of a query, the frames in which a match may begin, in rows that the caller reads from filters.

No match begins in another frame. A frame is also a candidate if filters cannot tell: if it has no filter, or if a
literal has no grams.

A required literal begins at most `latest` characters after its match. The candidates depend on that distance:

- limited: the frames that may contain the literal, and those up to `latest` characters before them
- unlimited, but within one line: the frames that may contain the literal, and those back to the start of its line
- unlimited: every frame up to the last one that may contain the literal
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from monocontext.format.filters.grams import TABLES, rows_to_read, word_rows
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.filters.query import INFINITE, All, AnyOf, FrequencyQuery, Literal, Query, leaves
from monocontext.format.index import ENDS_LINE
from monocontext.format.refs import FilterRef

if TYPE_CHECKING:
    from monocontext.engine.frame_table import FrameTable, RecordsInMemory

    Records = FrameTable | RecordsInMemory

MOST_TRACED = 10_000  # the most frames that are traced back: each takes 2 us, and may load an index page

Frames = NDArray[np.bool_]  # for each of the planner's frames, whether a match may begin in it
Rows = Mapping[tuple[FilterLayout, int], bytes]
"""The rows that were read, by filter and number. The number after the last row is that of the filter's sparsity."""
_FEW_ROWS = 4  # so few rows of a literal are read without a look at the sparsity


class Planner:
    """Plans which rows to read from the filters of a text, or of some of its frames, and finds candidates in them."""

    def __init__(self, refs: Sequence[FilterRef], frames: range, text_frames: int):
        """`frames`: those that the filters cover, in a text of `text_frames` frames."""
        self.first, self.stop, self.text_frames = frames.start, frames.stop, text_frames
        self.layouts = [FilterLayout(ref) for ref in refs if any(self._clipped(ref))]

    def rows_to_read(self, query: Query | None, rows: Rows) -> list[tuple[FilterLayout, int]]:
        """The rows of a query to read next, in the order of the text. `rows`: those read before, at first none.
        Of a large filter, the sparsity is read first, then the rows that are worth a request."""
        results: dict[tuple[FilterLayout, int], None] = {}
        if rows and all(layout.is_small for layout in self.layouts):
            return []
        query = self._answerable_part(query)
        candidates = self._candidates(query, rows, records=None, within_line=False) if rows else None
        for leaf in leaves(query):
            frames = np.ones(self.stop - self.first, np.bool_)
            if candidates is not None:
                may_contain = self._frames_of(leaf, rows)
                frames = candidates if may_contain is None else candidates & may_contain
            for layout, numbers in zip(self.layouts, self._rows_of(leaf), strict=True):
                if not isinstance(leaf, Literal) or layout.is_small or len(numbers) <= _FEW_ROWS:
                    next_rows: Sequence[int] = () if rows else numbers  # all at first
                else:
                    next_rows = self._rows_by_sparsity(layout, numbers, rows, frames)
                results.update(((layout, row), None) for row in next_rows)
        return list(results)

    def _rows_by_sparsity(
        self, layout: FilterLayout, numbers: Sequence[int], rows: Rows, frames: Frames
    ) -> Sequence[int]:
        """Which rows of a literal to read next from a large filter, out of `numbers`. It may begin in `frames`."""
        sparsity = rows.get((layout, layout.rows))
        if sparsity is None:
            return (layout.rows,)
        remaining = sum(int(np.count_nonzero(frames[run])) for run, _ in self._clipped(layout.ref))
        read_count = sum((layout, number) in rows for number in numbers)
        return layout.rows_worth_reading(numbers, sparsity, read_count, remaining)

    def candidates(self, query: Query | None, rows: Rows, records: Records, within_line: bool = False) -> Frames | None:
        """The frames in which a match may begin; `None` for all. Rows that were not read can only add frames. With
        `within_line`, neither a match nor its look-arounds extend over a newline."""
        return self._candidates(self._answerable_part(query), rows, records, within_line)

    def _answerable_part(self, query: Query | None) -> Query | None:
        """The part of a query that filters can answer; None if there is none. Of alternatives, all must have one."""
        if isinstance(query, All | AnyOf):
            parts = tuple(part for part in map(self._answerable_part, query.queries) if part)
            if isinstance(query, All):
                return All(parts) if parts else None
            return AnyOf(parts) if len(parts) == len(query.queries) else None
        if isinstance(query, Literal) and not _is_impossible(query) and not any(self._rows_of(query)):
            return None
        return query  # also a query for frequencies: without rows of words it has no frames

    def _rows_of(self, leaf: Literal | FrequencyQuery) -> list[tuple[int, ...]]:
        """The rows to read from each filter. All rows of a literal have a 1 for each frame in which it begins."""
        refs = [layout.ref for layout in self.layouts]
        if isinstance(leaf, FrequencyQuery):
            return [word_rows(leaf.words, leaf.level, ref.bits) for ref in refs]
        return [rows_to_read(leaf.text, ref.bits, ref.overlap_bytes, ref.fold != TABLES) for ref in refs]

    def _candidates(self, query: Query | None, rows: Rows, records: Records | None, within_line: bool) -> Frames | None:
        """Like `candidates`, for an answerable query. Without `records`, the frames in which its literals may begin."""
        if query is None:
            return None
        if isinstance(query, FrequencyQuery):
            frames = self._frames_of(query, rows)
            return np.zeros(self.stop - self.first, np.bool_) if frames is None else frames
        if isinstance(query, Literal):
            return self._literal_candidates(query, rows, records, within_line)
        result: Frames | None = None
        for part in query.queries:
            frames_of_part = self._candidates(part, rows, records, within_line)
            if isinstance(query, AnyOf):
                if frames_of_part is None:
                    return None
                result = frames_of_part if result is None else result | frames_of_part
            elif frames_of_part is not None:
                result = frames_of_part if result is None else result & frames_of_part
                if not result.any():
                    break
        return result

    def _literal_candidates(
        self, literal: Literal, rows: Rows, records: Records | None, within_line: bool
    ) -> Frames | None:
        """The frames in which a match with this literal may begin; without `records`, those where the literal may."""
        if _is_impossible(literal):
            return np.zeros(self.stop - self.first, np.bool_)
        may_contain = self._frames_of(literal, rows)
        if may_contain is None:
            return None
        if records is None or literal.latest == 0 or (self.stop == self.text_frames and not may_contain.any()):
            return may_contain
        return self._trace_back(may_contain, literal, records, within_line)

    def _frames_of(self, leaf: Literal | FrequencyQuery, rows: Rows) -> Frames | None:
        """The frames that may contain all grams of a literal, or one of the words of a query for frequencies; None if
        none of its rows was read. A frame without a column may contain the literal, but none of the words."""
        is_literal, is_known = isinstance(leaf, Literal), False
        combine = np.bitwise_and if is_literal else np.bitwise_or
        frames = np.full(self.stop - self.first, is_literal, np.bool_)
        for layout, numbers in zip(self.layouts, self._rows_of(leaf), strict=True):
            read_rows = [np.frombuffer(rows[layout, row], np.uint8) for row in numbers if (layout, row) in rows]
            if read_rows:
                combined = combine.reduce(np.stack(read_rows), axis=0)
                columns = np.unpackbits(combined, count=layout.columns, bitorder="little").view(np.bool_)
                for part, column in self._clipped(layout.ref):
                    frames[part] = columns[column : column + part.stop - part.start]
                is_known = True
        return frames if is_known else None

    def _clipped(self, ref: FilterRef) -> Iterator[tuple[slice, int]]:
        """Yield the planner's part of each run of a filter: a slice of `Frames`, and the column of its first frame."""
        for run in ref.runs:
            start, stop = max(run.first_frame, self.first), min(run.stop_frame, self.stop)
            if start < stop:
                yield slice(start - self.first, stop - self.first), run.first_column + start - run.first_frame

    def _trace_back(self, may_contain: Frames, literal: Literal, records: Records, within_line: bool) -> Frames | None:
        """The frames in which a match may begin if its literal begins in one of these frames; `None` for all."""
        numbers = (np.flatnonzero(may_contain) + self.first).tolist()
        if self.stop < self.text_frames:
            numbers.append(self.stop)  # these filters do not cover the next frame: it may contain the literal
        if literal.latest >= INFINITE and not within_line:
            may_contain[: numbers[-1] - self.first] = True
            return may_contain
        if len(numbers) > MOST_TRACED:
            return None
        records.prefetch_pages([max(number - 1, 0) for number in numbers])
        last = self.first - 1
        for number in numbers:
            if within_line:
                first = number
                # Before the last frame, the walk of that frame has covered the rest of the line.
                while first - 1 > last and not records.frame(first - 1).flags & ENDS_LINE:
                    first -= 1
                    if records.frame(first).newlines:
                        break
            else:
                first = records.locate(max(records.frame(number).start - literal.latest, 0)).number
            may_contain[max(first - self.first, 0) : number - self.first] = True
            last = number
        return may_contain


def _is_impossible(literal: Literal) -> bool:
    """Whether no text can contain the literal: a lone surrogate has no UTF-8 form."""
    return re.search("[\ud800-\udfff]", literal.text) is not None
