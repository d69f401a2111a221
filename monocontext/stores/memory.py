"""Store objects in the memory of this process (`memory://name`), for tests and short-lived texts."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import NoReturn

from monocontext.errors import NotPicklable
from monocontext.records import dataclass
from monocontext.stores.protocol import (
    Blob,
    ObjectInfo,
    StoreBase,
    check_key,
    check_part,
    check_range,
    check_size,
    check_write,
    conflict_error,
    not_found_error,
)


@dataclass(frozen=True, slots=True)
class _StoredObject:
    data: bytes
    etag: str
    modified_seconds: float


class _Namespace:
    """The objects, by path, that all stores with the same name share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.objects: dict[str, _StoredObject] = {}


_namespaces: dict[str, _Namespace] = {}
# One counter for all objects, so no two versions share an ETag. `next` on it and `dict.setdefault` are atomic.
_versions = itertools.count(1)


class MemoryStore(StoreBase):
    """Objects that all stores of this process with the same name share."""

    is_near = True

    def __init__(self, name: str, prefix: str = "") -> None:
        prefix = prefix.strip("/")
        self.url = f"memory://{name}/{prefix}".removesuffix("/")
        self._root = f"{prefix}/" if prefix else ""
        self._namespace = _namespaces.setdefault(name, _Namespace())

    def __reduce__(self) -> NoReturn:
        raise NotPicklable(f"{self.url} exists in this process only: publish to file:// or s3:// to share it")

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        entry = self._find(key)
        check_size(self._display_url(key), most_bytes, len(entry.data))
        modified, now = entry.modified_seconds, time.time()
        return Blob(entry.data, entry.etag, len(entry.data), modified_seconds=modified, now_seconds=now)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        check_range(start, length)
        entry = self._find(key)
        check_part(self._display_url(key), etag, entry.etag, start, length, len(entry.data))
        return Blob(entry.data[start : start + length], entry.etag, len(entry.data))

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        check_write(if_absent, if_match)
        path, new = self._root + check_key(key), _StoredObject(bytes(data), f"{next(_versions):x}", time.time())
        with self._namespace.lock:
            old = self._namespace.objects.get(path)
            if if_match is not None and old is None:
                raise not_found_error(self._display_url(key))
            if old is not None and (if_absent or (if_match is not None and if_match != old.etag)):
                raise conflict_error(self._display_url(key), if_match, old.etag)
            self._namespace.objects[path] = new
        return new.etag

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        with self._namespace.lock:
            results = [item for item in self._namespace.objects.items() if item[0].startswith(self._root + prefix)]
        now = time.time()
        for path, entry in sorted(results):
            yield ObjectInfo(path.removeprefix(self._root), len(entry.data), entry.etag, entry.modified_seconds, now)

    def head(self, key: str) -> ObjectInfo:
        entry = self._find(key)
        return ObjectInfo(key, len(entry.data), entry.etag, entry.modified_seconds, time.time())

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        path = self._root + check_key(key)
        with self._namespace.lock:
            old = self._namespace.objects.get(path)
            if old is not None and if_match not in (None, old.etag):
                raise conflict_error(self._display_url(key), if_match, old.etag)
            self._namespace.objects.pop(path, None)

    def _find(self, key: str) -> _StoredObject:
        entry = self._namespace.objects.get(self._root + check_key(key))
        if entry is None:
            raise not_found_error(self._display_url(key))
        return entry


def forget(name: str) -> None:
    """Remove the objects of `memory://name`. Stores that are open keep them."""
    _namespaces.pop(name, None)
