"""The events of a fetcher, for those who follow what becomes of requests; statistics are one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from monocontext.records import dataclass

if TYPE_CHECKING:
    from monocontext.engine.fetch.scheduler import Fetch
    from monocontext.engine.frame import FrameText
    from monocontext.engine.stats import Stats
    from monocontext.stores.protocol import Blob


class Listener:
    """Follows the requests of one fetcher: read-ahead, hedging and statistics do.

    Each method runs within a change of the fetcher, so under its lock; none waits or raises.
    """

    def sent(self, fetches: Sequence[Fetch], now: float, is_first: bool) -> None:
        """Attempts are sent. `is_first`: none was under way."""

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        """The store has answered an attempt whole, so long after it was sent; None: it was asked again for damage."""

    def landed(self, fetch: Fetch, now: float, is_last: bool) -> None:
        """An attempt has ended, with or without success, and its bytes are kept; or no caller wants the fetch any more.
        `is_last`: none is under way now."""

    def used(self, text: FrameText) -> None:
        """A caller looks at a frame for the first time since it was fetched."""

    def lost(self) -> None:
        """In the child of a fork: speculative requests are no longer in flight."""

    def reset_state(self) -> None:
        """A change was cut short, or the reader is closed: nothing is under way any more."""


class Listeners:
    """The listeners of one fetcher, and for each event the methods to call."""

    def __init__(self, *listeners: Listener):
        self.all: list[Listener] = []
        self.sent: list[Callable[[Sequence[Fetch], float, bool], None]] = []
        self.answered: list[Callable[[Fetch, Blob, float | None], None]] = []
        self.landed: list[Callable[[Fetch, float, bool], None]] = []
        self.used: list[Callable[[FrameText], None]] = []
        for listener in listeners:
            self.add(listener)

    def add(self, listener: Listener) -> None:
        """It is told of the events that it has a method of its own for."""
        self.all.append(listener)
        for event in ("sent", "answered", "landed", "used"):
            if getattr(type(listener), event) is not getattr(Listener, event):
                getattr(self, event).append(getattr(listener, event))

    def clear(self) -> None:
        """Drop all listeners."""
        for told in (self.all, self.sent, self.answered, self.landed, self.used):
            told.clear()


@dataclass(slots=True, eq=False)
class Counting(Listener):
    """Counts answers and their bytes."""

    _stats: Stats

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        stats, size = self._stats, len(blob.data)
        if blob.in_root:
            return  # counted with the root
        if blob.local:
            stats.disk_hits += 1
            stats.disk_bytes += size
            return
        for counted in (stats, stats.prefetch) if fetch.sent_ahead else (stats,):
            counted.gets += 1
            counted.bytes_fetched += size
        if fetch.request.object.startswith("filters/"):
            stats.search.filter_gets += 1
            stats.search.filter_bytes += size
