"""Find where in the context a cell's printed text comes from, and write it as a line for the model.

A search reads far more than it prints, so the ranges that a cell read do not give the place. The longest pieces of the
printed text are searched for in these ranges, and only exact matches count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rlm.context import protocol
from rlm.models.log import WARNING, log

_MOST_PLACES = 3
"""The most places that are named."""
_MOST_TRIED = 4
"""The most pieces that are searched for."""
_FEWEST_CHARACTERS = 24
"""Shortest printed piece that is searched for: shorter ones may match by chance."""
_SEARCHED = 1 << 19
"""Characters at the end of each range that are searched: a search stops in the frame of its hit, which has 256 KiB."""
_MOST_RANGES = 8
"""The newest ranges that are searched."""
_MOST_MATCHES = 50
"""The most matches of a piece: one with more does not show where it was read."""
_IN_MEMORY = 20_000_000
"""The longest `str` that is searched."""
_PIECES = re.compile(r"\n|\\n|\\t")
"""Separators of the pieces of a text that was printed, or printed by its repr."""


def describe_printed(context: object, printed: str, ranges: Sequence[Sequence[int]] | None) -> str:
    """A line such as `[read: src/a.py (lines 120-148)]`; empty if no printed text is found in the context.

    `ranges`: the characters that the cell read; None if the context does not record them. Costs at most 3 small GETs a
    place, and none if the pages were read before.
    """
    text: Any = context
    if isinstance(text, str):
        parts = [(0, len(text))] if len(text) <= _IN_MEMORY else []
    elif ranges and protocol.passes_for_str(text):
        parts = [(max(start, stop - _SEARCHED), stop) for start, stop in ranges[-_MOST_RANGES:]]
    else:
        parts = []
    if not parts or len(printed) < _FEWEST_CHARACTERS:
        return ""
    try:
        chunks = [(start, str(text[start:stop])) for start, stop in parts]
        ways = [printed, _unescape(printed)] if "\\n" in printed else [printed]
        found = max((_merge(_find(way, chunks)) for way in ways), key=lambda spans: sum(b - a for a, b in spans))
        places: dict[str, list[str]] = {}
        for start, stop in found:
            for name, lines in _describe(text, start, stop):
                places.setdefault(name, []).append(lines)
    except Exception as exc:  # a context is any object: whatever its reading raises, the output is there
        log(WARNING, "the place of an output in the context was not found: %s", type(exc).__name__)
        return ""
    descriptions = []
    for name, found_lines in places.items():
        lines = " and ".join(dict.fromkeys(found_lines))
        descriptions.append(f"{name} ({lines})" if name else lines)
    return f"[read: {'; '.join(descriptions)}]" if descriptions else ""


def _unescape(printed: str) -> str:
    """The text of a repr, with its line breaks, tabs and single quotes."""
    return printed.replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'")


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order; overlapping spans, and spans at most 2 characters apart, are joined."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1] + 2:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return merged


def _find(printed: str, chunks: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """The ranges of the context that the printed text repeats, the longest pieces first.

    `chunks`: the parts of the context to search, each with the offset of its start.
    """
    covered: list[tuple[int, int]] = []
    tried = 0
    for at, piece in sorted(_pieces(printed), key=lambda found: -len(found[1])):
        if len(piece) < _FEWEST_CHARACTERS or len(covered) == _MOST_PLACES or tried == _MOST_TRIED:
            return
        if any(low <= at < high for low, high in covered):
            continue
        tried += 1
        margin = len(piece) // 5  # a piece may begin and end with other text than the context's, such as quotes
        found = _match(printed, at, piece, chunks) or _match(
            printed, at + margin, piece[margin : len(piece) - margin], chunks
        )
        if found is None:
            continue
        start, low, high = found
        covered.append((low, high))
        span = printed[low:high]
        if len(span.strip()) >= _FEWEST_CHARACTERS // 2:
            start += len(span) - len(span.lstrip())
            yield start, start + len(span.strip())


def _match(printed: str, at: int, probe: str, chunks: Sequence[tuple[int, str]]) -> tuple[int, int, int] | None:
    """Find a probe, which is at `at` in the printed text, in the context, and extend the match as far as both agree.

    Returns the start of the match in the context, and its span in the printed text; None if there is no match, or no
    single longest one.
    """
    most, matches = len(printed), set[tuple[int, int, int]]()
    for base, chunk in chunks:
        place = chunk.find(probe)
        while place >= 0:
            before = _common(printed[:at][::-1], chunk[max(0, place - most) : place][::-1])
            after = _common(printed[at:], chunk[place : place + most])
            matches.add((base + place - before, at - before, at + after))
            if len(matches) > _MOST_MATCHES:
                return None
            place = chunk.find(probe, place + 1)
    longest = sorted(matches, key=lambda match: match[2] - match[1])[-2:]
    if len({high - low for _, low, high in longest}) < len(longest):
        return None
    return longest[-1] if longest else None


def _pieces(printed: str) -> Iterator[tuple[int, str]]:
    """The pieces of the printed text, each with its offset."""
    at = 0
    for end in [*_PIECES.finditer(printed), None]:
        stop = end.start() if end else len(printed)
        yield at, printed[at:stop]
        at = end.end() if end else stop


def _common(one: str, other: str) -> int:
    """The length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _describe(text: Any, start: int, stop: int) -> Iterator[tuple[str, str]]:
    """The document and lines of a range: for its first and last document, or with an empty name without documents."""
    last = stop - 1
    one, other = protocol.document_at(text, start), protocol.document_at(text, last)
    if one and other and one != other:
        name, begins = one
        yield name, f"from {_lines(text, start, start, begins)} to its end"
        start = other[1]
    name, begins = other or one or ("", 0)
    yield name, _lines(text, max(start, begins), last, begins)


def _lines(text: Any, first: int, last: int, begins: int) -> str:
    """The lines of two characters, such as `lines 3-7`, counted from 1 at the character `begins` of their document."""
    numbers = [protocol.line_of(text, character) for character in (first, last, begins)]
    if None in numbers:
        return f"characters {first:,}-{last + 1:,}"
    one, other, base = (number or 0 for number in numbers)
    low, high = one - base + 1, other - base + 1
    return f"line {low}" if low == high else f"lines {low}-{high}"
