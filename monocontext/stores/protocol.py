"""Define the protocol of an object store: its verbs, the records that they return, and the checks that stores share.

A store has one root: a bucket and prefix, a directory, or a name in memory. Keys are relative to it, use `/`, and never
start with `/` or contain `..`. A store may wrap another one: so `monocontext.testing` adds counts, delays and faults.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Protocol, cast, runtime_checkable

from monocontext.errors import AlreadyExists, ContextChanged, DamagedData, InvalidUrl, NotFound, StoreFailure
from monocontext.records import dataclass, field, replace
from monocontext.stores import log

_FOLDER_MARKER = r"(?:(?!\.{1,2}/)[^/]+/)*"  # `folder/` or `a/b/`, but not `a//` or `../`
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
    """The time of the last write by the store's clock, in seconds since 1970; 0 if a store sends none with ranges."""
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


def describe_left_out(keys: list[str], *, markers: bool) -> str:
    """A line for users about the keys that `list_usable` left out; empty if there are none.

    With `markers` it counts keys such as `folder/` too, which web consoles create to show a folder.
    """
    counted = [key for key in keys if markers or not re.fullmatch(_FOLDER_MARKER, key)]
    if not counted:
        return ""
    examples = ", ".join(map(repr, counted[:10])) + (", ..." if len(counted) > 10 else "")
    noun = "object whose key has" if len(counted) == 1 else "objects whose keys have"
    return f"left out {len(counted):,} {noun} an empty part, '.' or '..': {examples}"


class RangeReader(Protocol):
    """The only verb of a store that a reader of a text needs."""

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read `length` bytes from byte `start` (1 GET).

        Returns exactly `length` bytes or raises: `NotFound`, `AccessDenied`, `ContextChanged` when `etag` is given and
        the object has another one, `DamagedData` when the object ends before `start + length` or the response is not
        the requested range, `StoreFailure`.
        """
        ...


@runtime_checkable
class CopyKeeper(RangeReader, Protocol):
    """A range reader with a cache of its own."""

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Remove a range that a reader found damaged from the cache, so that the next read sends a request."""
        ...


class Store(RangeReader, Protocol):
    """The objects below one root. Safe for use by many threads."""

    @property
    def url(self) -> str:
        """The URL of the root, with which the store can be opened again. It contains no secret."""
        ...

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        """Read a whole object (1 GET). Raises `NotFound`, `AccessDenied`, `StoreFailure`.

        With `most_bytes`, a larger object raises `DamagedData` before its bytes are read.
        """
        ...

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        """Write a whole object atomically, and return its ETag (1 PUT; more for a large object).

        With `if_absent` it writes only if there is no such object, and with `if_match` only if the object has that
        ETag. Otherwise it raises `AlreadyExists`, or `NotFound` for `if_match` and no object. Exactly one of any
        number of concurrent conditional writers wins.
        """
        ...

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects whose keys start with `prefix`, in key order (1 request per 1,000 objects)."""
        ...

    def head(self, key: str) -> ObjectInfo:
        """Facts about an object (1 HEAD). Raises `NotFound`, `AccessDenied`, `StoreFailure`."""
        ...

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Remove an object; a missing object is not an error (1 DELETE).

        With `if_match`, an object with another ETag is not removed: the call raises `AlreadyExists`.
        """
        ...

    def close(self) -> None:
        """Close connections. Idempotent."""
        ...


