"""Clocks for the simulated waits of tests: that of the machine, and one that moves only when a test advances it."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """A clock that never goes back."""

    def now(self) -> float:
        """Seconds since a fixed moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


class SystemClock:
    """The monotonic clock of the machine."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


class VirtualClock:
    """Time that passes only when `advance` or `sleep` is called; no thread waits.

    Sleeps of several threads add up. To model waits that overlap, let one thread call `advance`.
    """

    def __init__(self, start_seconds: float = 0.0) -> None:
        self._now = start_seconds
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<VirtualClock {self._now:.6f} s>"

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises `ValueError` for a negative number of seconds."""
        if seconds < 0:
            raise ValueError(f"seconds must not be negative, found {seconds}")
        with self._lock:
            self._now += seconds
