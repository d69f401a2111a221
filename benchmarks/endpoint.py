"""An object store at a distance, as all that are compared see it: latency, connections and one link between them.

What is assumed, not measured: 30 ms a GET, 90 MB/s a connection, 600 MB/s for all together (a c5.large or t3).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from monocontext.stores.protocol import Blob, ObjectInfo, Store
from monocontext.testing import WrappedStore
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND, SimulatedLink

PART_BYTES = 8 << 20
CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Distance:
    """How far away the store is."""

    latency_seconds: float = 0.030
    """Before the first byte of each GET."""
    link_bytes_per_second: float = 600e6

    def link(self) -> SimulatedLink:
        """A link of its own, which all connections share."""
        return SimulatedLink(CONNECTION_BYTES_PER_SECOND, self.link_bytes_per_second)


class DistantStore(WrappedStore):
    """A store behind a link."""

    def __init__(self, store: Store, distance: Distance) -> None:
        super().__init__(store)
        self._latency_seconds = distance.latency_seconds
        self._link = distance.link()

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self._carry(lambda: super(DistantStore, self).get(key, most_bytes=most_bytes))

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._carry(lambda: super(DistantStore, self).get_range(key, start, length, etag=etag))

    def head(self, key: str) -> ObjectInfo:
        time.sleep(self._latency_seconds)
        return super().head(key)

    def _carry(self, read: Callable[[], Blob]) -> Blob:
        begun = time.monotonic() + self._latency_seconds
        blob = read()
        time.sleep(max(0.0, self._link.arrival(len(blob.data), begun) - time.monotonic()))
        return blob


def download(store: Store, key: str, keep: Callable[[int, bytes], object]) -> None:
    """A whole object by parts of 8 MiB over 16 connections; `keep` is told of each part, and where it begins."""
    size = store.head(key).size_bytes

    def fetch(start: int) -> None:
        keep(start, store.get_range(key, start, min(PART_BYTES, size - start)).data)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in pool.map(fetch, range(0, size, PART_BYTES)):
            pass
