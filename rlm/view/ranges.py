"""Half-open ranges of characters: their union, and fewer of them for a map of bounded size."""

from __future__ import annotations

from collections.abc import Iterable

Range = tuple[int, int]

MAP_STEPS = 4096
"""A map shows the text in about this many steps: more than a screen has columns, so nothing is lost to the eye."""


def union(ranges: Iterable[Range], gap: int = 0) -> list[Range]:
    """The same characters in order and without overlap; ranges with at most `gap` between them become one."""
    merged: list[Range] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        elif stop > start:
            merged.append((start, stop))
    return merged


def for_map(ranges: Iterable[Range], chars: int) -> list[Range]:
    """At most `MAP_STEPS` ranges: gaps that no map of a text of `chars` characters could show are closed."""
    return union(ranges, chars // MAP_STEPS)


def size(ranges: Iterable[Range]) -> int:
    """Characters in ranges without overlap."""
    return sum(stop - start for start, stop in ranges)
