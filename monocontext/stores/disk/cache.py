"""Cache bytes of a store on disk, for later processes.

    cache_dir/monocontext-1/abcd...      one range of an object, named by a hash of both, after a head of 512 bytes: 8
                                         bytes of magic, a crc32c, and JSON (etag, total_bytes)

- An object is cached only under a name that determines its content: its own if it is never reused, as those of a
  context are, else with the ETag in the index. So no entry becomes stale. Roots are not cached.
- Only a read of the same range finds a file. Its checksum, which covers the name and the range too, is compared, then
  the reader checks its bytes like those of the store. A reader that finds them wrong calls `forget`: the response of
  the store may have been damaged.
- A file under its final name is complete; any number of processes may read, write and make room at once.
- After a full disk, or a folder that is not writable, there is one warning, and reads go to the store.

Only the owner can read the folder, since it contains the texts. Do not use a cache for texts that must become
unreadable when a permission ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import stat
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress

import google_crc32c

from monocontext.errors import AccessDenied
from monocontext.options import check_int
from monocontext.stores import log
from monocontext.stores.disk import CAPACITY_BYTES
from monocontext.stores.protocol import Blob, RangeReader
from monocontext.stores.regular_file import AS_IT_IS, open_descriptor, open_regular, read_at, write_all

TEMPORARY = ".new-"
"""The prefix of the names of incomplete files."""
_MAGIC = b"MCBLOCK\x04"
_HEAD_BYTES = 512
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | AS_IT_IS
_NEVER_REUSED = ("segments/", "index/", "filters/")
"""The folders of a context whose names are never used for other bytes."""
_BATCHES = 16
"""Room is made for this part of the capacity at a time, and each process may exceed the capacity by as much."""
_FREE_SHARE = 0.05
"""The share of the disk that stays free."""
_TOUCH_SECONDS = 60.0
"""The least age of a time of last use that is updated, since a write for each read would be expensive."""
_ABANDONED_SECONDS = 3600.0
"""The age at which a temporary file is removed, since its writer must be dead."""


class DiskCache:
    """A folder of bounded size with ranges of objects; the least recently used are removed first. Safe for use by many
    threads and processes: there is no lock, and a lost count of bytes is corrected when room is made."""

    def __init__(self, folder: str | os.PathLike[str], capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self.capacity_bytes = check_int("cache_dir_bytes", capacity_bytes, 0)
        self._root = os.path.join(self.folder, "monocontext-1")
        self._is_checked = False
        self._may_write = True
        self._room_bytes = 0

    def __repr__(self) -> str:
        return f"<DiskCache {self.folder}, at most {self.capacity_bytes:,} bytes>"

    def find(self, name: str, start: int, length: int) -> Blob | None:
        """Read bytes of the object `name`; `None` if this range was not cached."""
        path = self._path(name, start, length)
        try:
            self._check_owner()
            with open_regular(path) as descriptor:
                status = os.fstat(descriptor)
                head, body = read_at(descriptor, 0, _HEAD_BYTES), read_at(descriptor, _HEAD_BYTES, length)
                is_whole = len(body) == length and status.st_size == _HEAD_BYTES + length
            if time.time() - status.st_mtime > _TOUCH_SECONDS:
                with suppress(OSError):
                    os.utime(path)
        except FileNotFoundError:
            return None
        except (AccessDenied, IsADirectoryError):
            is_whole = False  # something else is there
        except OSError as error:
            self._stop_writing(error)
            return None
        if is_whole and head[:12] == _MAGIC + _checksum(name, start, head[12:], body):
            etag, total_bytes = json.loads(head[12:])
            return Blob(body, etag, total_bytes, local=True)
        log.note(log.INFO, "%s is damaged: it is removed, and the store is read", path)
        _remove(path)
        return None

    def keep(self, name: str, start: int, blob: Blob) -> None:
        """Cache bytes of the object `name` that begin at `start`. Never raises `OSError`."""
        if not self._may_write:
            return
        path = self._path(name, start, len(blob.data))
        try:
            if not self._is_checked:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                with suppress(FileExistsError):
                    os.mkdir(self._root, 0o700)
                self._check_owner()
            facts = json.dumps([blob.etag, blob.total_bytes]).encode().ljust(_HEAD_BYTES - 12)
            if len(facts) == _HEAD_BYTES - 12 and self._reserve_room(_HEAD_BYTES + len(blob.data)):
                _write(path, _MAGIC + _checksum(name, start, facts, blob.data) + facts, blob.data)
        except FileNotFoundError:
            self._is_checked = False  # another process removed the cache
        except OSError as error:
            self._stop_writing(error)

    def forget(self, name: str, start: int, length: int) -> None:
        """Remove this range of the object `name`."""
        _remove(self._path(name, start, length))

    def reader(self, store: RangeReader, place: str, *, is_own: bool) -> DiskCachedReader:
        """A store, read through this folder; `place` tells it from others of it."""
        return DiskCachedReader(store, self, place, is_own=is_own)

    def clear(self) -> None:
        """Remove all files of the cache, those of other stores included. Raises `OSError` if one cannot be removed."""
        for path in self.files():
            with suppress(FileNotFoundError):  # another process made room
                os.unlink(path)

    def files(self) -> list[str]:
        """The paths of all files, temporary ones included."""
        return [path for _, _, path in self._scan()]

    def _path(self, name: str, start: int, length: int) -> str:
        return os.path.join(self._root, hashlib.sha256(f"{name} {start} {length}".encode()).hexdigest()[:40])

    def _check_owner(self) -> None:
        """Raise `PermissionError` if others can write to the folder: checksums detect accidents, not forgeries."""
        if self._is_checked:
            return
        status = os.lstat(self._root)
        owner = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o022:
            raise PermissionError(f"{self._root} must be a folder that you own and that no other user can write to")
        self._is_checked = True

    def _stop_writing(self, error: OSError) -> None:
        """Cache nothing from now on; warn once."""
        is_new, self._may_write = self._may_write, False
        if is_new:
            log.note(log.WARNING, "nothing is cached in %s from now on: %s", self.folder, error.strerror or str(error))
            with suppress(RuntimeWarning):  # warnings are errors in this program, but reading must continue
                warnings.warn(f"nothing is cached in {self.folder} from now on: {error}", RuntimeWarning, stacklevel=2)

    def _reserve_room(self, size_bytes: int) -> bool:
        """Whether a file of this size may be written. If necessary, removes the least recently used files until a batch
        fits as well, or at least this file."""
        batch_bytes = self.capacity_bytes // _BATCHES
        if size_bytes > self.capacity_bytes - batch_bytes:
            return False
        disk = shutil.disk_usage(self._root)
        spare_bytes = disk.free - int(disk.total * _FREE_SHARE)
        if min(self._room_bytes, spare_bytes) < size_bytes:
            files = sorted(self._scan())
            used_bytes, ahead_bytes = sum(size for _, size, _ in files), max(batch_bytes, size_bytes)
            most_bytes = min(self.capacity_bytes - batch_bytes, used_bytes + spare_bytes)
            for _, size, path in files:
                if used_bytes + ahead_bytes <= most_bytes:
                    break
                _remove(path)
                used_bytes -= size
            self._room_bytes = min(ahead_bytes, most_bytes - used_bytes)
        if self._room_bytes < size_bytes:
            self._may_write = False
            log.note(log.INFO, "no room in %s: nothing is cached there from now on", self.folder)
            return False
        self._room_bytes -= size_bytes
        return True

    def _scan(self) -> Iterator[tuple[float, int, str]]:
        """Yield the time of last use, the size and the path of each file; removes abandoned temporary files."""
        now = time.time()
        for folder, _, names in os.walk(self._root):
            for name in names:
                path = os.path.join(folder, name)
                with suppress(FileNotFoundError):  # another process makes room at the same time
                    status = os.lstat(path)
                    if name.startswith(TEMPORARY) and now - status.st_mtime > _ABANDONED_SECONDS:
                        _remove(path)
                    else:
                        yield status.st_mtime, status.st_size, path


class DiskCachedReader:
    """A range reader over a store: it reads from the disk cache if possible, and caches bytes of the store."""

    def __init__(self, store: RangeReader, disk: DiskCache, place: str, *, is_own: bool) -> None:
        """`place` distinguishes stores in the names of the cache. `is_own`: the store is that of the context itself,
        whose names are never reused; objects of other places are cached by ETag only."""
        self.store = store
        """The store below."""
        self._disk, self._place, self._is_own = disk, place, is_own

    def __repr__(self) -> str:
        return f"<DiskCachedReader {self._disk!r} around {self.store!r}>"

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read a range, like `RangeReader.get_range` (no request if it is on disk)."""
        name = self._name(key, etag)
        if name is None or length <= 0 or start < 0:
            return self.store.get_range(key, start, length, etag=etag)
        blob = self._disk.find(name, start, length)
        if blob is None:
            blob = self.store.get_range(key, start, length, etag=etag)
            if len(blob.data) == length and (self._is_own or blob.etag == etag):
                self._disk.keep(name, start, blob)
        return blob

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Remove these bytes from the cache, because a reader found them damaged."""
        name = self._name(key, etag)
        if name is not None:
            self._disk.forget(name, start, length)

    def _name(self, key: str, etag: str | None) -> str | None:
        """The name under which ranges of an object are cached; `None` if the object may change and is not cached."""
        if self._is_own:
            return f"{self._place} {key}" if key.startswith(_NEVER_REUSED) else None
        return f"{self._place} {key} {etag}" if etag is not None else None


def _checksum(name: str, start: int, facts: bytes, body: bytes) -> bytes:
    checksum = google_crc32c.value(f"{name} {start} ".encode() + facts)
    return int(google_crc32c.extend(checksum, bytes(body))).to_bytes(4, "little")


def _write(path: str, *parts: bytes) -> None:
    """Write a file, atomically."""
    temporary = os.path.join(os.path.dirname(path), TEMPORARY + secrets.token_hex(8))
    try:
        with open_descriptor(temporary, _CREATE, 0o600) as descriptor:
            for part in parts:
                write_all(descriptor, part)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: str) -> None:
    with suppress(OSError):  # removed already, or without permission
        os.unlink(path)
