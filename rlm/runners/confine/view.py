"""List the files of the host that a worker may read: Python, its library, and nothing else."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

_LOADER = ("/lib", "/lib64", "/usr/lib64")
"""Where the C library lies, or links to there. `/usr/lib` holds much that is no library on systems that have a folder
for each machine, so that folder is shown alone."""
_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
_lock = threading.Lock()
"""Until Python 3.13 `sysconfig` fills its table in view of other threads, which find it half full."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
SCRATCH = "/tmp/volume"
"""Where a path leads that is a worker's own to write below: in its /tmp, within the limit of that."""


@dataclass(frozen=True, slots=True)
class FolderView:
    """The files that a worker sees; paths are the same inside and outside."""

    python: str
    """The interpreter, all links followed."""
    readable: tuple[str, ...]
    """Files and folders."""
    links: tuple[tuple[str, str], ...]
    """Path and target of symbolic links next to them, as `/lib` is on most systems."""
    import_path: tuple[str, ...]
    """`sys.path` of the worker."""

    def with_scratch(self, path: str) -> FolderView:
        """The view with `path` as a link to `SCRATCH`; as it is where the path, or one below it, is taken."""
        taken = (*self.readable, *DEVICES, "/tmp", *(link for link, _ in self.links))
        if any(f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/") for other in taken):
            return self
        return replace(self, links=(*self.links, (path, SCRATCH)))


def python_view(packages: tuple[str, ...] = ("rlm",)) -> FolderView:
    """The files of this interpreter: its standard library, its site-packages, and these packages at any place."""
    with _lock:
        paths = sysconfig.get_paths()
    compiled = sysconfig.get_config_var("DESTSHARED")  # the folder of modules in C, also for a virtual environment
    library = [path for path in (paths["stdlib"], compiled) if path and os.path.isdir(path)]
    homes = [_home(name) for name in packages]
    site = [path for path in (paths["purelib"], paths["platlib"]) if os.path.isdir(path)]
    user = sysconfig.get_paths(f"{os.name}_user")["purelib"]
    if user in sys.path and os.path.isdir(user):
        site.append(user)
    python = os.path.realpath(sys.executable)
    wanted = [python, *library, *site, *(str(home) for home in homes)]
    shared = sysconfig.get_config_var("LIBDIR")
    name = sysconfig.get_config_var("INSTSONAME")
    if shared and name and os.path.exists(os.path.join(shared, name)):
        wanted.append(os.path.join(shared, name))
    links = []
    machine = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    for path in (*_LOADER, machine if os.path.isdir(machine) else "/usr/lib"):
        if os.path.islink(path):
            links.append((path, os.readlink(path)))
        elif os.path.isdir(path):
            wanted.append(path)
    wanted += [path for path in _FILES if os.path.exists(path)]
    import_path = [*(str(home.parent) for home in homes), *library, *site]
    return FolderView(
        python,
        tuple(_drop_nested(dict.fromkeys(os.path.realpath(path) for path in wanted))),
        tuple(links),
        tuple(dict.fromkeys(os.path.realpath(path) for path in import_path)),
    )


def _home(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"no package {package!r} to give to the worker")
    return Path(os.path.realpath(next(iter(spec.submodule_search_locations))))


def _drop_nested(paths: dict[str, None]) -> list[str]:
    """The paths without those below another one."""
    return [path for path in paths if not any(path != other and path.startswith(other + "/") for other in paths)]
