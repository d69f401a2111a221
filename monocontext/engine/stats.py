"""Count the requests, bytes, hits and waits of a reader."""

from __future__ import annotations

from monocontext.notebook import counts_card
from monocontext.records import dataclass, field


@dataclass(slots=True)
class PrefetchStats:
    """Counts of the read-ahead: what it fetched, and how much of that was used."""

    gets: int = 0  # GET requests that no caller waited for when they were sent; part of `Stats.gets`
    bytes_fetched: int = 0  # stored bytes of these requests; part of `Stats.bytes_fetched`
    bytes_used: int = 0  # stored bytes of the frames among these that a caller then looked at, in whole frames

    @property
    def precision(self) -> float:
        """The share of the fetched bytes that was used; 1.0 if none were fetched."""
        return min(1.0, self.bytes_used / self.bytes_fetched) if self.bytes_fetched else 1.0

    def __str__(self) -> str:
        return f"{self.gets:,} GETs prefetched {self.bytes_fetched:,} bytes, {100 * self.precision:.0f} % of them used"


@dataclass(slots=True)
class SearchStats:
    """Counts of all searches by filters: requests, frames that filters ruled out, and frames searched."""

    searches: int = 0  # searches that filters narrowed
    frames: int = 0  # frames that those searches would have read without filters, up to the end of the text
    pruned: int = 0  # frames that the filters excluded
    looked_at: int = 0  # candidate frames that were searched: a search that finds its match ends early
    hits: int = 0  # searched frames in which a match began
    filter_gets: int = 0  # GETs for blocks of filters; part of `Stats.gets`
    filter_bytes: int = 0  # their bytes; part of `Stats.bytes_fetched`

    @property
    def false_positives(self) -> int:
        """Candidate frames that were searched and had no match."""
        return self.looked_at - self.hits

    def __str__(self) -> str:
        return (
            f"{self.searches:,} searches narrowed: {self.pruned:,} of {self.frames:,} frames pruned, "
            f"{self.looked_at:,} looked at, {self.false_positives:,} in vain; "
            f"{self.filter_gets:,} GETs of {self.filter_bytes:,} filter bytes"
        )


@dataclass(slots=True)
class RealStats:
    """Counts of lazy texts that became a real `str`, for functions that do not support them."""

    texts: int = 0
    bytes: int = 0
    """UTF-8 bytes of these texts; the bytes fetched for them are in `Stats.bytes_fetched`, as for any read."""

    def __str__(self) -> str:
        return f"{self.texts:,} texts of {self.bytes:,} bytes made real"


@dataclass(slots=True)
class Stats:
    """Counts since the text was opened. Prints as one line."""

    gets: int = 0  # GET requests, including the one for the root and prefetches
    bytes_fetched: int = 0
    """Stored bytes of those requests: root, index pages, filter blocks, frames, and gaps read over."""
    bytes_used: int = 0
    """Stored bytes of the fetched frames that a caller then looked at: whole frames, once for each fetch."""
    throttled: int = 0
    """The number of answers that asked for fewer requests, such as 503 SlowDown; each request was sent again."""
    disk_hits: int = 0  # requests that files of an earlier read answered (`cache_dir`); not part of `gets`
    disk_bytes: int = 0  # stored bytes of these requests; not part of `bytes_fetched`
    hits: int = 0
    """Look-ups of a frame or page answered from memory. A slice inside the frame that was last read is not counted."""
    misses: int = 0
    wait_seconds: float = 0.0  # time that callers waited for storage, summed over threads
    credentials_source: str = ""
    """Where the credentials for S3 come from; if from botocore, also why botocore was asked."""
    prefetch: PrefetchStats = field(default_factory=PrefetchStats)
    search: SearchStats = field(default_factory=SearchStats)
    real: RealStats = field(default_factory=RealStats)

    def __str__(self) -> str:
        looked_up = self.hits + self.misses
        rate = f"{100 * self.hits / looked_up:.0f} %" if looked_up else "none"
        ahead = f"; {self.prefetch}" if self.prefetch.gets else ""
        throttled = f", throttled {self.throttled:,} times" if self.throttled else ""
        disk = f", {self.disk_hits:,} answers of {self.disk_bytes:,} bytes from disk" if self.disk_hits else ""
        search = f"; {self.search}" if self.search.searches else ""
        real = f"; {self.real}" if self.real.texts else ""
        keys = f"; keys of {self.credentials_source}" if self.credentials_source.startswith("botocore") else ""
        return (
            f"{self.gets:,} GETs, {self.bytes_fetched:,} bytes fetched, {self.bytes_used:,} used, "
            f"{self.hits:,} hits of {looked_up:,} ({rate}), {self.wait_seconds:.2f} s waited"
            f"{throttled}{disk}{ahead}{search}{real}{keys}"
        )

    def _repr_html_(self) -> str:
        """A table for notebooks: the same counts (no GET)."""
        rows = [
            ("GETs", f"{self.gets:,}"),
            ("bytes fetched", f"{self.bytes_fetched:,}"),
            ("bytes used", f"{self.bytes_used:,}"),
            ("from memory", f"{self.hits:,} of {self.hits + self.misses:,} look-ups"),
            ("from disk", f"{self.disk_hits:,} answers of {self.disk_bytes:,} bytes"),
            ("waited", f"{self.wait_seconds:.2f} s"),
            ("throttled", f"{self.throttled:,} times"),
            ("ahead", str(self.prefetch)),
        ]
        if self.search.searches:
            rows.append(("filters", str(self.search)))
        return counts_card("Reads", rows)
