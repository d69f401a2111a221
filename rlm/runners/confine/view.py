"""List the files of the host that a worker may read: Python, its library, and nothing else."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

_C_LIBRARY = ("/lib", "/lib64", "/usr/lib64")
"""The folders of the C library, or links to them. `/usr/lib`, which contains much else, is shown only if it has no
folder for the machine's type."""
_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
_lock = threading.Lock()  # until Python 3.13, other threads see the table of `sysconfig` half filled
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
SCRATCH = "/tmp/volume"  # files that a worker may write below another path, a link to here; the limit of /tmp holds


@dataclass(frozen=True, slots=True)
class FolderView:
    """The files that a worker sees; paths are the same inside and outside."""

    python: str  # the interpreter, all links followed
    readable: tuple[str, ...]  # files and folders
    links: tuple[tuple[str, str], ...]  # symbolic links, each a path and its target, such as /lib and usr/lib
    import_path: tuple[str, ...]  # `sys.path` of the worker

    def with_scratch(self, path: str) -> FolderView:
        """The view with `path` as a link to `SCRATCH`; unchanged if `path` is above or below a path of the view."""
        existing = (*self.readable, *DEVICES, "/tmp", *(link for link, _ in self.links))
        if any(f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/") for other in existing):
            return self
        return replace(self, links=(*self.links, (path, SCRATCH)))


def python_view() -> FolderView:
    """The view of this interpreter: its standard library, its site-packages, and the packages that a worker imports."""
    with _lock:
        paths = sysconfig.get_paths()
    user_site = sysconfig.get_paths(f"{os.name}_user")["purelib"]
    site_packages = [paths["purelib"], paths["platlib"], *([user_site] if user_site in sys.path else [])]
    c_extensions = sysconfig.get_config_var("DESTSHARED")  # also for a virtual environment
    library = [path for path in (paths["stdlib"], c_extensions, *site_packages) if path and os.path.isdir(path)]
    packages = [Path(os.path.realpath(import_module(name).__path__[0])) for name in ("rlm", "monocontext")]
    python = os.path.realpath(sys.executable)
    library_folder, library_name = sysconfig.get_config_vars("LIBDIR", "INSTSONAME")
    libpython = [os.path.join(library_folder, library_name)] if library_folder and library_name else []
    files = [path for path in (*libpython, *_FILES) if os.path.exists(path)]
    c_library, links = _find_c_library()
    readable = dict.fromkeys(map(os.path.realpath, [python, *library, *map(str, packages), *files, *c_library]))
    import_path = dict.fromkeys(map(os.path.realpath, [*(str(package.parent) for package in packages), *library]))
    outermost = [path for path in readable if not any(path.startswith(f"{outer}/") for outer in readable)]
    return FolderView(python, tuple(outermost), tuple(links), tuple(import_path))


def _find_c_library() -> tuple[list[str], list[tuple[str, str]]]:
    """The folders of the C library, and the links to such folders, each as a path and its target."""
    of_machine = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    folders: list[str] = []
    links: list[tuple[str, str]] = []
    for path in (*_C_LIBRARY, of_machine if os.path.isdir(of_machine) else "/usr/lib"):
        if os.path.islink(path):
            links.append((path, os.readlink(path)))
        elif os.path.isdir(path):
            folders.append(path)
    return folders, links
