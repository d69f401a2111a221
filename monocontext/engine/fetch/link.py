"""Measure the way to a store, and say what it carries in one round trip. Pure but for the events that come in.

What takes no longer to arrive than a request takes to be answered is asked for in one wave: a search that looks at
filters first takes three round trips, for rows, a frame, and the text around a match in the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from monocontext.engine.fetch.hedging import NEAR_SECONDS
from monocontext.engine.fetch.listener import Listener
from monocontext.records import dataclass, field

if TYPE_CHECKING:
    from monocontext.engine.fetch.scheduler import Fetch
    from monocontext.stores.protocol import Blob

FIRST_BYTES_PER_SECOND = 100e6
"""Before a transfer was measured: a laptop's or a container's link."""
FIRST_WAVE_BYTES = 8 << 20
"""One wave carries at least this much before a transfer was measured: a text of 20 to 40 MB. It is eight requests at
once, of 12 ms each at the 90 MB/s of a connection; where the link has 100 MB/s it takes 80 ms, a third of reading the
text as one object, and as long as three round trips from another zone, which every later look at the text saves."""
_SMALL_BYTES = 64 << 10
"""Answers up to this size measure round trips: the body takes under 1 ms at 90 MB/s."""
_TRANSFER_BYTES = 2 << 20
"""A spell of requests with fewer bytes measures round trips, not the link."""
_SPELL_BYTES = 4 << 20
"""The same of a mean of spells."""
_WEIGHT = 0.3
"""Weight of the newest measurement."""


def wave_bytes(round_trip_seconds: float | None, bytes_per_second: float | None) -> int:
    """Stored bytes that one wave carries; None: not measured yet."""
    if round_trip_seconds is None or round_trip_seconds < NEAR_SECONDS:
        return 0  # a memory, a disk, a server next door: a round trip costs nothing there
    if bytes_per_second is None:
        return max(int(round_trip_seconds * FIRST_BYTES_PER_SECOND), FIRST_WAVE_BYTES)
    return int(round_trip_seconds * bytes_per_second)


@dataclass(slots=True, eq=False)
class Bandwidth:
    """Bytes a second while requests are under way."""

    bytes_per_second: float = FIRST_BYTES_PER_SECOND
    _measured: bool = False
    _since: float | None = None
    _bytes: int = 0

    def begin(self, now: float | None) -> None:
        """A request is sent while none is under way; None: nothing is."""
        self._since, self._bytes = now, 0

    def arrived(self, size_bytes: int, now: float, idle: bool) -> None:
        """Bytes have come; `idle`: nothing else is under way."""
        self._bytes += size_bytes
        if self._since is None or not (idle or self._bytes >= 16 * _SPELL_BYTES):
            return
        seconds = now - self._since
        if self._bytes >= _SPELL_BYTES and seconds > 0:
            rate = self._bytes / seconds
            weight = _WEIGHT if self._measured else 1.0
            self.bytes_per_second += weight * (rate - self.bytes_per_second)
            self._measured = True
        self._since, self._bytes = (None if idle else now), 0


@dataclass(slots=True, eq=False)
class Link(Listener):
    """The way of one reader to its store."""

    round_trip_seconds: float | None = None
    """Round trip of the quickest small answer, in seconds; 0 for a near store."""
    bytes_per_second: float | None = None
    """While requests are under way, without the first round trip of a spell; None before there was a long one."""
    bandwidth: Bandwidth = field(default_factory=Bandwidth)
    """The same with it, as a mean."""
    _since: float = 0.0
    _spell_bytes: int = 0
    _spell_rate: float = 0.0
    _sent: dict[Fetch, float] = field(default_factory=dict)

    @property
    def is_far(self) -> bool:
        """Whether a round trip costs something."""
        return wave_bytes(self.round_trip_seconds, None) > 0

    def carries(self, stored_bytes: int) -> bool:
        """Whether one wave of requests brings so much about as fast as a small answer comes."""
        return stored_bytes <= wave_bytes(self.round_trip_seconds, self.bytes_per_second)

    def reset_state(self) -> None:
        """Measurements are kept."""
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
        # Of answers that come side by side the first is counted whole, and what has come of the others is not.
        self._spell_rate = max(self._spell_rate, self._spell_bytes / max(transfer_seconds, 1e-3))
        self.bytes_per_second = self._spell_rate

    def landed(self, fetch: Fetch, now: float, is_last: bool) -> None:
        self._sent.pop(fetch, None)
        if fetch.forgotten and fetch.values is not None:  # else another attempt is under way, or it brought nothing
            self.bandwidth.arrived(fetch.request.stored_bytes, now, is_last)
