"""Store objects as files below a directory, each written whole or not at all.

Invariants, also between processes:

- an object appears with all its bytes: they are written to a temporary file next to it, then linked or renamed
- a create-only write uses `link`, which is atomic. A writer that replaces or removes an object locks its directory, so
  no other write can come between the comparison and the swap of a compare-and-swap
- an ETag names one version: the time of the write in nanoseconds, the size and the inode
- no key and no symbolic link leads out of the root
- a pipe, a device or a socket is not an object: it is refused at once, and never replaced

Temporary files and lock files start with `.monocontext-`, and all verbs ignore them. Unlike in an object store, `a` and
`a/b` cannot both be objects, and `list` does not enter linked directories. A killed writer leaves a temporary file,
which `sweep` removes. In this module `url` is the URL of an object, and `path` is the path of its file.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from monocontext.errors import (
    AccessDenied,
    ContextChanged,
    InvalidUrl,
    MonocontextError,
    NotFound,
    StoreFailure,
    Unsupported,
)
from monocontext.stores.protocol import (
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
)
from monocontext.stores.regular_file import (
    NO_FOLLOW,
    NO_WAIT,
    PRIVATE_BINARY,
    check_regular,
    etag_of,
    open_descriptor,
    open_regular,
    read_at,
    write_all,
)

try:
    import fcntl
except ModuleNotFoundError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_HIDDEN = ".monocontext-"
_LOCK = _HIDDEN + "lock"
_TEMPORARY = re.compile(re.escape(_HIDDEN) + "[0-9a-f]{16}")
_LARGEST_DRIFT_NS = 1_000_000_000
"""If the clocks of this machine and of the file system differ by more, files keep the file system's time."""
_MILLISECOND_NS = 1_000_000  # then only the digits below a millisecond are those of this machine's clock
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | PRIVATE_BINARY | NO_FOLLOW
_LOCK_POLL_SECONDS = 0.002  # on Windows, the interval at which a waiting writer tries to take the lock


