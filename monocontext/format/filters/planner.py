"""Turn a query into candidate frames: the frames in which a match may begin. Callables supply rows and frames.

There are no false negatives: no match begins in a frame that is left out. A frame stays a candidate where a filter
cannot tell (frames without a filter, literals without grams, patterns without literals).

A required literal begins at most `latest` characters after its match does. Candidates depend on that distance:

- within the overlap of a frame's column: the column of the frame in which the match begins has the literal
- further away: the frames that hold the literal, and those up to `latest` characters before them
- unlimited, but within one line: back to the beginning of the line
- unlimited: every frame up to the last one that holds the literal
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from monocontext.format.filters.case_folding import MAX_BYTES, TABLES
from monocontext.format.filters.grams import rows_to_read
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.filters.query import INFINITE, All, Any, FrequencyQuery, Literal, Query, leaves
from monocontext.format.filters.words import word_rows
from monocontext.format.index import ENDS_LINE, Frame
from monocontext.format.refs import FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Frames = NDArray[np.bool_]
    """For each frame from the first on, whether a match may begin in it."""

ENOUGH_ROWS = 6
"""With this many rows a literal is looked up in the column of the frame in which a match begins, instead of in the
column of the frame that holds the literal."""
SPARSE = 16
"""Where more than one frame in 16 holds a literal, it is not traced back to where its matches may begin."""
FEW = 64
"""Up to this many frames are traced back in any text: their records are in a few index pages."""
MOST_FOLLOWED = 10_000
"""No more frames than this are traced back: each look-up takes 2 us, and in a large text loads an index page."""


Rows = Mapping[tuple[FilterLayout, int], bytes]
"""Rows of filters that were looked up."""


class Records(Protocol):
    """The records of the frames of a text."""

    def prefetch_pages(self, numbers: Sequence[int]) -> None:
        """Load the records of these frames; `frame` is called for them next."""
        ...

    def frame(self, number: int) -> Frame: ...

    def number_at(self, character: int) -> int:
        """The frame that holds a character."""
        ...


class Planner:
    """Plans look-ups in the filters of one text, or of neighbouring frames of it."""

    def __init__(self, refs: Sequence[FilterRef], frames: int, first: int = 0, stop: int | None = None):
        """`frames`: the number of frames of the text. The filters and the answers cover frames [first, stop), by
        default all. Text after these may hold anything."""
        self.frames = frames
        self.first, self.stop = first, frames if stop is None else stop
        self.layouts = [FilterLayout(ref) for ref in refs]

    def rows_to_read(self, query: Query | None) -> list[tuple[FilterLayout, int]]:
        """The rows that `candidates` reads for a query, in the order of the text."""
        found: dict[tuple[FilterLayout, int], None] = {}
        for leaf in leaves(self._answerable_part(query)):
            by_filter = self._word_rows(leaf) if isinstance(leaf, FrequencyQuery) else self._rows_for(leaf)[0]
            for layout, rows in zip(self.layouts, by_filter, strict=True):
                found.update(((layout, row), None) for row in rows)
        return list(found)

    def _answerable_part(self, query: Query | None) -> Query | None:
        """The part of a query that filters can answer. Alternatives stay all together or not at all."""
        match query:
            case Literal():
                is_answerable = _is_impossible(query) or any(self._rows_for(query)[0])
                return query if is_answerable else None
            case FrequencyQuery():
                return query  # filters without rows of words say it of no frame
            case All(queries):
                parts = tuple(part for part in map(self._answerable_part, queries) if part)
                return All(parts) if parts else None
            case Any(queries):
                parts = tuple(part for part in map(self._answerable_part, queries) if part)
                return Any(parts) if len(parts) == len(queries) else None
            case None:
                return None

    def candidates(
        self,
        query: Query | None,
        rows: Rows,
        records: Records,
        within_line: bool = False,
    ) -> Frames | None:
        """Frames in which a match may begin; None: any. With some of the rows these are as many or more.

        `within_line`: no match, and nothing that it looks at, reaches over a newline.
        """
        return self._candidates(self._answerable_part(query), rows, records, within_line)

    def _candidates(self, query: Query | None, rows: Rows, records: Records, within_line: bool) -> Frames | None:
        match query:
            case None:
                return None
            case Literal():
                return self._literal_candidates(query, rows, records, within_line)
            case FrequencyQuery():
                return self._often(query, rows)
            case All(parts):
                found = None
                for part in parts:
                    frames = self._candidates(part, rows, records, within_line)
                    found = frames if found is None else found if frames is None else found & frames
                    if found is not None and not found.any():
                        break
                return found
            case Any(parts):
                either = None
                for part in parts:
                    frames = self._candidates(part, rows, records, within_line)
                    if frames is None:
                        return None
                    either = frames if either is None else either | frames
                return either

    def _literal_candidates(
        self,
        literal: Literal,
        rows: Rows,
        records: Records,
        within_line: bool,
    ) -> Frames | None:
        import numpy as np

        if _is_impossible(literal):
            return np.zeros(self.stop - self.first, np.bool_)
        holds = np.ones(self.stop - self.first, np.bool_)
        has_rows = False
        rows_by_filter, tells_starts = self._rows_for(literal)
        rows_by_filter = [
            tuple(one for one in numbers if (layout, one) in rows)
            for layout, numbers in zip(self.layouts, rows_by_filter, strict=True)
        ]
        for i, (layout, numbers) in enumerate(zip(self.layouts, rows_by_filter, strict=True)):
            ref = layout.ref
            if not numbers:
                continue
            has_rows = True
            bits = _all_set([rows[layout, one] for one in numbers])
            columns = np.unpackbits(bits, count=layout.columns, bitorder="little").view(np.bool_)
            holds[ref.first_frame - self.first : ref.stop_frame - self.first] = layout.of_frames(columns, True)
            self._add_open_end(holds, i)
        for layout, numbers in zip(
            self.layouts, rows_by_filter, strict=True
        ):  # a border covers frames before its filter
            ref = layout.ref
            if not ref.border_frames:
                continue
            at = ref.first_frame - self.first
            if numbers:
                bits = _all_set([rows[layout, one] for one in numbers])
                if not bits[layout.border_column // 8] >> (layout.border_column % 8) & 1:
                    continue
            holds[max(at - ref.border_frames, 0) : at] = True
        if not has_rows:
            return None
        if tells_starts or literal.latest == 0 or (self.stop == self.frames and not holds.any()):
            return holds
        return self._trace_back(holds, literal, records, within_line)

    def _often(self, query: FrequencyQuery, rows: Rows) -> Frames:
        """The frames whose filter says so."""
        import numpy as np

        says = np.zeros(self.stop - self.first, np.bool_)
        for layout, numbers in zip(self.layouts, self._word_rows(query), strict=True):
            ref = layout.ref
            part = says[ref.first_frame - self.first : ref.stop_frame - self.first]
            for row in (rows[layout, one] for one in numbers if (layout, one) in rows):
                bits = np.unpackbits(np.frombuffer(row, np.uint8), count=layout.columns, bitorder="little")
                part |= layout.of_frames(bits.view(np.bool_), False)
        return says

    def _word_rows(self, query: FrequencyQuery) -> list[tuple[int, ...]]:
        """The rows to read of each filter."""
        return [
            word_rows(query.words, query.level, layout.ref.bits) if layout.ref.has_words else ()
            for layout in self.layouts
        ]

    def frames_in_vain(self, rows: Rows) -> float:
        """How many frames have all these bits by chance, if each row is filled as it is and rows know nothing of each
        other."""
        import numpy as np

        shares: dict[FilterLayout, float] = {}
        for (layout, _), row in rows.items():
            filled = np.unpackbits(np.frombuffer(row, np.uint8)).sum() / layout.columns
            shares[layout] = shares.get(layout, 1.0) * float(filled)
        return sum(share * layout.ref.frames for layout, share in shares.items())

    def _rows_for(self, literal: Literal) -> tuple[list[tuple[int, ...]], bool]:
        """The rows to read of each filter, and whether they give the frame in which a match begins; otherwise they give
        the frame in which the literal begins."""
        rows = [self._rows(layout, literal, 0) for layout in self.layouts]
        if not literal.latest:
            return rows, True
        near_rows = [self._rows(layout, literal, literal.latest * MAX_BYTES) for layout in self.layouts]
        enough = all(len(near) >= min(len(all_), ENOUGH_ROWS) for near, all_ in zip(near_rows, rows, strict=True))
        return (near_rows, True) if enough and literal.latest < INFINITE else (rows, False)

    def _rows(self, layout: FilterLayout, literal: Literal, before_bytes: int) -> tuple[int, ...]:
        """Rows that the literal sets in the column of a frame whose match begins that many folded bytes before it."""
        ref = layout.ref
        near = ref.overlap_bytes - before_bytes
        return rows_to_read(literal.text, ref.bits, near, ref.fold != TABLES, ref.kind) if near > 0 else ()

    def _add_open_end(self, holds: Frames, number: int) -> None:
        """Add the last frames of a filter where no filter covers the border after them: a needle may begin there."""
        ref = self.layouts[number].ref
        following = self.layouts[number + 1].ref if number + 1 < len(self.layouts) else None
        closed = (
            following
            and following.first_frame == ref.stop_frame
            and following.border_frames
            and following.reach_bytes >= ref.reach_bytes  # else its border does not reach back far enough
        )
        if ref.stop_frame == self.frames or not ref.tail_frames or closed:
            return
        while True:
            stop = ref.stop_frame - self.first
            holds[stop - ref.tail_frames : stop] = True
            before = self.layouts[number - 1].ref if number else None
            if ref.tail_frames < ref.frames or before is None or before.stop_frame != ref.first_frame:
                return
            number, ref = number - 1, before

    def _trace_back(
        self,
        holds: Frames,
        literal: Literal,
        records: Records,
        within_line: bool,
    ) -> Frames | None:
        """Frames in which a match may begin whose literal begins in one of these; None: any."""
        import numpy as np

        numbers = (np.flatnonzero(holds) + self.first).tolist()
        if self.stop < self.frames:
            numbers.append(self.stop)  # not searched: the literal may be in it
        if literal.latest >= INFINITE and not within_line:
            holds[: numbers[-1] - self.first] = True
            return holds
        if len(numbers) > min(max(len(holds) // SPARSE, FEW), MOST_FOLLOWED):
            return None
        records.prefetch_pages([max(number - 1, 0) for number in numbers])
        last = self.first - 1
        for number in numbers:
            if within_line:
                first = number
                # The walk stops at the frame before, whose own walk has covered the rest of the line.
                while first - 1 > last and not records.frame(first - 1).flags & ENDS_LINE:
                    first -= 1
                    if records.frame(first).newlines:
                        break
            else:
                first = records.number_at(max(records.frame(number).start - literal.latest, 0))
            holds[max(first - self.first, 0) : number - self.first] = True
            last = number
        return holds


def _all_set(rows: list[bytes]) -> NDArray[np.uint8]:
    import numpy as np

    bits: NDArray[np.uint8] = np.bitwise_and.reduce(np.stack([np.frombuffer(row, np.uint8) for row in rows]), axis=0)
    return bits


def _is_impossible(literal: Literal) -> bool:
    """Whether no text has it: a lone surrogate has no UTF-8 form."""
    return re.search("[\ud800-\udfff]", literal.text) is not None
