"""Run cells in CPython compiled to WebAssembly, under Node: the runner `wasm`.

The worker is the one of `subprocess`, in a module that has memory, a channel and nothing else: `node.mjs` removes the
rest. As a second wall, Node's permission model lets the process read only the folders of Pyodide and `ws`.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

from rlm.calls.subcalls import SubCalls
from rlm.errors import RunnerUnavailable
from rlm.runners.channel import ChannelClosed
from rlm.runners.piped_process import START_SECONDS, PipedProcess, receive_hello
from rlm.runners.pyodide import find_folder
from rlm.runners.remote import RemoteRunner, SharedOptions

MEMORY_BYTES = 2 << 30  # of the module
DISK_BYTES = 64 << 20  # written to the module's files, which are in memory
_HEAP_MIB = 512  # JavaScript heap for Pyodide's own objects and file names, in MiB
_PACKAGES = ("rlm", "monocontext", "cachetools")  # the packages that a worker gets
_PAGE_BYTES = 64 << 10
_PROGRAM = Path(__file__).with_name("node.mjs")


class WasmRunner(RemoteRunner):
    """Runs cells in a WebAssembly module."""

    name = "wasm"

    def __init__(
        self, context: object, subcalls: SubCalls, *, pyodide: str | os.PathLike[str] | None = None,
        memory_bytes: int = MEMORY_BYTES, **shared: Unpack[SharedOptions],
    ) -> None:  # fmt: skip
        """`pyodide`: the folder of the npm package. `memory_bytes`: the memory of the module, at most 4 GiB."""
        self._pyodide = pyodide
        self._memory_bytes = memory_bytes
        super().__init__(context, subcalls, **shared)

    def launch(self) -> tuple[PipedProcess, Mapping[str, Any]]:
        folder = find_folder(self._pyodide)
        command = node_command(shutil.which("node") or "node", folder, self._memory_bytes)
        process = PipedProcess(command, env={}, cwd=folder, start_new_session=True)
        try:
            process.channel.send({}, [_pack()], seconds=START_SECONDS)
        except ChannelClosed:
            pass  # its stderr tells more
        except BaseException:
            process.end()
            raise
        return process, receive_hello(process, self.name)


def node_command(node: str, folder: Path, memory_bytes: int) -> list[str]:
    """The command line of Node. It contains the text of `node.mjs`, so Node needs no right to read that file."""
    folders = (folder, folder.parent / "ws")  # Pyodide imports `ws` under Node
    readable = [f"--allow-fs-read={item}{os.sep}*" for item in folders]
    return [
        node, _permission_flag(node), *readable, "--no-warnings", "--disallow-code-generation-from-strings",
        f"--max-old-space-size={_HEAP_MIB}", f"--wasm-max-mem-pages={memory_bytes // _PAGE_BYTES}",
        "--input-type=module", "--eval", _PROGRAM.read_text("utf-8"), str(folder), str(DISK_BYTES),
    ]  # fmt: skip


@cache
def _permission_flag(node: str) -> str:
    """Run `node --version`, and return the option for the permission model. Raises RunnerUnavailable below 20.12."""
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    numbers = re.match(r"v(\d+)\.(\d+)\.", version)  # "v22.13.0"
    major, minor = map(int, numbers.groups()) if numbers else (0, 0)
    if (major, minor) < (20, 12):
        raise RunnerUnavailable(f"runner 'wasm' needs Node 20.12 or newer; `node --version` printed {version[:40]!r}")
    is_stable = major >= 24 or (major == 22 and minor >= 13)
    return "--permission" if is_stable else "--experimental-permission"


@cache
def _pack() -> bytes:
    """The Python files of the packages that a worker gets, as a zip archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:  # not compressed, since a worker reads each file once
        for name in _PACKAGES:
            home = Path(import_module(name).__path__[0])
            for file in sorted(home.rglob("*.py")):
                archive.write(file, Path(name, file.relative_to(home)).as_posix())
    return packed.getvalue()
