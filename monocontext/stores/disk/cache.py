"""Cache ranges of objects on disk, for later processes.

A file `monocontext-1/HASH` holds a range of an object: 8 bytes of magic, a crc32c, JSON (etag, total_bytes), the bytes.

- a name determines the bytes: keys of a context are never reused, other names have the ETag. Roots are not cached
- a file serves only reads of exactly its range. Its checksum covers the name and the range too
- a file under its final name is complete. There is no lock: a wrong count of bytes is corrected when room is made

Only the owner can read the folder. Do not cache texts that must become unreadable when access is revoked.
"""

from __future__ import annotations

import hashlib
import json
import os
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
from monocontext.stores.regular_file import PRIVATE_BINARY, open_descriptor, open_regular, read_at, write_all

TEMPORARY = ".new-"  # the prefix of the names of incomplete files
_MAGIC = b"MCBLOCK\x04"
_HEAD_BYTES = 512  # of a file: the magic, the checksum, and the JSON with spaces after it
_SEAL_BYTES = 12  # of the head: the magic and the checksum
_NEVER_REUSED = ("segments/", "index/", "filters/")  # folders of a context, whose keys never get other bytes
_BATCHES = 16  # room is made for one such part of the capacity at a time, so each process may exceed it by that much
_FREE_SHARE = 0.05  # the part of the disk that stays free
_ABANDONED_SECONDS = 3600.0  # the writer of a temporary file of this age must be dead


