"""Read ranges of stored objects, and verify and decode them.

No value is returned whose bytes did not pass every check. Every object is pinned to the ETag that is recorded or, else,
was first seen with verified bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Protocol, runtime_checkable

from monocontext.engine.fetch.requests import RangeRequest
from monocontext.engine.fetch.stored_bytes import StoredBytes
from monocontext.engine.fetch.workers import Workers
from monocontext.errors import ContextChanged, DamagedData, ForeignObject
from monocontext.records import dataclass
from monocontext.stores.protocol import Blob, RangeReader

Places = Callable[[str], tuple[RangeReader, str]]
"""Maps a foreign object's URL to a store and key; raises `ForeignObject` for a place that the caller does not allow."""


@runtime_checkable
class InvalidatableStore(RangeReader, Protocol):
    """A store that may answer from its own copies."""

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Drop the copy of these bytes, under the requested ETag, because it is damaged."""
        ...


def refuse_foreign(url: str) -> tuple[RangeReader, str]:
    raise ForeignObject(f"{url} is outside of the context: to read it, open the context with allow=[...]")


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of a request, before they are verified."""

    request: RangeRequest
    blob: Blob
    store: RangeReader
    key: str
    """The name of the object in the store."""
    etag: str | None
    """The version that was requested, if one is recorded or was seen."""
    is_kept: bool
    """Whether the bytes were in memory, so no store was asked."""


class ObjectReader:
    """Reads the objects of one context. Safe for use by many threads."""

    def __init__(self, store: RangeReader, places: Places, workers: Workers, stored: StoredBytes):
        self._store = store
        self._places = places
        self._workers = workers
        self._stored = stored
        self._etags: dict[str, str] = {}

    def read(self, request: RangeRequest) -> Answer:
        """The bytes of a request (1 GET, none if they are kept)."""
        store, key = self._store, request.object
        if "://" in request.object:
            store, key = self._places(request.object)
        etag = request.items[0].etag or self._etags.get(request.object)
        kept = None
        if self._stored.limit_bytes:
            with self._workers.lock:
                kept = self._stored.body_of(request)
        if kept is not None:
            return Answer(request, Blob(kept, etag or "", len(kept), local=True), store, key, etag, True)
        blob = store.get_range(key, request.start, request.stored_bytes, etag=etag)
        return Answer(request, blob, store, key, etag, False)

    def decode(self, answer: Answer) -> dict[Hashable, Any]:
        """The values of an answer's items, by key. Raises `DamagedData`, or `ContextChanged` for another version."""
        request, blob, size = answer.request, answer.blob, answer.request.stored_bytes
        recorded = request.items[0].etag
        if answer.etag and (recorded or not blob.local):
            _check_version(request, answer.etag, blob)
        if len(blob.data) != size:
            raise DamagedData(f"{request.object}: expected {size} bytes from {request.start}, found {len(blob.data)}")
        try:
            values = self._decode_items(request, blob)
        except DamagedData:
            with self._workers.lock:
                self._stored.forget(request.items)
            if isinstance(answer.store, InvalidatableStore):
                answer.store.forget(answer.key, request.start, size, etag=answer.etag)
            raise
        if not recorded and not blob.local:  # only verified bytes pin the version
            with self._workers.lock:
                first_seen = self._etags.setdefault(request.object, blob.etag)
            _check_version(request, first_seen, blob)
        return values

    def _decode_items(self, request: RangeRequest, blob: Blob) -> dict[Hashable, Any]:
        items, body = request.items, memoryview(blob.data)
        parts = []
        for item in items:
            at = item.offset - request.start
            parts.append((item, body[at : at + item.stored_bytes]))

        def decode() -> list[Any]:
            return [item.decode(part) for item, part in parts]

        def decode_on_all_cores() -> list[Any]:
            works = [item.begin(part) if item.begin else partial(item.decode, part) for item, part in parts]
            return self._workers.share(works)

        if request.is_in_place or blob.in_root:  # decoding text in a root takes less than starting a thread
            values = decode()
        else:
            values = self._workers.decode(decode if len(items) == 1 else decode_on_all_cores)
        return {item.key: value for item, value in zip(items, values, strict=True)}


def _check_version(request: RangeRequest, expected: str, blob: Blob) -> None:
    if blob.etag != expected:
        raise ContextChanged(
            f"{request.object} was replaced while it was read: expected ETag {expected}, found {blob.etag}"
        )