class LocalStore(StoreBase):
    """Objects as files below one directory, which the first `put` creates. No file stays open between two calls."""

    is_near = True

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = os.path.realpath(os.path.expanduser(root))
        self._root_with_slash = self._root.rstrip(os.sep) + os.sep
        self.url = Path(self._root).as_uri()
        self._unsynced_paths: set[str] = set()  # files that `put` wrote without waiting for the disk
        self._unsynced_lock = threading.Lock()

    def __reduce__(self) -> tuple[type[LocalStore], tuple[str]]:
        return LocalStore, (self._root,)

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self._read(key, 0, None, most_bytes=most_bytes)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._read(key, start, length, etag=etag)

    def _read(
        self, key: str, start: int, length: int | None, *, etag: str | None = None, most_bytes: int | None = None
    ) -> Blob:
        """Read `length` bytes, or all if it is `None`, as `get_range` and `get` do."""
        check_range(start, length or 0)
        path, url = self._path(check_key(key)), self._display_url(key)
        # All checks below concern the opened file, even if another file takes its name meanwhile.
        with _translate_errors(url), open_regular(path, NO_FOLLOW, url) as descriptor:
            before = os.fstat(descriptor)
            etag_before = etag_of(before)
            if length is None:
                check_size(url, most_bytes, before.st_size)
                length = before.st_size
            check_part(url, etag, etag_before, start, length, before.st_size)
            data = read_at(descriptor, start, length)
            # The files of a context are never changed in place, but an index may refer to files of the user.
            etag_after = etag_of(os.fstat(descriptor))
        if len(data) != length or etag_before != etag_after:
            raise ContextChanged(
                f"{url} changed while it was read: expected {length:,} bytes of version {etag_before}, "
                f"found {len(data):,} bytes of version {etag_after}"
            )
        return Blob(data, etag_before, before.st_size, modified_seconds=before.st_mtime_ns / 1e9)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        """Write a temporary file next to the object, then link or rename it.

        A conditional put commits: it returns when its file, all files that this store wrote before, and all their names
        are on the disk. On ext4 on a virtual disk it takes 2.3 ms instead of 0.2 for 2 KB, and 61 ms instead of 6 for
        16 MiB. Other puts do not wait for the disk: a power cut may undo those since the last commit.
        """
        check_write(if_absent, if_match)
        path, url = self._path(check_key(key), writing=True), self._display_url(key)
        folder, is_commit = os.path.dirname(path), if_absent or if_match is not None
        with _translate_errors(url, writing=True):
            if if_match is not None and not os.path.exists(path):
                raise not_found_error(url)
            if is_commit:
                self._sync_earlier_files()
            _make_folder(folder)
            temporary = os.path.join(folder, _HIDDEN + os.urandom(8).hex())
            try:
                etag = _write(temporary, data, sync=is_commit)
                _rename_if(temporary, path, url, if_absent=if_absent, if_match=if_match)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            if is_commit:
                self._sync_folders(folder)
        if not is_commit:
            with self._unsynced_lock:
                self._unsynced_paths.add(path)
        return etag

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        with _translate_errors(f"{self.url}/{prefix}"):
            # A stack: the next key in order is the last. The key of a folder ends in a slash, that of the root is "".
            pending = [""]
            while pending:
                key = pending.pop()
                if not key or key.endswith("/"):
                    pending += sorted(self._children(key, prefix), reverse=True)
                    continue
                # Skip names that are not UTF-8, links that lead outside, pipes, and files removed since the scan.
                with suppress(NotFound, AccessDenied, InvalidUrl):
                    yield self.head(key)

    def _children(self, folder: str, prefix: str) -> Iterator[str]:
        """Yield keys in a folder that start with `prefix`, and folders that may have some. Folders end in a slash, and
        so sort as their keys do: `a-b`, `a.b`, `a/b`."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(os.path.join(self._root, folder)) as entries:
            for entry in entries:
                key = folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    key += "/"
                may_match = key.startswith(prefix) or (key.endswith("/") and prefix.startswith(key))
                if may_match and not entry.name.startswith(_HIDDEN):
                    yield key

    def head(self, key: str) -> ObjectInfo:
        path, url = self._path(check_key(key)), self._display_url(key)
        with _translate_errors(url):
            status = check_regular(url, os.stat(path, follow_symlinks=False))
        return ObjectInfo(key, status.st_size, etag_of(status), status.st_mtime_ns / 1e9)

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        path, url = self._path(check_key(key), writing=True), self._display_url(key)
        with _translate_errors(url, writing=True), suppress(FileNotFoundError):
            self.head(key)  # without an object, do not make the lock file
            with _lock_folder(os.path.dirname(path)):
                current = _current_etag(path, url)
                if current and if_match not in (None, current):
                    raise conflict_error(url, if_match, current)
                os.unlink(path)

    def now(self) -> float:
        """The time by the file system's clock, from a hidden file; this machine's time if the file cannot be made."""
        path = os.path.join(self._root, _HIDDEN + os.urandom(8).hex())
        try:
            with open_descriptor(path, _NEW_FILE_FLAGS, 0o600):
                pass
        except OSError:  # the folder is missing or read-only
            return time.time()
        try:
            return os.stat(path).st_mtime_ns / 1e9
        finally:
            os.unlink(path)

    def sweep(self, before_seconds: float, *, dry_run: bool = False) -> tuple[int, int]:
        folders, paths, sizes = [self._root], [], []
        for folder in folders:  # grows by the folders in it
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif _TEMPORARY.fullmatch(entry.name):
                        paths.append(entry.path)
        for path in paths:
            with suppress(FileNotFoundError):
                status = os.stat(path, follow_symlinks=False)
                if status.st_mtime < before_seconds:
                    if not dry_run:
                        os.unlink(path)
                    sizes.append(status.st_size)
        return len(sizes), sum(sizes)

    def _path(self, key: str, *, writing: bool = False) -> str:
        """The real path of an object. Raises `AccessDenied` for a link out of the store, others for a reserved name."""
        if any(part.startswith(_HIDDEN) for part in key.split("/")):
            if writing:
                raise InvalidUrl(f"{key!r} is reserved: names that start with {_HIDDEN} belong to the store")
            raise not_found_error(self._display_url(key))
        path = os.path.realpath(os.path.join(self._root, key))
        if not (path + os.sep).startswith(self._root_with_slash):
            raise AccessDenied(f"{self._display_url(key)} is a link that leads out of the store, to {path}")
        return path

    def _sync_earlier_files(self) -> None:
        """Sync the files that earlier puts left unsynced: a commit must not outlive the files that it names."""
        with self._unsynced_lock:
            earlier, self._unsynced_paths = self._unsynced_paths, set()
        for path in earlier:
            _sync(path)
        self._sync_folders(*{os.path.dirname(path) for path in earlier})

    def _sync_folders(self, *folders: str) -> None:
        """Sync these folders, which hold the names of new files, and their parents up to that of the root."""
        pending = set()
        for folder in folders:
            while folder not in pending and (folder + os.sep).startswith(self._root_with_slash):
                pending.add(folder)
                folder = os.path.dirname(folder)
        for folder in pending | {os.path.dirname(self._root)}:
            _sync(folder)


def _make_folder(folder: str) -> None:
    """Make a folder and those above it. A single `os.makedirs` recurses, and fails a thousand levels down."""
    missing = []
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):  # they are equal for a missing drive
        missing.append(folder)
        folder = os.path.dirname(folder)
    for name in reversed(missing):
        os.makedirs(name, exist_ok=True)


def _write(path: str, data: bytes, *, sync: bool) -> str:
    """Write a new file and return its ETag."""
    with open_descriptor(path, _NEW_FILE_FLAGS, 0o666) as descriptor:
        write_all(descriptor, data)
        # File systems set the time of the last timer tick, which is 1 to 10 ms old, and reuse freed inodes: two
        # versions of one size within a tick could share their ETag. The time in nanoseconds distinguishes them. If the
        # clock of the machine differs from that of the file system (network mounts), only its last digits are used.
        file_ns, now_ns = os.fstat(descriptor).st_mtime_ns, time.time_ns()
        if abs(now_ns - file_ns) > _LARGEST_DRIFT_NS:
            now_ns = file_ns + now_ns % _MILLISECOND_NS
        os.utime(descriptor if os.utime in os.supports_fd else path, ns=(now_ns, now_ns))
        if sync:
            os.fsync(descriptor)
        return etag_of(os.fstat(descriptor))


def _rename_if(temporary: str, path: str, url: str, *, if_absent: bool, if_match: str | None) -> None:
    """Link or rename the temporary file to `path` if the conditions of `Store.put` are met, else raise its errors."""
    if if_match is None:
        try:
            os.link(temporary, path)
            return
        except FileExistsError:
            if if_absent:
                raise conflict_error(url, None, _current_etag(path, url)) from None
        except OSError as error:
            # A file system without hard links (FAT, some network mounts): the lock below replaces them.
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
    with _lock_folder(os.path.dirname(path)):
        current = _current_etag(path, url)
        if if_match is not None and not current:
            raise not_found_error(url)
        if (if_absent and current) or (if_match is not None and if_match != current):
            raise conflict_error(url, if_match, current)
        os.replace(temporary, path)


def _current_etag(path: str, url: str) -> str:
    """The ETag of the object at a path; empty if there is no object. Raises the errors of `check_regular`."""
    try:
        return etag_of(check_regular(url, os.stat(path, follow_symlinks=False)))
    except FileNotFoundError:
        return ""


@contextmanager
def _lock_folder(folder: str) -> Iterator[None]:
    """Hold the lock of one directory, which excludes other threads and processes. Its file is in that directory, not at
    the root, so that stores with different roots share it."""
    path = os.path.join(folder, _LOCK)
    if fcntl is None:
        from filelock import FileLock  # on Windows only: it takes 30 ms to import, and 0.2 ms for each lock

        with FileLock(path, poll_interval=_LOCK_POLL_SECONDS):
            yield
        return
    with open_regular(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # the child of a fork may have the file open, too


def _sync(path: str) -> None:
    """Wait until a file or a folder is on the disk."""
    # A removed file need not be synced; a folder without permission, such as the parent of a root, cannot be.
    flags = os.O_RDONLY | PRIVATE_BINARY | NO_WAIT
    with suppress(FileNotFoundError, PermissionError), open_descriptor(path, flags) as descriptor:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            os.fsync(descriptor)


_MISSING = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)  # there is no object to read
_PERMANENT = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ENAMETOOLONG)  # a retry does not help


@contextmanager
def _translate_errors(url: str, *, writing: bool = False) -> Iterator[None]:
    """Translate errors of the system into errors of monocontext, whose message is one line that names the object."""
    try:
        yield
    except MonocontextError:
        raise
    except PermissionError as error:
        raise AccessDenied(f"no permission for {url}: {error.strerror}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        if writing:
            failure = Unsupported if error.errno in _PERMANENT else StoreFailure
            raise failure(f"cannot write {url}: {reason}") from error
        if error.errno == errno.ENAMETOOLONG:
            raise NotFound(f"nothing at {url}: {reason}") from error
        if isinstance(error, _MISSING):
            raise not_found_error(url) from error
        raise StoreFailure(f"{url}: {reason}") from error
