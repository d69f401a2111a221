"""Cache decoded frames and pages: bounded in bytes, resistant to scans.

A new entry joins the probation queue, in order of arrival. A second use moves it to the main part, where the least
recently used entry is evicted first. A full cache evicts from probation while that is larger than its share, so a scan
evicts the entries that the same scan fetched before (after S3-FIFO: Yang et al., SOSP 2023; 2Q: Johnson and Shasha,
VLDB 1994). The keys of entries evicted from probation are remembered for a while, and such an entry returns straight to
the main part. Otherwise a new working set could not get in where a few frames fill a tenth of the cache.

Prefetched entries wait in a third part for their first use, which moves them to probation. They are evicted last: the
read-ahead keeps to a share of the cache, and the entry that is fetched first is wanted first.

Not thread-safe: the reader holds a lock around each call. An exception may interrupt a change between any two lines. It
may lose an entry, or leave its key in a part that holds it no longer, where the next eviction finds it. It may leave
the sum of the bytes wrong, which is added up again after as many arrivals as there are entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Protocol

from monocontext.records import dataclass

PROBATION_SHARE = 0.1
"""The share of the capacity for probation, as in S3-FIFO. Anything from a twentieth to a fifth does nearly as well."""
ONE_USE = 2
"""Repeated uses of an entry count as one use until this many other entries have arrived.

A loop over slices touches each frame several times, and a line across two frames touches the first one again after the
second has arrived. Such a loop is still a scan (the correlated references of LRU-K: O'Neil et al., SIGMOD 1993).
"""


class Sized(Protocol):
    """A decoded frame or a loaded page."""

    @property
    def size_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class CachedBytes:
    """Verified bytes that are not decoded further, such as a block of a filter."""

    body: bytes
    size_bytes: int


class _Kept:
    """An entry and its bookkeeping."""

    __slots__ = ("arrived", "entry", "part", "size_bytes")

    def __init__(self, entry: Sized, size_bytes: int, part: OrderedDict[Hashable, _Kept], arrived: int):
        self.entry = entry
        self.size_bytes = size_bytes
        self.part = part
        """The part of the cache that holds it."""
        self.arrived = arrived
        """The number of entries that had arrived when it joined the part."""


class Cache:
    """Byte-bounded cache of index pages and decoded frames. Frames are kept as UTF-8: one emoji makes a `str` four
    bytes a character."""

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._by_key: dict[Hashable, _Kept] = {}
        self._main: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._probation: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._expected: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._evicted: OrderedDict[Hashable, None] = OrderedDict()
        """The keys of entries evicted from probation."""
        self._arrivals = 0
        self._counted = 0
        """The number of arrivals when `used_bytes` was last added up."""
        self.used_bytes = 0

    def get(self, key: Hashable) -> Sized | None:
        """The entry, which counts as used; None if there is none. Some 0.3 us."""
        kept = self._by_key.get(key)
        if kept is None:
            return None
        if kept.part is self._main:
            self._main.move_to_end(key)
        elif kept.part is self._expected:
            self._move(key, kept, self._probation)
        elif self._arrivals - kept.arrived >= ONE_USE:
            self._move(key, kept, self._main)
        return kept.entry

    def peek(self, key: Hashable) -> Sized | None:
        """The entry, which does not count as used."""
        kept = self._by_key.get(key)
        return None if kept is None else kept.entry

    def put(self, key: Hashable, entry: Sized, *, used: bool = True) -> None:
        """Keep an entry, unless it is larger than the whole cache. `used=False`: it was prefetched for a later use."""
        self._drop(key)
        size_bytes = entry.size_bytes
        if size_bytes > self.capacity_bytes:
            return
        self._arrivals += 1
        part = self._expected if not used else self._main if key in self._evicted else self._probation
        self._evicted.pop(key, None)
        part[key] = self._by_key[key] = _Kept(entry, size_bytes, part, self._arrivals)
        self.used_bytes += size_bytes
        self._make_room(key)

    @property
    def expected_bytes(self) -> int:
        """The bytes of prefetched entries that no caller has used."""
        return sum([kept.size_bytes for kept in self._expected.values()])

    def expect(self, key: Hashable) -> bool:
        """Keep an entry on probation as long as a prefetched one, since a use of it is predicted. Returns whether it
        was on probation."""
        kept = self._probation.get(key)
        if kept is not None:
            self._move(key, kept, self._expected)
        return kept is not None

    def expect_nothing(self) -> None:
        """Evict all prefetched entries first, since their use is no longer expected."""
        for key, kept in reversed(list(self._expected.items())):
            self._move(key, kept, self._probation)
            self._probation.move_to_end(key, last=False)

    def clear(self) -> None:
        for part in (self._by_key, self._main, self._probation, self._expected, self._evicted):
            part.clear()
        self.used_bytes = 0

    def __contains__(self, key: Hashable) -> bool:
        """Whether the cache has an entry. The check does not count as a use."""
        return key in self._by_key

    def has_all(self, keys: Iterable[Hashable]) -> bool:
        """Whether the cache has all of these. The check does not count as a use."""
        return all(key in self._by_key for key in keys)

    def __len__(self) -> int:
        return len(self._by_key)

    def __repr__(self) -> str:
        return (
            f"<Cache {self.used_bytes:,}/{self.capacity_bytes:,} bytes, {len(self)} entries, "
            f"{len(self._probation)} on probation, {len(self._expected)} expected>"
        )

    def _move(self, key: Hashable, kept: _Kept, part: OrderedDict[Hashable, _Kept]) -> None:
        kept.part.pop(key, None)
        part[key] = kept
        kept.part, kept.arrived = part, self._arrivals

    def _drop(self, key: Hashable) -> None:
        kept = self._by_key.pop(key, None)
        for part in (self._main, self._probation, self._expected):
            part.pop(key, None)
        if kept is not None:
            self.used_bytes -= kept.size_bytes

    def _make_room(self, newest: Hashable) -> None:
        """Evict entries until the rest fits; the newest one stays."""
        if self.used_bytes > self.capacity_bytes and self._arrivals - self._counted >= len(self._by_key):
            self._counted = self._arrivals
            self.used_bytes = sum([kept.size_bytes for kept in self._by_key.values()])
        while self.used_bytes > self.capacity_bytes and len(self._by_key) > 1:
            oldest = next((key for key in self._probation if key != newest), None)
            if oldest is not None and (not self._main or self._is_probation_large()):
                self._evicted[oldest] = None
            else:
                parts = (self._main, self._expected, self._by_key)
                oldest = next(key for part in parts for key in part if key != newest)
            self._drop(oldest)
        # As many keys as entries: an entry that returns later than that was not part of a working set.
        while len(self._evicted) > len(self._by_key):
            self._evicted.popitem(last=False)

    def _is_probation_large(self) -> bool:
        probation_bytes = sum([kept.size_bytes for kept in self._probation.values()])
        return probation_bytes > self.capacity_bytes * PROBATION_SHARE
