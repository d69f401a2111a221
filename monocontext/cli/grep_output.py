"""Format hits in documents as ripgrep formats hits in files: headings, numbers, colours, counts, JSON.

Line numbers count from 1 in the document. A header line between documents belongs to no document.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from monocontext.cli.printing import escape_controls

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext
    from monocontext.text.regex.linewise import Linewise
    from monocontext.text.search.hits import Hit

_NAME, _NUMBER, _MATCH, _PLAIN = "\x1b[35m", "\x1b[32m", "\x1b[1;31m", "\x1b[0m"


class Place(NamedTuple):
    """A document, or the whole of a text without documents."""

    name: str
    start: int
    """The first character of the place in the text."""
    stop: int
    first_line: int
    """The number of lines in the text before it."""
    bytes: int
    """The length in bytes of UTF-8."""


class Line(NamedTuple):
    """A line of a place."""

    place: Place
    number: int
    """The line of the place, from 1."""
    text: str
    hit: Hit | None
    """None for a line of context."""


@dataclass(frozen=True, slots=True)
class Style:
    """The format of printed lines."""

    has_names: bool
    has_headings: bool
    """Whether the name of a document is printed once above its lines instead of in each line."""
    has_numbers: bool
    has_columns: bool
    """Whether the line number is followed by the byte at which the first match begins, from 1."""
    has_colour: bool
    escapes: bool
    """Whether control characters are escaped."""
    only_matching: bool
    pattern: Linewise

    def shown(self, text: str) -> str:
        return escape_controls(text) if self.escapes else text

    def paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self.has_colour else text

    def name(self, place: Place) -> str:
        return self.paint(_NAME, escape_controls(place.name))

    def rows(self, line: Line) -> Iterator[str]:
        """A line as it is printed: one row, or with `only_matching` one for each match in it."""
        mark = ":" if line.hit else "-"
        before = f"{self.name(line.place)}{mark}" if self.has_names and not self.has_headings else ""
        before += f"{self.paint(_NUMBER, str(line.number))}{mark}" if self.has_numbers else ""
        needs_match = line.hit and (self.only_matching or self.has_columns)
        first = self.pattern.search(line.text) if needs_match else None  # None for the lines of `-v` too
        if not self.only_matching or first is None:
            text = self.with_colour(line.text) if line.hit and self.has_colour else self.shown(line.text)
            yield before + self.column(first) + text
            return
        for match in self.pattern.finditer(line.text):
            yield before + self.column(match) + self.paint(_MATCH, self.shown(match[0]))

    def column(self, match: re.Match[str] | None) -> str:
        """The byte of the line at which a match begins, from 1."""
        return f"{len(match.string[: match.start()].encode()) + 1}:" if self.has_columns and match else ""

    def with_colour(self, text: str) -> str:
        parts, offset = [], 0
        for match in self.pattern.finditer(text):
            parts.append(self.shown(text[offset : match.start()]) + self.paint(_MATCH, self.shown(match[0])))
            offset = match.end()
        return "".join(parts) + self.shown(text[offset:])


def print_lines(found: Iterable[Line], context: Monocontext, style: Style, before: int, after: int) -> Iterator[str]:
    """Format hits, with `before` lines before and `after` lines after each."""
    seen = False
    for location, hits in groupby(found, key=lambda item: item.place):
        if seen and (style.has_headings or before or after):
            yield "" if style.has_headings else "--"
        if style.has_headings and style.has_names:
            yield style.name(location)
        seen = True
        for line in with_context(context, location, hits, before, after):
            yield from style.rows(line) if line else ["--"]


def print_names(found: Iterable[Line], as_json: bool) -> Iterator[str]:
    """The name of each place with a hit, once."""
    for location, _ in groupby(found, key=lambda item: item.place):
        yield json.dumps({"path": location.name}) if as_json else escape_controls(location.name)


def print_counts(found: Iterable[Line], style: Style, as_json: bool) -> Iterator[str]:
    """The number of matching lines of each place that has some, or with `only_matching` of matches."""
    for location, hits in groupby(found, key=lambda item: item.place):
        count = sum(max(1, len([*style.pattern.finditer(hit.text)])) if style.only_matching else 1 for hit in hits)
        if as_json:
            yield json.dumps({"path": location.name, "count": count})
        else:
            yield f"{style.name(location)}:{count}" if style.has_names else str(count)


def with_context(
    context: Monocontext, place: Place, hits: Iterable[Line], before: int, after: int
) -> Iterator[Line | None]:
    """The hits of one place with the lines around them, each line once; None where lines are skipped."""
    last = due = 0  # numbers of the last line yielded, and of the last line to yield after a hit
    for hit in hits:
        number = hit.number
        yield from _lines(context, place, last + 1, min(due, number - 1))
        last = max(last, min(due, number - 1))
        first = max(number - before, last + 1, 1)
        if last and first > last + 1 and (before or after):
            yield None
        yield from _lines(context, place, first, number - 1)
        yield hit
        last, due = number, number + after
    yield from _lines(context, place, last + 1, due)


def _lines(context: Monocontext, place: Place, first: int, last: int) -> Iterator[Line]:
    """The lines `first` to `last` of a place, both included."""
    if last < first:
        return
    begin = max(place.start, context.span.line_start(place.first_line + first - 1))
    end = min(place.stop, context.span.line_start(place.first_line + last))
    if begin < end:
        text = str(context[begin:end])
        for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
            yield Line(place, number, line, None)


# -- ripgrep's JSON ----------------------------------------------------------------------------------------------------


def print_json(
    found: Iterable[Line], context: Monocontext, pattern: Linewise, before: int, after: int, ascii_only: bool
) -> Iterator[str]:
    """Format hits in the schema of `rg --json`: begin, match, context and end of each place, and a summary.

    As in ripgrep, `absolute_offset` counts bytes of the place, and `start` and `end` bytes of the line. The field
    `offset`, which ripgrep does not have, counts characters of the whole text up to the first match.
    """
    began, totals = time.monotonic(), Counter[str]()
    for location, hits in groupby(found, key=lambda item: item.place):
        here = Counter(searches=1, searches_with_match=1, bytes_searched=location.bytes)
        path = {"path": {"text": location.name}}
        yield _message("begin", path, ascii_only)
        first_byte = _byte_at(context, location.start)
        for line in filter(None, with_context(context, location, hits, before, after)):
            start = context.span.line_start(location.first_line + line.number - 1)
            matches = list(_submatches(pattern, line.text)) if line.hit else []
            newline = "\n" if start + len(line.text) < location.stop else ""
            data = path | {
                "lines": {"text": line.text + newline},
                "line_number": line.number,
                "absolute_offset": _byte_at(context, start) - first_byte,
                "submatches": matches,
            }
            if line.hit:
                here += Counter(matched_lines=1, matches=len(matches))
                data["offset"] = line.hit.offset
            yield _message("match" if line.hit else "context", data, ascii_only)
        yield _message("end", {**path, "binary_offset": None, "stats": _stats(began, here)}, ascii_only)
        totals += here
    yield _message("summary", {"elapsed_total": _elapsed(began), "stats": _stats(began, totals)}, ascii_only)


def _message(kind: str, data: dict[str, Any], ascii_only: bool) -> str:
    return json.dumps({"type": kind, "data": data}, ensure_ascii=ascii_only)


def _submatches(pattern: Linewise, text: str) -> Iterator[dict[str, Any]]:
    for match in pattern.finditer(text):
        start = len(text[: match.start()].encode())
        yield {"match": {"text": match[0]}, "start": start, "end": start + len(match[0].encode())}


def _byte_at(context: Monocontext, character: int) -> int:
    """The byte of the text at which a character begins (no GET if the search has read its frame)."""
    frame = context.span.source.reader.locate(character)  # type: ignore[attr-defined]  # an opened text has a reader
    return int(frame.start_byte) + len(str(context[frame.start : character]).encode())


def _elapsed(began: float) -> dict[str, Any]:
    seconds = time.monotonic() - began
    whole = int(seconds)
    return {"secs": whole, "nanos": int((seconds - whole) * 1e9), "human": f"{seconds:.6f}s"}


def _stats(began: float, counts: Counter[str]) -> dict[str, Any]:
    names = ("searches", "searches_with_match", "bytes_searched", "bytes_printed", "matched_lines", "matches")
    return {"elapsed": _elapsed(began), **{name: counts[name] for name in names}}


# -- patterns as ripgrep reads them ------------------------------------------------------------------------------------

_TOKENS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


def before_cr(pattern: str) -> str:
    r"""A pattern whose `$` also matches before the `\r` of a line end, as with `rg --crlf`."""
    return _TOKENS.sub(lambda found: r"(?=\r?$)" if found[0] == "$" else found[0], pattern)
