"""Find where in the context the text comes from that a cell printed, to tell the model its document and lines.

A search reads far more than it prints, so the ranges that were read do not give the place. The longest pieces of the
printed text do: they are searched for in these ranges, and only exact matches count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rlm.context import protocol
from rlm.models.log import WARNING, log

_MOST_PLACES = 3
_MOST_TRIED = 4
_FEWEST_CHARACTERS = 24
"""The shortest piece to search for; shorter ones may match by chance."""
_SEARCHED = 1 << 19
"""The characters to search at the end of each range, since a search ends in the frame of its hit (256 KiB)."""
_MOST_RANGES = 8
_MOST_MATCHES = 50
"""The most places of a piece; a piece with more does not show where it was read."""
_IN_MEMORY = 20_000_000
"""The longest `str` that is searched."""
_PIECES = re.compile(r"\n|\\n|\\t")
"""Separators of pieces in printed text and in a printed repr."""


def describe_printed(context: object, printed: str, ranges: Sequence[Sequence[int]] | None) -> str:
    """A line such as `[read: src/a.py (lines 120-148)]`; empty if no printed text is found. `ranges`: the characters
    that the cell read; None if the context does not say.

    Costs at most 3 small GETs a place; none if their pages were read before.
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
        forms = [printed, _unescape(printed)] if "\\n" in printed else [printed]
        found = max((_merge(_find(form, chunks)) for form in forms), key=lambda spans: sum(b - a for a, b in spans))
        places: dict[str, list[str]] = {}
        for start, stop in found:
            for name, lines in _describe(text, start, stop):
                places.setdefault(name, []).append(lines)
    except Exception as exc:  # a context is any object: whatever its reading raises, the output is there
        log(WARNING, "the place of an output in the context was not found: %s", type(exc).__name__)
        return ""
    parts_read = []
    for name, found_lines in places.items():
        shown = " and ".join(dict.fromkeys(found_lines))
        parts_read.append(f"{name} ({shown})" if name else shown)
    return f"[read: {'; '.join(parts_read)}]" if parts_read else ""


def _unescape(printed: str) -> str:
    """The text of a repr; only the escapes that matter here are undone."""
    return printed.replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'")


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in the order of the text; spans separated only by a line break are joined."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1] + 2:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return merged


def _find(printed: str, chunks: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """Ranges of the context that occur in the printed text, the longest pieces first. `chunks`: (start, text) of the
    context."""
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
    """The longest common text around a probe, which is at `at` in the printed text: its first character in the context,
    and its span in the printed text. None if the probe has no place, or several that are equally good."""
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
    """The pieces of the printed text, each with its start."""
    at = 0
    for end in [*_PIECES.finditer(printed), None]:
        stop = end.start() if end else len(printed)
        yield at, printed[at:stop]
        at = end.end() if end else stop


def _common(one: str, other: str) -> int:
    """The length of the common beginning of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _describe(text: Any, start: int, stop: int) -> Iterator[tuple[str, str]]:
    """Name and lines of the document of a range, or of two documents; the name is empty in a text without documents."""
    last = stop - 1
    one, other = protocol.document_at(text, start), protocol.document_at(text, last)
    if one and other and one != other:
        name, begins = one
        yield name, f"from {_lines(text, start, start, begins)} to its end"
        start = other[1]
    name, begins = other or one or ("", 0)
    yield name, _lines(text, max(start, begins), last, begins)


def _lines(text: Any, first: int, last: int, begins: int) -> str:
    """Lines from 1, counted within the document that begins at the character `begins`."""
    numbers = [protocol.line_of(text, character) for character in (first, last, begins)]
    if None in numbers:
        return f"characters {first:,}-{last + 1:,}"
    one, other, base = (number or 0 for number in numbers)
    low, high = one - base + 1, other - base + 1
    return f"line {low}" if low == high else f"lines {low}-{high}"
