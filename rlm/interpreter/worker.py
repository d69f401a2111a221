"""Run an interpreter's code in a worker, in a namespace of its own, and send changed files to the host.

Only workers import it; `monocontext` may be missing there.
"""

from __future__ import annotations

import ast
import base64
import builtins
import linecache
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatch
from typing import Any, NoReturn

from rlm.context import protocol
from rlm.interpreter import mount, text
from rlm.interpreter.mount import Mount

_scandir = os.scandir
_open = open
_PREVIEW_CHARACTERS = 200


class Submitted(BaseException):
    """Ends the code. It is no `Exception`, since `except Exception` would catch it."""

    def __init__(self, output: dict[str, Any]) -> None:
        super().__init__()
        self.output = output


class _Preview:
    """A stream in place of another, which also keeps the beginning of the output."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.start = ""

    def write(self, written: str) -> int:
        count = int(self._stream.write(written))
        self.start += written[: _PREVIEW_CHARACTERS - len(self.start)]
        return count

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class WorkerNamespace:
    """One namespace over one volume.

    `host`: functions of the host, by name: those with `_interpreter_` (see `Interpreter`) serve this class, the others
    are for the code.
    """

    def __init__(self, host: Mapping[str, Callable[..., Any]], given_builtins: Any, mount_path: str | None) -> None:
        self._host = host
        self._mount: Mount | None = None
        self._synced: dict[str, tuple[int, int]] = {}
        """Time and size of each file at the last load or save."""
        self._buffers: dict[str, list[Any]] = {}
        self._history: list[dict[str, Any]] = []
        builtin_names = dict(given_builtins if isinstance(given_builtins, dict) else vars(given_builtins))
        if mount_path:
            self._mount = Mount(mount_path, _make_folder(mount_path))
            self.load()
            builtin_names |= self._mount.install()
        self.namespace: dict[str, Any] = {
            "__name__": "__main__",
            "__builtins__": builtin_names,
            **{each.__name__: each for each in text.FUNCTIONS},
            **{name.removeprefix("_in_"): getattr(self, name) for name in dir(self) if name.startswith("_in_")},
            **{name: call for name, call in host.items() if not name.startswith("_")},
        }
        # The runner's builtins include those of the kit already.
        kit = protocol.namespace_kit(host.get("context"))
        self._transform: Callable[[ast.Module], ast.Module] = kit.transform if kit else lambda tree: tree
        if tell_host_objects := getattr(kit, "host", None):
            tell_host_objects(self.namespace.values())
        if kit:
            self.namespace |= {name: value for name, value in kit.names.items() if not hasattr(builtins, name)}

    def run(self) -> None:
        """Run the code that the host sent, then send back the files that the code changed.

        The result is what the code passed to `SUBMIT`, or a dict that it assigned to `Final`.
        """
        code, variables = self._host["_interpreter_code"]()
        self.namespace.update(variables)
        self.namespace.pop("Final", None)
        file = f"<execute {len(self._history) + 1}>"
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        output: dict[str, Any] | None = None
        error = ""
        stdout, preview = sys.stdout, _Preview(sys.stdout)
        sys.stdout = preview
        try:
            tree: Any = compile(code, file, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
            exec(compile(self._transform(tree), file, "exec", dont_inherit=True), self.namespace)
        except Submitted as submitted:
            output = submitted.output
        except Exception:
            error = _format_traceback()
            sys.stderr.write(error)
        finally:
            sys.stdout = stdout
            self.save()
        final = self.namespace.pop("Final", None)
        if output is None and isinstance(final, dict):
            output = final
        if output is not None:
            self._host["_interpreter_submit"](output)
        self._history.append({
            "timestamp": datetime.now(UTC).isoformat(), "code_preview": code[:_PREVIEW_CHARACTERS],
            "stdout_preview": preview.start, "stderr_preview": error[:_PREVIEW_CHARACTERS],
            "had_final": output is not None, "metadata": {},
        })  # fmt: skip

    # -- the volume ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Replace the files by those of the host."""
        if self._mount is None:
            return
        wanted = dict(self._host["_interpreter_files"]())
        for path in self._files():
            if path not in wanted:
                os.unlink(f"{self._mount.folder}/{path}")
        for path in wanted:
            full = f"{self._mount.folder}/{path}"
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with _open(full, "wb") as file:
                file.write(base64.b64decode(self._host["_interpreter_get"](path)))
        self._synced = self._files()

    def save(self) -> None:
        """Send changes since the last load or save to the host."""
        current = self._files()
        for path, state in current.items():
            if self._mount and self._synced.get(path) != state:
                with _open(f"{self._mount.folder}/{path}", "rb") as file:
                    self._host["_interpreter_put"](path, base64.b64encode(file.read()).decode())
        for path in self._synced.keys() - current.keys():
            self._host["_interpreter_drop"](path)
        self._synced = current

    def _files(self) -> dict[str, tuple[int, int]]:
        return self._mount.files(_scandir) if self._mount else {}

    # -- names of the code, after `_in_` -----------------------------------------------------------------------------

    def _in_SUBMIT(self, *values: Any, **fields: Any) -> NoReturn:
        """End with a result: `SUBMIT(x)`, `SUBMIT(a, b)` or `SUBMIT(name=value)`."""
        if bool(values) == bool(fields):
            raise TypeError("SUBMIT takes the result either by position or by keyword")
        raise Submitted(fields or {"output": values[0] if len(values) == 1 else list(values)})

    def _in_save_to_volume(self, path: str, content: str) -> str:
        """Write a text. Returns the full path."""
        return self._write("volume", path, content, "w")

    def _in_load_from_volume(self, path: str, default: str | None = None, *, strict: bool = False) -> str:
        """Read a text. If there is none: `default` if given, FileNotFoundError with `strict`, else a text that says
        so."""
        return self._read("volume", path, default, strict)

    def _in_workspace_write(self, path: str, content: str) -> str:
        """Write a text below `workspace/`. Returns the full path."""
        return self._write("workspace", path, content, "w")

    def _in_workspace_append(self, path: str, content: str) -> str:
        """Append to a text below `workspace/`. Returns the full path."""
        return self._write("workspace", path, content, "a")

    def _in_workspace_read(self, path: str, default: str | None = None, *, strict: bool = False) -> str:
        """Read a text below `workspace/`, as `load_from_volume` does."""
        return self._read("workspace", path, default, strict)

    def _in_workspace_list(self, pattern: str = "*") -> list[str]:
        """The files below `workspace/` whose path or name matches `pattern`, sorted."""
        below = [path.removeprefix("workspace/") for path in self._files() if path.startswith("workspace/")]
        return sorted(path for path in below if fnmatch(path, pattern) or fnmatch(path.rpartition("/")[2], pattern))

    def _in_add_buffer(self, name: str, value: Any) -> None:
        """Append a value to a list of this session."""
        self._buffers.setdefault(name, []).append(value)

    def _in_get_buffer(self, name: str) -> list[Any]:
        """The values in a list of this session."""
        return list(self._buffers.get(name, []))

    def _in_clear_buffer(self, name: str | None = None) -> None:
        """Empty one list, or all."""
        if name is None:
            self._buffers.clear()
        else:
            self._buffers.pop(name, None)

    def _in_get_session_history(self) -> list[dict[str, Any]]:
        """The records of all executions so far."""
        return [dict(entry) for entry in self._history]

    def _in_get_last_execution(self) -> dict[str, Any] | None:
        """The record of the last execution."""
        return dict(self._history[-1]) if self._history else None

    def _resolve(self, kind: str, path: str) -> tuple[str, str]:
        """The full path, as the code knows it, and the real one. Raises ValueError for a path outside."""
        if self._mount is None:
            raise ValueError("no volume mounted at /data")
        if not path or not path.strip():
            raise ValueError(f"{kind} path cannot be empty")
        root = f"{self._mount.path}/workspace" if kind == "workspace" else self._mount.path
        full = os.path.normpath(path if path.startswith("/") else f"{root}/{path}")
        if not full.startswith(root + "/"):
            raise ValueError(f"invalid {kind} path: {path}")
        return full, self._mount.real(full)

    def _write(self, kind: str, path: str, content: str, mode: str) -> str:
        try:
            full, real = self._resolve(kind, path)
        except ValueError as error:
            return f"[error: {error}]"
        os.makedirs(os.path.dirname(real), exist_ok=True)
        with _open(real, mode, encoding="utf-8", newline="") as file:
            file.write(content)
        return full

    def _read(self, kind: str, path: str, default: str | None, strict: bool) -> str:
        try:
            full, real = self._resolve(kind, path)
        except ValueError as error:
            problem = str(error)
        else:
            if os.path.isfile(real):
                with _open(real, encoding="utf-8", newline="") as file:
                    return file.read()
            problem = f"file not found: {full}"
        if default is not None:
            return default
        if strict:
            raise FileNotFoundError(problem)
        return f"[error: {problem}]"


def _make_folder(mount_path: str) -> str:
    """A new folder for the files of the volume.

    If the sandbox has made the path a link, the folder is its target, where code in C finds the files too. Otherwise,
    only the functions that `Mount` maps find them.
    """
    if not os.path.islink(mount_path):
        return tempfile.mkdtemp(prefix="volume-")
    folder = os.readlink(mount_path)
    os.makedirs(folder)
    return folder


def _format_traceback() -> str:
    """The traceback of the current exception, without the frames of this package."""
    kind, error, trace = sys.exc_info()
    assert kind is not None
    formatted = traceback.TracebackException(kind, error or kind(), trace)
    ours = (__file__, mount.__file__)
    frames = [frame for frame in formatted.stack if frame.filename not in ours]
    formatted.stack = traceback.StackSummary.from_list(frames)
    return "".join(formatted.format())
