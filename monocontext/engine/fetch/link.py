"""Measure the link from a reader to its store, and send fewer requests at once when the store refuses some.

The fetcher reports each answer, with the times at which the request was sent and the answer arrived. Nothing here sends
a request or reads a clock. The fetcher holds the lock.
"""

from __future__ import annotations

from monocontext.records import dataclass

FIRST_BYTES_PER_SECOND = 100e6  # the assumed rate before a transfer was measured: a laptop's or a container's link
_SMALL_BYTES = 64 << 10  # answers up to this size measure round trips: the body takes under 1 ms at 90 MB/s
_TRANSFER_BYTES = 2 << 20  # the least bytes of a busy period that measure the rate; fewer measure round trips
DECREASE = 0.5  # the factor of the limit after a refusal
GROWTH_PER_SECOND = 1.0
"""The limit grows by at least this much a second: a reader that fetches a frame now and then is back at its maximum
after half a minute instead of 1,500 answers."""


@dataclass(slots=True, eq=False)
class Link:
    """The measured speed of a link.

    The rate is measured over busy periods. One lasts from the first request on an idle link until none is running.
    """

    round_trip_seconds: float | None
    """The time of the quickest small answer; 0 for a near store; None before one was measured."""
    bytes_per_second: float = FIRST_BYTES_PER_SECOND
    """The rate of the last long busy period, not counting its first round trip."""
    is_rate_measured: bool = False  # whether there was such a period; before one, the rate is assumed
    _busy_since: float = 0.0
    _busy_bytes: int = 0
    _busy_rate: float = 0.0

    def begin_busy_period(self, now: float) -> None:
        """Begin to measure the rate: a request is sent while no other is running."""
        self._busy_since, self._busy_bytes, self._busy_rate = now, 0, 0.0

    def note_answer(self, size_bytes: int, sent_at: float, now: float) -> None:
        """Note an answer of `size_bytes` that arrives now, to a request sent at the time `sent_at`."""
        seconds = now - sent_at
        if size_bytes <= _SMALL_BYTES and (self.round_trip_seconds is None or seconds < self.round_trip_seconds):
            self.round_trip_seconds = seconds
        self._busy_bytes += size_bytes
        if self._busy_bytes >= _TRANSFER_BYTES:
            transfer_seconds = now - self._busy_since - (self.round_trip_seconds or 0.0)
            # The first of concurrent answers counts in full, and nothing of those that have partly arrived.
            self._busy_rate = max(self._busy_rate, self._busy_bytes / max(transfer_seconds, 1e-3))
            self.bytes_per_second, self.is_rate_measured = self._busy_rate, True


@dataclass(slots=True, eq=False)
class ConcurrencyLimit:
    """Limits how many requests of one fetcher run at once, according to the answers of the store.

    As in TCP, a wave of refusals (503 SlowDown) halves it once, and answers raise it slowly to its maximum (AIMD: Chiu
    and Jain, 1989).
    """

    maximum: int  # the most requests at once while nothing is refused
    current: int  # the most requests that may run now; at first the maximum
    is_throttled: bool = False  # whether a recent refusal still keeps it below the maximum
    _exact: float = float("inf")  # `current` before it was rounded down; infinite before the first refusal
    _decreased: float = float("-inf")  # the time of the last decrease
    _changed: float = float("-inf")  # the time of the last decrease or answer

    def note_refusal(self, sent_at: float, now: float, running: int) -> bool:
        """Note that the store refused a request sent at the time `sent_at`, while `running` requests were under way.

        The limit falls to half of `running`, or of itself if that is lower. Returns whether it fell: it does not for a
        request that was sent before it last fell.
        """
        if sent_at < self._decreased:
            return False
        self._decreased = self._changed = now
        self._set(max(1.0, min(self._exact, float(running)) * DECREASE))
        return True

    def note_answer(self, now: float) -> None:
        """Note an answer without a refusal: the limit grows by one for each `current` answers."""
        if self.is_throttled:
            seconds = max(0.0, now - self._changed)
            self._set(min(self.maximum, self._exact + max(1 / self._exact, seconds * GROWTH_PER_SECOND)))
        self._changed = now

    def _set(self, limit: float) -> None:
        self.is_throttled = True  # in case an exception interrupts this
        self._exact = limit
        self.current = int(limit)
        self.is_throttled = limit < self.maximum

    def __repr__(self) -> str:
        return f"<ConcurrencyLimit {self.current}/{self.maximum} requests at once>"
