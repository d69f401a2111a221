"""Find the lines of a text that a pattern matches, in order, as grep does: `Monocontext.grep`.

The text is read in windows of about a frame. Search filters tell in which frames a match may begin. The frames between
these are skipped, except for a line that reaches into them and may match.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from monocontext.engine.candidates import Candidates, Region
from monocontext.errors import ContextTooLarge
from monocontext.records import dataclass
from monocontext.text import regex
from monocontext.text.regex.linewise import Linewise
from monocontext.text.regex.pattern import Pattern
from monocontext.text.regex.scan import scan
from monocontext.text.search.hits import Hit, new_hit
from monocontext.text.source import Span
from monocontext.text.str_methods import materialize
from monocontext.text.windows import Window

LONG_LINE = 1 << 20
"""Characters. A longer line is searched as a stream, and becomes a `str` only if it matches."""
EAGER_FRAMES = 32  # at most this many frames (8 MiB of text) are all requested at once: one round trip instead of three

Query = Any  # a `str`, a compiled pattern, or a list of these


def compile_query(query: Query, *, ignore_case: bool = False, fixed: bool = False) -> Linewise:
    """Compile the patterns of a query. Raises `re.error`, `TypeError` for a pattern of bytes, `InvalidParameters` for
    one that only matches across lines, and `ValueError` for an empty list, or options with a compiled pattern."""
    patterns = query if isinstance(query, list | tuple) else [query]
    if not patterns:
        raise ValueError("grep takes a pattern, or a list of at least one pattern, not an empty list")
    return Linewise([_compile_pattern(pattern, ignore_case, fixed) for pattern in patterns])


def _compile_pattern(pattern: Any, ignore_case: bool, fixed: bool) -> re.Pattern[str]:
    """Compile one pattern. Raises `ValueError` for options with a compiled pattern, as `re` does."""
    if not isinstance(pattern, Pattern):
        pattern = materialize(pattern)
        if fixed and isinstance(pattern, str):
            pattern = re.escape(pattern)
    elif fixed:
        raise ValueError("cannot use fixed=True with a compiled pattern")
    real: re.Pattern[str] = regex.compile(pattern, re.IGNORECASE if ignore_case else 0)._real
    if not isinstance(real.pattern, str):
        raise TypeError(f"grep takes a str pattern, not bytes: {real.pattern!r:.200}")
    return real


def grep(
    span: Span, linewise: Linewise, *, limit: int, first: int, stop: int | None, max_hits: int | None
) -> Iterator[Hit]:
    """The first `max_hits` hits, or all for None, among lines that begin at characters [first, stop) of a span.

    Raises `ContextTooLarge` for a hit in a line of more than `limit` characters. GETs are those of `Monocontext.grep`.
    """
    first_line = _line_after(span, first)
    start = span.line_start(first_line)
    end = len(span)
    if stop is not None:
        end = span.line_start(_line_after(span, stop)) if stop > start else start
    lines = span.between(start, end)
    line_pass = _LinePass(
        lines, linewise, limit=limit, characters_before=start, lines_before=first_line, is_bounded=max_hits is not None
    )
    yield from islice(line_pass.hits(), max_hits)


def _line_after(span: Span, character: int) -> int:
    """The number (from 0) of the first line that begins at or after a character."""
    return span.line_of(character - 1) + 1 if character > 0 else 0


class _Block:
    """A window and its lines. Offsets count characters of the span; positions index the window's `data`."""

    __slots__ = ("_newlines_before_data", "data", "head", "newline", "start", "stop", "tail", "window")

    def __init__(self, window: Window, span_start: int, newlines_before: int | None):
        """`newlines_before`: the number of newlines in the source before the window; None if the window knows it."""
        data = self.data = window.data
        self.window = window
        self.start = window.start - span_start
        self.stop = window.stop - span_start
        self.newline: Any = "\n" if isinstance(data, str) else b"\n"
        self.head = data.find(self.newline) + 1
        """The position after the first newline; 0 if there is none."""
        self.tail = data.rfind(self.newline) + 1
        """The position after the last newline; 0 if there is none."""
        self._newlines_before_data = newlines_before

    def newlines_before(self, position: int) -> int:
        """The number of newlines in the source before a position in the data."""
        if self._newlines_before_data is None:
            self._newlines_before_data = self.window.newlines_before
        assert self._newlines_before_data is not None
        return self._newlines_before_data + int(self.data.count(self.newline, 0, position))


