"""An image for the runner `docker`, by `import` of a tar of this Python, the C library and our packages: no pull."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

_LEFT_OUT = ("__pycache__", "test", "tests", "site-packages", "ensurepip", "idlelib", "tkinter", "lib2to3")
# An engine raises the limits of a container, and may not where root has no CAP_SYS_RESOURCE; crun starts nothing where
# groups of both versions are mounted.
_SETTINGS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
"""
_NAME = "localhost/monocontext-rlm-test"


@contextmanager
def engine_of(program: str, folder: Path) -> Iterator[str]:
    """An image of this engine, for as long as the block runs. Skips where the engine starts nothing."""
    (folder / "containers.conf").write_text(_SETTINGS)
    os.environ["CONTAINERS_CONF"] = str(folder / "containers.conf")
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    _make_image(program, folder)
    try:
        command = [program, "run", "--rm", "--network", "none", _NAME, "python", "-c", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"{program} starts no containers here: {done.stderr.strip()}")
        yield _NAME
    finally:
        subprocess.run([program, "rmi", "--force", _NAME], capture_output=True, timeout=300, check=True)


def settings() -> dict[str, str]:
    """What the engine needs of the environment."""
    return {"CONTAINERS_CONF": os.environ["CONTAINERS_CONF"]}


def _make_image(program: str, folder: Path) -> None:
    """Import an image in which each file lies where it lies here."""
    place = folder / "image.tar"
    python = os.path.join(os.path.dirname(sys.executable), "python")
    with tarfile.open(place, "w", dereference=True) as tar:
        for path in sorted(set(_files())):
            tar.add(path, recursive=False)
        if os.path.islink(python):
            link = tarfile.TarInfo(python.lstrip("/"))
            link.type, link.linkname = tarfile.SYMTYPE, os.path.realpath(python)
            tar.addfile(link)
        for target in ("tmp", "proc", "sys", "dev", "etc"):
            entry = tarfile.TarInfo(target)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if target == "tmp" else 0o755
            tar.addfile(entry)
    command = [program, "import", "--change", f"ENV PATH={os.path.dirname(python)}", str(place), _NAME]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    place.unlink()
    if done.returncode:
        pytest.skip(f"{program} makes no images here: {done.stderr.strip()}")


def _files() -> Iterator[str]:
    """The interpreter, its library, our two packages and what they need."""
    python = os.path.realpath(sys.executable)
    yield python
    if sys.prefix != sys.base_prefix:
        yield os.path.join(sys.prefix, "pyvenv.cfg")
    yield from _tree(sysconfig.get_paths()["stdlib"])
    compiled = sysconfig.get_config_var("DESTSHARED")
    modules = [os.path.join(compiled, name) for name in os.listdir(compiled)]
    for package in ("monocontext", "rlm"):
        spec = find_spec(package)
        assert spec
        assert spec.submodule_search_locations
        yield from _tree(next(iter(spec.submodule_search_locations)))
    for path in _distributions(("monocontext", "monocontext-rlm")):
        modules += [path] if ".so" in path else []
        yield path
    yield from _shared_libraries([python, *modules])


def _tree(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT and not name.startswith("config-")]
        yield from (os.path.join(place, file) for file in files)


def _distributions(names: Iterable[str]) -> Iterator[str]:
    """Files of these and of what they need."""
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for found in metadata.distributions(name=name):  # an editable one has a second in its folder of source
            for line in found.requires or ():
                need = Requirement(line)
                if need.marker is None or need.marker.evaluate({"extra": ""}):
                    waiting.append(need.name.lower())
            paths = [found.locate_file(file) for file in found.files or () if "__pycache__" not in file.parts]
            yield from (str(path) for path in paths if Path(str(path)).is_file())


def _shared_libraries(binaries: list[str]) -> set[str]:
    """Paths of the shared libraries of the system that these load."""
    said = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    words = [line.split() for line in said.splitlines()]
    found = {word for line in words for word in line if word.startswith("/") and not word.endswith(":")}
    return {path for path in found if os.path.exists(path) and "site-packages" not in path}
