r"""The lines of a text that a pattern matches, in order, as grep gives them: `Monocontext.grep`.

Lines are taken out of windows of about a frame. Search filters say in which frames a match may begin; what lies between
is left out, but for lines that reach into it and may have one. Invariants of the loop over windows:
- every line that begins before `_at` is decided, and its hit given;
- `_reached` is where the window before ended; `_is_inside`: in a line, whose text is in `_rest` if its beginning was
  seen.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from monocontext import regex
from monocontext.candidates import Candidates
from monocontext.errors import ContextTooLarge
from monocontext.regex.linewise import Linewise
from monocontext.regex.pattern import Pattern
from monocontext.regex.plan import Plan, plan
from monocontext.regex.results import materialized
from monocontext.regex.stream import Scan
from monocontext.search import Window
from monocontext.source import Span

LONG_LINE = 1 << 20
"""Characters of a line from which on it is searched as a stream, and held only if it is a hit."""
EAGER_FRAMES = 32
"""So few candidates are all asked for at once: 8 MiB of text, a round trip instead of three."""

Sought = Any
"""A `str`, a compiled pattern, or a list of these."""


class Hit(NamedTuple):
    """A line with a match."""

    offset: int
    """The character of the text at which the first match in the line begins."""
    line_number: int
    """Counted from 1."""
    line: str
    r"""Without the `\n` that it ends with."""


def linewise(sought: Sought, *, ignore_case: bool = False, fixed: bool = False) -> Linewise:
    """What is sought, compiled. Raises `re.error`, and `TypeError` for what is no pattern of text."""
    several = sought if isinstance(sought, list | tuple) else [sought]
    if not several:
        raise ValueError("grep takes a pattern, or a list of at least one")
    return Linewise([_compiled(one, ignore_case, fixed) for one in several])


def _compiled(pattern: Any, ignore_case: bool, fixed: bool) -> re.Pattern[str]:
    """Raises `ValueError` for options with a compiled pattern, as `re` does."""
    if not isinstance(pattern, Pattern):
        pattern = materialized(pattern)
        if fixed and isinstance(pattern, str):
            pattern = re.escape(pattern)
    elif fixed:
        raise ValueError("cannot process fixed with a compiled pattern")
    real: re.Pattern[str] = regex.compile(pattern, re.IGNORECASE if ignore_case else 0)._real
    if not isinstance(real.pattern, str):
        raise TypeError("grep takes patterns of text, not of bytes")
    return real


def grep(span: Span, sought: Linewise, limit: int, first: int, stop: int | None, most: int | None) -> Iterator[Hit]:
    """The hits among lines that begin at characters [first, stop) of a span, at most so many.

    `limit`: characters that a line may have. GETs: `Monocontext.grep`.
    """
    part, number = _lines_from(span, first, stop)
    lines = _Pass(part, sought, limit, part.start - span.start, number, is_bounded=most is not None)
    yield from islice(lines.hits(), most)


def _lines_from(span: Span, first: int, stop: int | None) -> tuple[Span, int]:
    """The lines that begin in [first, stop) as a span of their own, and how many are before it."""
    number = _line_after(span, first)
    start = span.line_start(number)
    if stop is None:
        return Span(span.source, span.start + start, span.stop), number
    end = span.line_start(_line_after(span, stop)) if stop > start else start
    return span.between(start, end), number


def _line_after(span: Span, character: int) -> int:
    """Number of the first line (from 0) that begins at or after a character."""
    return span.source.line_of(span.start + character - 1) - span.lines_before + 1 if character > 0 else 0


class _Block:
    """A window, and where the lines in it lie. Offsets are the span's, positions those in the window's data."""

    __slots__ = ("_lines", "data", "head", "newline", "start", "stop", "tail", "window")

    def __init__(self, window: Window, shift: int, lines_before: int | None):
        data = self.data = window.data
        self.window = window
        self.start = window.start - shift
        self.stop = window.stop - shift
        self.newline: Any = "\n" if isinstance(data, str) else b"\n"
        self.head = data.find(self.newline) + 1
        """Behind the first newline; 0: there is none."""
        self.tail = data.rfind(self.newline) + 1
        """Behind the last."""
        self._lines = lines_before

    def lines_before(self, position: int) -> int:
        """Newlines of the source before a position."""
        if self._lines is None:
            self._lines = self.window.newlines_before
        assert self._lines is not None
        return self._lines + int(self.data.count(self.newline, 0, position))


@dataclass(slots=True)
class _Rest:
    """The beginning of a line that goes on behind a window."""

    block: _Block
    """In which it begins,"""
    position: int
    """and where in it."""
    parts: list[Any]
    size: int

    def add(self, part: Any) -> None:
        self.parts.append(part)
        self.size += len(part)

    @property
    def data(self) -> Any:
        return self.parts[0] if len(self.parts) == 1 else self.block.newline[:0].join(self.parts)


class _Pass:
    """All lines of a span, once. Offsets are the span's; lines are counted from 0 at its beginning."""

    def __init__(self, span: Span, sought: Linewise, limit: int, offset: int, number: int, is_bounded: bool):
        """`offset` and `number`: characters and lines before the span in what hits are told of."""
        self._span = span
        self._sought = sought
        self._limit = limit
        self._offset = offset
        self._first_number = number + 1
        self._is_bounded = is_bounded
        self._only: Candidates | None = None
        self._at = 0
        self._reached = 0
        self._is_inside = False
        self._rest: _Rest | None = None

    def hits(self) -> Iterator[Hit]:
        while not (yield from self._windows()):
            pass

    def _windows(self) -> Generator[Hit, None, bool]:
        """Lines from `_at` on. False: there are more, behind a line that is too long to be taken out of windows."""
        span, at = self._span, self._at
        only = self._only = span.candidates(self._sought.need, at, None, within_line=True)
        is_eager = only is not None and only.frames <= EAGER_FRAMES and not self._is_bounded
        self._reached, self._is_inside, self._rest = at, False, None
        regions = iter(()) if only is None else only.regions()
        for block in self._blocks(span.windows(at, None, eager=is_eager, only=only)):
            if block.start > self._reached:
                yield from self._leave()
                region = next((region for region in regions if region.start - span.start >= block.start), None)
                self._is_inside = region is None or not region.begins_line
            yield from self._in_block(block)
            self._reached = block.stop
            if self._rest and self._rest.size > LONG_LINE:
                yield from self._whole(self._number(self._rest.block, self._rest.position))
                return False
        if self._rest and only is not None and self._reached < len(span):
            yield from self._leave()
        elif self._rest:
            yield from self._complete()
        return True

    def _blocks(self, windows: Iterator[Window]) -> Iterator[_Block]:
        """The windows that have text; those of derived texts, which no frame numbers, are counted along."""
        source, shift = self._span.source, self._span.start
        last: _Block | None = None
        for window in windows:
            if window.newlines_before is None and window.data:
                follows = last is not None and last.stop + shift == window.start
                lines = last.lines_before(len(last.data)) if last and follows else source.line_of(window.start)
                last = _Block(window, shift, lines)
                yield last
            elif window.data:
                yield _Block(window, shift, None)

    def _in_block(self, block: _Block) -> Iterator[Hit]:
        data = block.data
        low = 0
        if self._is_inside or block.start < self._at:
            low = block.head or len(data)
            yield from self._inside(block, data[:low])
        if block.tail > low:
            number: int | None = None
            for found in self._sought.hits(block.window, low, block.tail):
                number = self._number(block, low) if number is None else number
                yield self._hit(found.start - self._span.start, number + found.number, found.line, found.match.start())
        first = max(low, block.tail)
        if first < len(data):
            self._rest = _Rest(block, first, [data[first:]], len(data) - first)
        self._is_inside = block.tail < len(data)

    def _inside(self, block: _Block, part: Any) -> Iterator[Hit]:
        """The part of a block that belongs to a line which began before it."""
        if self._rest:
            self._rest.add(part)
            if block.head:
                yield from self._complete()
        elif block.start >= self._at and self._sought.may_begin_in(part, goes_on=not block.head):
            yield from self._whole(self._number(block, 0))

    def _complete(self) -> Iterator[Hit]:
        """The line of which all is known."""
        rest, self._rest = self._rest, None
        assert rest is not None
        line = _text(rest.data).removesuffix("\n")
        if match := self._sought.search(line):
            start = rest.block.window.character(rest.position) - self._span.start
            yield self._hit(start, self._number(rest.block, rest.position), line, match.start())

    def _leave(self) -> Iterator[Hit]:
        """What follows is left out: a line that reaches into it is read on, if a match may begin in what is known."""
        rest, self._rest = self._rest, None
        if rest and self._sought.may_begin_in(rest.data, goes_on=True):
            yield from self._whole(self._number(rest.block, rest.position))

    def _whole(self, number: int) -> Iterator[Hit]:
        """A line that reaches over the windows at hand (GETs: 1 for each end, in the index's frame, and its text)."""
        span, self._rest = self._span, None
        start, self._at = span.line_start(number), span.line_start(number + 1)
        if self._at - start <= LONG_LINE:
            line = span.read(start, self._at).removesuffix("\n")
            if match := self._sought.search(line):
                yield self._hit(start, number, line, match.start())
            return
        stop = self._at - (span.read(self._at - 1, self._at) == "\n")
        found = [at for plan in self._plans if (at := _first(plan, span.between(start, stop), self._limit)) is not None]
        if found:
            self._check(stop - start, number, start + min(found))
            yield self._hit(start, number, span.read(start, stop), min(found))

    @cached_property
    def _plans(self) -> list[Plan]:
        return [plan(pattern) for pattern in self._sought.patterns]

    @cached_property
    def _lines_before(self) -> int:
        return self._span.lines_before

    def _number(self, block: _Block, position: int) -> int:
        return block.lines_before(position) - self._lines_before

    def _hit(self, start: int, number: int, line: str, at: int) -> Hit:
        """The hit in a line that begins at `start`, with the match at a character of it."""
        self._check(len(line), number, start + at)
        if self._only is not None:
            self._only.found(self._span.start + start + at)
        return Hit(self._offset + start + at, self._first_number + number, line)

    def _check(self, size: int, number: int, offset: int) -> None:
        if size > self._limit:
            offset += self._offset
            raise ContextTooLarge(
                f"grep: line {self._first_number + number:,} would make {size:,} characters, the limit is "
                f"{self._limit:,} (materialize_limit): look at its match, context[{offset}:{offset + 200}], and go on "
                f"behind the line with start={offset + 1}; or iterate re.finditer(pattern, context)"
            )


def _text(data: Any) -> str:
    return data if isinstance(data, str) else str(data, "utf-8")


def _first(plan: Plan, line: Span, limit: int) -> int | None:
    """Where the first match in a line begins, which is searched as a stream."""
    scan = Scan(plan, line, limit, 0, len(line), narrow=True)
    return next((scan.base + match.start() for match in scan.hits() if match), None)
