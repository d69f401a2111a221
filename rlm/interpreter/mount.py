"""Map one path to a folder for all Python code of this worker process.

A worker may not mount anything, so the functions that take paths map them: `open`, `os`, `os.path`, `shutil`, `glob`
and `pathlib`. Code in C that opens files by itself (`sqlite3`, pyarrow) finds them only where the sandbox has made the
path a link to the folder (`confine.view.FolderView.with_scratch`).
"""

from __future__ import annotations

import builtins
import functools
import glob
import io
import os
from collections.abc import Callable, Iterator
from typing import Any

_ONE_PATH = ("open", "listdir", "stat", "lstat", "mkdir", "remove", "unlink", "rmdir", "access", "chmod", "utime",
        "truncate", "statvfs", "readlink", "chdir")  # fmt: skip
_TWO_PATHS = ("rename", "replace", "link", "symlink")
_PATH_NAMES = frozenset(["file", "path", "src", "dst", "s"])
"""The parameters of these functions that take a path; that of `os.path.isdir` is `s`."""


class Mount:
    """A path, as code writes it, and the real folder of its files."""

    def __init__(self, path: str, folder: str) -> None:
        self.path = path.rstrip("/")
        self.folder = folder.rstrip("/")

    def real(self, path: Any) -> Any:
        """The real path for `self.path` or an absolute path below it; any other value unchanged."""
        if not isinstance(path, str | os.PathLike):
            return path
        text = os.fspath(path)
        if not isinstance(text, str):
            return path
        plain = os.path.normpath(text) if text.startswith("/") else text
        if plain == self.path or plain.startswith(self.path + "/"):
            return self.folder + plain[len(self.path) :]
        return path

    def install(self) -> dict[str, Any]:
        """Map paths in this process from now on; it cannot be undone.

        Returns the new builtins by name, for namespaces that hold the old ones.
        """
        for name in _ONE_PATH:
            if hasattr(os, name):
                setattr(os, name, self._map_paths(getattr(os, name), 1))
        for name in _TWO_PATHS:
            setattr(os, name, self._map_paths(getattr(os, name), 2))
        os.scandir = self._map_scandir(os.scandir)
        opening = self._map_paths(io.open, 1)
        io.open = builtins.open = opening
        # Where these are written in C, they do not call `os.stat`, so they are mapped too.
        for name in ("exists", "isfile", "isdir", "islink", "lexists"):
            setattr(os.path, name, self._map_paths(getattr(os.path, name), 1))
        self._patch_globbers()
        return {"open": opening}

    def _patch_globbers(self) -> None:
        """Replace functions in the classes behind `Path.glob`, which store their own references since Python 3.13."""
        for kind in [var for name, var in vars(glob).items() if name.endswith(("Globber", "GlobberBase"))]:
            for name, work in (("scandir", os.scandir), ("lexists", os.path.lexists)):
                if name in vars(kind):
                    setattr(kind, name, staticmethod(work))

    def _map_paths(self, work: Callable[..., Any], paths: int) -> Callable[..., Any]:
        """A function that calls `work` with its first `paths` arguments mapped."""

        @functools.wraps(work)
        def mapped(*given: Any, **options: Any) -> Any:
            try:
                named = {name: self.real(value) if name in _PATH_NAMES else value for name, value in options.items()}
                return work(*map(self.real, given[:paths]), *given[paths:], **named)
            except OSError as error:
                raise self._restore_path(error) from None

        for family in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
            if work in family:
                family.add(mapped)
        return mapped

    def _map_scandir(self, scandir: Callable[..., Any]) -> Callable[..., Any]:
        """A `scandir` whose entries have the paths that the code knows."""
        mapped = self._map_paths(scandir, 1)

        def scanned(path: Any = ".") -> Any:
            entries = mapped(path)
            return entries if self.real(path) is path else _Entries(entries, os.fspath(path))

        if scandir in os.supports_fd:
            os.supports_fd.add(scanned)
        return scanned

    def _restore_path(self, error: OSError) -> OSError:
        """The same error, changed: real paths are replaced by those that the code knows."""
        for name in ("filename", "filename2"):
            value = getattr(error, name)
            if isinstance(value, str) and (value + "/").startswith(self.folder + "/"):
                setattr(error, name, self.path + value[len(self.folder) :])
        return error

    def files(self, walk: Callable[[str], Iterator[Any]]) -> dict[str, tuple[int, int]]:
        """The files in the folder, by their paths below it: modification time in nanoseconds, and size in bytes.

        `walk`: the original `os.scandir`, taken before `install`. It is called once a folder. Raises `OSError`.
        """
        results: dict[str, tuple[int, int]] = {}
        folders = [self.folder]
        while folders:
            for entry in walk(folders.pop()):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    stat = entry.stat(follow_symlinks=False)
                    results[entry.path[len(self.folder) + 1 :]] = (stat.st_mtime_ns, stat.st_size)
        return results


class _Entries:
    """The entries of a folder with mapped paths: an iterator that `with` closes."""

    def __init__(self, found: Any, folder: str) -> None:
        self._found, self._folder = found, folder

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> _FolderEntry:
        return _FolderEntry(next(self._found), self._folder)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._found.close()


class _FolderEntry:
    """A real entry of a folder with another path."""

    def __init__(self, entry: os.DirEntry[str], folder: str) -> None:
        self._entry = entry
        self.path = os.path.join(folder, entry.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self._entry.name!r}>"
