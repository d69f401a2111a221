"""The entries, search results and sizes that a memory returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from monocontext.memory.encoding import EntryHeader


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and its value, as they were stored at one moment."""

    key: str
    value: str | None
    """None in listings, which read no values."""
    etag: str
    """Identifies this version; pass it as `if_match`."""
    value_bytes: int
    """Length of the value in UTF-8."""
    added_seconds: float
    """Time of the write by the store's clock, in seconds since 1970. Whole seconds on S3."""
    ttl_seconds: float | None
    """The lifetime in seconds from the write on; None for no end. On S3, which reports whole seconds, it is rounded
    up."""
    now_seconds: float
    """The store's clock when it answered, in seconds since 1970; may be 0 for an entry without a lifetime."""
    metadata: Mapping[str, str]
    """As given to `Memory.put`."""
    header: EntryHeader | None = field(default=None, repr=False, compare=False)
    """The part of the entry's object before its value, which `Memory.context` needs."""

    @property
    def added_utc(self) -> datetime:
        """The time of the write, by the store's clock."""
        return datetime.fromtimestamp(self.added_seconds, UTC)

    @property
    def expires_utc(self) -> datetime | None:
        """The end of the lifetime; None for an entry without a lifetime."""
        if self.ttl_seconds is None:
            return None
        return datetime.fromtimestamp(self.added_seconds + self.ttl_seconds, UTC)

    @property
    def remaining_seconds(self) -> float | None:
        """The rest of the lifetime when the store answered; None for an entry without a lifetime."""
        if self.ttl_seconds is None:
            return None
        return max(0.0, self.added_seconds + self.ttl_seconds - self.now_seconds)

    @property
    def is_expired(self) -> bool:
        """Whether the lifetime was over when the store answered. Errs on the late side: if the store reports whole
        seconds, an entry may live up to a second longer."""
        return self.ttl_seconds is not None and self.now_seconds - self.added_seconds > self.ttl_seconds


def round_to_clock(ttl_seconds: float | None, added_seconds: float, now_seconds: float) -> tuple[float | None, float]:
    """A lifetime and the present time, rounded to the resolution of the store's clock.

    A write time without a fraction is taken for a clock of whole seconds, as on S3: the lifetime is rounded up, the
    present down, so nothing expires early.
    """
    if ttl_seconds is None or not added_seconds.is_integer():
        return ttl_seconds, now_seconds
    return float(math.ceil(ttl_seconds)), float(math.floor(now_seconds))


@dataclass(frozen=True, slots=True)
class Found:
    """A line of a value that matches a search."""

    key: str
    line_number: int
    """Counted from 1 in the value."""
    line: str
    """The line without its end."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of a memory, in bytes of UTF-8; expired entries do not count."""

    keys_bytes: int
    values_bytes: int
    entries: int
    """The number of keys."""

    @property
    def total_bytes(self) -> int:
        """Keys and values together."""
        return self.keys_bytes + self.values_bytes
