r"""Find the lines of a text that a pattern matches, in order, as grep does: `Monocontext.grep`.

Lines are cut out of windows of about a frame. Search filters say in which frames a match may begin; the text between
is left out, except for lines that reach into it and may match. Invariants of the loop over windows:
- every line that begins before `_at` is decided, and its hit yielded;
- `_reached` is the end of the last window; with `_is_inside` that is inside a line, whose text is in `_rest` if its
  beginning was read.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from monocontext.engine.candidates import Candidates
from monocontext.errors import ContextTooLarge
from monocontext.text import regex
from monocontext.text.regex.linewise import Linewise
from monocontext.text.regex.pattern import Pattern
from monocontext.text.regex.plan import Plan, plan
from monocontext.text.regex.results import materialize
from monocontext.text.regex.stream import Scan
from monocontext.text.source import Span
from monocontext.text.windows import Window

if TYPE_CHECKING:
    from monocontext.format.documents import Document

LONG_LINE = 1 << 20
"""Longer lines are searched as a stream, and become a `str` only if they match."""
EAGER_FRAMES = 32
"""Up to so many candidates are all requested at once: 8 MiB of text, one round trip instead of three."""

Query = Any
"""A `str`, a compiled pattern, or a list of these."""


class DocumentPlaces(Protocol):
    """The places of the documents of a text."""

    def at(self, character: int) -> Document | None: ...

    def ending_at(self, character: int) -> Document | None: ...


class _Line(NamedTuple):
    offset: int
    """The character of the text at which the first match in the line begins."""
    line_number: int
    """The line of the whole text, counted from 1."""
    line: str
    r"""Without the `\n` that it ends with."""


class Hit(_Line):
    """A line with a match. As a tuple it is `(offset, line_number, line)`."""

    _documents: DocumentPlaces | None = None

    def __getstate__(self) -> None:
        """A pickle holds the tuple alone: the documents belong to a text that is open here."""

    @property
    def document(self) -> str | None:
        """The name of the document that holds the line; None between documents, and in a text without them (at most 1
        GET)."""
        found = self._document
        return found.name if found else None

    @property
    def document_line(self) -> int | None:
        """The line of that document, counted from 1; None where there is no document (at most 1 GET)."""
        found = self._document
        return self.line_number - found.first_line if found else None

    @property
    def _document(self) -> Document | None:
        if self._documents is None:
            return None
        # An empty match may be at the end of a document's last line.
        return self._documents.at(self.offset) or self._documents.ending_at(self.offset)


SHOWN_HITS = 20
"""The most hits that printing an iterator shows."""
SHOWN_CHARACTERS = 200
"""The most characters of each line that it shows."""


_new_hit: Callable[[tuple[int, int, str]], Hit] = partial(tuple.__new__, Hit)
"""`Hit` in half the time: a word in every third line makes many."""


class GrepHits(Iterator[Hit]):
    """An iterator of hits, each found once, on demand. Printing it shows the next hits and keeps them."""

    def __init__(self, hits: Iterator[Hit], documents: DocumentPlaces | None = None):
        self._hits = hits
        self._documents = documents
        self._shown: deque[Hit] = deque()
        """Hits that were shown and not yet yielded."""
        self._has_given = False

    def __iter__(self) -> GrepHits:
        return self

    def __next__(self) -> Hit:
        self._has_given = True
        hit = self._shown.popleft() if self._shown else next(self._hits)
        if self._documents is not None:
            hit._documents = self._documents
        return hit

    def __str__(self) -> str:
        """The next hits, one a line (GETs: of iterating as far)."""
        self._shown += islice(self._hits, SHOWN_HITS + 1 - len(self._shown))
        return self._summary() or ("<no more hits: each is given once>" if self._has_given else "<no hits>")

    def __repr__(self) -> str:
        """The hits shown before: bounded, no GET, since debuggers call it too."""
        return self._summary() or "<hits of a grep: print or iterate it>"

    def _summary(self) -> str:
        lines = [_format_hit(hit) for hit in islice(self._shown, SHOWN_HITS)]
        if len(self._shown) > SHOWN_HITS:
            lines.append("[there are more: iterate it, as in list(...), or grep with max_hits]")
        return "\n".join(lines)


def _format_hit(hit: Hit) -> str:
    if len(hit.line) <= SHOWN_CHARACTERS:
        return repr(hit)
    line = f"{hit.line[:SHOWN_CHARACTERS]!r}... [{len(hit.line):,} characters]"
    return f"Hit(offset={hit.offset}, line_number={hit.line_number}, line={line})"


def compile_query(query: Query, *, ignore_case: bool = False, fixed: bool = False) -> Linewise:
    """Compile a query. Raises `re.error`, and `TypeError` for anything but patterns of text."""
    several = query if isinstance(query, list | tuple) else [query]
    if not several:
        raise ValueError("grep takes a pattern, or a list of at least one")
    return Linewise([_compile_pattern(one, ignore_case, fixed) for one in several])


def _compile_pattern(pattern: Any, ignore_case: bool, fixed: bool) -> re.Pattern[str]:
    """Raises `ValueError` for options with a compiled pattern, as `re` does."""
    if not isinstance(pattern, Pattern):
        pattern = materialize(pattern)
        if fixed and isinstance(pattern, str):
            pattern = re.escape(pattern)
    elif fixed:
        raise ValueError("cannot use fixed=True with a compiled pattern")
    real: re.Pattern[str] = regex.compile(pattern, re.IGNORECASE if ignore_case else 0)._real
    if not isinstance(real.pattern, str):
        raise TypeError("grep takes patterns of text, not of bytes")
    return real


def grep(span: Span, linewise: Linewise, limit: int, first: int, stop: int | None, most: int | None) -> Iterator[Hit]:
    """The hits among lines that begin at characters [first, stop) of a span, at most so many.

    `limit`: characters that a line may have. GETs: `Monocontext.grep`.
    """
    part, number = _lines_from(span, first, stop)
    lines = _LinePass(part, linewise, limit, part.start - span.start, number, is_bounded=most is not None)
    yield from islice(lines.hits(), most)


def _lines_from(span: Span, first: int, stop: int | None) -> tuple[Span, int]:
    """The lines that begin in [first, stop) as a span of their own, and the number of lines before it."""
    number = _line_after(span, first)
    start = span.line_start(number)
    if stop is None:
        return Span(span.source, span.start + start, span.stop), number
    end = span.line_start(_line_after(span, stop)) if stop > start else start
    return span.between(start, end), number


def _line_after(span: Span, character: int) -> int:
    """The number (from 0) of the first line that begins at or after a character."""
    return span.line_of(character - 1) + 1 if character > 0 else 0


class _Block:
    """A window and its lines. Offsets are the span's, positions those in the window's data."""

    __slots__ = ("_lines", "data", "head", "newline", "start", "stop", "tail", "window")

    def __init__(self, window: Window, shift: int, lines_before: int | None):
        data = self.data = window.data
        self.window = window
        self.start = window.start - shift
        self.stop = window.stop - shift
        self.newline: Any = "\n" if isinstance(data, str) else b"\n"
        self.head = data.find(self.newline) + 1
        """The position after the first newline; 0: there is none."""
        self.tail = data.rfind(self.newline) + 1
        """The position after the last newline."""
        self._lines = lines_before

    def lines_before(self, position: int) -> int:
        """Newlines of the source before a position."""
        if self._lines is None:
            self._lines = self.window.newlines_before
        assert self._lines is not None
        return self._lines + int(self.data.count(self.newline, 0, position))


@dataclass(slots=True)
class _Rest:
    """The beginning of a line that goes on after its window."""

    block: _Block
    """The block in which the line begins."""
    position: int
    """The position of the line in that block."""
    parts: list[Any]
    size: int

    def add(self, part: Any) -> None:
        self.parts.append(part)
        self.size += len(part)

    @property
    def data(self) -> Any:
        return self.parts[0] if len(self.parts) == 1 else self.block.newline[:0].join(self.parts)


class _LinePass:
    """One pass over the lines of a span. Offsets are the span's; lines count from 0 at its beginning."""

    def __init__(self, span: Span, linewise: Linewise, limit: int, offset: int, number: int, is_bounded: bool):
        """`offset` and `number`: characters and lines of the whole text before the span."""
        self._span = span
        self._linewise = linewise
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
        """Search lines from `_at` on. False: there are more, after a line too long for windows."""
        span, at = self._span, self._at
        only = self._only = span.candidates(self._linewise.query, at, None, within_line=True)
        is_eager = only is not None and only.frames <= EAGER_FRAMES and not self._is_bounded
        self._reached, self._is_inside, self._rest = at, False, None
        regions = iter(()) if only is None else only.regions()
        needles = self._linewise.needles
        for block in self._blocks(span.windows(at, None, eager=is_eager, only=only, needles=needles)):
            if block.start > self._reached:
                yield from self._leave_gap()
                region = next((region for region in regions if region.start - span.start >= block.start), None)
                self._is_inside = region is None or not region.begins_line
            yield from self._search_block(block)
            self._reached = block.stop
            if self._rest and self._rest.size > LONG_LINE:
                yield from self._search_long_line(self._number(self._rest.block, self._rest.position))
                return False
        if self._rest and only is not None and self._reached < len(span):
            yield from self._leave_gap()
        elif self._rest:
            yield from self._finish_line()
        return True

    def _blocks(self, windows: Iterator[Window]) -> Iterator[_Block]:
        """The windows that have text; counts the lines of derived texts, whose windows have no frame."""
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

    def _search_block(self, block: _Block) -> Iterator[Hit]:
        data = block.data
        low = 0
        if self._is_inside or block.start < self._at:
            low = block.head or len(data)
            yield from self._continue_line(block, data[:low])
        if block.tail > low:
            number: int | None = None
            shift, limit, only = self._span.start, self._limit, self._only
            for start, before, line, match in self._linewise.hits(block.window, low, block.tail):
                if number is None:
                    number = self._number(block, low)
                at = match.start()
                if len(line) > limit:
                    self._check(len(line), number + before, start - shift + at)
                if only is not None:
                    only.found(start + at)
                self._span.log_received(start - shift, start - shift + len(line))
                yield _new_hit((self._offset + start - shift + at, self._first_number + number + before, line))
        first = max(low, block.tail)
        if first < len(data):
            self._rest = _Rest(block, first, [data[first:]], len(data) - first)
        self._is_inside = block.tail < len(data)

    def _continue_line(self, block: _Block, part: Any) -> Iterator[Hit]:
        """Search the part of a block that continues a line from before it."""
        if self._rest:
            self._rest.add(part)
            if block.head:
                yield from self._finish_line()
        elif block.start >= self._at and self._linewise.may_begin_in(part, goes_on=not block.head):
            yield from self._search_long_line(self._number(block, 0))

    def _finish_line(self) -> Iterator[Hit]:
        """Search the line in `_rest`, which is complete."""
        rest, self._rest = self._rest, None
        assert rest is not None
        line = _text(rest.data).removesuffix("\n")
        if match := self._linewise.search(line):
            start = rest.block.window.character(rest.position) - self._span.start
            yield self._hit(start, self._number(rest.block, rest.position), line, match.start())

    def _leave_gap(self) -> Iterator[Hit]:
        """A gap follows: read a line that reaches into it to its end, if a match may begin in its known part."""
        rest, self._rest = self._rest, None
        if rest and self._linewise.may_begin_in(rest.data, goes_on=True):
            yield from self._search_long_line(self._number(rest.block, rest.position))

    def _search_long_line(self, number: int) -> Iterator[Hit]:
        """Search a line beyond its windows (GETs: 1 for each end, in the index's frame, and its text)."""
        span, self._rest = self._span, None
        start, self._at = span.line_start(number), span.line_start(number + 1)
        if self._at - start <= LONG_LINE:
            line = span.read(start, self._at).removesuffix("\n")
            if match := self._linewise.search(line):
                yield self._hit(start, number, line, match.start())
            return
        stop = self._at - (span.read(self._at - 1, self._at) == "\n")
        found = [
            at for plan in self._plans if (at := _match_start(plan, span.between(start, stop), self._limit)) is not None
        ]
        if found:
            self._check(stop - start, number, start + min(found))
            yield self._hit(start, number, span.read(start, stop), min(found))

    @cached_property
    def _plans(self) -> list[Plan]:
        return [plan(pattern) for pattern in self._linewise.patterns]

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
        self._span.log_received(start, start + len(line))
        return Hit(self._offset + start + at, self._first_number + number, line)

    def _check(self, size: int, number: int, offset: int) -> None:
        if size > self._limit:
            offset += self._offset
            raise ContextTooLarge(
                f"grep: line {self._first_number + number:,} would make {size:,} characters, the limit is "
                f"{self._limit:,} (materialize_limit): look at its match, context[{offset}:{offset + 200}], and go on "
                f"after the line with start={offset + 1}; or iterate re.finditer(pattern, context)"
            )


def _text(data: Any) -> str:
    return data if isinstance(data, str) else str(data, "utf-8")


def _match_start(plan: Plan, line: Span, limit: int) -> int | None:
    """The character at which the first match in a line begins; searches the line as a stream."""
    scan = Scan(plan, line, limit, 0, len(line), narrow=True)
    return next((scan.base + match.start() for match in scan.hits() if match), None)
