"""Check whether a runner can work on this system, and make one by its name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlm.errors import RunnerUnavailable
from rlm.models.log import INFO, log
from rlm.runners.pyodide import what_is_missing
from rlm.runners.runner import NothingConfines, Runner

if TYPE_CHECKING:
    from rlm.calls.subcalls import SubCalls

RUNNERS = ("confined", "subprocess", "wasm", "local", "docker")
"""The runners that need no more than their name; `sandbox` needs `make` in its options."""
# `confined` accepts the options of both its runners, and drops those that the runner it becomes does not have.
_ONLY_SUBPROCESS = ("limits", "mechanisms")
_ONLY_WASM = ("pyodide", "memory_bytes")


def check_runner(name: str, options: Mapping[str, Any] | None = None) -> None:
    """Raise RunnerUnavailable if `name` is no runner or cannot work on this system. `options`: its own."""
    own = options or {}
    match name:
        case "sandbox":
            if not callable(own.get("make")):
                raise RunnerUnavailable("runner 'sandbox' needs runner_options={'make': callable}; see docs/runners.md")
        case "wasm":
            if missing := what_is_missing(own.get("pyodide")):
                raise RunnerUnavailable(f"runner 'wasm': {missing}")
        case "confined" if not _is_linux():
            if missing := what_is_missing(own.get("pyodide")):
                raise _needs_linux(f"--runner wasm is not available either: there is {missing}")
        case "subprocess" if not _is_linux():
            raise _needs_linux("use --runner wasm")
        case _ if name not in RUNNERS:
            raise RunnerUnavailable(f"no runner {name!r}: choose from {', '.join(map(repr, RUNNERS))}")


def _needs_linux(hint: str) -> RunnerUnavailable:
    return RunnerUnavailable(
        f"runner 'subprocess' needs Linux, and this system is {sys.platform}; {hint}; or use --runner docker, or "
        "--runner local, which runs the model's code with your own rights"
    )


def _is_linux() -> bool:
    return sys.platform == "linux" and hasattr(os, "fork")  # a Python in WebAssembly lacks it


def make_runner(
    name: str, context: object, subcalls: SubCalls, *, cell_timeout: float | None, output_limit: int,
    names: Mapping[str, object] | None = None, scratch: str | None = None, **options: Any,
) -> Runner:  # fmt: skip
    """Start a runner with `context` in its namespace. `confined` is `subprocess`, or `wasm` where that cannot work.

    `names`: more names for the namespace. Functions run in this process, lazy texts stay lazy, and other values must be
    plain data unless the runner is `local`. `scratch`: a folder that cells may write to; `wasm` and `local` ignore it,
    since their cells can create any folder. `options`: those of the runner, such as `limits` for `subprocess`,
    `pyodide` for `wasm`, `image` for `docker` and `make` for `sandbox`. Raises RunnerUnavailable.
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

        own = {key: value for key, value in options.items() if name == "subprocess" or key not in _ONLY_WASM}
        try:
            return ProcessRunner(context, subcalls, scratch=scratch, **shared, **own)
        except NothingConfines as exc:
            if name == "subprocess":
                raise
            if missing := what_is_missing(options.get("pyodide")):
                raise RunnerUnavailable(f"{exc}; --runner wasm is not available either: there is {missing}") from exc
    from rlm.runners.wasm import WasmRunner

    if name == "confined":
        log(INFO, "nothing can confine a process here; code runs in WebAssembly")
        options = {key: value for key, value in options.items() if key not in _ONLY_SUBPROCESS}
    return WasmRunner(context, subcalls, **shared, **options)
