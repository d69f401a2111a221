"""Learn how slow a body may be from the throughput of other connections. Pure.

A server that sends a byte now and then is never silent, and would keep a request busy until its deadline.
"""

from __future__ import annotations

from collections import deque

SLOWEST_BYTES_PER_SECOND = 256 << 10
"""A slower body is given up. S3 gives a connection some 90 MB/s; at this speed the largest request, of 8 MiB, would
still end in half of its deadline. Between the two, hedging covers late requests."""
SLOWEST_SHARE = 0.05
"""Share of the median of other connections below which a body is given up, where that is less: all bodies of a thin
line are slow."""
LEAST_SAMPLE_BYTES = 64 << 10
"""Smaller bodies arrive with their heads and do not measure throughput."""
_SAMPLES = 64
_LEAST_SAMPLES = 8


class Throughput:
    """Recent throughputs of bodies. Threads may share it: a lost sample does no harm."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_SAMPLES)

    def learn(self, count: int, seconds: float) -> None:
        """Add the sample of a body, or of a part of a slow one."""
        self._samples.append(count / max(seconds, 1e-6))

    @property
    def slowest(self) -> float:
        """Bytes a second below which a connection is given up."""
        samples = sorted(self._samples)
        if len(samples) < _LEAST_SAMPLES:
            return SLOWEST_BYTES_PER_SECOND
        return min(SLOWEST_BYTES_PER_SECOND, samples[len(samples) // 2] * SLOWEST_SHARE)
