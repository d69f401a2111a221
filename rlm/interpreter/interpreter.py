"""Run code in a sandbox with a volume that outlives it, with the interface of fleet-rlm's `ModalInterpreter`.

    from rlm import Interpreter

    with Interpreter(volume_name="team-notes", timeout=120) as interp:
        interp.execute("save_to_volume('memory/a.json', '{}')")
        print(interp.execute("import os; SUBMIT(files=os.listdir('/data/memory'))").files)

A volume is the objects of a store of `monocontext`, as files.
"""

from __future__ import annotations

import base64
import getpass
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from monocontext.options import StoreOptions
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.stores.regular_file import open_file
from monocontext.stores.volumes import volume_url
from monocontext.writing.folder import Folder, describe_left_out
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.context.lazy import is_lazy
from rlm.errors import LLMError, RunnerUnavailable
from rlm.interpreter.worker import OWN_PREFIX
from rlm.models.lm import LM, ScriptedLM
from rlm.runners import make_runner
from rlm.runners.runner import DEFAULT_RUNNER, Runner
from rlm.runners.values import is_plain_data

STDOUT_CHARACTERS = 10_000  # the longest output that is returned; a longer one is summarized
_PREFIX_CHARACTERS = 200  # the beginning of a long output in its summary
_FOLDER = "/data"  # where code finds the files of the volume
_OUTPUT_CHARACTERS = 4_000_000  # the most output of one cell
# A cell that calls a method of the worker's namespace, which the first such cell creates.
_CELL = """
try:
    _interpreter_session
except NameError:
    from rlm.interpreter.worker import WorkerNamespace as _Session
    _host = {name: globals()[name] for name in _interpreter_names()}
    _interpreter_session = _Session(_host, __builtins__, %r)
_interpreter_session.%s()
"""


@dataclass
class FinalOutput:
    """What code submitted: the dict `output`, whose items are also attributes."""

    output: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        output = self.__dict__.get("output", {})
        if name not in output:
            submitted = ", ".join(map(repr, output)) or "an empty dict"
            raise AttributeError(f"the code submitted no {name!r}; it submitted {submitted}")
        return output[name]


