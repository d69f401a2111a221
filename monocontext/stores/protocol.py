"""The protocol of an object store: its verbs, and the records that they return.

A store has one root: a bucket and prefix, a directory, or a name in memory. Keys are relative to it, use `/`, and never
start with `/` or contain `..`. A store may wrap another one: `monocontext.testing` adds counts, delays and faults so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol

from monocontext.errors import AlreadyExists, ContextChanged, DamagedData, NotFound, StoreFailure
from monocontext.records import dataclass, field
from monocontext.stores import log

_MARKER = re.compile(r"(?:(?!\.{1,2}/)[^/]+/)*")
CONTENT_TYPE = "application/vnd.monocontext"
"""The content type of all objects. Unlike text, servers do not compress it by themselves."""


@dataclass(frozen=True, slots=True)
class Blob:
    """The result of a read: exactly the requested bytes, and the version of the object that they are from."""

    data: bytes
    etag: str
    """The name of this version of the object. On S3 a hash of the content, so equal bytes may have equal ETags."""
    total_bytes: int
    """The length of the whole object."""
    local: bool = False
    """Whether the bytes came from the disk cache of this machine; the ETag is then that of the earlier read."""
    in_root: bool = False
    """Whether the bytes are a copy in the root of a context, which has no ETag."""
    refusals: int = 0
    """The number of throttling responses, such as 503 SlowDown, before this response."""
    modified_seconds: float = field(default=0.0, compare=False)
    """The time of the last write by the store's clock, in seconds since 1970; 0 for some ranges."""
    now_seconds: float = field(default=0.0, compare=False)
    """The time of the response by the store's clock; 0 if the store does not say."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """Facts about an object, known without reading it."""

    key: str
    size_bytes: int
    etag: str
    modified_seconds: float = 0.0
    """The time of the last write by the store's clock, in seconds since 1970."""
    now_seconds: float = field(default=0.0, compare=False)
    """The time of the response by the store's clock; 0 if the store does not say."""


def list_usable(store: Any, left_out: list[str], prefix: str = "") -> Iterator[ObjectInfo]:
    """`Store.list`, with the keys that no other verb accepts, such as `a//b` or `a/../b`, added to `left_out`."""
    list_usable_of_store = getattr(store, "list_usable", None)
    return iter(list_usable_of_store(left_out, prefix) if list_usable_of_store else store.list(prefix))


def describe_left_out(keys: list[str], *, markers: bool) -> str:
    """A line for users about the keys that `list_usable` left out; empty if there are none.

    `markers` includes keys such as `folder/`, which web consoles create to show a folder.
    """
    results = [key for key in keys if markers or not _MARKER.fullmatch(key)]
    if not results:
        return ""
    some = ", ".join(map(repr, results[:10])) + (", ..." if len(results) > 10 else "")
    what = "object whose key has" if len(results) == 1 else "objects whose keys have"
    return f"left out {len(results):,} {what} an empty part, '.' or '..': {some}"


