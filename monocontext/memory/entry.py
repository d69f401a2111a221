"""The entries, search results and sizes that a memory returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """One key, in its state at one time of the store's clock."""

    key: str
    value: str | None
    """None in listings, which read no values."""
    etag: str
    """Names this version; for `if_match`."""
    value_bytes: int
    """Length of the value in UTF-8."""
    added_seconds: float
    """Time of the write by the store's clock, in seconds since 1970. Whole seconds on S3."""
    ttl_seconds: float | None
    """The lifetime in seconds from the write on; None for no end. On S3, which reports whole seconds, it is rounded
    up."""
    now_seconds: float
    """The store's clock at its answer; 0 where it was not needed."""
    metadata: Mapping[str, str]
    """Metadata from the writer."""

    @property
    def added_utc(self) -> datetime:
        """When it was written, by the store's clock."""
        return datetime.fromtimestamp(self.added_seconds, UTC)

    @property
    def expires_utc(self) -> datetime | None:
        """When it is no longer there; None for an entry that stays."""
        if self.ttl_seconds is None:
            return None
        return datetime.fromtimestamp(self.added_seconds + self.ttl_seconds, UTC)

    @property
    def remaining_seconds(self) -> float | None:
        """The rest of its lifetime when the store answered; None: no end."""
        if self.ttl_seconds is None:
            return None
        return max(0.0, self.added_seconds + self.ttl_seconds - self.now_seconds)

    @property
    def is_expired(self) -> bool:
        """Whether its lifetime is over.

        Never early: if the store reports whole seconds, rounded down, an entry lives up to one second longer.
        """
        return self.ttl_seconds is not None and self.now_seconds - self.added_seconds > self.ttl_seconds


def as_told(ttl_seconds: float | None, added_seconds: float, now_seconds: float) -> tuple[float | None, float]:
    """A lifetime and the present time in the resolution of the store's clock: where the time of the write is whole, as
    on S3, the lifetime is rounded up and the present down."""
    if ttl_seconds is None or not added_seconds.is_integer():
        return ttl_seconds, now_seconds
    return float(math.ceil(ttl_seconds)), float(math.floor(now_seconds))


@dataclass(frozen=True, slots=True)
class Found:
    """A line that a search found."""

    key: str
    line_number: int
    """Counted from 1 in the value."""
    line: str
    """Without its end."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage that speaks of the words of a search."""

    key: str
    line_number: int
    """First line, counted from 1 in the value."""
    text: str
    """A few lines of the value."""
    score: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of a memory, in bytes of UTF-8; expired entries do not count."""

    keys_bytes: int
    values_bytes: int
    entries: int

    @property
    def total_bytes(self) -> int:
        """Keys and values together."""
        return self.keys_bytes + self.values_bytes