class Interpreter:
    """One namespace with one volume. Its sandbox starts at the first `execute`, or at `with`. For use by one thread.

    The files of the volume are copied to the sandbox when it starts (1 LIST, 1 GET for each file). Files that code
    changes are stored when that code ends, even by an exception (1 PUT or DELETE for each).
    """

    def __init__(
        self, *, volume_name: str | Store | None = None, timeout: float = 600, runner: str = DEFAULT_RUNNER,
        volumes: str | None = None, store_options: StoreOptions | None = None, sub_lm: LM | None = None,
        context: object = None, names: Mapping[str, object] | None = None,
        tools: Mapping[str, Callable[..., Any]] | None = None, **runner_options: Any,
    ) -> None:  # fmt: skip
        """- `volume_name`: a name below `volumes` (see `volume_url`), a URL or a store; None for no volume
        - `timeout`: seconds of one `execute`
        - `runner`, `runner_options`: `confined`, `subprocess`, `wasm`, `docker` or `sandbox`, and its options
        - `volumes`: the URL below which named volumes lie
        - `store_options`: those of `monocontext.stores.open_store`
        - `sub_lm`: answers `llm_query`, which raises LLMError without it
        - `context`: the value of the variable `context`; a lazy text stays lazy
        - `names`: more variables, lazy texts and plain data
        - `tools`: functions of this process that code may call

        Raises `RunnerUnavailable` for the runner `local`, which cannot map `/data` in the process of its caller.
        """
        if runner == "local":
            raise RunnerUnavailable(
                "runner 'local' has no process for an interpreter: use 'confined', 'subprocess', 'wasm' or 'docker'"
            )
        self.volume_name = volume_name
        self._timeout = timeout
        self._runner_name = runner
        self._runner_options = runner_options
        self._names = {**(names or {}), **({} if context is None else {"context": context})}
        self.tools = dict(tools or {})
        """Functions of this process that code may call; they may change between executions."""
        self._sub_lm = sub_lm or ScriptedLM(_refuse)
        self._runner: Runner | None = None
        self._job: dict[str, Any] = {}  # for the worker: the `code` to run, its `variables`, and the names of `tools`
        self._submitted: dict[str, Any] | None = None  # what the code of the job submitted
        self.volume: Store | None
        """The store of the volume; None without a volume."""
        if isinstance(volume_name, str):
            self.volume = open_store(volume_url(volume_name, volumes), **(store_options or {}))
        else:
            self.volume = volume_name
        self._folder = None if self.volume is None else _FOLDER

    def start(self) -> None:
        """Start the sandbox. Idempotent."""
        if self._runner is None:
            self._runner = make_runner(
                self._runner_name, None, SubCalls(self._sub_lm, Usage()), cell_timeout=self._timeout,
                output_limit=_OUTPUT_CHARACTERS, names=self._all_names(), scratch=self._folder, **self._runner_options,
            )  # fmt: skip

    def shutdown(self) -> None:
        """End the sandbox; the volume stays. Idempotent."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        if self.volume is not None and isinstance(self.volume_name, str):
            self.volume.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def execute(self, code: str, variables: Mapping[str, Any] | None = None) -> str | FinalOutput:
        """Run code. Returns what it submitted, else what it printed, with the traceback if it raised. `variables`: more
        names for the code, plain data as it is, anything else as its `str`. Raises TypeError for a lazy text, which
        `Interpreter` takes as `names=`, and ValueError for a name that is not an identifier."""
        out, err = self._run_code(code, variables)
        if self._submitted is not None:
            return FinalOutput(self._submitted)
        return "\n".join(item for item in (_summarize(out).rstrip("\n"), err.rstrip("\n")) if item)

    def _run_code(self, code: str, variables: Mapping[str, Any] | None) -> tuple[str, str]:
        """Run code. Returns what it printed, and its traceback. Raises what `execute` raises."""
        arguments = {}
        for name, value in (variables or {}).items():
            if not name.isidentifier():
                raise ValueError(f"the name of a variable must be a Python identifier, not {name!r}")
            if is_lazy(value):
                raise TypeError(f"{name} is a lazy text: pass it as Interpreter(names={{{name!r}: text}})")
            arguments[name] = value if is_plain_data(value) else str(value)
        self._job = {"code": code, "variables": arguments, "tools": list(self.tools)}
        self._submitted = None
        return self._call_worker("run")

    def reload(self) -> None:
        """Copy the volume to the sandbox again, with the changes of others (1 LIST, 1 GET per file). Raises OSError."""
        if self.volume is not None and self._runner is not None:
            _, err = self._call_worker("load")
            if err:
                raise OSError(err.strip().splitlines()[-1])

    def upload_to_volume(
        self, local_dirs: Mapping[str, str] | None = None, local_files: Mapping[str, str] | None = None
    ) -> list[str]:
        """Copy folders and files of this machine to the volume (local path -> path). Returns the paths of files
        that were new or different. Links that lead out of their folder are left out, and a warning names them. Raises
        `OSError`, and `ValueError` without a volume."""
        if self.volume is None:
            raise ValueError("this interpreter has no volume: pass Interpreter(volume_name=...)")
        stored_sizes = {info.key: info.size_bytes for info in self.volume.list()}
        written = []
        for remote, data in self._read_local(local_dirs or {}, local_files or {}):
            key = self._key(remote)
            if stored_sizes.get(key) == len(data) and self.volume.get(key).data == data:
                continue
            self.volume.put(key, data)
            written.append(f"{_FOLDER}/{key}")
        if written:
            self.reload()
        return written

    def _read_local(self, folders: Mapping[str, str], files: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        """Yield each file of this machine as its path on the volume and its data."""
        for local in folders:
            if not Path(local).is_dir():
                raise NotADirectoryError(f"there is no folder {local} to upload")
        for local, remote in files.items():
            with open_file(local) as file:  # which refuses a pipe: reading it could wait forever
                yield remote, file.read()
        for local, remote in folders.items():
            folder = Folder(local)
            for name in folder.files():
                with folder.open(name) as file:
                    yield f"{remote}/{name}", file.read()
            if folder.left_out:
                warnings.warn(f"{local}: {describe_left_out(folder.left_out)}", stacklevel=3)

    def _call_worker(self, method: str) -> tuple[str, str]:
        """Call a method of the `WorkerNamespace`. Returns what it printed, and its traceback."""
        self.start()
        assert self._runner is not None
        result = self._runner.run(_CELL % (self._folder, method))
        return result.stdout, result.stderr

    def _all_names(self) -> dict[str, object]:
        """The names for the runner: the caller's, with a prefix, and the functions that `WorkerNamespace` calls."""
        functions: dict[str, object] = {
            "_interpreter_call": self._call,
            "_interpreter_job": lambda: self._job,
            "_interpreter_submit": self._submit,
        }
        if (volume := self.volume) is not None:
            functions |= {
                "_interpreter_files": lambda: [(info.key, info.size_bytes) for info in volume.list()],
                "_interpreter_get": lambda path: volume.get(self._key(path)).data,
                "_interpreter_put": lambda path, data: volume.put(self._key(path), base64.b64decode(data)),
                "_interpreter_drop": lambda path: volume.delete(self._key(path)),
            }
        names = {f"{OWN_PREFIX}{name}": value for name, value in self._names.items()} | functions
        own_names = [*names, "llm_query", "llm_query_batched"]  # without those of the runner itself
        return {**names, "_interpreter_names": lambda: own_names}

    def _call(self, name: str, arguments: list[Any], options: dict[str, Any]) -> Any:
        return self.tools[name](*arguments, **options)

    def _submit(self, values: list[Any], fields: dict[str, Any]) -> None:
        self._submitted = fields or {"output": values[0] if len(values) == 1 else values}

    def _key(self, path: str) -> str:
        """The key of a path on the volume. The store refuses a key that leads out of the volume."""
        return "/".join(part for part in path.removeprefix(f"{_FOLDER}/").split("/") if part)


def sanitize_key(key: str) -> str:
    """A key as a file name: anything but letters, digits and `-_.` becomes `_`, an empty key `unnamed`. Two keys may
    get the same name (`a/b`, `a_b`); `monocontext.memory` keeps them apart."""
    return "".join(item if item.isalnum() or item in "-_." else "_" for item in key) or "unnamed"


def get_default_volume_name() -> str:
    """`rlm-data-USER-FOLDER`, for the current user and working directory."""
    parts = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in (getpass.getuser(), Path.cwd().name))
    return "-".join(["rlm-data", *(part or "none" for part in parts)])


def create_interpreter(
    timeout: float = 600, volume_name: str | None = None, auto_volume: bool = True, **options: Any
) -> Interpreter:
    """An interpreter. `auto_volume`: whether `get_default_volume_name()` is its default. `options`: more keywords."""
    name = volume_name or (get_default_volume_name() if auto_volume else None)
    return Interpreter(volume_name=name, timeout=timeout, **options)


def _refuse(prompt: object) -> str:
    raise LLMError("this interpreter has no language model: pass Interpreter(sub_lm=...)")


def _summarize(out: str) -> str:
    if len(out) <= STDOUT_CHARACTERS:
        return out
    return f'[Output: {len(out):,} chars, {len(out.splitlines()):,} lines]\nPrefix: "{out[:_PREFIX_CHARACTERS]}"'
