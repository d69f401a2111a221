"""Places where the model's code runs, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.errors import RunnerUnavailable
from rlm.runner import Runner
from rlm.runners.local import LocalRunner
from rlm.subcalls import SubCalls

_LATER = ("subprocess", "docker", "modal")


def check_runner(name: str) -> None:
    """Raise RunnerUnavailable unless there is a runner of this name."""
    if name in _LATER:
        raise RunnerUnavailable(f"runner {name!r} comes later; there is only 'local', which is no sandbox")
    if name != "local":
        raise RunnerUnavailable(f"no runner {name!r}; there is 'local'")


def make_runner(
    name: str,
    context: object,
    subcalls: SubCalls,
    *,
    cell_timeout: float | None,
    output_limit: int,
    functions: Mapping[str, Any] | None = None,
) -> Runner:
    """A fresh runner with `context` in its namespace. Raises RunnerUnavailable.

    `functions`: more names for the namespace, which run here and not where the cells do.
    """
    check_runner(name)
    return LocalRunner(context, subcalls, cell_timeout=cell_timeout, output_limit=output_limit, functions=functions)
