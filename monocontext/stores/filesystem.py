"""Read objects from any filesystem of fsspec, such as `fsspec+sftp://host/path` or `hf://datasets/owner/name/path`.

Invariants:

- an ETag names one version: it is a hash of what the filesystem reports about a file, such as its own ETag, or its size
  and time
- the ETag is checked again after bytes are read, which takes one more request than in other stores. If the file has
  changed meanwhile, the read fails, or is repeated if the caller names no ETag
- the store is read-only, since fsspec does not promise that exactly one of two writers wins

Hosts and credentials are configured as in fsspec: `~/.config/fsspec/*.json` and `FSSPEC_*`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

from monocontext.errors import (
    AccessDenied,
    ContextChanged,
    InvalidUrl,
    MonocontextError,
    StoreFailure,
    Unsupported,
    install_line,
)
from monocontext.stores.protocol import (
    Blob,
    ObjectInfo,
    StoreBase,
    check_key,
    check_part,
    check_range,
    check_size,
    not_found_error,
    one_line,
)
from monocontext.stores.secrets_in_urls import without_secrets

try:
    from fsspec.core import url_to_fs
except ModuleNotFoundError as error:
    raise InvalidUrl(f"fsspec+PROTOCOL:// and hf:// need fsspec: {install_line('fsspec')}") from error

_VERSIONS = ("ETag", "etag", "e_tag", "version_id", "generation", "blob_id", "md5", "content_md5", "ino")
"""The names under which filesystems report the version of a file."""
_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")
"""The names under which filesystems report the time of its last write."""
_READ_ATTEMPTS = 20  # the most reads of a file that keeps changing
_HIDDEN = ".monocontext-"  # the prefix of the names of temporary files and locks of `file://`, which are not objects


class FilesystemStore(StoreBase):
    """Objects as files below a path of a filesystem."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._fs, root = url_to_fs(url.removeprefix("fsspec+"))
        except (ImportError, ValueError) as error:
            raise InvalidUrl(f"{url}: {error}") from error
        except OSError as error:
            raise StoreFailure(f"{url}: {error}") from error
        self._root = str(root).rstrip("/")

    def __reduce__(self) -> tuple[Any, ...]:
        return FilesystemStore, (self.url,)

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self._read_newest(key, 0, None, most_bytes)

    def _read_newest(self, key: str, start: int, length: int | None, most_bytes: int | None = None) -> Blob:
        """Read `length` bytes of the newest version, or all (`None`). Repeats a read during which the file changes."""
        attempt = 1
        while True:
            before = self.head(key)
            check_size(self._display_url(key), most_bytes, before.size_bytes)
            try:
                return self.get_range(key, start, before.size_bytes if length is None else length, etag=before.etag)
            except ContextChanged:
                if attempt == _READ_ATTEMPTS:
                    raise
                attempt += 1

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        check_range(start, length)
        url, path = self._display_url(key), self._path(key)
        if etag is None:
            return self._read_newest(key, start, length)
        with self._translate_errors(url):
            try:
                data = bytes(self._fs.cat_file(path, start=start, end=start + length)) if length else b""
            except FileNotFoundError:
                raise
            except Exception:
                result = self.head(key)  # each filesystem has an error of its own for a range beyond the end
                check_part(url, etag, result.etag, start, length, result.size_bytes)
                raise
        result = self.head(key)
        # The bytes are of this version only if it has not changed since.
        check_part(url, etag, result.etag, start, length, result.size_bytes)
        if len(data) != length:
            raise StoreFailure(f"{url}: expected {length:,} bytes, found {len(data):,}")
        return Blob(data, result.etag, result.size_bytes, modified_seconds=result.modified_seconds)

    def head(self, key: str) -> ObjectInfo:
        url, path = self._display_url(key), self._path(key)
        with self._translate_errors(url):
            self._fs.invalidate_cache()  # cached lists would show old versions
            return self._info(key, self._fs.info(path), url)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folder = prefix.rpartition("/")[0]
        if folder and any(part in ("", ".", "..") for part in folder.split("/")):
            return
        below = f"{self._root}/{folder}".rstrip("/")
        with self._translate_errors(f"{self.url}/{prefix}"):
            self._fs.invalidate_cache()
            try:
                infos = self._fs.find(below or "/", detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return
            rows = sorted((str(path)[len(self._root) :].lstrip("/"), info) for path, info in infos.items())
        for key, info in rows:
            if key.startswith(prefix) and not key.rpartition("/")[2].startswith(_HIDDEN):
                yield self._info(key, info, self._display_url(key))

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> NoReturn:
        raise AccessDenied(f"{self.url} is read-only: write to a directory, s3://, gs:// or az://")

    def delete(self, key: str, *, if_match: str | None = None) -> NoReturn:
        self.put(key, b"")

    def _path(self, key: str) -> str:
        return f"{self._root}/{check_key(key)}"

    def _info(self, key: str, info: Any, url: str) -> ObjectInfo:
        if info["type"] != "file" or info.get("size") is None:
            raise not_found_error(url)
        return ObjectInfo(key, int(info["size"]), self._etag(info), _modified_seconds(info))

    def _etag(self, info: Any) -> str:
        """A hash of the reported facts that change with a file. Raises `Unsupported` if only a size is reported."""
        facts = [str(info[name]) for name in _VERSIONS if info.get(name) is not None]
        if modified_seconds := _modified_seconds(info):
            facts.append(repr(modified_seconds))
        if not facts:
            raise Unsupported(f"{self.url}: this filesystem reports neither ETags nor times of files: use another")
        return hashlib.sha256(repr([info["size"], *facts]).encode()).hexdigest()[:32]

    @contextmanager
    def _translate_errors(self, url: str) -> Iterator[None]:
        """Translate errors of a filesystem, which may be of any type, into errors of monocontext."""
        try:
            yield
        except MonocontextError:
            raise
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise not_found_error(url) from None
        except PermissionError as error:
            raise AccessDenied(f"no permission for {url}: {without_secrets(one_line(error))[:500]}") from error
        except Exception as error:
            raise StoreFailure(f"{url}: {without_secrets(one_line(error))[:500]}") from error


def _modified_seconds(info: Any) -> float:
    """The time of the last write, in seconds since 1970; 0 if the filesystem does not report it."""
    reported = next((info[name] for name in _TIMES if info.get(name) is not None), 0.0)
    if isinstance(reported, str):
        try:
            reported = datetime.fromisoformat(reported)
        except ValueError:
            return 0.0
    return float(reported.timestamp() if isinstance(reported, datetime) else reported)
