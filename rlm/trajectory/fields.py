"""Read fields of a trajectory's lines, which other programs or an attacker may have written; merge their ranges.

Every value is checked: an invalid number becomes None, and a value in place of a text becomes its JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

Range = tuple[int, int]
Number = TypeVar("Number", int, float)


def union(ranges: Iterable[tuple[Number, Number]], gap: int = 0) -> list[tuple[Number, Number]]:
    """The ranges in order and without overlaps. Ranges at most `gap` apart are joined."""
    merged: list[tuple[Number, Number]] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        elif stop > start:
            merged.append((start, stop))
    return merged


def ranges(block: Mapping[str, Any], name: str = "ranges") -> list[Range] | None:
    """The merged ranges that a cell read, or that it received (`name="handed"`); None if they are not recorded."""
    recorded = mapping(block.get("result")).get(name)
    if not isinstance(recorded, list):
        return None
    pairs = [(count(pair[0]), count(pair[1])) for pair in recorded if isinstance(pair, list) and len(pair) == 2]
    return union((start, stop) for start, stop in pairs if start is not None and stop is not None)


def number(value: object) -> float | None:
    """`value` if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count(value: object) -> int | None:
    """The whole part of a number from 0 to below 2**53, which a browser holds exactly; None for anything else."""
    result = number(value)
    return None if result is None or not 0 <= result < 2**53 else int(result)


def text(value: object) -> str:
    """`value` as text: a `str` as it is, an empty one for None, and JSON for anything else."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def items(value: object) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
