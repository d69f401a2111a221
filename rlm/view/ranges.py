"""Reduce ranges of characters to a map of bounded size."""

from __future__ import annotations

from collections.abc import Iterable

from rlm.trajectory.ranges import Range, union

MAP_STEPS = 4096
"""A map of one cell has about so many steps: more than a screen has columns, so nothing is lost to the eye."""
MAP_COLUMNS = 1000
"""Steps of the map of all cells, which says how much of each step was read."""


def simplify_for_map(ranges: Iterable[Range], chars: int) -> list[Range]:
    """At most `MAP_STEPS` ranges: gaps that no map of a text of `chars` characters could show are closed."""
    return union(ranges, chars // MAP_STEPS)


def shares_read(ranges: Iterable[Range], chars: int, steps: int = MAP_COLUMNS) -> list[int]:
    """For each of `steps` equal parts of a text, the share that lies in `ranges`, in thousandths.

    `ranges` without overlap. What is there at all counts at least one thousandth. Empty where the text is.
    """
    if chars <= 0:
        return []
    found = [0.0] * steps
    width = chars / steps
    for start, stop in ranges:
        first, last = min(int(start / width), steps - 1), min(int((stop - 1) / width), steps - 1)
        for i in range(first, last + 1):
            found[i] += min(stop, (i + 1) * width) - max(start, i * width)
    return [0 if part <= 0 else min(1000, max(1, round(1000 * part / width))) for part in found]
