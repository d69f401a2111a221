"""Measure the link to the store: the seconds of a round trip, and the bytes a second.

Data that transfers no slower than a request is answered is requested in one wave: a search that looks at filters first
needs three round trips, for rows, for a frame, and for the text around a match in the next frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from monocontext.engine.fetch.listeners import Listener
from monocontext.engine.fetch.scheduler import Fetch
from monocontext.records import dataclass, field

if TYPE_CHECKING:
    from monocontext.stores.protocol import Blob

NEAR_SECONDS = 0.001
"""A store that answers faster is memory, a disk or a server next door: there a round trip costs nothing, a late answer
is this machine's own doing, and asking twice adds to it. The fastest remote store, S3 Express, takes 2.2 ms."""
FIRST_BYTES_PER_SECOND = 100e6
"""The assumed rate before a transfer was measured: a laptop's or a container's link."""
FIRST_WAVE_BYTES = 8 << 20
"""One wave carries at least this much before any transfer was measured: a text of 20 to 40 MB.

These are eight concurrent requests, of 12 ms each at the 90 MB/s of a connection. At 100 MB/s they take 80 ms, a third
of the time to read the text as one object, and as long as three round trips from another zone. Each later look at the
text saves these.
"""
_SMALL_BYTES = 64 << 10
"""Answers up to this size measure round trips: the body takes under 1 ms at 90 MB/s."""
_TRANSFER_BYTES = 2 << 20
"""The least bytes of a busy spell that measure the link; fewer measure round trips."""
_MEAN_BYTES = 4 << 20
"""The least bytes of a busy spell that count in the mean rate."""
_WEIGHT = 0.3
"""Weight of the newest measurement in the mean rate."""


def wave_bytes(round_trip_seconds: float | None, bytes_per_second: float | None) -> int:
    """The stored bytes that one wave of requests carries; None for a quantity that was not measured yet."""
    if round_trip_seconds is None or round_trip_seconds < NEAR_SECONDS:
        return 0
    if bytes_per_second is None:
        return max(int(round_trip_seconds * FIRST_BYTES_PER_SECOND), FIRST_WAVE_BYTES)
    return int(round_trip_seconds * bytes_per_second)


@dataclass(slots=True, eq=False)
class Bandwidth:
    """The mean rate of a link while it is busy, round trips included."""

    bytes_per_second: float = FIRST_BYTES_PER_SECOND
    _measured: bool = False
    _since: float | None = None
    _bytes: int = 0

    def begin(self, now: float | None) -> None:
        """Start a measurement, at the time at which a request was sent while none was running; None: stop it."""
        self._since, self._bytes = now, 0

    def arrived(self, size_bytes: int, now: float, idle: bool) -> None:
        """Count bytes that have arrived. `idle`: no other request is under way."""
        self._bytes += size_bytes
        if self._since is None or not (idle or self._bytes >= 16 * _MEAN_BYTES):
            return
        seconds = now - self._since
        if self._bytes >= _MEAN_BYTES and seconds > 0:
            weight = _WEIGHT if self._measured else 1.0
            self.bytes_per_second += weight * (self._bytes / seconds - self.bytes_per_second)
            self._measured = True
        self.begin(None if idle else now)


@dataclass(slots=True, eq=False)
class Link(Listener):
    """The measured link from one reader to its store. A spell is the time from a first request to an idle link."""

    round_trip_seconds: float | None = None
    """The time of the quickest small answer; 0 for a near store; None before one was measured."""
    bytes_per_second: float | None = None
    """The rate of the last long spell without its first round trip; None before there was one."""
    bandwidth: Bandwidth = field(default_factory=Bandwidth)
    _since: float = 0.0
    _spell_bytes: int = 0
    _spell_rate: float = 0.0
    _sent: dict[Fetch, float] = field(default_factory=dict)

    @property
    def is_far(self) -> bool:
        """Whether round trips take time that is worth saving."""
        return wave_bytes(self.round_trip_seconds, None) > 0

    def carries(self, stored_bytes: int) -> bool:
        """Whether one wave of requests transfers this many bytes about as fast as a small answer arrives."""
        return stored_bytes <= wave_bytes(self.round_trip_seconds, self.bytes_per_second)

    def reset_state(self) -> None:
        """End the spell. Its measurements are kept."""
        self._since = 0.0
        self._spell_bytes = 0
        self._spell_rate = 0.0
        self._sent.clear()
        self.bandwidth.begin(None)

    def sent(self, fetches: Sequence[Fetch], now: float, is_first: bool) -> None:
        if is_first:
            self.reset_state()
            self._since = now
            self.bandwidth.begin(now)
        for fetch in fetches:
            self._sent.setdefault(fetch, now)

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        sent = self._sent.pop(fetch, None)
        if blob.local or seconds is None:
            return
        size_bytes = len(blob.data)
        if size_bytes <= _SMALL_BYTES and (self.round_trip_seconds is None or seconds < self.round_trip_seconds):
            self.round_trip_seconds = seconds
        self._spell_bytes += size_bytes
        if sent is None or self._spell_bytes < _TRANSFER_BYTES:
            return
        transfer_seconds = sent + seconds - self._since - (self.round_trip_seconds or 0.0)
        # Of concurrent answers, the first counts in full; what has arrived of the others does not count.
        self._spell_rate = max(self._spell_rate, self._spell_bytes / max(transfer_seconds, 1e-3))
        self.bytes_per_second = self._spell_rate

    def ended(self, fetch: Fetch, now: float, is_last: bool) -> None:
        self._sent.pop(fetch, None)
        if fetch.forgotten and fetch.values is not None:  # otherwise another attempt is running, or this one failed
            self.bandwidth.arrived(fetch.request.stored_bytes, now, is_last)
