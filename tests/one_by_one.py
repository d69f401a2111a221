"""A store that carries out one request at a time, for doubles whose conditional writes are not atomic."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from monocontext.stores.protocol import Blob, ObjectInfo, Store
from monocontext.testing import WrappedStore


class OneByOne(WrappedStore):
    """One request at a time. moto looks at a condition and then writes, without a lock: of 4 swappers 2 may win."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._lock = threading.RLock()

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        with self._lock:
            return super().get(key, most_bytes=most_bytes)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        with self._lock:
            return super().get_range(key, start, length, etag=etag)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        with self._lock:
            return super().put(key, data, if_absent=if_absent, if_match=if_match)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        with self._lock:
            return iter([*super().list(prefix)])

    def head(self, key: str) -> ObjectInfo:
        with self._lock:
            return super().head(key)

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        with self._lock:
            super().delete(key, if_match=if_match)
