"""Find Node and the npm package `pyodide`, which the runner `wasm` needs; nothing is ever downloaded here."""

from __future__ import annotations

import os
from pathlib import Path

PYODIDE_VARIABLE = "MONOCONTEXT_PYODIDE"  # the environment variable with the folder of the npm package
HOME = "~/.monocontext"  # where the error says to install it: `npm install --prefix ~/.monocontext pyodide`


def what_is_missing(pyodide: str | os.PathLike[str] | None = None) -> str:
    """What the runner `wasm` lacks here, and what to do about it; empty if it lacks nothing."""
    if not hasattr(os, "readv"):
        return "no os.readv, which its channel needs and Windows lacks: use --runner docker"
    import shutil  # 2 ms that other runners need not pay

    if shutil.which("node") is None:
        return "no program 'node' here: install Node 20.12 or newer"
    folder = find_folder(pyodide)
    if not (folder / "pyodide.asm.wasm").is_file():
        return (
            f"no Pyodide in {folder}: run `npm install --prefix {HOME} pyodide`, or name the folder of that package in "
            f"{PYODIDE_VARIABLE}"
        )
    return ""


def find_folder(pyodide: str | os.PathLike[str] | None) -> Path:
    """The folder of the npm package: `pyodide`, else the value of `PYODIDE_VARIABLE`, else the one below `HOME`."""
    folder = pyodide or os.environ.get(PYODIDE_VARIABLE)
    # For a user without a home, a path that does not exist, and never a folder `~` in the working directory.
    return Path(folder or Path(os.sep, os.path.expanduser(HOME), "node_modules", "pyodide")).resolve()
