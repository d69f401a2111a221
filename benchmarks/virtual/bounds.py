"""Compute lower bounds of waiting, for an oracle and for a perfect reader that never reads ahead. Pure.

Bytes are those of whole frames and of the index and filters that find them: a client cannot fetch less. Memory is
unlimited and the processor takes no time. The oracle requests everything at the start, in order of first use, while the
model is in its first call. The reactive reader requests all that an operation needs when it begins.
The oracle's first byte takes the median of the profile; the reactive reader's requests take its mean.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.virtual.play import Operation
from benchmarks.virtual.workers import Distance


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds of waiting."""

    oracle: float
    reactive: float
    bounded: float
    """The oracle, if it may hold at most a cache of bytes that are not used yet."""
    used_bytes: int
    """Bytes that at least one operation used."""

    def regret(self, stall_seconds: float) -> float:
        """0 for the oracle, 1 for the reactive reader; a difference between them below 0.1 s counts as 0.1 s."""
        return (stall_seconds - self.oracle) / max(self.reactive - self.oracle, 0.1)


def bounds(operations: Sequence[Operation], distance: Distance, most_bytes: int, cache_bytes: int) -> Bounds:
    """The bounds for the operations of a run that never waited; `most_bytes` is the size of all objects."""
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
    return Bounds(oracle, reactive, _bounded_oracle(operations, distance, cache_bytes), fetched)


def _bounded_oracle(operations: Sequence[Operation], distance: Distance, cache_bytes: int) -> float:
    """Seconds that operations wait for an oracle that is at most `cache_bytes` ahead."""
    first, speed = distance.first_byte_seconds, distance.bytes_per_second
    stall = ahead = 0.0  # `ahead` counts bytes that have arrived and are not used yet
    counted = first  # free seconds whose arriving bytes are in `ahead`; none arrive before the first byte
    for operation in operations:
        ahead = min(ahead + max(0.0, operation.free_seconds - counted) * speed, cache_bytes)
        late = max(0.0, counted - operation.free_seconds) if operation.used_bytes else 0.0
        counted = max(counted, operation.free_seconds)
        missing = max(0.0, operation.used_bytes - ahead)
        ahead = max(0.0, ahead - operation.used_bytes)
        if missing:
            stall += missing / speed + late
            counted -= late
    return stall


def unforeseen(
    codes: Sequence[str], outputs: Sequence[str], after: str, first_seconds: float, characters_per_second: float
) -> float:
    """The least seconds of waiting for searches whose needle appears only in the code that searches.

    Each takes two round trips, for filter rows and for a frame, less the time in which the model writes the rest of the
    code, and `after`. A needle is known if its longest word was printed or written before. Only the first such search
    of a reply counts.
    """
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
    """Literals that this code searches the context for, each with the number of characters that follow it."""
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
