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
        """Seconds so far, and when they were counted."""

    @property
    def seconds(self) -> float:
        """The time so far, calls under way included."""
        with self._lock:
            return self._count()

    @property
    def is_running(self) -> bool:
        """Whether a call is under way."""
        with self._lock:
            self._count()
            return bool(self._calls)

    @contextmanager
    def running(self, mine: threading.Lock) -> Iterator[None]:
        """One call runs inside, while its caller holds `mine`.

        The caller holds it instead of this generator: an interrupt can leave the generator suspended with its locks.
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
        """Under the lock."""
        seconds, then = self._counted
        now = time.perf_counter()
        self._counted = seconds + (now - then if self._calls else 0.0), now
        self._calls = [one for one in self._calls if one.locked()]
        return self._counted[0]
