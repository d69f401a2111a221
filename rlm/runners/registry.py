"""Check and make a runner, the place where a model's code runs, by its name."""

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
_ONLY_SUBPROCESS, _ONLY_WASM = ("limits", "ways"), ("pyodide", "memory_bytes")
"""Options of `confined` for just one of the two runners that it may be."""


def check_runner(name: str, options: Mapping[str, Any] | None = None) -> None:
    """Raise RunnerUnavailable unless this system can have the runner of this name. `options`: its own."""
    value = options or {}
    if name == "sandbox":
        if not callable(value.get("make")):
            raise RunnerUnavailable(
                "runner 'sandbox' needs runner_options={'make': ...}, a callable; see docs/runners.md"
            )
    elif name not in RUNNERS:
        raise RunnerUnavailable(f"no runner {name!r}; there are {', '.join(map(repr, RUNNERS))}")
    elif name == "wasm":
        if lacks := what_is_missing(value.get("pyodide")):
            raise RunnerUnavailable(f"runner 'wasm': {lacks}")
    elif name in ("confined", "subprocess") and (lacks := _missing_of_linux()):
        hint = "use --runner wasm"
        if name == "confined":
            if not (wasm_lacks := what_is_missing(value.get("pyodide"))):
                return
            hint = f"--runner wasm is not available either: there is {wasm_lacks}"
        raise RunnerUnavailable(
            f"runner 'subprocess' needs {lacks}, which this system ({sys.platform}) lacks; {hint}; or use --runner "
            f"docker, or, to run the code of a model with your own rights, --runner local"
        )


def _missing_of_linux() -> str:
    """The missing requirement of the runner `subprocess`; empty if none is missing."""
    if sys.platform != "linux":
        return "Linux"
    if find_spec("resource") is None:
        return "the module resource"
    return "" if hasattr(os, "fork") else "os.fork"


def make_runner(
    name: str,
    context: object,
    subcalls: SubCalls,
    *,
    cell_timeout: float | None,
    output_limit: int,
    names: Mapping[str, object] | None = None,
    scratch: str | None = None,
    **options: Any,
) -> Runner:
    """A fresh runner with `context` in its namespace. `confined` is `subprocess`, or `wasm` if that cannot work here.

    `names`: more names for the namespace. Functions run in this process, not where the cells do; lazy texts stay lazy;
    other values must be plain data, but for `local`. `scratch`: a path that
    cells may write below, for `subprocess` alone, and only if it confines by namespaces. `options` are those of the
    runner, such as `limits` of `subprocess`, `pyodide` of `wasm`, `image` of `docker`, `make` of `sandbox`.

    Raises RunnerUnavailable.
    """
    check_runner(name, options)
    options |= {"cell_timeout": cell_timeout, "output_limit": output_limit, "names": names}
    if name == "confined":
        return _make_confined(context, subcalls, scratch, options)
    if name in ("subprocess", "docker"):
        options["scratch"] = scratch
    return _load_class(name)(context, subcalls, **options)


def _make_confined(context: object, subcalls: SubCalls, scratch: str | None, options: dict[str, Any]) -> Runner:
    for_wasm = {name: value for name, value in options.items() if name not in _ONLY_SUBPROCESS}
    for_subprocess = {name: value for name, value in options.items() if name not in _ONLY_WASM}
    if lacks := _missing_of_linux():
        log(INFO, "no process can be confined without %s; code runs in WebAssembly", lacks)
        return _load_class("wasm")(context, subcalls, **for_wasm)
    try:
        return _load_class("subprocess")(context, subcalls, scratch=scratch, **for_subprocess)
    except NothingConfines as exc:
        if lacks := what_is_missing(options.get("pyodide")):
            raise RunnerUnavailable(f"{exc}; --runner wasm is not available either: there is {lacks}") from exc
    log(INFO, "nothing here confines a process; code runs in WebAssembly")
    return _load_class("wasm")(context, subcalls, **for_wasm)


def _load_class(name: str) -> Callable[..., Runner]:
    """The class of a runner; its module is imported only where it is used."""
    if name == "local":
        from rlm.runners.local import LocalRunner

        return LocalRunner
    if name == "wasm":
        from rlm.runners.wasm import WasmRunner

        return WasmRunner
    if name == "docker":
        from rlm.runners.docker import DockerRunner

        return DockerRunner
    if name == "sandbox":
        from rlm.runners.sandbox import SandboxRunner

        return SandboxRunner
    if name == "modal":
        from rlm.runners.modal import ModalRunner

        return ModalRunner
    from rlm.runners.process import ProcessRunner

    return ProcessRunner
