"""Classify the address of each operation: of ten classes, the first that fits. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from benchmarks.virtual.traced import Operation

GRAIN = 64 << 10
"""Characters that count as the same place."""
_SEARCHES = ("find", "rfind", "in", "count", "scan", "lower", "finditer", "findall", "search")


def classify(operations: Sequence[Operation], codes: Sequence[str], characters: int) -> Counter[str]:
    """How many operations fall into each class. `codes`: what each turn ran."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    hits: list[int] = []
    before: list[Operation] = []
    literals = [_integers(code) for code in codes]
    for operation in operations:
        start, stop = operation.start, operation.stop
        grains = set(range(start // GRAIN, max(stop - 1, start) // GRAIN + 1))
        if operation.kind in _SEARCHES:
            name = "scan"
        else:
            name = _of_slice(operation, grains, seen, hits, before, literals[operation.turn], characters)
            seen |= grains
            before.append(operation)
        if operation.found >= 0:
            hits.append(operation.found)
        found[name] += 1
    return found


def _of_slice(
    operation: Operation,
    grains: set[int],
    seen: set[int],
    hits: list[int],
    before: list[Operation],
    literals: set[int],
    characters: int,
) -> str:
    start, stop = operation.start, operation.stop
    if grains <= seen:
        return "re-read"
    if stop <= GRAIN:
        return "head"
    if start >= characters - GRAIN:
        return "tail"
    last = before[-1] if before else None
    if last is not None:
        if 0 <= start - last.stop <= GRAIN or last.start < start <= last.stop:
            return "sequential"
        if 0 <= last.start - stop <= GRAIN:
            return "backward"
        if len(before) > 1 and start - last.start == last.start - before[-2].start:
            return "stride"
    if any(start - GRAIN <= hit <= stop + GRAIN for hit in hits):
        return "hit window"
    return "code-known" if {start, stop} & literals else "unpredictable"


def _integers(code: str) -> set[int]:
    return {
        node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant) and type(node.value) is int
    }
