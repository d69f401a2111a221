"""Stores that count or delay the requests to another store, and a store whose objects are computed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeVar

from monocontext.errors import AccessDenied
from monocontext.stores.checks import check_key, check_part, check_range, check_size, not_found_error
from monocontext.stores.protocol import Blob, ObjectInfo, Store, StoreBase, StoreWrapper

_LISTED_PER_REQUEST = 1000

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a store."""

    verb: str
    """`get`, `get_range`, `put`, `list`, `head` or `delete`."""
    key: str
    """The key, or the prefix of a `list`."""
    start: int | None = None
    """The first byte of a range, 0 for a `put`; `None` for other verbs."""
    length: int | None = None
    """The number of bytes of a range or a `put`; `None` for other verbs."""


class WrappedStore(StoreWrapper):
    """Passes every call on to the store below. Subclasses change one thing each."""

    def _send(self, request: Request, call: Callable[[], _T]) -> _T:
        """Carry out a request, which `call` passes on."""
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
    """Counts requests, failed ones included, and bytes. The counts are exact when many threads use it.

    A `list` counts 1 for each 1000 objects or part of them, as on S3; a `put` counts 1 for any size.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._lock = threading.Lock()
        self.reset()

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {verb}" for verb, count in sorted(self.counts.items())) or "no requests"
        moved = f"{self.bytes_read:,} bytes read, {self.bytes_written:,} written"
        return f"<CountingStore {counts} | {moved} | {self.store!r}>"

    def reset(self) -> None:
        """Clear the log and set all counts to zero."""
        with self._lock:
            self.log: list[Request] = []
            """All requests, in the order in which they began."""
            self.counts: Counter[str] = Counter()
            """Requests by verb."""
            self.bytes_read = self.bytes_written = 0
            """Bytes that `get` and `get_range` returned, and those that `put` stored."""

    @property
    def gets(self) -> int:
        """The number of `get` and `get_range` requests."""
        with self._lock:
            return self.counts["get"] + self.counts["get_range"]

    @property
    def puts(self) -> int:
        return self.counts["put"]

    @property
    def requests(self) -> int:
        """The number of requests of all verbs."""
        with self._lock:
            return self.counts.total()

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        for number, result in enumerate(super().list(prefix)):
            if number and number % _LISTED_PER_REQUEST == 0:
                self._note(Request("list", prefix))
            yield result

    def _note(self, request: Request) -> None:
        with self._lock:
            self.log.append(request)
            self.counts[request.verb] += 1

    def _send(self, request: Request, call: Callable[[], _T]) -> _T:
        self._note(request)
        result = call()
        with self._lock:
            if isinstance(result, Blob):
                self.bytes_read += len(result.data)
            elif request.verb == "put":
                self.bytes_written += request.length or 0
        return result


class SlowStore(WrappedStore):
    """Delays each `get` and `get_range` by `seconds`, and by the time of its bytes at `bytes_per_second`."""

    def __init__(
        self, store: Store, seconds: float | Callable[[], float], *, bytes_per_second: float | None = None
    ) -> None:
        super().__init__(store)
        self.is_near = False
        self._seconds = seconds
        self._bytes_per_second = bytes_per_second

    def _send(self, request: Request, call: Callable[[], _T]) -> _T:
        if request.verb in ("get", "get_range"):
            time.sleep(self._seconds() if callable(self._seconds) else self._seconds)
        result = call()
        if self._bytes_per_second and isinstance(result, Blob):
            time.sleep(len(result.data) / self._bytes_per_second)
        return result


class VirtualStore(StoreBase):
    """A read-only store of objects of any size, whose bytes are computed when they are read.

    `objects` maps a key to its size in bytes and a function that returns the bytes [start, stop).
    """

    is_near = True
    """Round trips cost nothing."""

    def __init__(self, objects: Mapping[str, tuple[int, Callable[[int, int], bytes]]], url: str = "virtual://") -> None:
        self._objects = dict(objects)
        self.url = url
        """No store can be opened at this URL: the objects exist in this process only."""

    def __repr__(self) -> str:
        total = sum(size for size, _ in self._objects.values())
        return f"<VirtualStore {len(self._objects):,} objects, {total:,} bytes>"

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        size_bytes = self.head(key).size_bytes
        check_size(f"{self.url}/{key}", most_bytes, size_bytes)
        return self.get_range(key, 0, size_bytes)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        check_range(start, length)
        info, url = self.head(key), f"{self.url}/{key}"
        check_part(url, etag, info.etag, start, length, info.size_bytes)
        data = self._objects[key][1](start, start + length) if length else b""
        if len(data) != length:
            raise AssertionError(f"the function of {url} returned {len(data)} bytes for [{start}, {start + length})")
        return Blob(data, info.etag, info.size_bytes)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> NoReturn:
        raise AccessDenied(f"{self.url}/{key} is computed and cannot be written")

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return (self.head(key) for key in sorted(self._objects) if key.startswith(prefix))

    def head(self, key: str) -> ObjectInfo:
        if check_key(key) not in self._objects:
            raise not_found_error(f"{self.url}/{key}")
        size_bytes = self._objects[key][0]
        return ObjectInfo(key, size_bytes, f"virtual-{size_bytes}")

    def delete(self, key: str, *, if_match: str | None = None) -> NoReturn:
        raise AccessDenied(f"{self.url}/{key} is computed and cannot be deleted")

    def close(self) -> None:
        """There are no connections."""
