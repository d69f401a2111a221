"""An object store at a distance, as all that are compared see it: latency, connections and one link between them.

What is assumed, not measured: 30 ms a GET, 90 MB/s a connection, 600 MB/s for all together (a c5.large or t3).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from monocontext.stores.protocol import Blob, ObjectInfo, Store
from monocontext.testing import WrappedStore
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND, SimulatedLink

PART_BYTES = 8 << 20
CONNECTIONS = 16
_PIECE_BYTES = 256 << 10


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


class StreamingClient:
    """As much of a boto3 client as smart_open takes to read an object: `get_object` with a streaming body."""

    def __init__(self, store: Store, distance: Distance) -> None:
        self._store = store
        self._latency_seconds = distance.latency_seconds
        self._link = distance.link()
        self.reset()

    def reset(self) -> None:
        """Start counting from nothing."""
        self.bytes_read = 0
        """Bytes that arrived, whether they were read or not."""

    def get_object(self, Bucket: str, Key: str, Range: str = "bytes=0-") -> dict[str, Any]:
        size = self._store.head(Key).size_bytes
        start = int(Range.removeprefix("bytes=").split("-")[0])
        return {
            "ResponseMetadata": {"HTTPStatusCode": 206, "RetryAttempts": 0},
            "ContentRange": f"bytes {start}-{size - 1}/{size}",
            "ContentLength": size - start,
            "Body": _Body(self._stream(Key, start, size)),
        }

    def _stream(self, key: str, start: int, stop: int) -> Iterator[bytes]:
        """The bytes of one GET, each piece when it has arrived."""
        arrives = time.monotonic() + self._latency_seconds
        for first in range(start, stop, _PIECE_BYTES):
            piece = self._store.get_range(key, first, min(_PIECE_BYTES, stop - first)).data
            arrives = self._link.arrival(len(piece), arrives)
            time.sleep(max(0.0, arrives - time.monotonic()))
            self.bytes_read += len(piece)
            yield piece


class _Body:
    """Bytes that arrive whether they are read or not: what is read late is here at once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        parts, left = [], size if size >= 0 else 1 << 62
        while left > 0:
            if not self._rest:
                self._rest = next(self._pieces, b"")
                if not self._rest:
                    break
            parts.append(self._rest[:left])
            self._rest = self._rest[left:]
            left -= len(parts[-1])
        return b"".join(parts)

    def close(self) -> None:
        """Nothing to give back."""
