"""Cache data from a store on a disk, for later processes.

    cache_dir/monocontext-1/ab/cdef.../0-1048576     bytes 0 to 1048576 of one object (`block_file`)

Invariants:

- an object is cached only under a name that determines its content: our own segments, filters and index pages, whose
  names are never used again, and other objects together with the ETag that the index records. So no entry goes stale.
  Roots are not cached
- bytes from the disk are checked against the checksums in their file, and by the reader like those from the store. A
  reader that still finds them wrong calls `forget`: the store's response may have been damaged
- a file is complete under its name, or absent; any number of processes may read, write and make room at once
- a full disk or a folder that cannot be written to gives one warning, and the store is read without the cache

A user who may read the folder may read the texts, so only its owner can. Do not use it for a store whose texts must
become unreadable when a permission ends.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import threading
import time
import warnings
from collections.abc import Iterator

from monocontext.options import check_int
from monocontext.stores import log
from monocontext.stores.disk import CAPACITY_BYTES
from monocontext.stores.disk.block_file import TEMPORARY, ByteRange, NotABlock, parse_name, read_block, write_block
from monocontext.stores.protocol import Blob, RangeReader

_FOLDER = "monocontext-1"
"""Named with the version of the layout: another version has its own folder."""
_NAMED_BY_CONTENT = ("segments/", "index/", "filters/")
_ROUNDS = 16
"""Room is made for a sixteenth of the capacity at a time: at 10 GiB the folder is scanned once in 640 MiB of writes,
0.2 s for 40,000 files; other threads may write as much again meanwhile. The capacity holds for each process: each of
several may exceed it by a sixteenth, until it makes room the next time."""
_HEADER_BYTES = 4096
"""Room that is reserved for the header of a file, which takes some 300 bytes."""
_FREE_SHARE = 0.05
"""Share of the disk that stays free."""
_RETRY_SECONDS = 30.0
"""How long nothing is written after no room could be made."""
_ABANDONED_SECONDS = 3600.0
"""An older temporary file belongs to a dead process."""


class DiskCache:
    """A bounded folder of ranges of objects; the least recently used go first. Safe for threads and processes."""

    def __init__(self, folder: str | os.PathLike[str], capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self.capacity_bytes = check_int("cache_dir_bytes", capacity_bytes, 0)
        self._root = os.path.join(self.folder, _FOLDER)
        self._is_ready = False
        self._reads = self._writes = True
        self._not_before = 0.0
        self._reset()

    def __repr__(self) -> str:
        state = "" if self._writes else ", nothing is added" if self._reads else ", off"
        return f"<DiskCache {self.folder}, at most {self.capacity_bytes:,} bytes{state}>"

    def find(self, name: str, start: int, length: int) -> Blob | None:
        """Read bytes of the object `name` from one file, or from several together; None where some are missing."""
        if not self._reads:
            return None
        folder, requested = self._folder(name), ByteRange(start, start + length)
        path = os.path.join(folder, requested.name)
        try:
            self._check()
            return read_block(path, name, requested.offset, requested.stop)
        except NotABlock:
            self._drop(path)
            return None
        except FileNotFoundError:
            pass
        except OSError as error:
            self._turn_off(error, reads=True)
            return None
        try:
            return self._assemble(folder, name, requested)
        except OSError:
            return None  # another process made room

    def _assemble(self, folder: str, name: str, requested: ByteRange) -> Blob | None:
        """Read from files of other ranges: a scan writes 8 MiB at a time, a zoom reads one frame of them."""
        parts, at, found = [], requested.offset, None
        for stretch in _cover(_list_ranges(folder), requested):
            path, stop = os.path.join(folder, stretch.name), min(stretch.stop, requested.stop)
            try:
                found = read_block(path, name, at, stop)
            except NotABlock:
                self._drop(path)
                return None
            parts.append(found.data)
            at = stop
        if found is None or at != requested.stop:
            return None
        return found if len(parts) == 1 else Blob(b"".join(parts), found.etag, found.total_bytes, local=True)

    def keep(self, name: str, start: int, blob: Blob) -> None:
        """Cache bytes from the store. Never raises `OSError`."""
        if not self._writes:
            return
        folder, stretch = self._folder(name), ByteRange(start, start + len(blob.data))
        try:
            if not self._is_ready:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                _make_folder(self._root)
                self._check()
            if not self._reserve_room(len(blob.data)):
                return
            for parent in (os.path.dirname(folder), folder):
                _make_folder(parent)
            before = _list_ranges(folder)
            write_block(folder, name, start, blob)
            for other in before:
                if other != stretch and stretch.offset <= other.offset and other.stop <= stretch.stop:
                    _remove(os.path.join(folder, other.name))
        except FileNotFoundError:
            self._is_ready = False  # another process made room, or removed the whole cache
        except OSError as error:
            self._turn_off(error)

    def forget(self, name: str, start: int, length: int) -> None:
        """Remove the files that hold any of these bytes."""
        folder = self._folder(name)
        for stretch in _list_ranges(folder):
            if stretch.offset < start + length and stretch.stop > start:
                _remove(os.path.join(folder, stretch.name))

    def _drop(self, path: str) -> None:
        """Remove a file that differs from what was written."""
        log.note(log.INFO, "%s is damaged: removed, and read from the store", path)
        _remove(path)

    def clear(self) -> None:
        """Remove everything in the cache, including data of other places. Raises `OSError` for a file that cannot be
        removed."""
        for path in self.files():
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass  # another process made room

    def files(self) -> list[str]:
        """The paths of all files, temporary ones too."""
        return [path for _, _, path in self._files()]

    def _folder(self, name: str) -> str:
        if self._pid != os.getpid():
            self._reset()
        digest = hashlib.sha256(name.encode()).hexdigest()[:40]
        return os.path.join(self._root, digest[:2], digest[2:])

    def _reset(self) -> None:
        # New locks: a thread that did not survive a fork may have held the old ones.
        self._lock, self._making_room = threading.Lock(), threading.Lock()
        self._room_bytes = 0
        self._pid = os.getpid()

    def _check(self) -> None:
        """Refuse a folder that others can write to: checksums detect accidents, not forgeries."""
        if self._is_ready:
            return
        status = os.lstat(self._root)
        owner = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o022:
            raise PermissionError(f"{self._root} is not a folder that its owner, this user, alone can write to")
        self._is_ready = True

    def _turn_off(self, error: OSError, *, reads: bool = False) -> None:
        """Stop writing, with `reads` reading too, and warn once."""
        with self._lock:
            is_new = self._writes
            self._writes = False
            self._reads = self._reads and not reads
        if is_new:
            log.note(log.WARNING, "nothing is kept in %s from now on: %s", self.folder, _reason(error))
            try:
                warnings.warn(f"nothing is kept in {self.folder} from now on: {error}", RuntimeWarning, stacklevel=2)
            except RuntimeWarning:
                pass  # warnings are errors here: reading goes on all the same

    # -- room ------------------------------------------------------------------------------------------------------

    def _reserve_room(self, size_bytes: int) -> bool:
        """Whether a file of this size may be written; makes room for it and for later ones where necessary."""
        size_bytes += _HEADER_BYTES
        if size_bytes > self.capacity_bytes - self._debt_bytes:
            return False
        disk = shutil.disk_usage(self._root)
        spare_bytes = disk.free - int(disk.total * _FREE_SHARE)
        if spare_bytes >= size_bytes and self._reserve(size_bytes, 0):
            return True
        now = time.monotonic()
        if now < self._not_before:
            return False
        if self._making_room.locked():  # another thread is making room
            return spare_bytes >= size_bytes and self._reserve(size_bytes, self._debt_bytes)
        with self._making_room:  # an interrupt between `acquire` and a `try` would keep it locked
            with self._lock:
                before = self._room_bytes
            ahead_bytes = max(self._debt_bytes, size_bytes)
            left_bytes = min(ahead_bytes, self._make_room(ahead_bytes, spare_bytes))
            with self._lock:
                self._room_bytes += left_bytes - before  # minus the room that other threads reserved meanwhile
            if self._reserve(size_bytes, self._debt_bytes):
                return True
            self._not_before = now + _RETRY_SECONDS
        log.note(log.INFO, "no room in %s: nothing is kept there for %d s", self.folder, _RETRY_SECONDS)
        return False

    def _reserve(self, size_bytes: int, debt_bytes: int) -> bool:
        with self._lock:
            fits = self._room_bytes + debt_bytes >= size_bytes
            self._room_bytes -= size_bytes if fits else 0
            return fits

    @property
    def _debt_bytes(self) -> int:
        return self.capacity_bytes // _ROUNDS

    def _make_room(self, ahead_bytes: int, spare_bytes: int) -> int:
        """Remove the least recently used files until `ahead_bytes` fit; returns how many bytes may be written."""
        files = sorted(self._files())
        used_bytes = sum(size for _, size, _ in files)
        most_bytes = min(self.capacity_bytes - self._debt_bytes, used_bytes + spare_bytes)
        for _, size, path in files:
            if used_bytes + ahead_bytes <= most_bytes:
                break
            _remove(path)
            used_bytes -= size
            try:
                os.rmdir(os.path.dirname(path))
            except OSError:
                pass  # it holds other ranges
        return most_bytes - used_bytes

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Yield time of last use, size and path of every file."""
        now = time.time()
        folders = [self._root]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                            continue
                        status = entry.stat(follow_symlinks=False)
                        if entry.name.startswith(TEMPORARY) and now - status.st_mtime > _ABANDONED_SECONDS:
                            _remove(entry.path)
                        else:
                            yield status.st_mtime, status.st_size, entry.path
            except FileNotFoundError:
                pass  # another process makes room too


