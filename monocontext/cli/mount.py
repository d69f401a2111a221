"""The command `mount`: show a context as a folder of files, read-only, by FUSE."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import click

from monocontext.adapters.text_bytes import TextBytes, reader_of
from monocontext.cli.options import S3, Allow, Generation, checked_options
from monocontext.cli.parameters import Argument
from monocontext.cli.printing import print_note
from monocontext.cli.reading import Url
from monocontext.errors import MonocontextError, install_line
from monocontext.shell.tree import DISK_BLOCK_BYTES, TextFiles
from monocontext.text.monocontext import Monocontext

_DEVICE = Path("/dev/fuse")
_KERNEL_CACHE = dict.fromkeys(("attr_timeout", "entry_timeout", "negative_timeout"), 86_400)
"""The seconds for which the kernel may cache names and sizes: a day, since a mounted version never changes."""
_SIGNALLED = 8  # the exit code of libfuse after a signal


def mount(
    url: Url,
    folder: Annotated[Path, Argument(metavar="DIR", help="An empty folder, in which the files will appear.")],
    generation: Generation = None,
    allow: Allow = None,
    *,
    s3: S3,
) -> None:
    """Show the documents of the context at URL as files in DIR, read-only, until Ctrl-C or `fusermount3 -u DIR`.

    A read fetches the frames that it needs, and reads ahead. `grep -r` in DIR reads every file, while
    `monocontext grep` and the tool `bash` skip what the search filters rule out.
    """
    fuse = _load_fuse()
    if not folder.is_dir() or any(folder.iterdir()):
        raise click.BadParameter(f"{folder} is not an empty folder: make a new one for the files to appear in")
    with Monocontext.open(url, allow=allow or (), generation=generation, **checked_options(url, s3)) as context:
        print_note(f"{context.url}, version {context.generation}, is at {folder}: Ctrl-C or fusermount3 -u unmounts it")
        try:
            fsname = context.url.replace(",", "_")  # a comma would begin another option
            flags = {"foreground": True, "ro": True, "kernel_cache": True, "subtype": "monocontext", **_KERNEL_CACHE}
            fuse(MountedFiles(context), str(folder), fsname=fsname, **flags)
        except RuntimeError as error:
            if error.args != (_SIGNALLED,):
                raise MonocontextError(f"cannot mount at {folder}: see the message of libfuse above") from None


def _load_fuse() -> Callable[..., object]:
    """The class of mfusepy that serves a mount. Raises `MonocontextError` if FUSE or mfusepy is missing."""
    if sys.platform == "linux" and not os.access(_DEVICE, os.R_OK | os.W_OK):
        raise MonocontextError(
            f"cannot open {_DEVICE}: run `modprobe fuse`; a container needs --device {_DEVICE} --cap-add SYS_ADMIN"
        )
    try:
        from mfusepy import FUSE
    except ModuleNotFoundError:
        raise MonocontextError(f"mfusepy is missing: {install_line('mount')}") from None
    except OSError:
        raise MonocontextError("libfuse is missing: run `apt install fuse3`, or install macFUSE on macOS") from None
    return FUSE  # type: ignore[no-any-return, unused-ignore]


@contextmanager
def _as_errno(path: str) -> Iterator[None]:
    """Turn an error without an errno, such as one of a store, into EIO, and print its message on stderr."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno and not isinstance(error, MonocontextError):
            raise
        print_note(f"{path}: {error}")
        raise OSError(errno.EIO, os.strerror(errno.EIO)) from None


class MountedFiles:
    """The operations of a file system, which mfusepy calls by name, from several threads."""

    use_ns = True  # times are in nanoseconds

    def __init__(self, context: Monocontext) -> None:
        self._files = TextFiles(lambda: context)
        created = datetime.fromisoformat(reader_of(context).manifest.created)
        self._time = int(created.timestamp() * 1e9)
        self._bytes_at = lru_cache(4096)(self._find_bytes)  # for reads of the same files

    def getattr(self, path: str, handle: int | None = None) -> dict[str, int]:
        with _as_errno(path):
            record = self._files.stat(path)
        if record is None:
            mode, links, size = stat.S_IFDIR | 0o555, 2, DISK_BLOCK_BYTES
        else:
            mode, links, size = stat.S_IFREG | 0o444, 1, record.bytes
        times = dict.fromkeys(("st_mtime", "st_ctime", "st_atime"), self._time)
        owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}
        return {"st_mode": mode, "st_nlink": links, "st_size": size} | owner | times

    def readdir(self, path: str, handle: int) -> list[str]:
        with _as_errno(path):
            return [".", "..", *self._files.entries(path)]

    def read(self, path: str, size: int, offset: int, handle: int) -> bytes:
        with _as_errno(path):
            data = self._bytes_at(path)
            return data.read(min(offset, len(data)), min(offset + size, len(data)))

    def _find_bytes(self, path: str) -> TextBytes:
        record = self._files.stat(path)
        if record is None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return TextBytes(self._files.view(record))
