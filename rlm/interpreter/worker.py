"""Run an interpreter's code in a worker, in a namespace of its own, and send changed files to the host.

Imports nothing that writes to stores: a worker may lack it.
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

HOST_PREFIX = "_interpreter_"  # before the name of a function that serves `WorkerNamespace`
OWN_PREFIX = "_own_"  # before a name of the code, where the runner has a name of its own (`context`, say)


class Submitted(BaseException):
    """Ends the code. It is not an `Exception`, since `except Exception` would catch it."""


class WorkerNamespace:
    """The namespace of an interpreter, and its volume: the files below `folder`. Functions of the `host` whose names
    begin with `HOST_PREFIX` serve this class, the others are for the code."""

    def __init__(self, host: Mapping[str, Callable[..., Any]], given_builtins: Any, folder: str | None) -> None:
        self._host = host
        self._folder = folder
        self._synced: dict[str, tuple[int, int]] = {}  # time and size of each file at the last load or save
        self._executions = itertools.count(1)
        self._tools: set[str] = set()  # the tools that have a function in the namespace
        if folder:
            os.makedirs(os.path.realpath(folder), exist_ok=True)  # the sandbox may have made it a link to nothing
            self.load()
        for_code = {name: value for name, value in host.items() if not name.startswith(HOST_PREFIX)}
        self.namespace: dict[str, Any] = {
            "__name__": "__main__", "__builtins__": given_builtins, "SUBMIT": _submit,
            "save_to_volume": self.save_to_volume, "load_from_volume": self.load_from_volume,
            **{name.removeprefix(OWN_PREFIX): value for name, value in for_code.items()},
        }  # fmt: skip
        # The runner's builtins include those of the patch already.
        for part in lazy_texts(list(host.values())):
            names = part.repl_namespace().names
            self.namespace |= {name: value for name, value in names.items() if not hasattr(builtins, name)}

    def run(self) -> None:
        """Run the code that the host sent, then send back its result and the files that it changed."""
        code, variables, tools = self._host["_interpreter_code"]()
        self.namespace.update(variables)
        self.namespace.update({name: self._make_tool(name) for name in tools if name not in self._tools})
        self._tools.update(tools)
        file = f"<execute {next(self._executions)}>"
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        try:
            exec(compile(code, file, "exec", dont_inherit=True), self.namespace)
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
        """Replace the files by those of the host."""
        files = dict(self._host["_interpreter_files"]()) if self._folder else {}
        for path in self._files().keys() - files:
            os.unlink(f"{self._folder}/{path}")
        for path in files:
            full = f"{self._folder}/{path}"
            os.makedirs(os.path.dirname(full), exist_ok=True)
            data = self._host["_interpreter_get"](path)  # first: a file that a failure left empty would be sent back
            with open(full, "wb") as file:
                file.write(data)
        self._synced = self._files()

    def save(self) -> None:
        """Send changes since the last load or save to the host."""
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
        OSError for a folder that cannot be read: its files are there, and must not count as deleted."""
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
        """Write a text. Returns the full path, or `[error: ...]` for a path outside of the volume."""
        try:
            full = self._resolve(path)
        except ValueError as error:
            return f"[error: {error}]"
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8", newline="") as file:
            file.write(content)
        return full

    def load_from_volume(self, path: str, default: str | None = None, *, strict: bool = False) -> str:
        """Read a text. If there is none: `default`, FileNotFoundError with `strict`, or else `[error: ...]`."""
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
        """The full path. Raises ValueError for a path outside of the volume."""
        if self._folder is None:
            raise ValueError("no volume mounted at /data: Interpreter(volume_name=...) mounts one")
        if not path or not path.strip():
            raise ValueError("volume path cannot be empty: name a file such as notes/a.txt")
        full = os.path.normpath(os.path.join(self._folder, path))
        if not full.startswith(self._folder + "/"):
            raise ValueError(f"invalid volume path: {path} is not below {self._folder}")
        return full


def _fail(error: OSError) -> NoReturn:
    raise error


def _submit(*values: Any, **fields: Any) -> NoReturn:
    """End with a result: `SUBMIT(x)`, `SUBMIT(a, b)` or `SUBMIT(name=value)`."""
    if bool(values) == bool(fields):
        raise TypeError(f"SUBMIT takes values or name=value, not {'both' if values else 'nothing'}")
    raise Submitted(list(values), fields)
