"""Measure the time during which at least one call is under way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class WaitClock:
    """Runs while any call does; overlapping calls count once. Safe for use by many threads.

    Each call holds a lock of its own, in a `with`: an interrupted call releases it, wherever the interrupt struck, and
    stops counting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[threading.Lock] = []
        self._counted = 0.0, 0.0
        """Seconds so far, and the clock when they were counted."""

    @property
    def seconds(self) -> float:
        """The seconds so far, including calls in progress."""
        with self._lock:
            return self._count()

    @contextmanager
    def running(self, mine: threading.Lock) -> Iterator[None]:
        """Count the time inside the block as a call, as long as the caller holds the lock `mine`.

        The caller must hold the lock itself: an interrupt can leave this generator suspended with a lock held.
        """
        with self._lock:
            self._count()
            self._calls.append(mine)
        try:
            yield
        finally:  # if this is not reached, the free lock is not counted
            with self._lock:
                self._count()
                self._calls.remove(mine)

    def _count(self) -> float:
        """Add the time since the last count, and return the sum. Call it under the lock."""
        seconds, then = self._counted
        now = time.perf_counter()
        self._counted = seconds + (now - then if self._calls else 0.0), now
        if self._calls:
            self._calls = [call for call in self._calls if call.locked()]
        return self._counted[0]
