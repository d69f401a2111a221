"""Compute lower bounds of waiting, for an oracle and for a perfect reader that never reads ahead. Pure.

Bytes are those of whole frames and of the index and filters that find them: a client cannot fetch less. Memory is
unlimited and the processor takes no time. The oracle requests everything at the start, in order of first use, while the
model is in its first call. The reactive reader requests all that an operation needs when it begins.
The oracle's first byte takes the median of the profile; the reactive reader's requests take its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
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
