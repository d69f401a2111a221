"""What reader and writer ask of an object store: six verbs, and two records that come back.

A store is rooted at one place (a bucket and prefix, a directory, a name in memory); keys are relative to it, use `/`,
and never start with `/` or hold `..`. Behaviours stack: counting, delay and faults are stores around a store
(`monocontext.testing`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from monocontext.errors import InvalidUrl

CONTENT_TYPE = "application/vnd.monocontext"
"""The content type of everything we store: object stores that compress text by themselves leave it alone."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that arrived whole."""

    data: bytes
    """Exactly the bytes asked for."""
    etag: str
    """Names this version of the object. A hash of the content on S3, so equal bytes may have equal ones."""
    total_bytes: int
    """Length of the whole object."""
    local: bool = False
    """Kept on this machine since an earlier read: no request was made, and the ETag is of that time."""
    refusals: int = 0
    """Times that the store asked for fewer requests (503 SlowDown and its like) before it answered this one."""
    modified_seconds: float = field(default=0.0, compare=False)
    """Time of the last write by the store's clock, in seconds since 1970; 0 where only a range was asked for."""
    now_seconds: float = field(default=0.0, compare=False)
    """What the store's clock showed when it answered; 0 where it does not tell."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a store knows of an object without reading it."""

    key: str
    size_bytes: int
    etag: str
    modified_seconds: float = 0.0
    """Time of the last write by the store's clock, in seconds since 1970."""
    now_seconds: float = field(default=0.0, compare=False)
    """What the store's clock showed when it answered; 0 where it does not tell."""


class RangeReader(Protocol):
    """The one verb that reading text takes."""

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read `length` bytes from byte `start` (1 GET).

        Returns exactly `length` bytes or raises: `NotFound`, `AccessDenied`, `ContextChanged` when `etag` is given
        and the object has another one, `DamagedData` when the object ends before `start + length` or the reply is
        not the range that was asked for, `StoreFailure`.
        """
        ...


class Store(RangeReader, Protocol):
    """One place in an object store. Safe for use by many threads."""

    @property
    def url(self) -> str:
        """Where the store is rooted; opens the same place again, holds no secret."""
        ...

    def get(self, key: str) -> Blob:
        """Read a whole object (1 GET). Raises `NotFound`, `AccessDenied`, `StoreFailure`."""
        ...

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        """Write a whole object, all or nothing, and return its ETag (1 PUT; more where it is large).

        With `if_absent` the write succeeds only if there is no such object, with `if_match` only over that version;
        else `AlreadyExists` (`NotFound` for `if_match` on an object that is gone). Exactly one of any number of
        concurrent conditional writers wins.
        """
        ...

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Objects whose key starts with `prefix`, in key order (1 request for each 1000)."""
        ...

    def head(self, key: str) -> ObjectInfo:
        """Size, ETag and time of an object (1 request). Raises `NotFound`."""
        ...

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Remove an object; removing what is not there is no error (1 request).

        With `if_match` only that version goes; another one stays, and the call raises `AlreadyExists`.
        """
        ...

    def close(self) -> None:
        """Give back connections. Idempotent."""
        ...


def check_key(key: str) -> str:
    """Return `key`, or raise `InvalidUrl` if it could leave the place that a store is rooted at."""
    parts = key.split("/")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidUrl(f"not a key inside a store: {key!r} has no UTF-8 form") from None
    if not key or "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise InvalidUrl(f"not a key inside a store: {key!r}")
    return key


def clock_of(store: Store) -> Callable[[], float] | None:
    """The clock behind `modified_seconds` of a store whose answers tell no time (a file system's); else None."""
    inner: Any = store
    while hasattr(inner, "store"):  # a store around a store
        inner = inner.store
    return getattr(inner, "now", None)


def seconds_now(store: Store, told_seconds: float) -> float:
    """The time by the store's clock, in seconds since 1970, as it told with an answer or by `clock_of`; else ours."""
    clock = clock_of(store) or time.time
    return told_seconds or clock()
