"""Run `grep` in several workers: each searches a range of the text, and the hits are yielded in order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from typing import Any

from monocontext.stores.parallel import in_order
from monocontext.text.regex.linewise import Linewise
from monocontext.text.search.hits import Hit
from monocontext.text.source import Span

PART_FRAMES = 256
"""Frames that one worker searches at a time, where search filters tell which may match: about four segments."""
PART_CHARACTERS = 64 << 20  # characters that one worker searches at a time where a match may be anywhere
PARTS_AHEAD = 64
"""Parts that are in work at once. The hits of a part wait until all parts before it are done."""


def grep_parts(
    text: Any, linewise: Linewise, first: int, stop: int | None, max_hits: int | None, executor: Executor
) -> Iterator[Hit]:
    """The first `max_hits` hits among lines that begin at characters [first, stop), found by the executor's workers: a
    pickle of `text`, a `Monocontext`, opens it there.

    Each part costs the GETs of `grep`, 1 more for the root, and the blocks of filters again.
    """
    work = partial(_search_part, text, list(linewise.patterns), max_hits)
    parts = in_order(executor, work, _ranges(text.span, linewise, first, stop), PARTS_AHEAD)
    try:
        yield from islice((hit for hits in parts for hit in hits), max_hits)
    finally:
        parts.close()


def _search_part(text: Any, patterns: list[Any], most: int | None, part: tuple[int, int | None]) -> list[Hit]:
    """Search one range, in a worker."""
    return list(text.grep(patterns, start=part[0], stop=part[1], max_hits=most))


def _ranges(span: Span, linewise: Linewise, first: int, stop: int | None) -> Iterator[tuple[int, int | None]]:
    """Adjacent ranges of the text, one for each part."""
    if cuts := span.filter_borders(first, stop):
        return zip([first, *cuts], [*cuts, stop], strict=True)
    candidates = span.candidates(linewise.query, first, stop, within_line=True)
    if candidates is None:
        size = len(span) if stop is None else stop
        cuts = list(range(first + PART_CHARACTERS, size, PART_CHARACTERS))
    else:
        cuts, frames = [], 0
        for (low, high), region in zip(candidates.runs, candidates.regions(), strict=True):
            if frames >= PART_FRAMES:
                cuts.append(region.start - span.start)
                frames = 0
            frames += high - low
    return zip([first, *cuts], [*cuts, stop], strict=True)
