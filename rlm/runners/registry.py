"""Check whether a runner can work on this system, and make one by its name."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from rlm.errors import RunnerUnavailable
from rlm.models.log import INFO, log
from rlm.runners.pyodide import what_is_missing
from rlm.runners.runner import NothingConfines, Runner

if TYPE_CHECKING:
    from rlm.calls.subcalls import SubCalls

RUNNERS = ("confined", "subprocess", "wasm", "local", "docker")
"""The runners that need no more than their name; `sandbox` needs `make` in its options."""
# Options of one of the two runners that `confined` stands for, which the other does not take.
_ONLY_SUBPROCESS, _ONLY_WASM = ("limits", "ways"), ("pyodide", "memory_bytes")


def check_runner(name: str, options: Mapping[str, Any] | None = None) -> None:
    """Raise RunnerUnavailable unless this system can have the runner of this name. `options`: its own."""
    own = options or {}
    if name == "sandbox":
        if not callable(own.get("make")):
            raise RunnerUnavailable("runner 'sandbox' needs runner_options={'make': callable}; see docs/runners.md")
    elif name not in RUNNERS:
        raise RunnerUnavailable(f"no runner {name!r}: choose from {', '.join(map(repr, RUNNERS))}")
    elif name == "wasm":
        if missing := what_is_missing(own.get("pyodide")):
            raise RunnerUnavailable(f"runner 'wasm': {missing}")
    elif name in ("confined", "subprocess") and not _is_linux():
        missing = what_is_missing(own.get("pyodide")) if name == "confined" else ""
        if name == "confined" and not missing:
            return
        hint = f"--runner wasm is not available either: there is {missing}" if missing else "use --runner wasm"
        raise RunnerUnavailable(
            f"runner 'subprocess' needs Linux, and this system is {sys.platform}; {hint}; or use --runner docker, or, "
            "to run the code of a model with your own rights, --runner local"
        )


def _is_linux() -> bool:
    return sys.platform == "linux" and hasattr(os, "fork")  # a Python in WebAssembly lacks it


def make_runner(
    name: str, context: object, subcalls: SubCalls, *, cell_timeout: float | None, output_limit: int,
    names: Mapping[str, object] | None = None, scratch: str | None = None, **options: Any,
) -> Runner:  # fmt: skip
    """A fresh runner with `context` in its namespace. `confined` is `subprocess`, or `wasm` if that cannot work here.

    `names`: more of the namespace. Functions run in this process; lazy texts stay lazy; other values must be plain
    data, but for `local`. `scratch`: a folder that cells may write to; in `wasm` and `local` they make it. `options`
    are those of the runner: `limits` of `subprocess`, `pyodide` of `wasm`, `image` of `docker`, `make` of `sandbox`.
    Raises RunnerUnavailable.
    """
    shared: Any = {"cell_timeout": cell_timeout, "output_limit": output_limit, "names": names}
    if name == "local":
        from rlm.runners.local import LocalRunner

        return LocalRunner(context, subcalls, **shared, **options)
    check_runner(name, options)
    if name == "docker":
        from rlm.runners.docker import DockerRunner

        return DockerRunner(context, subcalls, scratch=scratch, **shared, **options)
    if name == "sandbox":
        from rlm.runners.sandbox import SandboxRunner

        return SandboxRunner(context, subcalls, scratch=scratch, **shared, **options)
    if name == "subprocess" or (name == "confined" and _is_linux()):
        from rlm.runners.process import ProcessRunner

        own = _without(_ONLY_WASM, options) if name == "confined" else options
        try:
            return ProcessRunner(context, subcalls, scratch=scratch, **shared, **own)
        except NothingConfines as exc:
            if name == "subprocess":
                raise
            if missing := what_is_missing(options.get("pyodide")):
                raise RunnerUnavailable(f"{exc}; --runner wasm is not available either: there is {missing}") from exc
    from rlm.runners.wasm import WasmRunner

    if name == "confined":
        log(INFO, "nothing here confines a process; code runs in WebAssembly")
        options = _without(_ONLY_SUBPROCESS, options)
    return WasmRunner(context, subcalls, **shared, **options)


def _without(names: Collection[str], options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}
