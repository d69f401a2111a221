"""What a reader did, counted: requests, bytes, hits, waits."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class PrefetchStats:
    """Requests that nobody waited for when they were sent; not part of the counts beside it."""

    gets: int = 0
    bytes_fetched: int = 0


@dataclass(slots=True)
class Stats:
    """Counts since the text was opened. Prints as one line."""

    gets: int = 0
    """GET requests that a caller waited for, the one for the root included."""
    bytes_fetched: int = 0
    """Stored bytes that those requests brought: root, index pages, frames, and gaps read over."""
    bytes_used: int = 0
    """Stored bytes of the fetched frames that a caller then looked at, counted once a fetch, in whole frames."""
    hits: int = 0
    """Look-ups of a frame or page answered from memory. A slice inside the frame that was last read is not counted."""
    misses: int = 0
    wait_seconds: float = 0.0
    """Time that callers waited for storage, summed over threads."""
    prefetch: PrefetchStats = field(default_factory=PrefetchStats)

    def __str__(self) -> str:
        looked_up = self.hits + self.misses
        rate = f"{100 * self.hits / looked_up:.0f} %" if looked_up else "none"
        ahead = f", {self.prefetch.gets:,} GETs ahead" if self.prefetch.gets else ""
        return (
            f"{self.gets:,} GETs, {self.bytes_fetched:,} bytes fetched, {self.bytes_used:,} used, "
            f"{self.hits:,} hits of {looked_up:,} ({rate}), {self.wait_seconds:.2f} s waited{ahead}"
        )
