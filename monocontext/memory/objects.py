"""Read and list the objects of a memory, by the store's clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from cachetools import LRUCache

from monocontext.errors import ContextChanged, DamagedData, NotFound
from monocontext.memory.encoding import FIRST_READ_BYTES, EntryHeader, decode_header
from monocontext.memory.entry import Entry, round_to_clock
from monocontext.memory.names import key_of
from monocontext.records import replace
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import ObjectInfo, Store, innermost

MEMORY_REQUESTS = 16  # requests at once
_MOST_TRIES = 100  # tries to read an entry that others keep replacing
_MOST_HEADERS = 20_000  # headers that are remembered, which take some MB


class Entries:
    """Reads the objects of a memory, and remembers their headers by name and ETag, since a version never changes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._headers: LRUCache[tuple[str, str], EntryHeader] = LRUCache(_MOST_HEADERS)
        self._lock = threading.Lock()

    def remember(self, name: str, etag: str, header: EntryHeader) -> None:
        with self._lock:
            self._headers[name, etag] = header

    def recall(self, name: str, etag: str) -> EntryHeader | None:
        with self._lock:
            return self._headers.get((name, etag))

    def read(self, name: str) -> Entry:
        """An entry with its value, expired or not (1 GET). Raises `NotFound`, `DamagedData`."""
        blob = self.store.get(name)
        header = self._decode(name, blob.data, len(blob.data))
        if not isinstance(header, EntryHeader):
            raise DamagedData(f"{self.location(name)}: expected a header of {header:,} bytes, found fewer")
        self.remember(name, blob.etag, header)
        value = header.value(blob.data, self.location(name))
        if header.ttl_seconds is not None and not blob.modified_seconds:
            return self._make_entry(self.store.head(name), header, value)  # this store sends no time with a GET
        info = ObjectInfo(name, len(blob.data), blob.etag, blob.modified_seconds, blob.now_seconds)
        return self._make_entry(info, header, value)

    def find(self, name: str) -> Entry | None:
        """The entry under a name, expired or not, without its value; None if there is none (1 HEAD, at most 1 GET).

        Raises `ContextChanged` if the entry is replaced between these two requests 100 times in a row.
        """
        for _ in range(_MOST_TRIES):
            try:
                info = self.store.head(name)
                return self._make_entry(info, self._read_header(info))
            except NotFound:
                return None
            except ContextChanged:
                continue  # replaced in between
        raise ContextChanged(f"{self.location(name)} was replaced {_MOST_TRIES} times while it was read: try again")

    def list_all(self, prefix: str) -> Iterator[Entry | DamagedData]:
        """Yield the entries under a prefix of names, expired or not, and errors of damaged entries (1 LIST per 1,000
        keys; 1 GET for each header that is not remembered)."""
        infos = self.infos(prefix)
        now_seconds = self._clock_seconds(infos[0]) if infos else 0.0
        timed = [replace(info, now_seconds=now_seconds) for info in infos]  # so that all are judged at one time
        return filter(None, at_once(self._read_listed, timed, MEMORY_REQUESTS))

    def _read_listed(self, info: ObjectInfo) -> Entry | DamagedData | None:
        """The entry of a listed object, or the error if it is damaged; None if it was removed since."""
        try:
            return self._make_entry(info, self._read_header(info))
        except (NotFound, ContextChanged):
            return self.find(info.key)
        except DamagedData as error:
            return error

    def infos(self, prefix: str) -> list[ObjectInfo]:
        """The objects under a prefix of names, in the order of their keys (1 LIST per 1,000 keys)."""
        results = [(key, info) for info in self.store.list(prefix) if (key := key_of(info.key)) is not None]
        return [info for _, info in sorted(results, key=lambda pair: pair[0])]

    def location(self, name: str) -> str:
        return f"{self.store.url}/{name}"

    def _read_header(self, info: ObjectInfo) -> EntryHeader:
        """The header of an object (1 GET of 2 KB; none if it is remembered). Raises `NotFound` or `ContextChanged` if
        this version is gone."""
        header = self.recall(info.key, info.etag)
        if header is not None:
            return header
        read_bytes = min(info.size_bytes, FIRST_READ_BYTES)
        while True:
            data = self.store.get_range(info.key, 0, read_bytes, etag=info.etag).data
            result = self._decode(info.key, data, info.size_bytes)
            if isinstance(result, EntryHeader):
                self.remember(info.key, info.etag, result)
                return result
            if not read_bytes < result <= info.size_bytes:
                raise DamagedData(f"{self.location(info.key)}: expected a header of {result:,} bytes, found fewer")
            read_bytes = result

    def _decode(self, name: str, data: bytes, object_bytes: int) -> EntryHeader | int:
        """The header in the first bytes of an object, or its length if it is longer. Raises `DamagedData`."""
        header = decode_header(data, self.location(name), object_bytes)
        if isinstance(header, EntryHeader) and header.key != key_of(name):
            raise DamagedData(f"{self.location(name)}: expected the key {key_of(name)!r}, found {header.key!r}")
        return header

    def _make_entry(self, info: ObjectInfo, header: EntryHeader, value: str | None = None) -> Entry:
        """The entry in an object. All times are of the store's clock, so that machines agree on what has expired."""
        now_seconds = info.now_seconds if header.ttl_seconds is None else self._clock_seconds(info)
        ttl_seconds, now_seconds = round_to_clock(header.ttl_seconds, info.modified_seconds, now_seconds)
        return Entry(
            header.key, value, info.etag, header.value_bytes, info.modified_seconds, ttl_seconds, now_seconds,
            header.metadata, header,
        )  # fmt: skip

    def _clock_seconds(self, info: ObjectInfo) -> float:
        """The store's time: from its answer, the file system or a listing (1 LIST), or else that of this machine."""
        if info.now_seconds:
            return info.now_seconds
        if (seconds := innermost(self.store).now()) is not None:
            return seconds
        return next((item.now_seconds for item in self.store.list(info.key) if item.now_seconds), 0.0) or time.time()
