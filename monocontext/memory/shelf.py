"""Objects of a memory: finding what is known of each, and telling what time it is in the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from cachetools import LRUCache

from monocontext.errors import ContextChanged, DamagedData, NotFound
from monocontext.memory.entry import Entry
from monocontext.memory.envelope import HEAD_BYTES, Head, unseal
from monocontext.memory.names import key_of
from monocontext.spread import in_order
from monocontext.store import Blob, ObjectInfo, Store, clock_of

THREADS = 16
"""Requests at once."""
_KEPT = 20_000
"""Heads that are remembered: some MB."""


class Shelf:
    """Looks at objects. Remembers heads by name and ETag, which name a version for good: none can be stale."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._heads: LRUCache[tuple[str, str], Head] = LRUCache(_KEPT)
        self._lock = threading.Lock()

    def keep(self, name: str, etag: str, head: Head) -> None:
        with self._lock:
            self._heads[name, etag] = head

    def kept(self, name: str, etag: str) -> Head | None:
        with self._lock:
            return self._heads.get((name, etag))

    def read(self, name: str) -> Entry:
        """An entry with its value, expired or not (1 GET). Raises `NotFound`, `DamagedData`."""
        blob = self.store.get(name)
        head = unseal(blob.data, self.where(name))
        if not isinstance(head, Head):
            raise DamagedData(f"{self.where(name)}: expected a head of {head:,} bytes, found {len(blob.data):,} in all")
        self._check(name, head)
        self.keep(name, blob.etag, head)
        value = head.value(blob.data, self.where(name))
        if head.ttl_seconds is not None and not blob.modified_seconds:
            return self._entry(self.store.head(name), head, value)  # a store that tells no times with the bytes
        return self._entry(blob, head, value, name)

    def look(self, name: str) -> tuple[Entry, Head] | None:
        """What is there under a name, expired or not, without its value (1 HEAD, and at most 1 GET)."""
        while True:
            try:
                info = self.store.head(name)
                head = self._head(info)
            except NotFound:
                return None
            except ContextChanged:
                continue  # written in between
            return self._entry(info, head), head

    def all(self, prefix: str) -> Iterator[tuple[Entry, Head]]:
        """Everything under a prefix of names, expired or not (1 LIST a thousand; 1 GET each unless remembered)."""
        infos = self.infos(prefix)
        now = self._now(infos[0].now_seconds, infos[0].key) if infos else 0.0

        def of(info: ObjectInfo) -> tuple[Entry, Head] | None:
            try:
                head = self._head(info)
            except (NotFound, ContextChanged):
                return self.look(info.key)
            return self._entry(info, head, now=now), head

        known = [info for info in infos if self.kept(info.key, info.etag)]
        if len(known) == len(infos):
            yield from (found for info in infos if (found := of(info)))
            return
        with ThreadPoolExecutor(THREADS, thread_name_prefix="monocontext-memory") as threads:
            yield from (found for found in in_order(threads, of, infos, 2 * THREADS) if found)

    def infos(self, prefix: str) -> list[ObjectInfo]:
        """Objects of entries under a prefix of names, in the order of their keys (1 LIST a thousand)."""
        found = [(key, info) for info in self.store.list(prefix) if (key := key_of(info.key)) is not None]
        return [info for _, info in sorted(found, key=lambda pair: pair[0])]

    def where(self, name: str) -> str:
        return f"{self.store.url}/{name}"

    def _head(self, info: ObjectInfo) -> Head:
        """What an object says of itself (1 GET of 2 KB; none where it is remembered).

        Raises `NotFound` or `ContextChanged` when it is no longer that version.
        """
        head = self.kept(info.key, info.etag)
        if head is not None:
            return head
        read_bytes = min(info.size_bytes, HEAD_BYTES)
        while True:
            data = self.store.get_range(info.key, 0, read_bytes, etag=info.etag).data
            found = unseal(data, self.where(info.key))
            if isinstance(found, Head):
                self._check(info.key, found)
                self.keep(info.key, info.etag, found)
                return found
            if not read_bytes < found <= info.size_bytes:
                raise DamagedData(f"{self.where(info.key)}: expected a head of {found:,} bytes, found it cut")
            read_bytes = found

    def _check(self, name: str, head: Head) -> None:
        if head.key != key_of(name):
            raise DamagedData(f"{self.where(name)}: expected the key {key_of(name)!r}, found {head.key!r}")

    def _entry(
        self, told: ObjectInfo | Blob, head: Head, value: str | None = None, name: str = "", now: float = 0.0
    ) -> Entry:
        """Both times are of the store's clock: machines whose clocks differ agree on what has expired."""
        name = told.key if isinstance(told, ObjectInfo) else name
        if head.ttl_seconds is not None:
            now = now or self._now(told.now_seconds, name)
        return Entry(
            head.key,
            value,
            told.etag,
            head.value_bytes,
            told.modified_seconds,
            head.ttl_seconds,
            now or told.now_seconds,
            head.metadata,
        )

    def _now(self, told_seconds: float, name: str) -> float:
        """The store's clock: as told with the answer, by the file system, or in a listing (1 LIST); else ours."""
        if told_seconds:
            return told_seconds
        if clock := clock_of(self.store):
            return clock()
        return next((info.now_seconds for info in self.store.list(name) if info.now_seconds), 0.0) or time.time()
