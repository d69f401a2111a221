"""Store objects in Google Cloud Storage or Azure, or read them over HTTPS, through obstore (Rust `object_store`).

Invariants:

- an ETag names one version, and a range of another version is an error
- create-only and compare-and-swap are conditions of the request, so exactly one writer wins. Google's condition names a
  generation instead of an ETag, so a compare-and-swap first reads the generation of its ETag (1 HEAD)
- `delete` with a condition first overwrites that version with a marker, under the same condition, then deletes the
  marker: obstore has no conditional DELETE

obstore finds and refreshes credentials by the usual chain of each cloud; `object_store` retries, resumes bodies and
applies timeouts. The threads of obstore do not survive a fork, and a client made in the forked process never gets a
response. So in a process that was forked from one that had sent a request by obstore, opening a store and all verbs
raise an error.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any

from monocontext.errors import (
    AccessDenied,
    AlreadyExists,
    ContextChanged,
    InvalidUrl,
    MonocontextError,
    NotFound,
    StoreFailure,
    Unsupported,
    install_line,
)
from monocontext.stores.protocol import (
    CONTENT_TYPE,
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
    one_line,
)
from monocontext.stores.secrets_in_urls import without_secrets

try:
    import obstore
    from obstore import exceptions as failures
    from obstore.store import AzureStore, GCSStore, HTTPStore
except ModuleNotFoundError as error:
    raise InvalidUrl(f"gs://, az:// and https:// need obstore: {install_line('obstore')}") from error

_READ_TIMEOUT = timedelta(seconds=2)  # a GET that receives nothing for this long is repeated
_WRITE_TIMEOUT = timedelta(seconds=60)
"""The same limit for a write: a server may take long to answer, and a repeated write may conflict with itself."""
_TIMEOUTS = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=300)}
"""The time limits for opening a connection, and for a whole request."""
_RETRY: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_RANGE_ERROR = re.compile(r"status code: 416|InvalidRange|Wanted range|[Rr]ange not satisfiable|CONTENT_RANGE")
"""Matches the messages of `object_store` for a range that begins after the end of the object. The last one is for the
`Content-Range: bytes 0--1/0` that Azurite sends for an empty object."""
_process_of_obstore: int | None = None
"""The id of the process that used obstore first: this process, or one that it was forked from. `None` before that."""
_PART_BYTES = 64 << 20
"""Larger objects are uploaded in parts, except by a conditional put: obstore has no condition for those."""


class CloudStore(StoreBase):
    """Objects below `gs://bucket/prefix`, `az://container/prefix`, or `https://host/path`."""

    def __init__(self, url: str, **options: Any) -> None:
        _check_process(url, sends=False)
        self.url, self._options = url, options
        self._scheme = url.partition("://")[0]
        self._is_web = self._scheme in ("http", "https")
        self._read_store = _open_obstore(url, options, _READ_TIMEOUT)
        self._write_store = _open_obstore(url, options, _WRITE_TIMEOUT)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(CloudStore, self.url, **self._options), ()

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        url, path = self._display_url(key), check_key(key)
        # With a range, a server without support for ranges raises an error: it would send the whole object each time.
        options: Any = {"range": {"offset": 0}} if self._is_web else None
        with self._translate_errors(url):
            result = obstore.get(self._read_store, path, options=options)
            check_size(url, most_bytes, result.meta["size"])
            data = bytes(result.bytes())
        return self._blob(result.meta, data)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        check_range(start, length)
        url, path = self._display_url(key), check_key(key)
        if not length:  # HTTP has no empty range
            info = self.head(key)
            check_part(url, etag, info.etag, start, length, info.size_bytes)
            return Blob(b"", info.etag, info.size_bytes, modified_seconds=info.modified_seconds)
        with self._translate_errors(url):
            try:
                result = obstore.get(self._read_store, path, options={"range": (start, start + length)})
            except failures.BaseError as error:
                if _RANGE_ERROR.search(str(error)):
                    info = self.head(key)
                    check_part(url, etag, info.etag, start, length, info.size_bytes)
                raise
            check_part(url, etag, self._etag(result.meta), start, length, result.meta["size"])
            data = bytes(result.bytes())
        if len(data) != length:
            raise StoreFailure(f"{url}: expected {length:,} bytes, found {len(data):,}")
        return self._blob(result.meta, data)

    def head(self, key: str) -> ObjectInfo:
        path = check_key(key)
        with self._translate_errors(self._display_url(key)):
            return self._info(path, obstore.head(self._read_store, path))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        if self._is_web:
            raise Unsupported(f"{self.url} cannot list its objects: it is a plain web server")
        folder = prefix.rpartition("/")[0]
        if folder and any(part in ("", ".", "..") for part in folder.split("/")):
            return
        with self._translate_errors(f"{self.url}/{prefix}"):
            rows: Iterable[Any] = chain.from_iterable(obstore.list(self._read_store, prefix=folder or None))
            if self._options.get("endpoint"):  # clouds list in key order; their emulators may list folder by folder
                rows = sorted(rows, key=lambda row: row["path"])
            yield from (self._info(row["path"], row) for row in rows if row["path"].startswith(prefix))

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        check_write(if_absent, if_match)
        url, path = self._display_url(key), check_key(key)
        self._check_writable()
        in_parts = not if_absent and if_match is None and len(data) > _PART_BYTES
        attributes = {"Content-Type": CONTENT_TYPE}
        with self._translate_errors(url, if_match):
            mode: Any = "create" if if_absent else "overwrite"
            if if_match is not None:
                mode = self._condition(path, if_match)
            try:
                written = obstore.put(
                    self._write_store, path, bytes(data), attributes=attributes, mode=mode, use_multipart=in_parts
                )
            except (failures.PreconditionError, failures.AlreadyExistsError):
                newest = obstore.head(self._read_store, path)  # raises `NotFound` if the object is gone
                raise conflict_error(url, if_match, self._etag(newest)) from None
            return self._etag({**written, "size": len(data)})

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        url, path = self._display_url(key), check_key(key)
        self._check_writable()
        if if_match is not None:
            try:
                self.put(key, secrets.token_bytes(16), if_match=if_match)
            except NotFound:
                return
        with self._translate_errors(url), suppress(FileNotFoundError):  # a missing object is not an error
            obstore.delete(self._write_store, path)

    def _check_writable(self) -> None:
        if self._is_web:
            raise AccessDenied(f"{self.url} is read-only: write to a directory, s3://, gs:// or az://")

    def _etag(self, meta: Any) -> str:
        """The ETag without quotes, which Azure sends in responses but not in lists."""
        # Without an ETag, as from some web servers, the time of the last write and the size name the version.
        etag = meta.get("e_tag") or f"{meta['last_modified'].timestamp():.0f}-{meta['size']}"
        return str(etag).strip('"')

    def _condition(self, path: str, etag: str) -> dict[str, str]:
        """obstore's condition for a write that replaces the version `etag` (1 HEAD in Google Cloud Storage)."""
        if self._scheme != "gs":
            return {"e_tag": f'"{etag}"'}
        meta = obstore.head(self._read_store, path)
        if self._etag(meta) != etag:
            raise conflict_error(self._display_url(path), etag, self._etag(meta))
        return {"version": str(meta["version"])}

    def _blob(self, meta: Any, data: bytes) -> Blob:
        return Blob(data, self._etag(meta), meta["size"], modified_seconds=meta["last_modified"].timestamp())

    def _info(self, key: str, meta: Any) -> ObjectInfo:
        return ObjectInfo(key, meta["size"], self._etag(meta), meta["last_modified"].timestamp())

    @contextmanager
    def _translate_errors(self, url: str, if_match: str | None = None) -> Iterator[None]:
        """Translate errors of obstore into errors of monocontext. A failed condition of a write is `AlreadyExists`."""
        _check_process(url)
        try:
            yield
        except MonocontextError:
            raise
        except FileNotFoundError:
            raise not_found_error(url) from None
        except (failures.PermissionDeniedError, failures.UnauthenticatedError) as error:
            raise AccessDenied(f"{url}: {_first_part(error)}") from error
        except failures.PreconditionError as error:
            error_type = ContextChanged if if_match is None else AlreadyExists
            raise error_type(f"{url}: {_first_part(error)}") from error
        except failures.NotSupportedError as error:
            raise Unsupported(f"{url}: the server does not support ranges, which reads need: use another") from error
        except ValueError as error:  # from obstore's parser of keys
            raise InvalidUrl(f"{url}: this store accepts no keys with control characters") from error
        except (failures.BaseError, OSError) as error:
            raise StoreFailure(f"{url}: {_first_part(error)}") from error


