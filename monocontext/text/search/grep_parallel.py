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
"""The candidate frames of a part, if search filters tell which frames may match: about four segments."""
PART_CHARACTERS = 64 << 20  # the characters of a part, if a match may be anywhere
PARTS_AHEAD = 64
"""How many parts are in progress at once. The hits of a part wait until all parts before it are done."""

Part = tuple[int, int | None]
"""A range [start, stop) of characters that one worker searches; None for the end of the text."""


def grep_parts(
    text: Any, linewise: Linewise, first: int, stop: int | None, max_hits: int | None, executor: Executor
) -> Iterator[Hit]:
    """The first `max_hits` hits among lines that begin at characters [first, stop), found by the executor's workers,
    which open a pickle of `text`, a `Monocontext`.

    Each part costs the GETs of its `grep`, including those of its blocks of filters, and 1 more for the root.
    """
    work = partial(_search_part, text, list(linewise.patterns), max_hits)
    parts = in_order(executor, work, _split_into_parts(text.span, linewise, first, stop), PARTS_AHEAD)
    try:
        yield from islice((hit for hits in parts for hit in hits), max_hits)
    finally:
        parts.close()


def _search_part(text: Any, patterns: list[Any], max_hits: int | None, part: Part) -> list[Hit]:
    """All hits in one part. Runs in a worker."""
    start, stop = part
    return list(text.grep(patterns, start=start, stop=stop, max_hits=max_hits))


def _split_into_parts(span: Span, linewise: Linewise, first: int, stop: int | None) -> Iterator[Part]:
    """The adjacent parts of characters [first, stop), in order."""
    if cuts := span.filter_borders(first, stop):  # of a huge text: each worker looks up other filters
        return zip([first, *cuts], [*cuts, stop], strict=True)
    candidates = span.candidates(linewise.query, first, stop, within_line=True)
    if candidates is None:
        size = len(span) if stop is None else stop
        cuts = list(range(first + PART_CHARACTERS, size, PART_CHARACTERS))
    else:
        cuts, frames = [], 0
        for region in candidates.regions():
            if frames >= PART_FRAMES:
                cuts.append(region.start - span.start)
                frames = 0
            frames += region.frame_count
    return zip([first, *cuts], [*cuts, stop], strict=True)
