"""From what a search needs to the frames in which a match may begin. Pure: rows and frames come from callables.

The answer is never wrong in one direction: a frame that it leaves out holds no beginning of a match. Of what a filter
cannot tell (frames that none covers, literals of fewer than 5 bytes, patterns without literals) it says "may be".

A literal that every match has lies at most `latest` characters behind the match's beginning:
- within the overlap of a frame's column: the column of the frame in which the match begins has it;
- further: the frames that hold it are sought, and matches may begin in those or up to `latest` characters before;
- anywhere, but in the same line: back to where the line begins;
- anywhere: before the last frame that holds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from monocontext.filters.fold import MAX_BYTES, TABLES
from monocontext.filters.grams import asked_rows
from monocontext.filters.layout import Layout
from monocontext.index import ENDS_LINE, Frame
from monocontext.manifest import FilterRef
from monocontext.needs import INFINITE, All, Any, Literal, Need, literals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Frames = NDArray[np.bool_]
    """One entry a frame of the text: whether a match may begin in it."""

ENOUGH_ROWS = 6
"""Rows that suffice to ask the columns of the frames in which a match begins, not of those that hold the literal."""
SPARSE = 16
"""Where more than one frame in so many holds a literal, it is not followed back to where its matches may begin."""
FEW = 64
"""So many may hold it in any text: their records lie in a few index pages."""
MOST_FOLLOWED = 10_000
"""And no more in a large text: each is looked up, 2 us, and on a large text brings an index page with it."""


class Records(Protocol):
    """What is known of the frames of a text without reading it."""

    def bring(self, numbers: Sequence[int]) -> None:
        """The records of these frames will be asked for."""
        ...

    def frame(self, number: int) -> Frame: ...

    def number_at(self, character: int) -> int:
        """The frame that holds a character."""
        ...


class Planner:
    """Asks the filters of one text."""

    def __init__(self, refs: Sequence[FilterRef], frames: int):
        self.frames = frames
        self.layouts = [Layout(ref) for ref in refs]

    def asked(self, need: Need | None) -> list[tuple[Layout, int]]:
        """Rows that answering takes, in the order of the text."""
        found: dict[tuple[Layout, int], None] = {}
        answerable = self.answerable(need)
        for literal in literals(answerable):
            for layout, rows in zip(self.layouts, self._rows_for(literal)[0], strict=True):
                found.update(((layout, row), None) for row in rows)
        return list(found)

    def answerable(self, need: Need | None) -> Need | None:
        """What of a need filters can tell: of alternatives all or none."""
        match need:
            case Literal():
                known = _is_impossible(need) or any(self._rows_for(need)[0])
                return need if known else None
            case All(needs):
                told = tuple(one for one in map(self.answerable, needs) if one)
                return All(told) if told else None
            case Any(needs):
                told = tuple(one for one in map(self.answerable, needs) if one)
                return Any(told) if len(told) == len(needs) else None
            case None:
                return None

    def candidates(
        self,
        need: Need | None,
        row: Callable[[Layout, int], bytes],
        records: Records,
        within_line: bool = False,
    ) -> Frames | None:
        """Frames in which a match may begin; None: any.

        `row` gives a row of a filter. `within_line`: no match, and nothing that it looks at, reaches over a newline.
        """
        return self._told(self.answerable(need), row, records, within_line)

    def _told(
        self, need: Need | None, row: Callable[[Layout, int], bytes], records: Records, within_line: bool
    ) -> Frames | None:
        match need:
            case None:
                return None
            case Literal():
                return self._literal(need, row, records, within_line)
            case All(needs):
                found = None
                for one in needs:
                    these = self._told(one, row, records, within_line)
                    found = these if found is None else found if these is None else found & these
                    if found is not None and not found.any():
                        break
                return found
            case Any(needs):
                either = None
                for one in needs:
                    these = self._told(one, row, records, within_line)
                    if these is None:
                        return None
                    either = these if either is None else either | these
                return either

    def _literal(
        self,
        literal: Literal,
        row: Callable[[Layout, int], bytes],
        records: Records,
        within_line: bool,
    ) -> Frames | None:
        import numpy as np

        if _is_impossible(literal):
            return np.zeros(self.frames, np.bool_)
        holds = np.ones(self.frames, np.bool_)
        asked = False
        asked_for, starts_told = self._rows_for(literal)
        for i, (layout, rows) in enumerate(zip(self.layouts, asked_for, strict=True)):
            ref = layout.ref
            if not rows:
                continue
            asked = True
            bits = _all_set([row(layout, one) for one in rows])
            columns = np.unpackbits(bits, count=layout.columns, bitorder="little").view(np.bool_)
            holds[ref.first_frame : ref.stop_frame] = columns[: ref.frames]
            self._open(holds, i)
        for layout, rows in zip(self.layouts, asked_for, strict=True):  # a border tells of frames before its columns
            ref = layout.ref
            if ref.border_frames and rows:
                bits = _all_set([row(layout, one) for one in rows])
                if bits[ref.frames // 8] >> (ref.frames % 8) & 1:
                    holds[ref.first_frame - ref.border_frames : ref.first_frame] = True
            elif ref.border_frames:
                holds[ref.first_frame - ref.border_frames : ref.first_frame] = True
        if not asked:
            return None
        if starts_told or literal.latest == 0 or not holds.any():
            return holds
        return self._before(holds, literal, records, within_line)

    def _rows_for(self, literal: Literal) -> tuple[list[list[int]], bool]:
        """Rows to ask each filter for, and whether they tell in which frame a match begins (else: the literal does)."""
        rows = [self._rows(layout, literal, 0) for layout in self.layouts]
        if not literal.latest:
            return rows, True
        told = [self._rows(layout, literal, literal.latest * MAX_BYTES) for layout in self.layouts]
        enough = all(len(near) >= min(len(all_), ENOUGH_ROWS) for near, all_ in zip(told, rows, strict=True))
        return (told, True) if enough and literal.latest < INFINITE else (rows, False)

    def _rows(self, layout: Layout, literal: Literal, before_bytes: int) -> list[int]:
        """Rows that are set in the column of a frame in which what begins so many folded bytes before it begins."""
        ref = layout.ref
        near = ref.overlap_bytes - before_bytes
        return asked_rows(literal.text, ref.bits, near, ascii_only=ref.fold != TABLES) if near > 0 else []

    def _open(self, holds: Frames, number: int) -> None:
        """A needle may begin at the end of a filter's text and end in text of which no filter knows the border."""
        ref = self.layouts[number].ref
        following = self.layouts[number + 1].ref if number + 1 < len(self.layouts) else None
        closed = (
            following
            and following.first_frame == ref.stop_frame
            and following.border_frames
            and following.overlap_bytes >= ref.overlap_bytes  # else its border does not reach back as far as we ask
        )
        if ref.stop_frame == self.frames or not ref.tail_frames or closed:
            return
        while True:
            holds[ref.stop_frame - ref.tail_frames : ref.stop_frame] = True
            before = self.layouts[number - 1].ref if number else None
            if ref.tail_frames < ref.frames or before is None or before.stop_frame != ref.first_frame:
                return
            number, ref = number - 1, before

    def _before(
        self,
        holds: Frames,
        literal: Literal,
        records: Records,
        within_line: bool,
    ) -> Frames | None:
        """Frames in which a match may begin whose literal begins in one of those given."""
        import numpy as np

        numbers = np.flatnonzero(holds)
        if literal.latest >= INFINITE and not within_line:
            holds[: numbers[-1]] = True
            return holds
        if len(numbers) > min(max(self.frames // SPARSE, FEW), MOST_FOLLOWED):
            return None
        records.bring([max(number - 1, 0) for number in numbers.tolist()])
        last = -1
        for number in map(int, numbers):
            if within_line:
                first = number
                # Where the walk meets the frame before, that one has told of the rest of the line.
                while first - 1 > last and not records.frame(first - 1).flags & ENDS_LINE:
                    first -= 1
                    if records.frame(first).newlines:
                        break
            else:
                first = records.number_at(max(records.frame(number).start - literal.latest, 0))
            holds[first:number] = True
            last = number
        return holds


def _all_set(rows: list[bytes]) -> NDArray[np.uint8]:
    import numpy as np

    bits: NDArray[np.uint8] = np.bitwise_and.reduce(np.stack([np.frombuffer(row, np.uint8) for row in rows]), axis=0)
    return bits


def _is_impossible(literal: Literal) -> bool:
    """Half a character is in no text."""
    return re.search("[\ud800-\udfff]", literal.text) is not None
