"""Find lines of files in a text and format them as grep does, for `monocontext grep` and for the grep of the shell.
Line numbers count from 1 in each file. A header line between documents belongs to no file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from monocontext.format.documents import Document
from monocontext.records import NamedTuple, dataclass
from monocontext.text.monocontext import Monocontext
from monocontext.text.regex.linewise import Linewise
from monocontext.text.search.hits import Hit

if TYPE_CHECKING:
    from concurrent.futures import Executor

_MOST_GAP = 1 << 20  # characters; documents with at most this many between them are searched together
NAME, NUMBER, MATCH, PLAIN = "\x1b[35m", "\x1b[32m", "\x1b[1;31m", "\x1b[0m"  # the colours of terminals


@dataclass(frozen=True, slots=True, eq=False)
class ShownFile:
    """A file of a text, and the name that is printed for it."""

    name: str
    document: Document  # if the text has none, one that spans the whole text
    text: Monocontext


class Line(NamedTuple):
    """A line of a file."""

    file: ShownFile
    number: int  # the line of the file, from 1
    text: str
    hit: Hit | None  # None for a line of context


def ranges_of(documents: Iterable[Document]) -> list[tuple[int, int]]:
    """The ranges of a text that hold these documents, given in text order. They may hold others between them."""
    ranges: list[tuple[int, int]] = []
    for document in filter(len, documents):
        is_near = bool(ranges) and document.start - ranges[-1][1] <= _MOST_GAP
        ranges.append((ranges.pop()[0] if is_near else document.start, document.stop))
    return ranges


def select_lines(
    text: Monocontext,
    pattern: Linewise,
    ranges: list[tuple[int, int]],
    file_at: Callable[[int], ShownFile | None],
    *,
    invert: bool = False,
    most_per_file: int | None = None,
    executor: Executor | None = None,
) -> Iterator[Line]:
    """Yield the lines in `ranges` that match or, with `invert`, do not match: the first `most_per_file` of each file.
    `file_at` takes the first character of a line and returns its file; None if that file is not to be searched."""
    search = partial(text.grep, list(pattern.patterns), executor=executor)
    pending = ranges[::-1] if most_per_file != 0 else []
    file, count = None, 0
    while pending:
        start, stop = pending.pop()
        only_file = file_at(start) if most_per_file is not None else None
        limit = most_per_file if only_file is not None and only_file.document.stop >= stop else None
        hits = _without_match(text, pattern, start, stop) if invert else search(start=start, stop=stop, max_hits=limit)
        for hit in hits:
            if file is None or hit.offset >= file.document.stop:
                first = text.span.line_start(hit.line_number - 1)
                if file is None or first >= file.document.stop:
                    file, count = file_at(first), 0
            if file is None or count == most_per_file:
                continue
            count += 1
            yield Line(file, hit.line_number - file.document.first_line, hit.line, hit)
            if executor is None and count == most_per_file and file.document.stop - hit.offset > _MOST_GAP:
                pending.append((file.document.stop, stop))
                break


def _without_match(text: Monocontext, pattern: Linewise, start: int, stop: int) -> Iterator[Hit]:
    """Yield the lines in characters [start, stop) that do not match."""
    offset, first = start, text.span.source.line_of(start) + 1
    for number, line in enumerate(text.view(start, stop).lines, first):
        content = line.removesuffix("\n")
        if not pattern.search(content):
            yield Hit(offset, number, content)
        offset += len(line)


@dataclass(frozen=True, slots=True)
class Style:
    """The format of printed lines."""

    pattern: Linewise
    has_names: bool
    has_numbers: bool
    only_matching: bool
    before: int  # the most lines of context before a selected line, and after it
    after: int
    has_groups: bool  # whether `--` is printed between lines that are not neighbours, counting lines of context
    hides_context: bool = False  # whether lines of context are counted, but not printed, as by `grep -o`
    has_headings: bool = False  # whether the name of a file is printed once above its lines instead of in each line
    has_columns: bool = False  # whether the line number is followed by the byte at which the first match begins, from 1
    has_colour: bool = False
    escape: Callable[[str], str] = str  # replaces characters that a terminal would obey

    def paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{PLAIN}" if self.has_colour else text

    def rows(self, line: Line) -> Iterator[str]:
        """Yield the printed rows of a line: one or, with `only_matching`, one for each match."""
        mark = ":" if line.hit else "-"
        before = f"{self.paint(NAME, line.file.name)}{mark}" if self.has_names and not self.has_headings else ""
        before += f"{self.paint(NUMBER, str(line.number))}{mark}" if self.has_numbers else ""
        needs_match = line.hit and (self.only_matching or self.has_columns)
        first = self.pattern.search(line.text) if needs_match else None  # None for the lines of `-v` too
        if not self.only_matching or first is None:
            text = self._with_colour(line.text) if line.hit and self.has_colour else self.escape(line.text)
            yield before + self._column(first) + text
            return
        for match in self.pattern.finditer(line.text):
            yield before + self._column(match) + self.paint(MATCH, self.escape(match[0]))

    def _column(self, match: re.Match[str] | None) -> str:
        return f"{len(match.string[: match.start()].encode()) + 1}:" if self.has_columns and match else ""

    def _with_colour(self, text: str) -> str:
        parts, offset = [], 0
        for match in self.pattern.finditer(text):
            parts.append(self.escape(text[offset : match.start()]) + self.paint(MATCH, self.escape(match[0])))
            offset = match.end()
        return "".join(parts) + self.escape(text[offset:])


def format_lines(selected: Iterable[Line], style: Style) -> Iterator[str]:
    """Yield the printed rows of the selected lines and of those around them, and `--` where lines are skipped."""
    for index, (file, lines) in enumerate(groupby(selected, key=lambda line: line.file)):
        if index and (style.has_headings or style.has_groups):
            yield "" if style.has_headings else "--"
        if style.has_headings and style.has_names:
            yield style.paint(NAME, file.name)
        for line in with_context(file, lines, style) if style.has_groups else lines:
            if line is None or line.hit or not style.hides_context:
                yield from style.rows(line) if line else ("--",)


def count_lines(selected: Iterable[Line], style: Style) -> Iterator[tuple[str, int]]:
    """Yield the name of each file with selected lines, and their number or, with `only_matching`, that of matches."""
    for file, lines in groupby(selected, key=lambda line: line.file):
        matches = (len([*style.pattern.finditer(line.text)]) if style.only_matching else 1 for line in lines)
        yield file.name, sum(max(1, count) for count in matches)


def with_context(file: ShownFile, selected: Iterable[Line], style: Style) -> Iterator[Line | None]:
    """Yield the selected lines of a file and the lines around them, each once; None stands for a gap."""
    last = due = 0  # numbers of the last line yielded, and of the last line of context after a hit
    for line in selected:
        yield from _lines(file, last + 1, min(due, line.number - 1))
        last = max(last, min(due, line.number - 1))
        first = max(line.number - style.before, last + 1, 1)
        if last and first > last + 1:
            yield None
        yield from _lines(file, first, line.number - 1)
        yield line
        last, due = line.number, line.number + style.after
    yield from _lines(file, last + 1, due)


def _lines(file: ShownFile, first: int, last: int) -> Iterator[Line]:
    """Yield the lines of context from `first` to `last`, both included, as far as the file has them."""
    if first > last:
        return
    document, span = file.document, file.text.span
    start, stop = (min(span.line_start(document.first_line + line), document.stop) for line in (first - 1, last))
    part = file.text.substring(start, stop)
    for number, text in enumerate(part.removesuffix("\n").split("\n") if part else (), first):
        yield Line(file, number, text, None)