def _check_process(url: str, *, sends: bool = True) -> None:
    """Raise `StoreFailure` if this process was forked from one that used obstore. `sends`: this call uses it."""
    global _process_of_obstore
    if _process_of_obstore not in (None, os.getpid()):
        raise StoreFailure(
            f"{url}: obstore was used before this process was forked, so it cannot be used here: start processes "
            f"with spawn, as in multiprocessing.get_context('spawn')"
        )
    if sends:
        _process_of_obstore = os.getpid()


def _open_obstore(url: str, options: dict[str, Any], read_timeout: timedelta) -> Any:
    """obstore's store at a URL. Raises `InvalidUrl`."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    endpoint = options.get("endpoint")
    client: Any = {**_TIMEOUTS, "read_timeout": read_timeout}
    if (endpoint or url).startswith("http://"):
        client["allow_http"] = True
    shared: dict[str, Any] = {"prefix": path or None, "client_options": client, "retry_config": _RETRY}
    if options.get("anonymous"):
        shared["skip_signature"] = True
    if endpoint:
        shared["base_url" if scheme == "gs" else "endpoint"] = endpoint
    try:
        if scheme == "gs":
            return GCSStore(authority, **shared)
        if scheme == "az":
            container, _, host = authority.partition("@")
            account, _, domain = host.partition(".")
            if account:
                shared["account_name"] = account
            if domain and not endpoint:  # obstore knows that of the public Azure only
                shared["endpoint"] = f"https://{account}.{domain.replace('dfs.', 'blob.', 1)}"
            return AzureStore(container, **shared)
        return HTTPStore(url, client_options=client, retry_config=_RETRY)
    except failures.BaseError as error:
        raise InvalidUrl(f"{url}: {_first_part(error)}") from error


def _first_part(error: BaseException) -> str:
    """The message of an obstore error in one line, without the debug output that follows it."""
    return without_secrets(one_line(str(error).partition("\n\n")[0]))[:500]
