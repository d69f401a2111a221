"""Look up the sources that a model claims for its answer, and list the ranges of the context that its code received.

A claimed range must be inside the text, and a claimed quote must occur in what the run has read. A note says which
claims are left out, and why. Nothing else is listed as a source.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from rlm.context.excerpt import shorten
from rlm.context.text_parts import TextPart, text_parts
from rlm.runners.claims import Claim
from rlm.trajectory.fields import Range

MOST_CHARACTERS = 1_000_000  # the longest source; as much as `monocontext cite` reads (`_MOST_CITED`)
MOST_READS = 200  # the most items of a `Completion.reads`
_MOST_SEARCHED = 256_000_000  # the most characters that are searched for a quote
_SHOWN_CHARACTERS = 1_000  # of a source in a completion; a longer one keeps its ends
_LISTED_CHARACTERS = 100  # the most text of a source in a list
NO_SOURCES = "The model named no sources for this answer."


@dataclass(frozen=True, slots=True)
class Read:
    """A range of characters [start, stop) of the context, within one document, that code received."""

    start: int
    stop: int
    lines: tuple[int, int] | None
    """The first and last line, from 1, counted within the document if there is one; None if unknown."""
    document: str | None
    """The name of the document; None if there is none."""

    @property
    def place(self) -> str:
        """The document and first line, such as `src/a.py:12`; its characters if the lines are unknown."""
        if self.lines is None:
            return f"{self.document or 'characters'}:{self.start}-{self.stop}"
        return f"{self.document or 'line'}:{self.lines[0]}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as values for JSON."""
        return asdict(self) | {"lines": None if self.lines is None else list(self.lines)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """The range whose `to_dict` returned these fields."""
        lines, names = row.get("lines"), {field.name for field in fields(cls)}
        values = {"document": None, **row, "lines": None if lines is None else tuple(lines)}
        return cls(**{name: value for name, value in values.items() if name in names})


@dataclass(frozen=True, slots=True)
class Source(Read):
    """A range that the model named as a source of its answer, and the text in it."""

    text: str
    """The text; of more than 1,000 characters, its head and tail."""
    generation: int | None = None
    """The generation of the context; None for a text that is not in storage."""
    sha256: str = ""
    """SHA-256 of the text's UTF-8, in hex."""
    url: str | None = None
    """The web address of the document, from its metadata or its name; None if it has none."""

    @property
    def reference(self) -> str:
        """The argument for `monocontext cite URL REFERENCE`, which checks whether the context still has this text."""
        generation = "" if self.generation is None else f"@{self.generation}"
        return f"{self.start}-{self.stop}{generation}" + (f"#{self.sha256[:16]}" if self.sha256 else "")

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return Read.to_dict(self) | {"reference": self.reference}


def format_sources(sources: Sequence[Source]) -> str:
    """A line for each source: its place, its reference, and its first words."""
    if not sources:
        return NO_SOURCES
    lines = ["Sources:"]
    for source in sources:
        words = " ".join(source.text.split())
        more = "..." if len(words) > _LISTED_CHARACTERS else ""
        lines.append(f"{source.place}  {source.reference}  {words[:_LISTED_CHARACTERS]}{more}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _PartRange:
    """Characters `start` to `stop` of one part of the context, counted within the part."""

    part: TextPart
    start: int
    stop: int


class _ClaimRefused(ValueError):
    """A claim names no source; the message says why."""


def cite(context: object, claims: Sequence[Claim], read: Sequence[Range] | None) -> tuple[list[Source], list[str]]:
    """Look up the sources that a model claims. Returns those that were found, and a note on each other claim. `read`:
    the ranges that the run has read, in which quotes are searched; None for a context that does not record them. Costs
    1 GET for each source that is not in the cache, and the GETs of a search for each quote."""
    parts = text_parts(context)
    if claims and not parts:
        return [], ["the context is not a text, so the sources of the answer are neither checked nor shown"]
    sources, notes = [], []
    for number, claim in enumerate(claims, 1):
        try:
            located = _locate(parts, claim, read, is_whole=parts[0].text is context)
            sources.append(_to_source(located))
        except _ClaimRefused as exc:
            notes.append(f"source {number} of the answer is left out: {exc}")
    return sources, notes


def reads_of(context: object, handed: Sequence[Range]) -> list[Read]:
    """The first `MOST_READS` reads, in order: the ranges that code received, cut where documents begin and end. Costs
    GETs for frames that are no longer in the cache, and 1 GET for each 4,096 documents."""
    reads: list[Read] = []
    parts = text_parts(context)
    for start, stop in handed:
        for part in parts:
            offsets = part.overlap(start, stop)
            for first, last in part.split_by_document(offsets.start, offsets.stop):
                if len(reads) == MOST_READS:
                    return reads
                reads.append(_to_read(_PartRange(part, first, last)))
    return reads


def _locate(parts: Sequence[TextPart], claim: Claim, read: Sequence[Range] | None, *, is_whole: bool) -> _PartRange:
    """The range that a claim names. `is_whole`: the context is one text, which has offsets. Raises _ClaimRefused."""
    if claim is None:
        raise _ClaimRefused("it must be a pair (start, stop) of character offsets, or a quote")
    if isinstance(claim, str):
        return _locate_quote(parts, claim.strip(), read)
    if not is_whole:
        raise _ClaimRefused("the context has several texts, of which only quotes can be cited, not ranges")
    start, stop = claim
    if stop > len(parts[0].text):
        raise _ClaimRefused(f"characters {start:,} to {stop:,} reach past the end of the text, {len(parts[0].text):,}")
    if stop - start > MOST_CHARACTERS:
        raise _ClaimRefused(f"characters {start:,} to {stop:,} are more than the {MOST_CHARACTERS:,} that may be cited")
    return _PartRange(parts[0], start, stop)


def _locate_quote(parts: Sequence[TextPart], quote: str, read: Sequence[Range] | None) -> _PartRange:
    """The first occurrence of a quote in the ranges `read`; in all parts if that is None. Raises _ClaimRefused."""
    remaining = _MOST_SEARCHED
    for start, stop in [(0, sys.maxsize)] if read is None else read:
        for part in parts:
            offsets = part.overlap(start, stop)
            if not offsets:
                continue
            if remaining <= 0:
                raise _ClaimRefused(f"{quote[:80]!r} is not in the {_MOST_SEARCHED:,} characters that were searched")
            offset = part.text.find(quote, offsets.start, offsets.stop)
            if offset >= 0:
                return _PartRange(part, offset, offset + len(quote))
            remaining -= len(offsets)
    raise _ClaimRefused(f"{quote[:80]!r} is not in {'the context' if read is None else 'what the run has read'}")


def _to_read(located: _PartRange) -> Read:
    """A range of a part as characters of the whole context, with its lines and the name of its document."""
    part, start, stop = located.part, located.start, located.stop
    document = part.document_at(start)
    before = part.line_of(int(document.start)) - 1 if document else 0
    lines = part.line_of(start) - before, part.line_of(stop - 1) - before
    names = [part.name, str(document.name) if document else None]
    return Read(part.start + start, part.start + stop, lines, "/".join(name for name in names if name) or None)


def _to_source(located: _PartRange) -> Source:
    """A range of a part with its text (1 GET, if that is not in the cache)."""
    part, read = located.part, _to_read(located)
    text = str(part.text[located.start : located.stop])
    # Only a text in storage that is the whole context has a version to cite.
    generation = part.text.generation if part.name is None and not isinstance(part.text, str) else None
    return Source(
        read.start, read.stop, read.lines, read.document, text=shorten(text, _SHOWN_CHARACTERS), generation=generation,
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), url=part.url_at(located.start),
    )  # fmt: skip