@dataclass(slots=True)
class _OpenLine:
    """The beginning of a line that continues after its window."""

    block: _Block
    """The block in which the line begins."""
    position: int
    """The position of the line in that block."""
    parts: list[Any]
    size: int
    """The total length of the parts."""

    def add(self, part: Any) -> None:
        self.parts.append(part)
        self.size += len(part)

    @property
    def data(self) -> Any:
        return self.parts[0] if len(self.parts) == 1 else self.block.newline[:0].join(self.parts)


class _LinePass:
    """One pass over the lines of a span. Offsets are the span's; lines count from 0 at its beginning.

    `_read_until` is the character after the last window that was searched. Three states are possible there:

    | state | `_is_inside_line` | `_open_line` |
    |---|---|---|
    | at the beginning of a line | False | None |
    | inside a line that is kept from its beginning on, and searched when it is complete | True | that line |
    | inside a line whose beginning was skipped, or that was searched as a long line | True | None |
    """

    def __init__(
        self, span: Span, linewise: Linewise, *, limit: int, characters_before: int, lines_before: int, is_bounded: bool
    ):
        """`characters_before`, `lines_before`: those before the span. `is_bounded`: the caller limits the hits."""
        self._span = span
        self._linewise = linewise
        self._limit = limit
        self._characters_before = characters_before
        self._first_number = lines_before + 1
        self._is_bounded = is_bounded
        self._candidates: Candidates | None = None
        self._regions: Iterator[Region] = iter(())
        self._next_line = 0
        """Every line that begins before this character was searched."""
        self._read_until = 0
        self._is_inside_line = False
        self._open_line: _OpenLine | None = None

    def hits(self) -> Iterator[Hit]:
        is_at_end = False
        while not is_at_end:
            is_at_end = yield from self._search_windows()

    def _search_windows(self) -> Generator[Hit, None, bool]:
        """Search the lines from `_next_line` on. Returns whether the end was reached, or only that of a long line."""
        span = self._span
        start = self._read_until = self._next_line
        self._is_inside_line = False
        self._open_line = None
        candidates = self._candidates = span.candidates(self._linewise.query, start, None, within_line=True)
        self._regions = iter(()) if candidates is None else candidates.regions()
        is_eager = candidates is not None and candidates.frame_count <= EAGER_FRAMES and not self._is_bounded
        for block in self._blocks(span.windows(start, None, eager=is_eager, only=candidates, is_search=True)):
            if block.start > self._read_until:
                yield from self._skip_frames()
                region = self._region_at(block.start)
                self._is_inside_line = region is None or not region.begins_line
            yield from self._search_block(block)
            self._read_until = block.stop
            if self._open_line and self._open_line.size > LONG_LINE:
                yield from self._search_long_line(self._open_line.block, self._open_line.position)
                return False
        if self._open_line and candidates is not None and self._read_until < len(span):
            yield from self._skip_frames()
        elif self._open_line:
            yield from self._finish_line()
        return True

    def _blocks(self, windows: Iterator[Window]) -> Iterator[_Block]:
        """The windows that have text, as blocks. Those of a derived text do not know their line: it is counted."""
        span_start = self._span.start
        last: _Block | None = None
        for window in windows:
            if not window.data:
                continue
            if window.newlines_before is not None:
                yield _Block(window, span_start, None)
                continue
            if last is not None and last.stop + span_start == window.start:
                newlines_before = last.newlines_before(len(last.data))
            else:
                newlines_before = self._span.source.line_of(window.start)
            last = _Block(window, span_start, newlines_before)
            yield last

    def _search_block(self, block: _Block) -> Iterator[Hit]:
        """Search the lines that end in a block. The last line, if it does not, becomes the open line."""
        data = block.data
        low = 0
        if self._is_inside_line or block.start < self._next_line:
            low = block.head or len(data)
            yield from self._continue_line(block, data[:low])
        if block.tail > low:
            first_number: int | None = None  # the number of the first line in this part
            # This loop repeats `_hit` inline, since a frequent word has millions of hits.
            span_start, limit, candidates = self._span.start, self._limit, self._candidates
            for source_start, lines_before, line, match in self._linewise.hits(block.window, low, block.tail):
                if first_number is None:
                    first_number = self._line_number(block, low)
                number = first_number + lines_before
                start, column = source_start - span_start, match.start()
                if len(line) > limit:
                    self._check_size(len(line), number, start + column)
                if candidates is not None:
                    candidates.record_match(source_start + column)
                self._span.log_received(start, start + len(line))
                yield new_hit((self._characters_before + start + column, self._first_number + number, line))
        first = max(low, block.tail)
        if first < len(data):
            self._open_line = _OpenLine(block, first, [data[first:]], len(data) - first)
        self._is_inside_line = block.tail < len(data)

    def _continue_line(self, block: _Block, part: Any) -> Iterator[Hit]:
        """Search the part of a block that continues a line from before it."""
        if self._open_line:
            self._open_line.add(part)
            if block.head:
                yield from self._finish_line()
        elif block.start >= self._next_line and self._linewise.may_begin_in(part, goes_on=not block.head):
            yield from self._search_long_line(block, 0)

    def _finish_line(self) -> Iterator[Hit]:
        """Search the open line, which is now complete."""
        open_line = self._open_line
        assert open_line is not None
        self._open_line = None
        data = open_line.data
        line = (data if isinstance(data, str) else str(data, "utf-8")).removesuffix("\n")
        if match := self._linewise.search(line):
            start = open_line.block.window.character(open_line.position) - self._span.start
            yield self._hit(start, self._line_number(open_line.block, open_line.position), line, match.start())

    def _region_at(self, start: int) -> Region | None:
        """The first region that begins at or after `start`. Earlier ones are dropped, since windows come in order."""
        return next((region for region in self._regions if region.start - self._span.start >= start), None)

    def _skip_frames(self) -> Iterator[Hit]:
        """Skip the frames up to the next window. If a match may begin in the open line, search that line first."""
        if self._open_line and self._linewise.may_begin_in(self._open_line.data, goes_on=True):
            yield from self._search_long_line(self._open_line.block, self._open_line.position)
        self._open_line = None

    def _search_long_line(self, block: _Block, position: int) -> Iterator[Hit]:
        """Search a long line as a stream (GETs: those of the frames at its ends, and of its text)."""
        span = self._span
        self._open_line = None
        number = self._line_number(block, position)
        start = span.line_start(number)
        self._next_line = span.line_start(number + 1)
        if self._next_line - start <= LONG_LINE:
            line = span.read(start, self._next_line).removesuffix("\n")
            if match := self._linewise.search(line):
                yield self._hit(start, number, line, match.start())
            return
        stop = self._next_line - (span.read(self._next_line - 1, self._next_line) == "\n")
        part, plans = span.between(start, stop), self._linewise.plans
        try:
            firsts = [next(scan(plan, part, self._limit, 0, len(part), narrow=True), None) for plan in plans]
        except ContextTooLarge:  # a pattern needs more of the line than the limit
            self._check_size(len(part), number, start)
            raise
        columns = [base + match.start() for match, base in filter(None, firsts)]
        if columns:
            self._check_size(len(part), number, start + min(columns))
            yield self._hit(start, number, span.read(start, stop), min(columns))

    @cached_property
    def _newlines_before_span(self) -> int:
        return self._span.lines_before

    def _line_number(self, block: _Block, position: int) -> int:
        """The number of the line at a position of a block."""
        return block.newlines_before(position) - self._newlines_before_span

    def _hit(self, start: int, number: int, line: str, column: int) -> Hit:
        """The hit in a line that begins at `start`, whose first match begins at character `column` of the line."""
        self._check_size(len(line), number, start + column)
        if self._candidates is not None:
            self._candidates.record_match(self._span.start + start + column)
        self._span.log_received(start, start + len(line))
        return Hit(self._characters_before + start + column, self._first_number + number, line)

    def _check_size(self, size: int, number: int, offset: int) -> None:
        if size > self._limit:
            offset += self._characters_before
            raise ContextTooLarge(
                f"grep: line {self._first_number + number:,} has {size:,} characters, more than the limit of "
                f"{self._limit:,} (materialize_limit): look at it with context[{offset}:{offset + 200}]; call "
                f"grep again with start={offset + 1} to continue after this line; or iterate "
                f"re.finditer(pattern, context)"
            )
