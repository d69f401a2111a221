"""Compute when bytes arrive: each connection has its own speed, and all share one link. Callers bring the clock."""

from __future__ import annotations

import threading

CONNECTION_BYTES_PER_SECOND = 90e6
"""The published speed of one connection to S3."""


class SimulatedLink:
    """One link for any number of connections, as a token clock. `None` for a speed is no limit."""

    def __init__(
        self, connection_bytes_per_second: float | None = None, link_bytes_per_second: float | None = None
    ) -> None:
        self._connection_seconds = 1 / connection_bytes_per_second if connection_bytes_per_second else 0.0
        self._link_seconds = 1 / link_bytes_per_second if link_bytes_per_second else 0.0
        self._lock = threading.Lock()
        self._free = 0.0

    @property
    def is_free(self) -> bool:
        """Whether nothing ever waits for it."""
        return not self._connection_seconds and not self._link_seconds

    def arrival(self, size_bytes: int, begun: float) -> float:
        """The moment at which the next bytes of a connection arrive, when its earlier bytes arrived at `begun`.

        Both are moments on the caller's clock; `begun` is not in the future, since the link is not reserved ahead.
        Pieces of some 256 KiB share the link fairly; larger ones hog it.
        """
        alone = begun + size_bytes * self._connection_seconds
        if not self._link_seconds:
            return alone
        with self._lock:
            self._free = max(self._free, begun) + size_bytes * self._link_seconds
            return max(self._free, alone)
