"""What was read from a store, kept on a disk for the next process: a store around a store, and the folder below it.

    cache_dir/monocontext-1/ab/cdef.../0-1048576     bytes 0 to 1048576 of one object (`block_file`)

What holds:
- an object is kept only under a name that says what is in it: our own segments, filters and index pages, which are
  named by their content, and other objects together with the ETag that the index records. So nothing is ever asked
  whether it is still true. Roots are not kept;
- what comes off the disk was checked against checksums written with it, and is checked by the reader as what comes from
  the store is. `forget` is for a reader that finds it wrong all the same: the store's answer may have been damaged;
- a file is whole under its name, or not there; any number of processes may read, write and make room at once;
- a disk that is full, a folder that cannot be written to: one warning, and the store answers alone.

Whoever may read the folder may read the texts: it is open to its owner only. It is not for a store whose answers must
end when a permission does.
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

from monocontext.store import Blob, RangeReader
from monocontext.stores.block_file import TEMPORARY, NotABlock, Stretch, parse_name, read_block, write_block

CAPACITY_BYTES = 10 << 30
_FOLDER = "monocontext-1"
"""With the version of the layout: another version keeps its own."""
_NAMED_BY_CONTENT = ("segments/", "index/", "filters/")
_ROUNDS = 16
"""Room is made for a sixteenth of the capacity at a time: at 10 GiB the folder is gone through once in 640 MiB of
writes, 0.2 s for 40,000 files; other threads may write as much again meanwhile. The capacity holds for each process: of
several at once each may exceed it by so much, until it makes room the next time."""
_HEADER_BYTES = 4096
"""Room that is taken for what a file says of itself; it takes some 300 bytes."""
_FREE_SHARE = 0.05
"""Of the disk, left to others."""
_RETRY_SECONDS = 30.0
"""How long nothing is written after there was no room to be made."""
_ABANDONED_SECONDS = 3600.0
"""A file that is not whole after this belongs to a process that is dead."""


class DiskCache:
    """A bounded folder of stretches of objects; the least recently used go first. Safe for threads and processes."""

    def __init__(self, folder: str | os.PathLike[str], capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self.capacity_bytes = capacity_bytes
        self._root = os.path.join(self.folder, _FOLDER)
        self._is_ready = False
        self._reads = self._writes = True
        self._not_before = 0.0
        self._start_anew()

    def __repr__(self) -> str:
        state = "" if self._writes else ", nothing is added" if self._reads else ", off"
        return f"<DiskCache {self.folder}, at most {self.capacity_bytes:,} bytes{state}>"

    def find(self, name: str, start: int, length: int) -> Blob | None:
        """Bytes from `start` of what is called `name`, if they are here: in one file, or in several together."""
        if not self._reads:
            return None
        folder, wanted = self._folder(name), Stretch(start, start + length)
        path = os.path.join(folder, wanted.name)
        try:
            self._check()
            return read_block(path, name, wanted.offset, wanted.stop)
        except NotABlock:
            _remove(path)
            return None
        except FileNotFoundError:
            pass
        except OSError as error:
            self._turn_off(error, reads=True)
            return None
        try:
            return self._assemble(folder, name, wanted)
        except OSError:
            return None  # another process made room

    def _assemble(self, folder: str, name: str, wanted: Stretch) -> Blob | None:
        """From files with other borders: a scan reads 8 MiB at a time, a zoom one frame of them."""
        parts, at, found = [], wanted.offset, None
        for stretch in _cover(_stretches(folder), wanted):
            path, stop = os.path.join(folder, stretch.name), min(stretch.stop, wanted.stop)
            try:
                found = read_block(path, name, at, stop)
            except NotABlock:
                _remove(path)
                return None
            parts.append(found.data)
            at = stop
        if found is None or at != wanted.stop:
            return None
        return found if len(parts) == 1 else Blob(b"".join(parts), found.etag, found.total_bytes, local=True)

    def keep(self, name: str, start: int, blob: Blob) -> None:
        """Write what the store answered, for the next time. Never raises what a disk may raise."""
        if not self._writes:
            return
        folder, stretch = self._folder(name), Stretch(start, start + len(blob.data))
        try:
            if not self._is_ready:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                _make_folder(self._root)
                self._check()
            if not self._take_room(len(blob.data)):
                return
            for parent in (os.path.dirname(folder), folder):
                _make_folder(parent)
            before = _stretches(folder)
            write_block(folder, name, start, blob)
            for other in before:
                if other != stretch and stretch.offset <= other.offset and other.stop <= stretch.stop:
                    _remove(os.path.join(folder, other.name))
        except FileNotFoundError:
            self._is_ready = False  # another process made room, or somebody removed it all
        except OSError as error:
            self._turn_off(error)

    def forget(self, name: str, start: int, length: int) -> None:
        """Drop what holds any of these bytes."""
        folder = self._folder(name)
        for stretch in _stretches(folder):
            if stretch.offset < start + length and stretch.stop > start:
                _remove(os.path.join(folder, stretch.name))

    def _folder(self, name: str) -> str:
        if self._pid != os.getpid():
            self._start_anew()
        digest = hashlib.sha256(name.encode()).hexdigest()[:40]
        return os.path.join(self._root, digest[:2], digest[2:])

    def _start_anew(self) -> None:
        # A thread that did not survive a fork may have held the locks.
        self._lock, self._making_room = threading.Lock(), threading.Lock()
        self._room_bytes = 0
        self._pid = os.getpid()

    def _check(self) -> None:
        """Refuse a folder that others can write to: checksums keep out accidents, not forgeries."""
        if self._is_ready:
            return
        status = os.lstat(self._root)
        owner = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o022:
            raise PermissionError(f"{self._root} is not a folder that its owner, this user, alone can write to")
        self._is_ready = True

    def _turn_off(self, error: OSError, *, reads: bool = False) -> None:
        """Write no more, or read no more either, and say so once."""
        with self._lock:
            is_new = self._writes
            self._writes = False
            self._reads = self._reads and not reads
        if is_new:
            try:
                warnings.warn(f"nothing is kept in {self.folder} from now on: {error}", RuntimeWarning, stacklevel=2)
            except RuntimeWarning:
                pass  # where warnings are errors: reading goes on all the same

    # -- room ------------------------------------------------------------------------------------------------------

    def _take_room(self, size_bytes: int) -> bool:
        """Whether so much may be written; makes room for it, and for what comes next, if it must."""
        size_bytes += _HEADER_BYTES
        if size_bytes > self.capacity_bytes - self._debt_bytes:
            return False
        disk = shutil.disk_usage(self._root)
        spare_bytes = disk.free - int(disk.total * _FREE_SHARE)
        if spare_bytes >= size_bytes and self._take(size_bytes, 0):
            return True
        now = time.monotonic()
        if now < self._not_before:
            return False
        if not self._making_room.acquire(blocking=False):  # by another thread, which will see to it
            return spare_bytes >= size_bytes and self._take(size_bytes, self._debt_bytes)
        try:
            with self._lock:
                before = self._room_bytes
            ahead_bytes = max(self._debt_bytes, size_bytes)
            left_bytes = min(ahead_bytes, self._make_room(ahead_bytes, spare_bytes))
            with self._lock:
                self._room_bytes += left_bytes - before  # less what the other threads have taken meanwhile
            if self._take(size_bytes, self._debt_bytes):
                return True
            self._not_before = now + _RETRY_SECONDS
            return False
        finally:
            self._making_room.release()

    def _take(self, size_bytes: int, debt_bytes: int) -> bool:
        with self._lock:
            fits = self._room_bytes + debt_bytes >= size_bytes
            self._room_bytes -= size_bytes if fits else 0
            return fits

    @property
    def _debt_bytes(self) -> int:
        return self.capacity_bytes // _ROUNDS

    def _make_room(self, ahead_bytes: int, spare_bytes: int) -> int:
        """Remove what was used longest ago until so much may be written; returns how much may."""
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
                pass  # it holds other stretches
        return most_bytes - used_bytes

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Time of last use, size, path of every file."""
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
    """Answers from the folder what is there, and keeps in it what the store below answers."""

    def __init__(self, store: RangeReader, disk: DiskCache, place: str, *, is_own: bool) -> None:
        self.store = store
        """The store below."""
        self._disk = disk
        self._place = place
        self._is_own = is_own

    def __repr__(self) -> str:
        return f"<DiskCachedReader {self._disk!r} around {self.store!r}>"

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """As `RangeReader` has it; no request where all of it is on the disk."""
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
        """What is on the disk of these bytes is not what it should be."""
        name = self._name(key, etag)
        if name is not None:
            self._disk.forget(name, start, length)

    def _name(self, key: str, etag: str | None) -> str | None:
        """Under which a part of the object can be kept for ever; None where there is no such name."""
        if self._is_own:
            return f"{self._place} {key}" if key.startswith(_NAMED_BY_CONTENT) else None
        return f"{self._place} {key} {etag}" if etag is not None else None


def _cover(stretches: list[Stretch], wanted: Stretch) -> list[Stretch]:
    """As few of them as hold all that is wanted, in order; none where something is missing."""
    chosen, at = [], wanted.offset
    while at < wanted.stop:
        furthest = max((each for each in stretches if each.offset <= at), key=lambda each: each.stop, default=None)
        if furthest is None or furthest.stop <= at:
            return []
        chosen.append(furthest)
        at = furthest.stop
    return chosen


def _stretches(folder: str) -> list[Stretch]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [stretch for name in names if (stretch := parse_name(name))]


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
