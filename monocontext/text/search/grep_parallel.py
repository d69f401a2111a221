"""Run `grep` in several workers: an executor gets ranges of a text, and returns their hits in order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from typing import Any, Protocol

from monocontext.stores.parallel import in_order
from monocontext.text.regex.linewise import Linewise
from monocontext.text.search.grep import Hit
from monocontext.text.source import Span

PART_FRAMES = 256
"""Candidates that one worker searches at a time: about four segments."""
PART_CHARACTERS = 64 << 20
"""Characters that one worker searches at a time where a match may be anywhere."""

PARTS_AHEAD = 64
"""Parts that workers have at once. Their hits wait here for those before them."""


class GrepTarget(Protocol):
    """The text to search; a pickle of it opens the same text in another process."""

    @property
    def span(self) -> Span: ...

    def grep(self, pattern: Any, *, start: int, stop: int | None, max_hits: int | None) -> Iterator[Hit]: ...


def grep_parts(
    text: GrepTarget, linewise: Linewise, first: int, stop: int | None, most: int | None, executor: Executor
) -> Iterator[Hit]:
    """The hits among lines that begin at characters [first, stop), found by the executor's workers.

    Each part costs the GETs of `grep`, 1 more for the root, and the blocks of filters again.
    """
    work = partial(_search_part, text, list(linewise.patterns), most)
    parts = in_order(executor, work, _ranges(text.span, linewise, first, stop), PARTS_AHEAD)
    try:
        yield from islice((hit for hits in parts for hit in hits), most)
    finally:
        parts.close()


def _search_part(text: GrepTarget, patterns: list[Any], most: int | None, part: tuple[int, int | None]) -> list[Hit]:
    """Search one range, in a worker."""
    return list(text.grep(patterns, start=part[0], stop=part[1], max_hits=most))


def _ranges(span: Span, linewise: Linewise, first: int, stop: int | None) -> Iterator[tuple[int, int | None]]:
    """Adjacent ranges, each with so many candidates or so much text; in a huge text each with filters of its own, which
    its worker looks up."""
    if cuts := span.stretches(first, stop):
        return zip([first, *cuts], [*cuts, stop], strict=True)
    only = span.candidates(linewise.query, first, stop, within_line=True)
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
