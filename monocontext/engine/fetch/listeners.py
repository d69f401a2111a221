"""Define the events of a fetcher's requests, for code that counts, measures, hedges or reads ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from monocontext.engine.fetch.scheduler import Fetch
from monocontext.records import dataclass

if TYPE_CHECKING:
    from monocontext.engine.frame import FrameText
    from monocontext.engine.stats import Stats
    from monocontext.stores.protocol import Blob


class Listener:
    """Follows the requests of one fetcher. A subclass overrides the events that it needs.

    The fetcher calls each method within a change, so under its lock; none waits or raises. An attempt is one GET of a
    fetch, which may have two.
    """

    def sent(self, fetches: Sequence[Fetch], now: float, is_first: bool) -> None:
        """Take note that attempts were sent. `is_first`: no other was running."""

    def answered(self, fetch: Fetch, blob: Blob, seconds: float | None) -> None:
        """Take note of an answer of the store, `seconds` after it was requested; None for a second read after
        damage."""

    def ended(self, fetch: Fetch, now: float, is_last: bool) -> None:
        """Take note that an attempt has succeeded or failed, or that a fetch was dropped which no caller wants.
        `is_last`: no other is running."""

    def used(self, text: FrameText) -> None:
        """Take note of the first use of a frame since it was fetched."""

    def forked(self) -> None:
        """Drop the speculative requests of the parent, in the child of a fork."""

    def reset_state(self) -> None:
        """Drop all requests: a change was interrupted, or the reader is closed."""


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
