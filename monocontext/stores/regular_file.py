"""Open and read regular files only. A pipe, a device or a socket is refused at once, since opening one may block."""

from __future__ import annotations

import errno
import operator
import os
import stat
from collections import deque
from functools import partial
from typing import IO

from monocontext.errors import AccessDenied

NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
"""The flag that refuses to follow a symbolic link. 0 on Windows, which has no such flag."""
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
"""The flag that avoids waiting for a pipe or a device. 0 on Windows."""
PRIVATE_BINARY: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""The flags that keep a file from child processes, and its line ends from being translated."""
_FLAGS = os.O_RDONLY | PRIVATE_BINARY | NO_WAIT
SPECIAL_FILES = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


class Descriptor(int):
    """A file descriptor that is closed at the end of a `with`, by `close`, or with its last reference.

    If an interrupt loses a plain int, its file stays open until the process ends.
    """

    _is_open = True

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._is_open:
            # Both steps in a single call into C: an interrupt between them would leave the file open, or the number
            # would be closed again when it belongs to another file.
            deque(map(operator.call, (partial(setattr, self, "_is_open", False), partial(os.close, self))), maxlen=0)

    __del__ = close

    def detach(self) -> int:
        """Return the number of the descriptor, which the caller must close from now on."""
        self._is_open = False
        return int(self)

    def __enter__(self) -> Descriptor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_descriptor(path: str | os.PathLike[str], flags: int, mode: int = 0o777) -> Descriptor:
    """Open a file as `os.open` does. Raises `OSError`."""
    # A single call into C, so that no interrupt comes between `os.open` and the object that owns its result.
    return next(map(Descriptor, map(os.open, (path,), (flags,), (mode,))))


def open_regular(path: str | os.PathLike[str], flags: int = 0, name: str = "") -> Descriptor:
    """Open a regular file for reading, or as `flags` say. `name`: the file in error messages, by default its path.

    Raises `AccessDenied` for a pipe, a device or a socket, and `OSError`, such as `IsADirectoryError`.
    """
    try:
        descriptor = open_descriptor(path, _FLAGS | flags, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            check_regular(name or os.fspath(path), os.stat(path))
        raise
    try:
        check_regular(name or os.fspath(path), os.fstat(descriptor))
    except BaseException:
        descriptor.close()
        raise
    return descriptor


def open_file(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file for reading. Raises `OSError`, of which `AccessDenied` is a subclass."""
    return os.fdopen(open_regular(path).detach(), "rb")


def read_at(descriptor: int, start: int, length: int) -> bytes:
    """Read `length` bytes, or up to the end of the file. A single `pread` reads at most 2 GiB, and may read less."""
    pieces = []
    while length and (piece := _pread(descriptor, length, start)):
        pieces.append(piece)
        start += len(piece)
        length -= len(piece)
    return b"".join(pieces)  # a single piece is not copied


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`. A single `write` may write less."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _pread(descriptor: int, length: int, start: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, start)
    os.lseek(descriptor, start, os.SEEK_SET)  # Windows; no other thread uses this descriptor
    return os.read(descriptor, length)


def check_regular(name: str, status: os.stat_result) -> os.stat_result:
    """Return `status`. Raises `IsADirectoryError` for a directory, `AccessDenied` for a special file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):
        raise AccessDenied(f"{name} is {kind_of(status.st_mode) or 'a special file'}, not a file")
    return status


def kind_of(mode: int) -> str:
    """The kind of a special file, in words; empty for a regular file, a directory, and an unknown kind."""
    return SPECIAL_FILES.get(stat.S_IFMT(mode), "")


def etag_of(status: os.stat_result) -> str:
    """The ETag of a file: time of its last write in nanoseconds, size, inode."""
    return f"{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ino:x}"