class RangeReader(Protocol):
    """The one verb of a store that a reader of a text needs."""

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read `length` bytes from byte `start` (1 GET).

        Returns exactly `length` bytes or raises: `NotFound`, `AccessDenied`, `ContextChanged` when `etag` is given and
        the object has another one, `DamagedData` when the object ends before `start + length` or the response is not
        the requested range, `StoreFailure`.
        """
        ...


class Store(RangeReader, Protocol):
    """The objects below one root. Safe for use by many threads."""

    @property
    def url(self) -> str:
        """The URL of the root, which opens the same place again. It contains no secret."""
        ...

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        """Read a whole object (1 GET). Raises `NotFound`, `AccessDenied`, `StoreFailure`.

        With `most_bytes` a larger object raises `DamagedData` before its bytes are read.
        """
        ...

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        """Write a whole object atomically, and return its ETag (1 PUT; more for a large object).

        With `if_absent` the write succeeds only if there is no such object, and with `if_match` only over that version.
        Otherwise it raises `AlreadyExists`, or `NotFound` for `if_match` on an object that was removed. Exactly one of
        any number of concurrent conditional writers wins.
        """
        ...

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects whose keys start with `prefix`, in key order (1 request for each 1000)."""
        ...

    def head(self, key: str) -> ObjectInfo:
        """The size, the ETag and the time of an object (1 request). Raises `NotFound`."""
        ...

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Remove an object; a missing object is no error (1 request).

        With `if_match` only that version is removed; another one stays, and the call raises `AlreadyExists`.
        """
        ...

    def close(self) -> None:
        """Close connections. Idempotent."""
        ...


def get_bounded(store: Store, key: str, most_bytes: int) -> Blob:
    """Read a whole object of at most `most_bytes` (1 GET).

    Raises the errors of `get`, and `DamagedData` for a larger object. The `get` of a store from another package may
    have no `most_bytes`: then all bytes are read before they are counted.
    """
    if _has_most_bytes(type(store)):
        return store.get(key, most_bytes=most_bytes)
    blob = store.get(key)
    if len(blob.data) > most_bytes:
        raise DamagedData(f"{store.url}/{key}: expected at most {most_bytes:,} bytes, found {len(blob.data):,}")
    return blob


_HAS_OPTIONS = 0x08
"""The flag of a function with `**options`: `inspect.CO_VARKEYWORDS`."""


@lru_cache
def _has_most_bytes(kind: type[Any]) -> bool:
    """Whether the `get` of a class of stores has the option `most_bytes`."""
    code = getattr(kind.get, "__code__", None)
    if code is not None and not hasattr(kind.get, "__wrapped__"):
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return "most_bytes" in named or bool(code.co_flags & _HAS_OPTIONS)
    from inspect import signature  # 5 ms to import

    parameters = signature(kind.get).parameters.values()
    return any(p.name == "most_bytes" or p.kind is p.VAR_KEYWORD for p in parameters)


def put_own(store: Store, key: str, data: bytes, *, if_match: str | None = None) -> str:
    """Write an object by a conditional `put` that recognises its own write when the reply was lost; returns its ETag.

    The key or the data must have a random part, so that only this writer can have written these bytes. Without
    `if_match` the object must not exist. Costs 1 PUT; if it fails, 1 HEAD more, and 1 GET if the object has this
    length. Raises `AlreadyExists` for an object of another writer, and the error of `put` if nothing was written.
    """
    try:
        return store.put(key, data, if_absent=if_match is None, if_match=if_match)
    except (AlreadyExists, NotFound, StoreFailure) as error:
        try:
            there = store.head(key)
            if there.size_bytes == len(data) and store.get_range(key, 0, len(data), etag=there.etag).data == data:
                log.note(log.INFO, "%s/%s is written: only the reply was lost", store.url, key)
                return there.etag
        except NotFound:
            raise error from None
        except ContextChanged:
            pass  # replaced by another writer since
        else:
            if there.etag == if_match:
                raise  # nothing was written
        if not isinstance(error, StoreFailure):
            raise
        expected = "no object" if if_match is None else f"ETag {if_match}"
        raise AlreadyExists(f"{store.url}/{key} was written by someone else: expected {expected}") from error


def clock_of(store: Store) -> Callable[[], float] | None:
    """The clock that sets `modified_seconds`, if responses of the store have no time (a file system); else `None`."""
    return getattr(_innermost(store), "now", None)


def credentials_source(store: Store) -> str:
    """The source of the credentials that sign the reads of a store, in words; empty before the first read."""
    return str(getattr(_innermost(store), "credentials_source", ""))


def unproven_server(store: Store) -> str:
    """The address of the server below a store, if it is not known to honour conditional writes; else empty."""
    return str(getattr(_innermost(store), "unproven_server", ""))


def sweep(store: Store, before_seconds: float, *, dry_run: bool = False) -> tuple[int, int]:
    """Remove temporary files that killed writers left before a time, if the store has files.

    Returns their number and bytes.
    """
    own = getattr(_innermost(store), "sweep", None)
    removed: tuple[int, int] = own(before_seconds, dry_run=dry_run) if own else (0, 0)
    return removed


def _innermost(store: Store) -> Any:
    """The store at the bottom of a chain of wrappers; the store itself if it wraps none."""
    inner: Any = store
    while hasattr(inner, "store"):
        inner = inner.store
    return inner


def seconds_now(store: Store, response_seconds: float) -> float:
    """The time by the store's clock in seconds since 1970, given that of a response, or 0 if it had none.

    Without a time from the store, the result is the time of this machine.
    """
    clock = clock_of(store) or time.time
    return response_seconds or clock()
