"""Reduce ranges of characters to the columns of a map that shows which parts of a text were read."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

MAP_COLUMNS = 1000
"""Columns of the map on a page."""
_ROUNDING = 1e-10
"""A smaller share of a column is an error of rounding, not a character."""


def shares_read(ranges: Iterable[tuple[int, int]], characters: int, steps: int = MAP_COLUMNS) -> list[int]:
    """For each of `steps` equal parts of a text, the share that is inside `ranges`, in thousandths.

    `ranges` must not overlap. A share above zero is at least one thousandth. Returns an empty list for an empty text.
    """
    if characters <= 0:
        return []
    shares = [0.0] * steps
    width = characters / steps
    for start, stop in ranges:
        for i in range(int(start / width), min(ceil(stop / width), steps)):
            shares[i] += (min(stop, (i + 1) * width) - max(start, i * width)) / width
    return [0 if share < _ROUNDING else min(1000, max(1, round(1000 * share))) for share in shares]