class StoreBase:
    """The optional members of a store besides its verbs, with the defaults for a store that lacks them. The stores of
    this package derive from this class; for a store that does not derive from it, all defaults hold."""

    is_near: bool = False
    """Whether a round trip costs next to nothing, as for memory and disks, so that reading ahead gains little."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {cast(Store, self).url}>"

    def close(self) -> None:
        """Close connections, of which most stores have none. Idempotent."""

    def _display_url(self, key: str) -> str:
        """The URL of an object for error messages, in one line."""
        return f"{cast(Store, self).url}/{key if key.isprintable() else repr(key)[1:-1]}"

    @property
    def credentials_source(self) -> str:
        """The source of the credentials that sign reads, in words; empty before the first read, or if unknown."""
        return ""

    @property
    def unproven_server(self) -> str:
        """The URL of the server if it is not known to honour conditional writes; else empty."""
        return ""

    def now(self) -> float | None:
        """The time by the clock that sets `modified_seconds`; `None` if responses have that time as `now_seconds`."""
        return None

    def list_usable(self, left_out: list[str], prefix: str = "") -> Iterator[ObjectInfo]:
        """Like `list`, but keys that no other verb accepts, such as `a//b`, are added to `left_out`, not yielded."""
        return cast(Store, self).list(prefix)

    def sweep(self, before_seconds: float, *, dry_run: bool = False) -> tuple[int, int]:
        """Remove temporary files that killed writers left before a time, in seconds since 1970; `dry_run` only counts.

        Returns the number of these files and their bytes in all: 0 and 0 for a store that writes no files.
        """
        return 0, 0

    def sibling(self, url: str) -> Store | None:
        """The store at another URL, with the client or options of this one; `None` if the URL is enough to open it."""
        return None


class StoreWrapper(StoreBase):
    """Forwards every verb to the wrapped `store`. Subclasses override some of them."""

    def __init__(self, store: Store, prefix: str = "") -> None:
        """`prefix`: the start of all keys in the wrapped store, such as `texts/`. Callers leave it out."""
        self.store = store
        self._prefix = prefix
        self.is_near = isinstance(store, StoreBase) and store.is_near

    @property
    def url(self) -> str:
        return f"{self.store.url.rstrip('/')}/{self._prefix.rstrip('/')}" if self._prefix else self.store.url

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self.store.get(self._prefix + key, most_bytes=most_bytes)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self.store.get_range(self._prefix + key, start, length, etag=etag)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        return self.store.put(self._prefix + key, data, if_absent=if_absent, if_match=if_match)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        infos = self.store.list(self._prefix + prefix)
        return (replace(info, key=info.key.removeprefix(self._prefix)) for info in infos) if self._prefix else infos

    def head(self, key: str) -> ObjectInfo:
        info = self.store.head(self._prefix + key)
        return replace(info, key=key) if self._prefix else info

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        self.store.delete(self._prefix + key, if_match=if_match)

    def close(self) -> None:
        self.store.close()


def innermost(store: Store) -> StoreBase:
    """The store below all wrappers; one with the default members if it does not derive from `StoreBase`."""
    inner: object = store
    while isinstance(inner, StoreWrapper):
        inner = inner.store
    return inner if isinstance(inner, StoreBase) else StoreBase()


def list_usable(store: Store, left_out: list[str], prefix: str = "") -> Iterator[ObjectInfo]:
    """`StoreBase.list_usable` for any store; one that does not derive from `StoreBase` leaves nothing out."""
    return store.list_usable(left_out, prefix) if isinstance(store, StoreBase) else store.list(prefix)


def put_own(store: Store, key: str, data: bytes, *, if_match: str | None = None) -> str:
    """Write an object by a conditional `put` that recognises its own write if the response was lost; returns its ETag.

    The key or the data must have a random part, so that no other writer writes these bytes to this key. Without
    `if_match` the object must not exist. Costs 1 PUT; if that fails, 1 HEAD, and 1 GET if the object has the length of
    `data`. Raises `AlreadyExists` for an object of another writer, and the error of `put` if nothing was written.
    """
    try:
        return store.put(key, data, if_absent=if_match is None, if_match=if_match)
    except (AlreadyExists, NotFound, StoreFailure) as error:
        try:
            stored = store.head(key)
            if stored.size_bytes == len(data) and store.get_range(key, 0, len(data), etag=stored.etag).data == data:
                log.note(log.INFO, "%s/%s is written: only the response was lost", store.url, key)
                return stored.etag
        except NotFound:
            raise error from None  # nothing was written
        except ContextChanged:
            pass  # another writer has replaced it since
        else:
            if stored.etag == if_match:
                raise  # the old version: nothing was written
        if not isinstance(error, StoreFailure):
            raise
        expected = "no object" if if_match is None else f"ETag {if_match}"
        raise AlreadyExists(f"{store.url}/{key} was written by someone else: expected {expected}") from error


def seconds_now(store: Store, response_seconds: float) -> float:
    """The time by the store's clock, in seconds since 1970: `response_seconds` unless it is 0, else `StoreBase.now`,
    else the time of this machine."""
    return response_seconds or innermost(store).now() or time.time()


# -- checks and errors of all stores -----------------------------------------------------------------------------------


def check_key(key: str) -> str:
    """Return `key`. Raises `InvalidUrl` if it could lead out of the root of the store, or is not valid Unicode."""
    parts = key.split("/")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidUrl(f"invalid key {key!r}: it cannot be encoded as UTF-8") from None
    if not key or "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise InvalidUrl(f"invalid key {key!r}: no part may be empty, '.' or '..', and it must not contain NUL")
    return key


def check_range(start: int, length: int) -> None:
    """Raise `ValueError` for a negative start or length."""
    if start < 0 or length < 0:
        raise ValueError(f"start and length must be at least 0, not {start} and {length}")


def check_write(if_absent: bool, if_match: str | None) -> None:
    """Raise `ValueError` for a write with both conditions."""
    if if_absent and if_match is not None:
        raise ValueError("if_absent and if_match cannot be combined")


def check_version(url: str, expected: str | None, etag: str) -> None:
    """Raise `ContextChanged` unless the object has the version that the reader expects, if any."""
    if expected is not None and expected != etag:
        raise ContextChanged(f"{url} was replaced: expected ETag {expected}, found {etag}")


def check_end(url: str, start: int, length: int, total_bytes: int) -> None:
    """Raise `DamagedData` if the object ends before the range does."""
    if start + length > total_bytes:
        raise DamagedData(
            f"{url} is too short: expected bytes {start:,} to {start + length:,}, found {total_bytes:,} bytes in all"
        )


def check_part(url: str, expected: str | None, etag: str, start: int, length: int, total_bytes: int) -> None:
    """Raise `ContextChanged` if a range is of another version, `DamagedData` if it is not within the object."""
    check_version(url, expected, etag)
    check_end(url, start, length, total_bytes)


def check_size(url: str, most_bytes: int | None, found_bytes: int | None) -> None:
    """Raise `DamagedData` if an object is larger than `most_bytes`. `None` means no limit, or an unknown size."""
    if most_bytes is not None and found_bytes is not None and found_bytes > most_bytes:
        raise DamagedData(f"{url} is too large: expected at most {most_bytes:,} bytes, found {found_bytes:,}")


def uniform(low: float, high: float) -> float:
    """A random number from `low` to `high`. `random` is not used: a program may have seeded it for its own sequence."""
    return low + (high - low) * int.from_bytes(os.urandom(6), "big") / (1 << 48)


def one_line(error: object) -> str:
    """The message of an error in one line; the name of its type if it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


def not_found_error(url: str) -> NotFound:
    """The error for a missing object."""
    return NotFound(f"nothing at {url}")


def conflict_error(url: str, if_match: str | None, etag: str) -> AlreadyExists:
    """The error for a conditional write that found another version."""
    if if_match is None:
        return AlreadyExists(f"{url} already exists: ETag {etag}")
    return AlreadyExists(f"{url} was written by someone else: expected ETag {if_match}, found {etag}")
