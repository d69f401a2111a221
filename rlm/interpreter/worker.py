"""The worker's side of an interpreter: run its code in a namespace of its own, and send changed files to the host.

Imports no module that writes to stores, since a worker may lack it.
"""

from __future__ import annotations

import base64
import builtins
import itertools
import linecache
import os
import stat
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rlm.context.lazy import lazy_texts
from rlm.runners.local import cell_traceback

HOST_PREFIX = "_interpreter_"  # begins the names of functions that serve `WorkerNamespace`
OWN_PREFIX = "_own_"  # begins the names for the code, since the runner has names of its own, such as `context`


class Submitted(BaseException):
    """Ends the code with a result. Not an `Exception`, which the code's `except Exception` would catch."""


class WorkerNamespace:
    """The namespace of an interpreter, and the files of its volume."""

    def __init__(self, host: Mapping[str, Callable[..., Any]], given_builtins: Any, folder: str | None) -> None:
        """`host`: values by name. Functions with `HOST_PREFIX` serve this class, all others are for the code.
        `given_builtins`: those of the runner's namespace. `folder`: the root of the volume; None without one."""
        self._host = host
        self._folder = folder
        self._synced: dict[str, tuple[int, int]] = {}  # `_files` at the last load or save
        self._executions = itertools.count(1)
        self._tools: set[str] = set()  # the names of the tools that are in the namespace
        if folder:
            os.makedirs(os.path.realpath(folder), exist_ok=True)  # the sandbox may have made it a link to nothing
            self.load()
        own_names = {name: value for name, value in host.items() if not name.startswith(HOST_PREFIX)}
        self.namespace: dict[str, Any] = {
            "__name__": "__main__", "__builtins__": given_builtins, "SUBMIT": _submit,
            "save_to_volume": self.save_to_volume, "load_from_volume": self.load_from_volume,
            **{name.removeprefix(OWN_PREFIX): value for name, value in own_names.items()},
        }  # fmt: skip
        # The runner has patched its builtins for lazy texts; the other patched names are added here.
        for text in lazy_texts(list(host.values())):
            names = text.repl_namespace().names
            self.namespace |= {name: value for name, value in names.items() if not hasattr(builtins, name)}

    def run(self) -> None:
        """Run the code that the host has for this worker, then send back its result and the files that it changed."""
        job = self._host["_interpreter_job"]()
        self.namespace.update(job["variables"])
        self.namespace.update({name: self._make_tool(name) for name in job["tools"] if name not in self._tools})
        self._tools.update(job["tools"])
        file = f"<execute {next(self._executions)}>"
        linecache.cache[file] = (len(job["code"]), None, job["code"].splitlines(keepends=True), file)
        try:
            exec(compile(job["code"], file, "exec", dont_inherit=True), self.namespace)
        except Submitted as submitted:
            self._host["_interpreter_submit"](*submitted.args)
        except Exception as error:
            sys.stderr.write(cell_traceback(error, "<execute "))
        finally:
            self.save()

    def _make_tool(self, name: str) -> Callable[..., Any]:
        def tool(*arguments: Any, **options: Any) -> Any:
            return self._host["_interpreter_call"](name, list(arguments), options)

        tool.__name__ = tool.__qualname__ = name
        return tool

    def load(self) -> None:
        """Replace the files in the folder with those of the host."""
        files = dict(self._host["_interpreter_files"]()) if self._folder else {}
        for path in self._files().keys() - files:
            os.unlink(f"{self._folder}/{path}")
        for path in files:
            full = f"{self._folder}/{path}"
            os.makedirs(os.path.dirname(full), exist_ok=True)
            data = self._host["_interpreter_get"](path)  # before `open`: after a failure, an empty file would be saved
            with open(full, "wb") as file:
                file.write(data)
        self._synced = self._files()

    def save(self) -> None:
        """Send the files that changed since the last load or save to the host."""
        current = self._files()
        for path, state in current.items():
            if self._synced.get(path) != state:
                with open(f"{self._folder}/{path}", "rb") as file:
                    self._host["_interpreter_put"](path, base64.b64encode(file.read()).decode())
        for path in self._synced.keys() - current.keys():
            self._host["_interpreter_drop"](path)
        self._synced = current

    def _files(self) -> dict[str, tuple[int, int]]:
        """The modification time in nanoseconds and the size in bytes of each file, by its path below the folder. Raises
        OSError for a folder that cannot be read, whose files must not count as deleted."""
        if not self._folder:
            return {}
        states = {}
        for folder, _, names in os.walk(self._folder, onerror=_fail):
            for path in (os.path.join(folder, name) for name in names):
                state = os.lstat(path)
                if stat.S_ISREG(state.st_mode):
                    states[os.path.relpath(path, self._folder)] = (state.st_mtime_ns, state.st_size)
        return states

    def save_to_volume(self, path: str, content: str) -> str:
        """Write a text file. Returns its full path, or `[error: ...]` for a path outside of the volume."""
        try:
            full = self._resolve(path)
        except ValueError as error:
            return f"[error: {error}]"
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8", newline="") as file:
            file.write(content)
        return full

    def load_from_volume(self, path: str, default: str | None = None, *, strict: bool = False) -> str:
        """Read a text file. If there is none: `default`, else FileNotFoundError if `strict`, else `[error: ...]`."""
        try:
            full = self._resolve(path)
            if os.path.isfile(full):
                with open(full, encoding="utf-8", newline="") as file:
                    return file.read()
            problem = f"file not found: {full}"
        except ValueError as error:
            problem = str(error)
        if default is not None:
            return default
        if strict:
            raise FileNotFoundError(problem)
        return f"[error: {problem}]"

    def _resolve(self, path: str) -> str:
        """The full path of a path on the volume. Raises ValueError for a path outside of the volume."""
        if self._folder is None:
            raise ValueError("this interpreter has no volume: pass Interpreter(volume_name=...)")
        if not path or not path.strip():
            raise ValueError("the path of a file must not be empty: name a file such as notes/a.txt")
        full = os.path.normpath(os.path.join(self._folder, path))
        if not full.startswith(self._folder + "/"):
            raise ValueError(f"the path {path} is outside {self._folder}: name a file in it")
        return full


def _fail(error: OSError) -> NoReturn:
    raise error


def _submit(*values: Any, **fields: Any) -> NoReturn:
    """End with a result: `SUBMIT(x)`, `SUBMIT(a, b)` or `SUBMIT(name=value)`."""
    if bool(values) == bool(fields):
        raise TypeError(f"SUBMIT takes values or name=value, not {'both' if values else 'nothing'}")
    raise Submitted(list(values), fields)
