"""What was read stays for a while: a least-recently-used cache bounded in bytes.

Not thread-safe: the reader holds a lock around it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from cachetools import LRUCache


class Sized(Protocol):
    """A decoded frame or a loaded page."""

    @property
    def size_bytes(self) -> int: ...


class Cache:
    """Byte-bounded LRU over index pages and decoded frames.

    Frames are kept as bytes: one emoji makes a `str` four bytes a character.
    """

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._entries: LRUCache[Hashable, Sized] = LRUCache(
            max(capacity_bytes, 0), getsizeof=lambda entry: entry.size_bytes
        )
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> Sized | None:
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
        else:
            self.hits += 1
        return entry

    def put(self, key: Hashable, entry: Sized) -> None:
        """Keep an entry; one that is larger than the whole cache is not kept."""
        if entry.size_bytes <= self.capacity_bytes:
            self._entries[key] = entry

    def clear(self) -> None:
        self._entries.clear()

    @property
    def used_bytes(self) -> int:
        return int(self._entries.currsize)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def __repr__(self) -> str:
        return (
            f"<Cache {self.used_bytes:,}/{self.capacity_bytes:,} bytes, {len(self._entries)} entries | "
            f"{self.hits:,} hits, {self.misses:,} misses>"
        )
