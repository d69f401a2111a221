"""List the files of a directory and open them, without following links out of it.

Invariants:

- without `follow_links` every opened file is in the directory, even if another process swaps in links meanwhile: the
  path is opened one folder at a time, from the descriptor of the directory (Windows has no such descriptors, and there
  a link that is swapped in between the check and the opening is followed)
- a link to a file of the directory, and a hard link, count as files; every other link is left out and named
- a folder in it that contains a context is left out and named: the upload itself may be writing it
- pipes, sockets and devices are not files, and opening one never waits
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Iterator

from monocontext.errors import AccessDenied
from monocontext.stores.regular_file import NO_FOLLOW, NO_WAIT, PRIVATE_BINARY, SPECIAL_FILES, kind_of

_FILE_FLAGS = os.O_RDONLY | PRIVATE_BINARY | NO_WAIT
_FOLDER_FLAGS = os.O_RDONLY | PRIVATE_BINARY | NO_FOLLOW | getattr(os, "O_DIRECTORY", 0)
_BUFFER_BYTES = 1 << 16
CONTEXT = "a context"
_MOST_NAMED = 20  # the most entries that a note names; it counts the others
_GENERATION = re.compile(r"[0-9]{20}\.json")


class Folder:
    """The regular files below a directory, which may itself be a link."""

    def __init__(self, path: str | os.PathLike[str], *, follow_links: bool = False) -> None:
        self.path = os.path.realpath(path)
        self._follows = follow_links
        self.left_out: dict[str, str] = {}
        """What `files` left out: by relative path, a reason such as "a named pipe", "a context" or "leads nowhere"."""

    def files(self) -> Iterator[str]:
        """Yield relative paths in order, the files of a folder before those of its subfolders. Raises `OSError`."""
        self.left_out = {}
        top = os.stat(self.path)
        waiting: list[tuple[str, tuple[str, ...]]] = [("", (self.path,))]  # relative paths, and the folders above them
        while waiting:
            base, above = waiting.pop()
            try:
                with os.scandir(os.path.join(self.path, base)) as entries:
                    ordered = sorted(entries, key=lambda entry: entry.name)
            except FileNotFoundError:
                if not base or not os.path.samestat(top, os.stat(self.path)):  # another disk is mounted here, or none
                    raise
                continue  # removed since the folder above it was listed
            if base and self._is_context(base, ordered):
                self.left_out[base.rstrip("/")] = CONTEXT
                continue
            folders: list[tuple[str, tuple[str, ...]]] = []
            for entry in ordered:
                name = base + entry.name
                if entry.is_symlink() and (reason := self._why_left_out(name, above)):
                    self.left_out[name] = reason
                elif entry.is_dir():
                    real = (os.path.realpath(entry.path),) if self._follows else ()
                    folders.append((name + "/", above + real))
                elif entry.is_file():
                    yield name
                elif kind := kind_of(entry.stat(follow_symlinks=self._follows).st_mode):
                    self.left_out[name] = kind
            waiting += reversed(folders)

    def _is_context(self, base: str, entries: list[os.DirEntry[str]]) -> bool:
        generations = os.path.join(self.path, base, "generations")
        if not {"manifest.json", "generations"} <= {entry.name for entry in entries} or not os.path.isdir(generations):
            return False
        return any(_GENERATION.fullmatch(name) for name in os.listdir(generations))

    def _why_left_out(self, name: str, above: tuple[str, ...]) -> str | None:
        """The reason to leave out a link; None to read it. `above`: the real paths of the folders that contain it."""
        try:
            real = os.path.realpath(os.path.join(self.path, name), strict=True)
        except OSError as error:
            return "a circle of links" if error.errno == errno.ELOOP else "leads nowhere"
        if os.path.isdir(real):
            if not self._follows:
                return f"leads to the folder {real}"
            return f"leads back to {real}, which contains it" if real in above else None
        if self._follows or os.path.commonpath([self.path, real]) == self.path:
            return None
        return f"leads out, to {real}"

    def open(self, name: str) -> io.BufferedReader:
        """Open a file that `files` named. Raises `AccessDenied` if it leads out of the directory now."""
        path = os.path.join(self.path, name)
        try:
            descriptor = os.open(path, _FILE_FLAGS) if self._follows else self._open_inside(path)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                if error.errno:
                    error.filename = path  # its own path is only the last part
                raise
            raise AccessDenied(f"{path}: it or a folder above it was replaced since it was listed: try again") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileNotFoundError(errno.ENOENT, "no longer a regular file", path)
        return io.BufferedReader(io.FileIO(descriptor), _BUFFER_BYTES)

    def _open_inside(self, path: str) -> int:
        """Open a file in the directory, folder by folder, without following links. Returns its descriptor."""
        real = os.path.realpath(path)
        if os.path.commonpath([self.path, real]) != self.path:
            raise AccessDenied(f"{path} leads out of its directory, to {real}")
        if os.open not in os.supports_dir_fd:
            return os.open(real, _FILE_FLAGS)
        *folders, last = os.path.relpath(real, self.path).split(os.sep)
        parent = os.open(self.path, _FOLDER_FLAGS)
        try:
            for folder in folders:
                above, parent = parent, os.open(folder, _FOLDER_FLAGS, dir_fd=parent)
                os.close(above)
            return os.open(last, _FILE_FLAGS | NO_FOLLOW, dir_fd=parent)
        finally:
            os.close(parent)


def describe_left_out(left_out: dict[str, str]) -> str:
    """A line for users about what was left out of a directory."""
    entries = [f"{name} ({reason})" for name, reason in left_out.items()]
    has_links = not set(left_out.values()) <= {CONTEXT, *SPECIAL_FILES.values()}
    remedy = "; follow_links=True follows links" if has_links else ""
    return f"left out {len(entries):,} {'entries' if len(entries) > 1 else 'entry'}: {first_of(entries)}{remedy}"


def first_of(entries: list[str]) -> str:
    """The first entries in one line, and the number of the others."""
    more = f" and {len(entries) - _MOST_NAMED:,} more" if len(entries) > _MOST_NAMED else ""
    return ", ".join(entries[:_MOST_NAMED]) + more
