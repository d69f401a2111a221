"""Reduce the ranges of a cell to a map of bounded size."""

from __future__ import annotations

from collections.abc import Iterable

from rlm.trajectory.ranges import Range, union

MAP_STEPS = 4096
"""A map of one cell has about so many steps: more than a screen has columns, so nothing is lost to the eye."""


def simplify_for_map(ranges: Iterable[Range], chars: int) -> list[Range]:
    """At most `MAP_STEPS` ranges: gaps that no map of a text of `chars` characters could show are closed."""
    return union(ranges, chars // MAP_STEPS)
