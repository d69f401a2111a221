"""Cache decoded frames and pages, bounded in bytes: the least recently used is evicted first.

Prefetched entries wait in a part of their own for their first use, and are evicted last: the read-ahead fills only a
share of the cache, and what it fetched first will be used first.

Not thread-safe: callers hold `workers.LOCK`. An exception, such as an interrupt by the user, may end a change between
any two lines. The entry is then lost, or in both parts, where its bytes count once. The sum of the bytes may then be
too high until it is added up again, after as many arrivals as there are entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from itertools import chain
from typing import Protocol

from monocontext.records import dataclass


class Sized(Protocol):
    """A decoded frame or a loaded page, whose size does not change."""

    @property
    def size_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class CachedBytes:
    """Verified bytes that are not decoded further, such as a block of a filter."""

    body: bytes
    size_bytes: int


class Cache:
    """A cache of pages and frames, bounded in bytes. Texts are UTF-8: an emoji makes a `str` four times as large."""

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._used: OrderedDict[Hashable, Sized] = OrderedDict()  # the least recently used first
        self._expected: OrderedDict[Hashable, Sized] = OrderedDict()  # entries that are kept for an expected use
        self._arrivals = 0  # the number of arrivals since `used_bytes` was last added up
        self.used_bytes = 0

    def get(self, key: Hashable) -> Sized | None:
        """The entry of a key, which counts as used from now on; None if there is none (some 0.3 us)."""
        entry = self._used.get(key)
        if entry is not None:
            self._used.move_to_end(key)
        elif (entry := self._expected.get(key)) is not None:
            self._used[key] = entry
            self._expected.pop(key, None)
        return entry

    def peek(self, key: Hashable) -> Sized | None:
        """The entry of a key, which does not count as used; None if there is none."""
        entry = self._used.get(key)
        return self._expected.get(key) if entry is None else entry

    def put(self, key: Hashable, entry: Sized, *, used: bool = True) -> None:
        """Keep an entry, unless it is larger than the whole cache. `used=False`: it was prefetched for a later use."""
        self._drop(key)
        if entry.size_bytes > self.capacity_bytes:
            return
        self.used_bytes += entry.size_bytes
        (self._used if used else self._expected)[key] = entry
        self._arrivals += 1
        if self.used_bytes > self.capacity_bytes and self._arrivals > len(self):
            self._arrivals = 0
            self.used_bytes = sum([kept.size_bytes for kept in (self._expected | self._used).values()])
        while self.used_bytes > self.capacity_bytes and len(self) > 1:
            self._drop(next(other for other in chain(self._used, self._expected) if other != key))

    @property
    def expected_bytes(self) -> int:
        """The size of the entries that are kept for an expected use."""
        return sum([entry.size_bytes for entry in self._expected.values()])

    def mark_expected(self, key: Hashable) -> bool:
        """Keep a used entry as long as a prefetched one, since it is needed again. Returns whether it was there."""
        entry = self._used.get(key)
        if entry is not None:
            self._expected[key] = entry
            self._used.pop(key, None)
        return entry is not None

    def unmark_expected(self) -> None:
        """Let prefetched entries be evicted first: their use is no longer expected."""
        for key, entry in reversed(list(self._expected.items())):
            self._used[key] = entry
            self._used.move_to_end(key, last=False)
            self._expected.pop(key, None)

    def clear(self) -> None:
        self._used.clear()
        self._expected.clear()
        self.used_bytes = 0

    def __contains__(self, key: Hashable) -> bool:
        """Whether the cache has an entry. The check does not count as a use."""
        return key in self._used or key in self._expected

    def __len__(self) -> int:
        return len(self._used) + len(self._expected)

    def __repr__(self) -> str:
        return (
            f"<Cache {self.used_bytes:,}/{self.capacity_bytes:,} bytes, {len(self)} entries, "
            f"{len(self._expected)} expected>"
        )

    def _drop(self, key: Hashable) -> None:
        entry = self.peek(key)
        self._used.pop(key, None)
        self._expected.pop(key, None)
        if entry is not None:
            self.used_bytes -= entry.size_bytes