class DiskCache:
    """A folder of bounded size with ranges of objects; the least recently used are removed first."""

    def __init__(self, folder: str | os.PathLike[str], capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self.capacity_bytes = check_int("cache_dir_bytes", capacity_bytes, 0)
        self._root = os.path.join(self.folder, "monocontext-1")
        self._may_write, self._room_bytes = True, 0  # room: what may be written before the files are counted again

    def find(self, name: str, start: int, length: int) -> Blob | None:
        """Read bytes of the object `name`; `None` if this range is not cached. Removes a damaged file."""
        path = self._path(name, start, length)
        head, body, is_whole = b"", b"", False
        try:
            self._check_owner()
            with open_regular(path) as descriptor:
                head, body = read_at(descriptor, 0, _HEAD_BYTES), read_at(descriptor, _HEAD_BYTES, length)
                is_whole = len(body) == length and os.fstat(descriptor).st_size == _HEAD_BYTES + length
            with suppress(OSError):
                os.utime(path)  # the time of last use
        except (AccessDenied, IsADirectoryError):
            pass  # it is a pipe or a folder
        except OSError as error:
            self._stop_writing(error)
            return None
        if is_whole and head[:_SEAL_BYTES] == _seal(name, start, head[_SEAL_BYTES:], body):
            etag, total_bytes = json.loads(head[_SEAL_BYTES:])
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
            for folder in (self.folder, self._root):
                os.makedirs(folder, mode=0o700, exist_ok=True)
            self._check_owner()
            facts = json.dumps([blob.etag, blob.total_bytes]).encode().ljust(_HEAD_BYTES - _SEAL_BYTES)
            if len(facts) == _HEAD_BYTES - _SEAL_BYTES and self._reserve_room(_HEAD_BYTES + len(blob.data)):
                _write(path, _seal(name, start, facts, blob.data) + facts, blob.data)
        except OSError as error:
            self._stop_writing(error)

    def reader(self, store: RangeReader, place: str, *, is_own: bool) -> DiskCachedReader:
        """A reader of `store` through this cache. `place` names the store; `is_own`: if it is the context's own."""
        return DiskCachedReader(store, self, place, is_own=is_own)

    def forget(self, name: str, start: int, length: int) -> None:
        """Remove this range of the object `name`."""
        _remove(self._path(name, start, length))

    def clear(self) -> None:
        """Remove all files of the cache, also those of other stores. Raises `OSError` if a file cannot be removed."""
        for _, _, path in self.files():
            with suppress(FileNotFoundError):  # another process made room
                os.unlink(path)

    def _path(self, name: str, start: int, length: int) -> str:
        return os.path.join(self._root, hashlib.sha256(f"{name} {start} {length}".encode()).hexdigest()[:40])

    def _check_owner(self) -> None:
        """Raise `PermissionError` if others can write to the folder: checksums detect accidents, not forgeries."""
        status = os.lstat(self._root)
        owner = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o022:
            raise PermissionError(f"{self._root} must be a folder that you own and that no other user can write to")

    def _stop_writing(self, error: OSError) -> None:
        """Cache nothing from now on, and warn once. A missing file is no reason for that."""
        if self._may_write and not isinstance(error, FileNotFoundError):
            self._may_write = False
            log.note(log.WARNING, "nothing is cached in %s from now on: %s", self.folder, error.strerror or str(error))
            with suppress(RuntimeWarning):  # warnings are errors in this program, but reading must continue
                warnings.warn(f"nothing is cached in {self.folder} from now on: {error}", RuntimeWarning, stacklevel=2)

    def _reserve_room(self, size_bytes: int) -> bool:
        """Make room for a new file by removing the least recently used ones; returns whether it may be written."""
        batch_bytes = self.capacity_bytes // _BATCHES
        if size_bytes > self.capacity_bytes - batch_bytes:
            return False
        disk = shutil.disk_usage(self._root)
        spare_bytes = disk.free - int(disk.total * _FREE_SHARE)
        if min(self._room_bytes, spare_bytes) < size_bytes:
            files = sorted(self.files())
            used_bytes, wanted_bytes = sum(size for _, size, _ in files), max(batch_bytes, size_bytes)
            allowed_bytes = min(self.capacity_bytes - batch_bytes, used_bytes + spare_bytes)
            while files and used_bytes + wanted_bytes > allowed_bytes:
                _, size, path = files.pop(0)
                _remove(path)
                used_bytes -= size
            self._room_bytes = min(wanted_bytes, allowed_bytes - used_bytes)
        if self._room_bytes < size_bytes:
            self._may_write = False
            log.note(log.INFO, "no room in %s: nothing is cached there from now on", self.folder)
        self._room_bytes -= size_bytes
        return self._may_write

    def files(self) -> Iterator[tuple[float, int, str]]:
        """Yield the time of last use, the size and the path of each file; removes abandoned temporary files."""
        for entry in list(os.scandir(self._root)) if os.path.isdir(self._root) else ():
            with suppress(FileNotFoundError):  # another process makes room at the same time
                status = entry.stat(follow_symlinks=False)
                if entry.name.startswith(TEMPORARY) and time.time() - status.st_mtime > _ABANDONED_SECONDS:
                    _remove(entry.path)
                else:
                    yield status.st_mtime, status.st_size, entry.path


class DiskCachedReader:
    """Reads ranges from the disk cache, or else from a store, and caches what the store returns. A `CopyKeeper`."""

    def __init__(self, store: RangeReader, disk: DiskCache, place: str, *, is_own: bool) -> None:
        self.store, self._disk, self._place, self._is_own = store, disk, place, is_own

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read a range, like `RangeReader.get_range` (no request if it is on disk)."""
        name = self._name(key, etag) if length > 0 and start >= 0 else None
        if name and (blob := self._disk.find(name, start, length)):
            return blob
        blob = self.store.get_range(key, start, length, etag=etag)
        if name and len(blob.data) == length and (self._is_own or blob.etag == etag):
            self._disk.keep(name, start, blob)
        return blob

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Remove these bytes from the cache, because a reader found them damaged."""
        if name := self._name(key, etag):
            self._disk.forget(name, start, length)

    def _name(self, key: str, etag: str | None) -> str | None:
        """The name under which ranges of an object are cached; `None` if the object may change and is not cached."""
        if self._is_own:
            return f"{self._place} {key}" if key.startswith(_NEVER_REUSED) else None
        return f"{self._place} {key} {etag}" if etag is not None else None


def _seal(name: str, start: int, facts: bytes, body: bytes) -> bytes:
    """The magic, and a checksum of the name of the object, the start of the range, the facts and the bytes."""
    checksum = google_crc32c.value(f"{name} {start} ".encode() + facts)
    return _MAGIC + int(google_crc32c.extend(checksum, bytes(body))).to_bytes(4, "little")


def _write(path: str, *parts: bytes) -> None:
    temporary = os.path.join(os.path.dirname(path), TEMPORARY + os.urandom(8).hex())
    try:
        with open_descriptor(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PRIVATE_BINARY, 0o600) as descriptor:
            for part in parts:
                write_all(descriptor, part)
        os.replace(temporary, path)
    finally:
        _remove(temporary)  # if it did not get its name


def _remove(path: str) -> None:
    with suppress(OSError):  # removed already, or without permission
        os.unlink(path)
