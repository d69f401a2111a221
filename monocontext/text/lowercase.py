"""Compute `lower()` of a large text with a few U+0130, the only character whose lower case is longer.

The index tells which frames have it. They are read once, to find the offsets of the character. From these, offsets in
the text and in the result follow by arithmetic, and other text is read on demand, as without U+0130.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from monocontext.engine.candidates import Candidates
from monocontext.format.filters.query import Query
from monocontext.text.derived import InContext
from monocontext.text.source import OPEN, Span
from monocontext.text.windows import Window

_DOTTED = "\u0130"
"""A capital I with a dot. Its lower case has two characters: i, and a combining dot."""


class Lowered:
    """The source of the characters of `lower()`."""

    final_newline: bool | None = None

    def __init__(self, derivation: InContext, longer: Candidates):
        """`longer` are the frames with U+0130 (at most 1 GET each, at the first read)."""
        self._derivation = derivation
        self._base = derivation.base
        self._longer = longer
        self._lock = threading.Lock()
        self._cached_places: tuple[list[int], list[int]] | None = None

    @property
    def characters(self) -> int:
        return len(self._base) + len(self._places[0])

    @property
    def filtered_base(self) -> Span:
        """The text whose search filters apply to this one."""
        return self._base

    def read(self, start: int, stop: int) -> str:
        return "".join(window.data for window in self.windows(start, stop))

    def windows(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[Window]:
        if stop <= start or (only is not None and not only.runs):
            return
        stop = min(stop, self.characters)
        base = self._base
        for window in base.windows(
            self._to_base(start), self._to_base(stop - 1) + 1, reverse=reverse, eager=eager, only=only
        ):
            at = window.start - base.start
            text, first = self._derivation.map_piece(window.text, at), self._to_output(at)
            low, high = max(start - first, 0), min(stop - first, len(text))
            yield Window(first + low, text[low:high])

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        low = self._to_base(start) if start else 0
        high = None if stop >= OPEN else self._to_base(stop - 1) + 1 if stop else 0
        found = self._base.candidates(query, low, high, within_line)
        if found is None or not found.runs:
            return found
        found = found.moved(self._base.start).through(self._to_output, self._to_base)
        found.start, found.stop = start, min(stop, self.characters)
        return found

    def line_start(self, line: int) -> int:
        return self._to_output(self._base.line_start(line))

    def line_of(self, character: int) -> int:
        return self._base.line_of(self._to_base(character))

    @property
    def _places(self) -> tuple[list[int], list[int]]:
        """The offsets of U+0130 in the base, and of their lower case in the result."""
        with self._lock:
            if self._cached_places is None:
                places = list(self._read_places())
                self._cached_places = places, [place + number for number, place in enumerate(places)]
            return self._cached_places

    def _read_places(self) -> Iterator[int]:
        base, dotted = self._base, _DOTTED.encode()
        for window in base.windows(0, len(base), eager=True, only=self._longer):
            at = window.data.find(dotted)
            while at >= 0:
                yield window.character(at) - base.start
                at = window.data.find(dotted, at + 1)

    def _to_output(self, character: int) -> int:
        return character + bisect_left(self._places[0], character)

    def _to_base(self, character: int) -> int:
        places, begins = self._places
        before = bisect_right(begins, character)
        if before and character <= begins[before - 1] + 1:
            return places[before - 1]
        return character - before
