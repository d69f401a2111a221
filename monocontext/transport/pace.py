"""How slow a body may be: learned from what other connections give. Pure.

A server that sends a byte now and then is never silent, and would keep a request until its deadline.
"""

from __future__ import annotations

from collections import deque

SLOWEST_BYTES_PER_SECOND = 256 << 10
"""A body that comes slower than this is given up. S3 gives a connection some 90 MB/s; at this pace the largest request,
of 8 MiB, would still end in half of its deadline. Between the two, hedging sees to what is late."""
SLOWEST_SHARE = 0.05
"""The same of what other connections give, where that is less than 5 MB/s each: all bodies of a thin line are slow."""
LEAST_SAMPLE_BYTES = 64 << 10
"""Smaller bodies come with their heads and say nothing of pace."""
_PACES = 64
_LEAST_PACES = 8


class Pace:
    """What connections have given lately while bodies came. Threads may share it: a lost sample does no harm."""

    def __init__(self) -> None:
        self._paces: deque[float] = deque(maxlen=_PACES)

    def learn(self, count: int, seconds: float) -> None:
        """Enter a body, or a part of one that took its time."""
        self._paces.append(count / max(seconds, 1e-6))

    @property
    def slowest(self) -> float:
        """Bytes a second below which a connection is worse than no connection."""
        paces = sorted(self._paces)
        if len(paces) < _LEAST_PACES:
            return SLOWEST_BYTES_PER_SECOND
        return min(SLOWEST_BYTES_PER_SECOND, paces[len(paces) // 2] * SLOWEST_SHARE)
