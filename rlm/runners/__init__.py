"""Places where the model's code runs, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from rlm.errors import RunnerUnavailable
from rlm.runner import Runner
from rlm.subcalls import SubCalls

RUNNERS = ("subprocess", "local", "docker", "modal")


def check_runner(name: str) -> None:
    """Raise RunnerUnavailable unless there is a runner of this name for this system."""
    if name not in RUNNERS:
        raise RunnerUnavailable(f"no runner {name!r}; there are {', '.join(map(repr, RUNNERS))}")
    if name == "subprocess" and sys.platform != "linux":
        raise RunnerUnavailable(
            f"runner 'subprocess' confines with what Linux has, and this is {sys.platform}; to run the code of a model "
            f"with your own rights say --runner local"
        )


def make_runner(
    name: str,
    context: object,
    subcalls: SubCalls,
    *,
    cell_timeout: float | None,
    output_limit: int,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    **options: Any,
) -> Runner:
    """A fresh runner with `context` in its namespace. Raises RunnerUnavailable.

    `functions`: more names for the namespace, which run here and not where the cells do. `options` are those of the
    runner: `limits` and `ways` of `subprocess`, `image` of `docker`.
    """
    check_runner(name)
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
        case _:
            from rlm.runners.process import ProcessRunner

            return ProcessRunner(context, subcalls, **given)
