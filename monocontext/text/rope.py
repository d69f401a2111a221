"""Join texts without a copy, for `+` with texts that are too large for one `str`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from monocontext.engine.candidates import Candidates
from monocontext.format.filters.query import Query
from monocontext.text.source import Span
from monocontext.text.windows import Window

FLAT_CHARACTERS = 1 << 16
"""Adjacent `str` are joined up to this size, so that a loop of `+=` does not add a part each time."""


class StrSource:
    """A `str` as a source."""

    final_newline: bool | None = None

    def __init__(self, text: str):
        self.text = text

    @property
    def characters(self) -> int:
        return len(self.text)

    def read(self, start: int, stop: int) -> str:
        return self.text[start:stop]

    def windows(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[Window]:
        if stop > start:
            yield Window(start, self.text[start:stop])

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> None:
        return None

    def line_start(self, line: int) -> int:
        at = -1
        for _ in range(line):
            at = self.text.find("\n", at + 1)
            if at < 0:
                return len(self.text)
        return at + 1

    def line_of(self, character: int) -> int:
        return self.text.count("\n", 0, character)


def literal(text: str) -> Span:
    """A `str` as a span."""
    return Span(StrSource(text), 0, len(text))


class Rope:
    """The source of several texts joined. Its windows are `str`, since stored parts would give bytes and others
    `str`."""

    final_newline: bool | None = None

    def __init__(self, parts: Iterable[Span]):
        self.parts = tuple(_flatten(parts))
        self._starts = list(accumulate(map(len, self.parts), initial=0))

    @property
    def characters(self) -> int:
        return self._starts[-1]

    def read(self, start: int, stop: int) -> str:
        return "".join(part.read(low, high) for _, part, low, high in self._parts_between(start, stop))

    def windows(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[Window]:
        found = list(self._parts_between(start, stop))
        for first, part, low, high in reversed(found) if reverse else found:
            shift = first - part.start
            for window in part.windows(low, high, reverse=reverse, eager=eager):
                yield Window(window.start + shift, window.text)

    def _parts_between(self, start: int, stop: int) -> Iterator[tuple[int, Span, int, int]]:
        """The parts within [start, stop): the character of the rope at which each begins, the part, and its range in
        its own offsets."""
        i = max(bisect_right(self._starts, start) - 1, 0)
        while i < len(self.parts) and self._starts[i] < stop:
            first, part = self._starts[i], self.parts[i]
            low, high = max(start - first, 0), min(stop - first, len(part))
            if high > low:
                yield first, part, low, high
            i += 1

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> None:
        return None  # no filter covers text across two parts

    def line_start(self, line: int) -> int:
        if line <= 0:
            return 0
        for first, part in zip(self._starts, self.parts, strict=False):
            newlines = part.newlines
            if line <= newlines:
                return first + part.line_start(line)
            line -= newlines
        return self.characters

    def line_of(self, character: int) -> int:
        total = 0
        for first, part in zip(self._starts, self.parts, strict=False):
            if character >= first + len(part):
                total += part.newlines
            elif character > first:
                total += part.line_of(character - first)
        return total


def _flatten(parts: Iterable[Span]) -> Iterator[Span]:
    """The parts with nested ropes unpacked, empty parts dropped and small adjacent `str` joined."""
    pending = ""
    for part in parts:
        if isinstance(part.source, Rope):
            inner: Iterable[Span] = (
                Span(found.source, found.start + low, found.start + high)
                for _, found, low, high in part.source._parts_between(part.start, part.stop)
            )
        else:
            inner = [part] if len(part) else []
        for one in inner:
            if isinstance(one.source, StrSource) and len(one) + len(pending) <= FLAT_CHARACTERS:
                pending += one.read(0, len(one))
                continue
            if pending:
                yield literal(pending)
                pending = ""
            yield one
    if pending:
        yield literal(pending)
