"""Make the runner of a name: the place where a model's code runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rlm.errors import RunnerUnavailable
from rlm.models.log import INFO, log
from rlm.runners.pyodide import what_is_missing
from rlm.runners.runner import NothingConfines, Runner

if TYPE_CHECKING:
    from rlm.calls.subcalls import SubCalls

RUNNERS = ("confined", "subprocess", "wasm", "local", "docker", "modal")
"""The runners that need no more than their name; `sandbox` needs `make` in its options."""
_OF_SUBPROCESS, _OF_WASM = ("limits", "ways"), ("pyodide", "memory_bytes")
"""Options that `confined` gives to the one of the two that takes them."""


def check_runner(name: str, options: Mapping[str, Any] | None = None) -> None:
    """Raise RunnerUnavailable unless there is a runner of this name for this system. `options`: those of the runner."""
    pyodide = (options or {}).get("pyodide")
    if name == "sandbox":
        if not callable((options or {}).get("make")):
            raise RunnerUnavailable(
                "runner 'sandbox' needs runner_options={'make': ...}, a callable; see docs/runners.md"
            )
        return
    if name not in RUNNERS:
        raise RunnerUnavailable(f"no runner {name!r}; there are {', '.join(map(repr, RUNNERS))}")
    if name == "wasm" and (lacks := what_is_missing(pyodide)):
        raise RunnerUnavailable(f"runner 'wasm': {lacks}")
    if name not in ("confined", "subprocess") or not (lacks := _missing_of_linux()):
        return
    if name == "confined" and not (brings := what_is_missing(pyodide)):
        return
    wasm = f"for --runner wasm there is {brings}" if name == "confined" else "say --runner wasm"
    raise RunnerUnavailable(
        f"runner 'subprocess' confines with what Linux has, and here is no {lacks}; {wasm}; or say --runner docker, "
        f"or, to run the code of a model with your own rights, --runner local"
    )


def _missing_of_linux() -> str:
    """The missing requirements of the runner `subprocess`; empty if none is missing."""
    if sys.platform != "linux":
        return f"Linux (this is {sys.platform})"
    return "module resource" if find_spec("resource") is None else "" if hasattr(os, "fork") else "os.fork"


def make_runner(
    name: str,
    context: object,
    subcalls: SubCalls,
    *,
    cell_timeout: float | None,
    output_limit: int,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    scratch: str | None = None,
    **options: Any,
) -> Runner:
    """A fresh runner with `context` in its namespace. Raises RunnerUnavailable.

    `functions`: more names for the namespace; they run in this process, not where the cells do. `scratch`: a path that
    cells may write below, where `subprocess` confines by namespaces; the others have none. `options` are those of the
    runner: `limits` and `ways` of `subprocess`, `pyodide` of `wasm`, `image` of `docker`, `make` of `sandbox`.
    `confined` is `subprocess`, and where nothing of that confines, `wasm`.
    """
    check_runner(name, options)
    given: dict[str, Any] = {
        "cell_timeout": cell_timeout, "output_limit": output_limit, "functions": functions, **options,
    }  # fmt: skip
    match name:
        case "local":
            from rlm.runners.local import LocalRunner

            return LocalRunner(context, subcalls, **given)
        case "docker":
            from rlm.runners.docker import DockerRunner

            return DockerRunner(context, subcalls, **given)
        case "modal":
            from rlm.runners.modal import ModalRunner

            return ModalRunner(context, subcalls, **given)
        case "sandbox":
            from rlm.runners.sandbox import SandboxRunner

            return SandboxRunner(context, subcalls, **given)
        case "wasm":
            return _make_wasm(context, subcalls, given)
        case "confined" if lacks := _missing_of_linux():
            log(INFO, "no %s here to confine a process with; code runs in WebAssembly", lacks)
            return _make_wasm(context, subcalls, _without(_OF_SUBPROCESS, given))
        case _:
            from rlm.runners.process import ProcessRunner

            try:
                left_out = _OF_WASM if name == "confined" else ()
                return ProcessRunner(context, subcalls, scratch=scratch, **_without(left_out, given))
            except NothingConfines as exc:
                if name == "subprocess":
                    raise
                if lacks := what_is_missing(options.get("pyodide")):
                    raise RunnerUnavailable(f"{exc}; for --runner wasm there is {lacks}") from exc
            log(INFO, "nothing here confines a process; code runs in WebAssembly")
            return _make_wasm(context, subcalls, _without(_OF_SUBPROCESS, given))


def _without(names: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


def _make_wasm(context: object, subcalls: SubCalls, given: dict[str, Any]) -> Runner:
    from rlm.runners.wasm import WasmRunner

    return WasmRunner(context, subcalls, **given)
