"""Measure the link to a store, and how many requests it takes at once. Times come in as arguments."""

from __future__ import annotations

NEAR_SECONDS = 0.001
"""A store that answers faster is memory, a disk or a server next door: there a round trip costs nothing. The fastest
remote store, S3 Express, takes 2.2 ms."""
FIRST_BYTES_PER_SECOND = 100e6
"""The assumed rate before a transfer was measured: a laptop's or a container's link."""
FIRST_WAVE_BYTES = 8 << 20
"""One wave carries at least this much before any transfer was measured, a text of 20 to 40 MB: at 100 MB/s it takes 80
ms, as long as the three round trips of a search by filters from another zone."""
_SMALL_BYTES = 64 << 10
"""Answers up to this size measure round trips: the body takes under 1 ms at 90 MB/s."""
_TRANSFER_BYTES = 2 << 20
"""The least bytes of a busy spell that measure the rate; fewer measure round trips."""
DECREASE = 0.5
"""The factor of the limit after a refusal."""
GROWTH_PER_SECOND = 1.0
"""The limit also grows by this much a second, if the answers raise it less: a reader that asks for a frame now and then
is back at its maximum after half a minute instead of 1,500 answers."""


class Link:
    """The measured link from one reader to its store. A spell is the time from a first request to an idle link."""

    def __init__(self, round_trip_seconds: float | None):
        self.round_trip_seconds = round_trip_seconds
        """The time of the quickest small answer; 0 for a near store; None before one was measured."""
        self._measured_rate: float | None = None
        self._spell_began = 0.0
        self._spell_bytes = 0
        self._spell_rate = 0.0

    @property
    def bytes_per_second(self) -> float:
        """The rate of the last long spell without its first round trip."""
        return self._measured_rate or FIRST_BYTES_PER_SECOND

    @property
    def is_far(self) -> bool:
        """Whether a round trip takes at least `NEAR_SECONDS`, so that saving one is worth more bytes."""
        return self.round_trip_seconds is not None and self.round_trip_seconds >= NEAR_SECONDS

    def carries(self, stored_bytes: int) -> bool:
        """Whether one wave of requests transfers this many bytes about as fast as a small answer arrives."""
        if not self.is_far:
            return stored_bytes <= 0
        assert self.round_trip_seconds is not None
        wave_bytes = int(self.round_trip_seconds * self.bytes_per_second)
        return stored_bytes <= (wave_bytes if self._measured_rate else max(wave_bytes, FIRST_WAVE_BYTES))

    def begin_spell(self, now: float) -> None:
        """Begin to measure the rate: a request is sent while no other is running."""
        self._spell_began, self._spell_bytes, self._spell_rate = now, 0, 0.0

    def answered(self, size_bytes: int, began: float, now: float) -> None:
        """Note an answer of the store to a request that was sent at `began`."""
        seconds = now - began
        if size_bytes <= _SMALL_BYTES and (self.round_trip_seconds is None or seconds < self.round_trip_seconds):
            self.round_trip_seconds = seconds
        self._spell_bytes += size_bytes
        if self._spell_bytes >= _TRANSFER_BYTES:
            transfer_seconds = now - self._spell_began - (self.round_trip_seconds or 0.0)
            # Of concurrent answers, the first counts in full; what has arrived of the others does not count.
            self._spell_rate = max(self._spell_rate, self._spell_bytes / max(transfer_seconds, 1e-3))
            self._measured_rate = self._spell_rate


class Pressure:
    """The limit of concurrent requests of one fetcher, by the answers of the store. Its owner holds the lock.

    As in TCP, a wave of refusals (503 SlowDown) halves it once, and answers raise it slowly to its maximum (AIMD: Chiu
    and Jain, 1989).
    """

    __slots__ = ("_decreased", "_exact", "_grown", "is_throttled", "limit", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        """The most requests at once when nothing is refused."""
        self.limit = maximum
        """The most requests that may run now."""
        self.is_throttled = False
        """Whether a recent refusal still limits speculative requests."""
        self._exact = float(maximum)
        self._decreased = float("-inf")
        self._grown = float("-inf")

    def refused(self, sent: float, now: float, running: int) -> bool:
        """Record that the store refused a request of the time `sent`, because `running` requests were too many.

        The limit falls to half of `running`, or of the limit if that is lower. Returns whether it fell.
        """
        if sent < self._decreased:
            return False
        self._decreased = self._grown = now
        self._set(max(1.0, min(self._exact, float(running)) * DECREASE))
        return True

    def answered(self, now: float) -> None:
        """Record an answer without a refusal: the limit grows by one for each `limit` answers."""
        if self.is_throttled:
            seconds = max(0.0, now - self._grown)
            self._set(min(self.maximum, self._exact + max(1 / self._exact, seconds * GROWTH_PER_SECOND)))
        self._grown = now

    def _set(self, limit: float) -> None:
        self.is_throttled = True  # in case an exception interrupts this
        self._exact = limit
        self.limit = int(limit)
        self.is_throttled = limit < self.maximum

    def __repr__(self) -> str:
        return f"<Pressure {self.limit}/{self.maximum} requests at once>"
