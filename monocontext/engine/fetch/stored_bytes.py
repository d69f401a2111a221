"""Keep frames in their stored form, where a text fits into memory that way but not decoded."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from monocontext.engine.fetch.scheduler import FetchItem, RangeRequest
from monocontext.records import dataclass, field

MOST_SHARE = 0.5
"""The most of the cache that stored frames may take: the other half is for decoded frames, which most reads want."""


def reserved_bytes(text_bytes: int, stored_bytes: int, cache_bytes: int) -> int:
    """The bytes of a cache to reserve for stored frames: for all of a text or none, since a pass returns to all of
    it."""
    fits = stored_bytes <= cache_bytes * MOST_SHARE
    return stored_bytes if text_bytes > cache_bytes and fits else 0


@dataclass(slots=True, eq=False)
class StoredBytes:
    """The stored bytes of frames, up to a limit. Its owner holds the lock."""

    limit_bytes: int
    used_bytes: int = 0
    _kept: dict[Hashable, bytes] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<StoredBytes {self.used_bytes:,}/{self.limit_bytes:,} bytes of {len(self._kept)} frames>"

    def keep(self, request: RangeRequest, body: memoryview) -> None:
        """Keep the frames of a verified answer, as many as fit."""
        for item in request.items:
            if isinstance(item.key, int) and item.key >= 0 and item.key not in self._kept:
                if self.used_bytes + item.stored_bytes > self.limit_bytes:
                    return
                at = item.offset - request.start
                self._kept[item.key] = bytes(body[at : at + item.stored_bytes])
                self.used_bytes += item.stored_bytes

    def body_of(self, request: RangeRequest) -> bytes | None:
        """The answer to a request, with zeros in the gaps between its items; None if an item is missing."""
        if not self._kept or not all(item.key in self._kept for item in request.items):
            return None
        body = bytearray(request.stored_bytes)
        for item in request.items:
            at = item.offset - request.start
            body[at : at + item.stored_bytes] = self._kept[item.key]
        return bytes(body)

    def forget(self, items: Iterable[FetchItem]) -> None:
        """Drop the frames among these items."""
        for item in items:
            self.used_bytes -= len(self._kept.pop(item.key, b""))

    def clear(self) -> None:
        self._kept.clear()
        self.used_bytes = 0
