"""Cache bytes of a store on disk, for later processes.

    cache_dir/monocontext-1/ab/cdef.../0-1048576     bytes 0 to 1048576 of an object (`block_file`)

Invariants:

- an object is cached only under a name that determines its content. The names of segments, filters and index pages of
  a context are never reused; other objects are named together with the ETag in the index. So no entry becomes stale.
  Roots are not cached
- bytes from the disk are compared with the checksums in their file, then checked by the reader like bytes from the
  store. A reader that finds them wrong calls `forget`: the response of the store may have been damaged
- a file under its final name is complete; any number of processes may read, write and make room at once
- after a full disk, or a folder that is not writable, there is one warning, and reads go to the store

Only the owner can read the folder, since it contains the texts. Do not use a cache for texts that must become
unreadable when a permission ends.
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
"""The folder of this version of the layout."""
_NEVER_REUSED = ("segments/", "index/", "filters/")
"""The folders of a context whose names are never used for other bytes."""
_BATCHES = 16
"""The capacity has this many batches, and room is made for a batch at a time. With 10 GiB the folder is scanned once
for 640 MiB of writes, which takes 0.2 s for 40,000 files. During the scan, other threads may write another batch, as an
overdraft. Each process may exceed the capacity by a batch until it makes room."""
_HEADER_BYTES = 4096
"""The room that is reserved for the header of a file; most headers take some 300 bytes."""
_FREE_SHARE = 0.05
"""The share of the disk that stays free."""
_RETRY_SECONDS = 30.0
"""The time without writes after an attempt to make room failed."""
_ABANDONED_SECONDS = 3600.0
"""The age at which a temporary file is removed, since its writer must be dead."""


class DiskCache:
    """A folder of bounded size with ranges of objects; the least recently used are removed first. Safe for use by many
    threads and processes."""

    def __init__(self, folder: str | os.PathLike[str], capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self.capacity_bytes = check_int("cache_dir_bytes", capacity_bytes, 0)
        self._root = os.path.join(self.folder, _FOLDER)
        self._is_ready = False
        self._may_read = self._may_write = True
        self._no_writes_before = 0.0
        self._begin_process()

    def __repr__(self) -> str:
        state = "" if self._may_write else ", nothing is added" if self._may_read else ", off"
        return f"<DiskCache {self.folder}, at most {self.capacity_bytes:,} bytes{state}>"

    def find(self, name: str, start: int, length: int) -> Blob | None:
        """Read bytes of the object `name` from one file or several; `None` if some are missing."""
        if not self._may_read:
            return None
        folder, requested = self._folder(name), ByteRange(start, start + length)
        path = os.path.join(folder, requested.name)
        try:
            self._check_owner()
            return read_block(path, name, requested.offset, requested.stop)
        except NotABlock:
            self._remove_damaged(path)
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
        """Read a range from files of other ranges; `None` if some bytes are missing.

        A scan caches 8 MiB at a time, and a later slice may need one frame of these.
        """
        parts, offset, result = [], requested.offset, None
        for cached in _cover(_list_ranges(folder), requested):
            path, stop = os.path.join(folder, cached.name), min(cached.stop, requested.stop)
            try:
                result = read_block(path, name, offset, stop)
            except NotABlock:
                self._remove_damaged(path)
                return None
            parts.append(result.data)
            offset = stop
        if result is None or offset != requested.stop:
            return None
        return result if len(parts) == 1 else Blob(b"".join(parts), result.etag, result.total_bytes, local=True)

    def keep(self, name: str, start: int, blob: Blob) -> None:
        """Cache bytes of the object `name` that begin at `start`. Never raises `OSError`."""
        if not self._may_write:
            return
        folder, added = self._folder(name), ByteRange(start, start + len(blob.data))
        try:
            if not self._is_ready:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                _make_folder(self._root)
                self._check_owner()
            if not self._reserve_room(len(blob.data)):
                return
            for parent in (os.path.dirname(folder), folder):
                _make_folder(parent)
            cached_before = _list_ranges(folder)
            write_block(folder, name, start, blob)
            for cached in cached_before:
                if cached != added and added.offset <= cached.offset and cached.stop <= added.stop:
                    _remove(os.path.join(folder, cached.name))
        except FileNotFoundError:
            self._is_ready = False  # another process made room or removed the cache
        except OSError as error:
            self._turn_off(error)

    def forget(self, name: str, start: int, length: int) -> None:
        """Remove the files with any of these bytes of the object `name`."""
        folder = self._folder(name)
        for cached in _list_ranges(folder):
            if cached.offset < start + length and cached.stop > start:
                _remove(os.path.join(folder, cached.name))

    def _remove_damaged(self, path: str) -> None:
        """Remove a damaged file."""
        log.note(log.INFO, "%s is damaged: it is removed, and the store is read", path)
        _remove(path)

    def clear(self) -> None:
        """Remove all files of the cache, those of other stores included.

        Raises `OSError` for a file that cannot be removed.
        """
        for path in self.files():
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass  # another process made room

    def files(self) -> list[str]:
        """The paths of all files, temporary ones included."""
        return [path for _, _, path in self._scan()]

    def _folder(self, name: str) -> str:
        """The folder of an object."""
        if self._pid != os.getpid():
            self._begin_process()
        digest = hashlib.sha256(name.encode()).hexdigest()[:40]
        return os.path.join(self._root, digest[:2], digest[2:])

    def _begin_process(self) -> None:
        """Reset what a fork must not share."""
        # The locks are new too: a thread that did not survive a fork may have held the old ones.
        self._lock, self._making_room = threading.Lock(), threading.Lock()
        self._room_bytes = 0
        self._pid = os.getpid()

    def _check_owner(self) -> None:
        """Raise `PermissionError` if others can write to the folder: checksums detect accidents, not forgeries."""
        if self._is_ready:
            return
        status = os.lstat(self._root)
        owner = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o022:
            raise PermissionError(f"{self._root} must be a folder that you own and that no other user can write to")
        self._is_ready = True

    def _turn_off(self, error: OSError, *, reads: bool = False) -> None:
        """Stop writing, and with `reads` also reading; warn once."""
        with self._lock:
            is_new = self._may_write
            self._may_write = False
            self._may_read = self._may_read and not reads
        if is_new:
            log.note(log.WARNING, "nothing is cached in %s from now on: %s", self.folder, _reason(error))
            try:
                warnings.warn(f"nothing is cached in {self.folder} from now on: {error}", RuntimeWarning, stacklevel=2)
            except RuntimeWarning:
                pass  # warnings are errors in this program, but reading must continue

    # -- room ------------------------------------------------------------------------------------------------------

    def _reserve_room(self, size_bytes: int) -> bool:
        """Whether a file of this size may be written. If necessary, makes room for it and for later files."""
        size_bytes += _HEADER_BYTES
        if size_bytes > self.capacity_bytes - self._batch_bytes:
            return False
        disk = shutil.disk_usage(self._root)
        spare_bytes = disk.free - int(disk.total * _FREE_SHARE)
        if spare_bytes >= size_bytes and self._reserve(size_bytes, 0):
            return True
        if time.monotonic() < self._no_writes_before:
            return False
        if self._making_room.locked():  # by another thread; meanwhile others may overdraw by a batch
            return spare_bytes >= size_bytes and self._reserve(size_bytes, self._batch_bytes)
        if self._make_room_and_reserve(size_bytes, spare_bytes):
            return True
        log.note(log.INFO, "no room in %s: nothing is cached there for %d s", self.folder, _RETRY_SECONDS)
        return False

    def _make_room_and_reserve(self, size_bytes: int, spare_bytes: int) -> bool:
        """Make room for a batch of files, or for one larger file, and reserve that of a file of this size.

        `spare_bytes` are free on the disk. If it fails, nothing is written for `_RETRY_SECONDS`.
        """
        began = time.monotonic()
        with self._making_room:  # not `acquire` and `try`: an interrupt between them would keep it locked
            with self._lock:
                before = self._room_bytes
            ahead_bytes = max(self._batch_bytes, size_bytes)
            new_bytes = min(ahead_bytes, self._make_room(ahead_bytes, spare_bytes))
            with self._lock:
                self._room_bytes += new_bytes - before  # other threads may have reserved some meanwhile
            if self._reserve(size_bytes, self._batch_bytes):
                return True
            self._no_writes_before = began + _RETRY_SECONDS
            return False

    def _reserve(self, size_bytes: int, overdraft_bytes: int) -> bool:
        """Reserve room for a file if enough is left, or at most `overdraft_bytes` are missing."""
        with self._lock:
            fits = self._room_bytes + overdraft_bytes >= size_bytes
            self._room_bytes -= size_bytes if fits else 0
            return fits

    @property
    def _batch_bytes(self) -> int:
        return self.capacity_bytes // _BATCHES

    def _make_room(self, ahead_bytes: int, spare_bytes: int) -> int:
        """Remove the least recently used files until `ahead_bytes` fit; returns the number of bytes that fit."""
        files = sorted(self._scan())
        used_bytes = sum(size for _, size, _ in files)
        most_bytes = min(self.capacity_bytes - self._batch_bytes, used_bytes + spare_bytes)
        for _, size, path in files:
            if used_bytes + ahead_bytes <= most_bytes:
                break
            _remove(path)
            used_bytes -= size
            try:
                os.rmdir(os.path.dirname(path))
            except OSError:
                pass  # files of other ranges are left
        return most_bytes - used_bytes

    def _scan(self) -> Iterator[tuple[float, int, str]]:
        """Yield the time of last use, the size and the path of each file; removes abandoned temporary files."""
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
                pass  # another process makes room at the same time


class DiskCachedReader:
    """A range reader over a store: it reads from the disk cache if possible, and caches bytes of the store."""

    def __init__(self, store: RangeReader, disk: DiskCache, place: str, *, is_own: bool) -> None:
        """`place` distinguishes stores in the names of the cache. `is_own`: the store is that of the context itself,
        whose names are never reused; objects of other places are cached by ETag only."""
        self.store = store
        """The store below."""
        self._disk = disk
        self._place = place
        self._is_own = is_own

    def __repr__(self) -> str:
        return f"<DiskCachedReader {self._disk!r} around {self.store!r}>"

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read a range, like `RangeReader.get_range` (no request if all of it is on disk)."""
        name = self._name(key, etag)
        if name is None or length <= 0 or start < 0:
            return self.store.get_range(key, start, length, etag=etag)
        offset = self._disk.find(name, start, length)
        if offset is None:
            offset = self.store.get_range(key, start, length, etag=etag)
            if len(offset.data) == length and (self._is_own or offset.etag == etag):
                self._disk.keep(name, start, offset)
        return offset

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


def _cover(cached: list[ByteRange], requested: ByteRange) -> list[ByteRange]:
    """The fewest cached ranges that cover the requested one, in order; none if a part is missing."""
    chosen, offset = [], requested.offset
    while offset < requested.stop:
        furthest = max(
            (result for result in cached if result.offset <= offset), key=lambda found: found.stop, default=None
        )
        if furthest is None or furthest.stop <= offset:
            return []
        chosen.append(furthest)
        offset = furthest.stop
    return chosen


def _list_ranges(folder: str) -> list[ByteRange]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [cached for name in names if (cached := parse_name(name))]


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
        pass  # removed already, or without permission
