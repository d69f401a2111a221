"""Run code in a sandbox whose folder `/data` is kept in a store, with the interface of fleet-rlm's interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.interpreter.interpreter import FinalOutput, Interpreter, create_interpreter

__all__ = ["FinalOutput", "Interpreter", "create_interpreter"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from rlm.interpreter import interpreter  # late: a worker imports this package, but has no stores

        return getattr(interpreter, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
