"""What no reader can beat, and what a perfect one without reading ahead takes. Pure.

Bytes are whole frames and what it takes to find them: what the format lets a client fetch. Memory is unlimited and the
processor free. The oracle asks for everything at the beginning, in order of first use, while the first call of the
model runs; the reactive reader asks for what an operation needs when it needs it, all at once.
The oracle's first byte takes the median of the profile; the reactive reader, who waits for one after another, pays its
mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.virtual.crew import Distance
from benchmarks.virtual.traced import Operation


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
    return Bounds(oracle, reactive, _bounded(operations, distance, cache_bytes), fetched)


def _bounded(operations: Sequence[Operation], distance: Distance, cache_bytes: int) -> float:
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


def download_all(operations: Sequence[Operation], distance: Distance, size_bytes: int) -> float:
    """Seconds that the first look at the text waits until all of it is here, asked for at the beginning."""
    for operation in operations:
        return max(0.0, distance.first_byte_seconds + size_bytes / distance.bytes_per_second - operation.free_seconds)
    return 0.0
