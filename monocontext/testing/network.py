"""Simulate a network between a program and its store: latency profiles, and a link that connections share.

A draw from a profile picks one part by its weight, then `median * exp(spread * N(0, 1))`: log-normal, with a rare slow
part that makes the tail. The medians come from published measurements of S3; the last part of each profile, and all of
`far_150`, are guesses.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

CONNECTION_BYTES_PER_SECOND = 90e6  # the speed of one connection to S3, as published


class ProfilePart(NamedTuple):
    """One of the log-normal distributions of a profile."""

    weight: float
    """The probability of this part. The weights of a profile sum to 1."""
    median_seconds: float
    spread: float  # standard deviation of the logarithm; 0 for a constant


@dataclass(frozen=True, slots=True)
class Profile:
    """The distribution of the seconds from a request to the first byte of its answer."""

    name: str
    parts: tuple[ProfilePart, ...]

    def seconds(self, random: Random) -> float:
        """A random time: equal seeds give equal times. Takes one number of `random`, and one `gauss` for a spread."""
        (part,) = random.choices(self.parts, [part.weight for part in self.parts])
        return part.median_seconds * (math.exp(part.spread * random.gauss(0.0, 1.0)) if part.spread else 1.0)


def _make_profile(name: str, *parts: tuple[float, float, float]) -> Profile:
    """A profile from parts of (weight, median in milliseconds, spread)."""
    return Profile(name, tuple(ProfilePart(weight, ms / 1000, spread) for weight, ms, spread in parts))


PROFILES = {
    item.name: item
    for item in (
        # From a machine in the same zone, connections warm: p50 22, p99 130 ms.
        _make_profile("s3_standard_hot", (0.965, 22, 0.38), (0.033, 95, 0.45), (0.002, 600, 0.6)),
        # Cold objects, random ranges: p50 56, p99 272 ms.
        _make_profile("s3_standard_cold", (0.95, 55, 0.42), (0.047, 170, 0.45), (0.003, 800, 0.6)),
        # A laptop, or another region: p50 151, p99 366 ms; the mean of the slowest of 50 is 427 ms.
        _make_profile("far_150", (0.975, 150, 0.15), (0.023, 320, 0.35), (0.002, 1200, 0.5)),
        _make_profile("const_150", (1, 150, 0)),
        # S3 Express One Zone: p50 2.2, p99 7.4 ms.
        _make_profile("s3_express", (0.985, 2.2, 0.3), (0.0145, 9, 0.5), (0.0005, 60, 0.6)),
        # For measuring everything but latency.
        _make_profile("zero", (1, 0.0001, 0)),
    )
}
"""Latency profiles by name."""


def profile(name: str) -> Profile:
    """The profile with this name. Raises `ValueError`, whose message lists all names."""
    if name not in PROFILES:
        raise ValueError(f"no profile {name!r}: choose from {', '.join(PROFILES)}")
    return PROFILES[name]


class SimulatedLink:
    """Computes when bytes arrive over a link that connections share, without waiting. A speed of `None` is no limit."""

    def __init__(
        self, connection_bytes_per_second: float | None = None, link_bytes_per_second: float | None = None
    ) -> None:
        self._connection_seconds = 1 / connection_bytes_per_second if connection_bytes_per_second else 0.0
        self._link_seconds = 1 / link_bytes_per_second if link_bytes_per_second else 0.0
        self._lock = threading.Lock()
        self._free_at = 0.0  # the time at which the link has moved all bytes so far

    @property
    def is_unlimited(self) -> bool:
        """Whether the link has no limit, so that nothing waits for it."""
        return not self._connection_seconds and not self._link_seconds

    def arrival(self, size_bytes: int, previous_arrival: float) -> float:
        """The time, in seconds, at which the next `size_bytes` of a connection arrive, after its earlier bytes arrived
        at `previous_arrival`. Connections share the link fairly if they move pieces of some 256 KiB."""
        alone = previous_arrival + size_bytes * self._connection_seconds
        if not self._link_seconds:
            return alone
        with self._lock:
            self._free_at = max(self._free_at, previous_arrival) + size_bytes * self._link_seconds
            return max(self._free_at, alone)
