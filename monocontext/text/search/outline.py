"""Describe a text from a few pieces of it: `Monocontext.outline`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from monocontext.engine.candidates import Candidates
from monocontext.engine.stats import SearchStats
from monocontext.text.search.headings import find_headings
from monocontext.text.source import Span, StoredSource

if TYPE_CHECKING:
    from monocontext.text.documents.by_name import Documents

SAMPLES = 7
"""The number of frames that are read. With as many index pages, and one page of documents, these are 15 GETs."""
_SAMPLE_CHARACTERS = 1 << 18  # the most characters of one frame that are looked at
DERIVED_CHARACTERS = 1 << 15  # the characters of a piece of a derived text, which has no frames
MOST_HEADINGS = 8  # the most headings of one piece
MOST_NAMES = 12  # the most names of documents
MOST_LINE_CHARACTERS = 120  # the most characters of a heading or a name that are shown


class Heading(NamedTuple):
    """A line that says what the text around it is about."""

    start: int
    """The line's first character in the text."""
    line: int | None
    """The number of the line, from 1; None if only a pass over the text would tell (a derived text)."""
    kind: str
    """`heading`, `definition`, `file`, `turn`, `columns`, `record`, `log line` or `line`."""
    text: str
    """The line, or its first 120 characters."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A description of a text, made from a few pieces of it. Its `str` has at most 58 lines."""

    characters: int
    """The length of the text."""
    lines: int | None
    """The number of lines; None if only a pass over the text would tell."""
    documents: int
    """The number of documents in the text; 0 if it has none."""
    names: tuple[str, ...]
    """The names of the first documents, at most 12."""
    kinds: tuple[str, ...]
    """The kinds of the pieces that were read, the most common first: `Markdown`, `code`, `log`, `CSV`, `JSON lines`,
    `session`, `prose`."""
    places: int
    """The number of pieces that were read."""
    headings: tuple[Heading, ...]
    """The headings of these pieces, in the order of the text."""

    def __str__(self) -> str:
        lines = f" in {self.lines:,} lines" if self.lines is not None else ""
        rows = [f"{self.characters:,} characters{lines}"]
        if self.kinds:
            rows[0] += f"; looks like {', '.join(self.kinds)} in {self.places} place{'s' * (self.places > 1)}"
        if self.documents:
            more = ", ..." if self.documents > len(self.names) else ""
            rows.append(f"{self.documents:,} documents: {', '.join(self.names)}{more}")
        for heading in self.headings:
            line = f"line {heading.line:,}, " if heading.line else ""
            rows.append(f"{line}character {heading.start:,}: {heading.text}")
        return "\n".join(rows)


class _Sample(NamedTuple):
    """A piece of the text."""

    start: int
    """Its first character in the text."""
    newlines_before: int | None
    """The number of newlines before it; None if unknown."""
    text: str

    def heading(self, kind: str, offset: int) -> Heading:
        """The heading at an offset of this piece."""
        before = self.newlines_before
        line = None if before is None else before + self.text.count("\n", 0, offset) + 1
        text = self.text[offset : offset + MOST_LINE_CHARACTERS].partition("\n")[0].rstrip()
        return Heading(self.start + offset, line, kind, text)


def outline(span: Span, documents: Documents[Any] | None) -> Outline:
    """Outline a text. GETs: `SAMPLES` frames with their index pages, and one page of documents."""
    count = documents.count if documents is not None else 0
    names: tuple[str, ...] = ()
    if documents is not None and count:
        page = documents.table.page_of_document(0)
        names = tuple(page[number].name[:MOST_LINE_CHARACTERS] for number in range(min(len(page), MOST_NAMES)))
    headings: list[Heading] = []
    kinds: list[str] = []
    samples = list(_samples(span))
    for sample in samples:
        kind, starts = find_headings(sample.text[:_SAMPLE_CHARACTERS], sample.start == 0, MOST_HEADINGS)
        if kind:
            kinds.append(kind)
        headings += [sample.heading(*start) for start in starts]
    last = samples[-1] if samples else _Sample(0, 0, "")
    lines: int | None = None
    if last.newlines_before is not None:
        lines = last.newlines_before + last.text.count("\n") + (last.text[-1:] not in ("", "\n"))
    return Outline(
        characters=len(span),
        lines=lines,
        documents=count,
        names=names,
        kinds=tuple(sorted(set(kinds), key=lambda kind: (-kinds.count(kind), kind))),
        places=len(samples),
        headings=tuple(headings),
    )


def _samples(span: Span) -> Iterator[_Sample]:
    """Pieces of the text at its head, at its tail and evenly spaced between, in order."""
    if not len(span):
        return
    targets = [number * (len(span) - 1) // (SAMPLES - 1) for number in range(SAMPLES)]
    source = span.source
    if not isinstance(source, StoredSource):
        stop = 0
        for target in targets:
            start = max(min(target, len(span) - DERIVED_CHARACTERS), stop)  # pieces of a short text do not overlap
            stop = min(start + DERIVED_CHARACTERS, len(span))
            if start < stop:
                yield _Sample(start, 0 if start == 0 else None, span.read(start, stop))
        return
    reader = source.reader
    frames = {frame.number: frame for frame in (reader.locate(span.start + target) for target in targets)}
    sampled = Candidates(
        [(number, number + 1) for number in sorted(frames)],
        span.start,
        span.stop,
        frames.__getitem__,
        reader.locate,
        SearchStats(),
    )
    before_span: int | None = None
    for window in span.windows(eager=True, only=sampled):
        newlines = window.newlines_before or 0
        before_span = newlines if before_span is None else before_span
        yield _Sample(window.start - span.start, newlines - before_span, window.text)