class DiskCachedReader:
    """A range reader that reads from the disk cache, or from a store whose answers it then caches."""

    def __init__(self, store: RangeReader, disk: DiskCache, place: str, *, is_own: bool) -> None:
        self.store = store
        """The store below."""
        self._disk = disk
        self._place = place
        self._is_own = is_own

    def __repr__(self) -> str:
        return f"<DiskCachedReader {self._disk!r} around {self.store!r}>"

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read a range, like `RangeReader.get_range` (no request where all of it is on the disk)."""
        name = self._name(key, etag)
        if name is None or length <= 0 or start < 0:
            return self.store.get_range(key, start, length, etag=etag)
        found = self._disk.find(name, start, length)
        if found is None:
            found = self.store.get_range(key, start, length, etag=etag)
            if len(found.data) == length and (self._is_own or found.etag == etag):
                self._disk.keep(name, start, found)
        return found

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Drop these bytes from the cache: a reader found them damaged."""
        name = self._name(key, etag)
        if name is not None:
            self._disk.forget(name, start, length)

    def _name(self, key: str, etag: str | None) -> str | None:
        """The name by which parts of an object are cached; None where they may change, and are not cached."""
        if self._is_own:
            return f"{self._place} {key}" if key.startswith(_NAMED_BY_CONTENT) else None
        return f"{self._place} {key} {etag}" if etag is not None else None


def _cover(stretches: list[ByteRange], requested: ByteRange) -> list[ByteRange]:
    """The fewest cached ranges that cover the requested one, in order; none if a part is missing."""
    chosen, at = [], requested.offset
    while at < requested.stop:
        furthest = max((each for each in stretches if each.offset <= at), key=lambda each: each.stop, default=None)
        if furthest is None or furthest.stop <= at:
            return []
        chosen.append(furthest)
        at = furthest.stop
    return chosen


def _list_ranges(folder: str) -> list[ByteRange]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [stretch for name in names if (stretch := parse_name(name))]


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # gone already, or not ours to remove
