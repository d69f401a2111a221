"""Clocks that code takes as an argument, so that tests need not wait."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Time that only goes forward."""

    def now(self) -> float:
        """Seconds since some fixed moment."""
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
