"""Reduce ranges of characters to the bars of a chart."""

from __future__ import annotations

from collections.abc import Iterable

MAP_COLUMNS = 1000
"""Steps of a map of all that was read, which says how much of each step was."""


def shares_read(ranges: Iterable[tuple[int, int]], characters: int, steps: int = MAP_COLUMNS) -> list[int]:
    """For each of `steps` equal parts of a text, the share inside `ranges` (which do not overlap), in thousandths.

    Any share above zero counts at least one thousandth. Empty for an empty text.
    """
    if characters <= 0:
        return []
    found = [0.0] * steps
    width = characters / steps
    for start, stop in ranges:
        first, last = min(int(start / width), steps - 1), min(int((stop - 1) / width), steps - 1)
        for i in range(first, last + 1):
            found[i] += min(stop, (i + 1) * width) - max(start, i * width)
    return [0 if part <= 0 else min(1000, max(1, round(1000 * part / width))) for part in found]
