"""Which files of the host a worker sees: Python, its library, and nothing else. The host tells, from its own paths."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_LOADER = ("/lib", "/lib64", "/usr/lib64")
"""Where the C library lies, or links to there. `/usr/lib` holds much that is no library on systems that have a folder
for each machine, so that folder is shown alone."""
_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class View:
    """Paths are the same inside and outside."""

    python: str
    """The interpreter, all links followed."""
    readable: tuple[str, ...]
    """Files and folders."""
    links: tuple[tuple[str, str], ...]
    """Path and target of symbolic links beside them, as `/lib` is on most systems."""
    import_path: tuple[str, ...]
    """`sys.path` of the worker."""


def python_view(packages: tuple[str, ...] = ("rlm",)) -> View:
    """What this interpreter needs: its standard library, its site-packages, and these packages wherever they lie."""
    paths = sysconfig.get_paths()
    compiled = sysconfig.get_config_var("DESTSHARED")  # where modules in C lie, also for a virtual environment
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
    return View(
        python,
        tuple(_outermost(dict.fromkeys(os.path.realpath(path) for path in wanted))),
        tuple(links),
        tuple(dict.fromkeys(os.path.realpath(path) for path in import_path)),
    )


def _home(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"no package {package!r} to give to the worker")
    return Path(os.path.realpath(next(iter(spec.submodule_search_locations))))


def _outermost(paths: dict[str, None]) -> list[str]:
    """Without those that lie below another."""
    return [path for path in paths if not any(path != other and path.startswith(other + "/") for other in paths)]
