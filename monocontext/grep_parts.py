"""`grep` by several workers: ranges of a text go out to an executor, their hits come back in order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from typing import Any, Protocol

from monocontext.grep import Hit
from monocontext.regex.linewise import Linewise
from monocontext.source import Span
from monocontext.spread import in_order

PART_FRAMES = 256
"""Candidates that one worker takes at a time: four segments or so."""
PART_CHARACTERS = 64 << 20
"""The same of text in which a match may be anywhere."""


class Text(Protocol):
    """What is searched; a pickle of it opens the same text elsewhere."""

    @property
    def span(self) -> Span: ...

    def grep(self, pattern: Any, *, start: int, stop: int | None, max_hits: int | None) -> Iterator[Hit]: ...


def grep_parts(
    text: Text, sought: Linewise, first: int, stop: int | None, most: int | None, executor: Executor
) -> Iterator[Hit]:
    """The hits among lines that begin at characters [first, stop), found by the executor's workers.

    1 GET a part more than `grep` takes, for the root, and what filters need once a part.
    """
    work = partial(_hits, text, list(sought.patterns), most)
    parts = in_order(executor, work, _ranges(text.span, sought, first, stop))
    try:
        yield from islice((hit for hits in parts for hit in hits), most)
    finally:
        parts.close()


def _hits(text: Text, patterns: list[Any], most: int | None, part: tuple[int, int | None]) -> list[Hit]:
    """What a worker does."""
    return list(text.grep(patterns, start=part[0], stop=part[1], max_hits=most))


def _ranges(span: Span, sought: Linewise, first: int, stop: int | None) -> Iterator[tuple[int, int | None]]:
    """Ranges that join: each with so many candidates, or so much text."""
    only = span.candidates(sought.need, first, stop, within_line=True)
    size = len(span) if stop is None else stop
    if only is None:
        cuts = list(range(first + PART_CHARACTERS, size, PART_CHARACTERS))
    else:
        cuts, taken = [], 0
        for (low, high), region in zip(only.runs, only.regions(), strict=True):
            if taken >= PART_FRAMES:
                cuts.append(region.start - span.start)
                taken = 0
            taken += high - low
    return zip([first, *cuts], [*cuts, stop], strict=True)
