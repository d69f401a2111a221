"""Latency profiles: the seconds to the first byte of a request, shared by tests and benchmarks. Pure.

A draw picks one part by its weight, then `median * exp(spread * N(0, 1))`: log-normal, with a rare slow part that makes
the tail. The medians come from published measurements of S3; the last part of each, and all of `far_150`, are guesses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import NamedTuple


class ProfilePart(NamedTuple):
    """One component of a profile."""

    weight: float
    """The probability of this part; the probabilities of a profile sum to 1."""
    median_seconds: float
    spread: float
    """Standard deviation of the logarithm; 0 for a constant."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Seconds to the first byte of a request, as a distribution."""

    name: str
    parts: tuple[ProfilePart, ...]

    def seconds(self, random: Random) -> float:
        """One draw: two or three numbers from `random`, so equal seeds give equal waits."""
        left = random.random()
        for part in self.parts:
            left -= part.weight
            if left < 0:
                break
        return (
            part.median_seconds * math.exp(part.spread * random.gauss(0.0, 1.0)) if part.spread else part.median_seconds
        )


def _make_profile(name: str, *parts: tuple[float, float, float]) -> Profile:
    """A profile from parts of (weight, median in milliseconds, spread)."""
    return Profile(name, tuple(ProfilePart(weight, ms / 1000, spread) for weight, ms, spread in parts))


PROFILES = {
    each.name: each
    for each in (
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
"""How long answers of a store take, by the name of a place."""


def profile(name: str) -> Profile:
    """A profile by its name. Raises `ValueError` with the names that there are."""
    if name not in PROFILES:
        raise ValueError(f"no profile {name!r}: there are {', '.join(PROFILES)}")
    return PROFILES[name]
