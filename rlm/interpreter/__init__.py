"""Run code in a sandbox whose `/data` is a prefix of a store, in the shape of fleet-rlm's interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.interpreter.interpreter import FinalOutput, Interpreter, create_interpreter

__all__ = ["FinalOutput", "Interpreter", "create_interpreter"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from rlm.interpreter import interpreter  # not for a worker, where it cannot be imported

        return getattr(interpreter, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
