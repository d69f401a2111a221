"""Merge half-open ranges, of characters or of seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Range = tuple[int, int]
Number = TypeVar("Number", int, float)


def union(ranges: Iterable[tuple[Number, Number]], gap: int = 0) -> list[tuple[Number, Number]]:
    """The ranges in order and without overlaps; ranges at most `gap` characters apart are joined."""
    merged: list[tuple[Number, Number]] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        elif stop > start:
            merged.append((start, stop))
    return merged


def size(ranges: Iterable[Range]) -> int:
    """Characters in ranges without overlap."""
    return sum(stop - start for start, stop in ranges)
