"""Wrap stores so that requests are counted or delayed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from monocontext.stores.protocol import Blob, ObjectInfo, Store, StoreWrapper

_LISTED_PER_REQUEST = 1000  # as on S3

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a store."""

    verb: str  # `get`, `get_range`, `put`, `list`, `head` or `delete`
    key: str  # the key, or the prefix of a `list`
    start: int | None = None  # the first byte of a range, 0 for a `put`; `None` for other verbs
    length: int | None = None  # the number of bytes of a range or a `put`; `None` for other verbs


class WrappedStore(StoreWrapper):
    """Passes every request to the store below through `_send`, which subclasses change."""

    def _send(self, request: Request, call: Callable[[], T]) -> T:
        """Carry out a request by `call`, which sends it to the store below, and return the result."""
        return call()

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self._send(Request("get", key), partial(super().get, key, most_bytes=most_bytes))

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        request = Request("get_range", key, start, length)
        return self._send(request, partial(super().get_range, key, start, length, etag=etag))

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        request = Request("put", key, 0, len(data))
        return self._send(request, partial(super().put, key, data, if_absent=if_absent, if_match=if_match))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._send(Request("list", prefix), partial(super().list, prefix))

    def head(self, key: str) -> ObjectInfo:
        return self._send(Request("head", key), partial(super().head, key))

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        self._send(Request("delete", key), partial(super().delete, key, if_match=if_match))


class CountingStore(WrappedStore):
    """Counts requests, failed ones included, and bytes read. Exact with many threads, once none of them is reading.

    A `list` counts 1 for every 1,000 objects begun, as on S3; a `put` counts 1 whatever its size.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Clear the log and set all counts to zero."""
        with self._lock:
            self.log: list[Request] = []  # all requests, in the order in which they began
            self.counts: Counter[str] = Counter()  # requests by verb
            self.bytes_read = 0  # the bytes that `get` and `get_range` returned

    @property
    def gets(self) -> int:
        """The number of `get` and `get_range` requests."""
        with self._lock:
            return self.counts["get"] + self.counts["get_range"]

    @property
    def requests(self) -> int:
        """The number of requests of all verbs."""
        with self._lock:
            return self.counts.total()

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        for number, result in enumerate(super().list(prefix)):
            if number and number % _LISTED_PER_REQUEST == 0:
                self._count(Request("list", prefix))
            yield result

    def _count(self, request: Request) -> None:
        with self._lock:
            self.log.append(request)
            self.counts[request.verb] += 1

    def _send(self, request: Request, call: Callable[[], T]) -> T:
        self._count(request)
        result = call()
        if isinstance(result, Blob):
            with self._lock:
                self.bytes_read += len(result.data)
        return result


class SlowStore(WrappedStore):
    """Delays each `get` and `get_range` by `seconds`, and by the time that its bytes take at `bytes_per_second`."""

    def __init__(
        self, store: Store, seconds: float | Callable[[], float], *, bytes_per_second: float | None = None
    ) -> None:
        super().__init__(store)
        self.is_near = False  # so that readers fetch as much as from afar
        self._seconds = seconds
        self._bytes_per_second = bytes_per_second

    def _send(self, request: Request, call: Callable[[], T]) -> T:
        if request.verb in ("get", "get_range"):
            time.sleep(self._seconds() if callable(self._seconds) else self._seconds)
        result = call()
        if self._bytes_per_second and isinstance(result, Blob):
            time.sleep(len(result.data) / self._bytes_per_second)
        return result
