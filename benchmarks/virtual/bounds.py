"""Compute lower bounds: what no reader can beat, and what a perfect one without reading ahead takes. Pure.

Bytes are whole frames and what it takes to find them: what the format lets a client fetch. Memory is unlimited and the
processor free. The oracle asks for everything at the beginning, in order of first use, while the first call of the
model runs; the reactive reader asks for what an operation needs when it needs it, all at once.
The oracle's first byte takes the median of the profile; the reactive reader, who waits for one after another, pays its
mean.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.virtual.crew import Distance
from benchmarks.virtual.play import Operation


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds of waiting."""

    oracle: float
    reactive: float
    bounded: float
    """Of an oracle that may hold no more than a cache of what is not used yet, and none of what was."""
    used_bytes: int
    """That at least one operation looked at, each once."""

    def regret(self, stall_seconds: float) -> float:
        """0 for the oracle, 1 for the reactive reader; room between them of less than 0.1 s counts as that."""
        return (stall_seconds - self.oracle) / max(self.reactive - self.oracle, 0.1)


def bounds(operations: Sequence[Operation], distance: Distance, most_bytes: int, cache_bytes: int) -> Bounds:
    """From the operations of a run that waited for nothing; `most_bytes` is all there is to fetch."""
    first, mean, speed = distance.first_byte_seconds, distance.mean_seconds, distance.bytes_per_second
    oracle = reactive = 0.0
    fetched = 0
    for operation in operations:
        new = min(operation.used_bytes, most_bytes - fetched)
        if new <= 0:
            continue
        fetched += new
        arrives = first + fetched / speed
        oracle += max(0.0, arrives - operation.free_seconds - oracle)
        reactive += mean + new / speed
    return Bounds(oracle, reactive, _bound_seconds(operations, distance, cache_bytes), fetched)


def _bound_seconds(operations: Sequence[Operation], distance: Distance, cache_bytes: int) -> float:
    """Seconds that operations wait where at most `cache_bytes` are ahead of them."""
    first, speed = distance.first_byte_seconds, distance.bytes_per_second
    stall = ahead = 0.0
    free = first  # time in which bytes come begins with the first of them
    for operation in operations:
        ahead = min(ahead + max(0.0, operation.free_seconds - free) * speed, cache_bytes)
        late = max(0.0, free - operation.free_seconds) if operation.used_bytes else 0.0
        free = max(free, operation.free_seconds)
        missing = max(0.0, operation.used_bytes - ahead)
        ahead = max(0.0, ahead - operation.used_bytes)
        if missing:
            stall += missing / speed + late
            free -= late
    return stall


def unforeseen(
    codes: Sequence[str], outputs: Sequence[str], after: str, first_seconds: float, characters_per_second: float
) -> float:
    """Seconds that searches wait at least for whoever knows a needle only once it is written: two round trips, for rows
    and then for a frame, less what is written behind it, of the code and `after` that. A needle whose longest word was
    printed or written before counts as known, and of the searches of one reply the first alone."""
    known = ""
    stall = 0.0
    for code, printed in zip(codes, outputs, strict=True):
        for needle, characters_after in _needles(code):
            if max(re.findall(r"\w+", needle), key=len, default="") not in known:
                stall += max(0.0, 2 * first_seconds - (characters_after + len(after)) / characters_per_second)
                break
        known += code + printed
    return stall


def _needles(code: str) -> Iterator[tuple[str, int]]:
    """Literals that this code looks for in the context, and how many characters it goes on after each."""
    lines = [0]
    for line in code.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    for node in ast.walk(ast.parse(code)):
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(value=ast.Name(id="context"), attr="find" | "rfind"),
                    args=[ast.Constant(value=str(needle)) as literal, *_],
                )
                | ast.Call(args=[ast.Constant(value=str(needle)) as literal, ast.Name(id="context"), *_])
            ):
                end = lines[(literal.end_lineno or 1) - 1] + (literal.end_col_offset or 0)
                yield needle, len(code.encode()[end:].decode())
