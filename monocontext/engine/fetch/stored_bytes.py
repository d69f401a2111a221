"""Keep stored bytes of frames where the text is larger than the cache and what is stored of it is not.

Three passes over 400 MB of logs, stored in 75 MB, fetched them three times: decoded frames push each other out of a
cache of 256 MB. With the stored bytes at hand a second pass decodes and fetches nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from monocontext.engine.fetch.scheduler import FetchItem, RangeRequest
from monocontext.records import dataclass, field

MOST_SHARE = 0.5
"""Share of the cache for stored bytes: the other half holds decoded frames, which most reads want."""


def reserved_bytes(text_bytes: int, stored_bytes: int, cache_bytes: int) -> int:
    """How much of a cache to set aside for what is stored: all of it or nothing, since a pass comes back to all."""
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
        """The frames of an answer that proved right."""
        for item in request.items:
            if isinstance(item.key, int) and item.key >= 0 and item.key not in self._kept:
                if self.used_bytes + item.stored_bytes > self.limit_bytes:
                    return
                at = item.offset - request.start
                self._kept[item.key] = bytes(body[at : at + item.stored_bytes])
                self.used_bytes += item.stored_bytes

    def body_of(self, request: RangeRequest) -> bytes | None:
        """The answer to a request, without unwanted parts; None if a part is missing."""
        if not self._kept or not all(item.key in self._kept for item in request.items):
            return None
        body = bytearray(request.stored_bytes)
        for item in request.items:
            at = item.offset - request.start
            body[at : at + item.stored_bytes] = self._kept[item.key]
        return bytes(body)

    def forget(self, items: Iterable[FetchItem]) -> None:
        """These are to be fetched."""
        for item in items:
            self.used_bytes -= len(self._kept.pop(item.key, b""))

    def clear(self) -> None:
        self._kept.clear()
        self.used_bytes = 0
