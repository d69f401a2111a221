"""New sessions of agents, digested into the brief that the next one begins with. An edge: it knows `monocontext`.

| file | holds |
|---|---|
| `compiling.py` | one run: what is new, digests, the brief, and what is published |
| `digest.py` | one session: by a model or by rules, each statement with the turns that it rests on |
| `state.py` | what has been digested, committed by compare-and-swap |
| `lease.py` | one machine pays |
| `command.py` | `rlm compile` |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.compile.compiling import BRIEF_CHARACTERS, Compiled, compile_sessions

__all__ = ["BRIEF_CHARACTERS", "Compiled", "compile_sessions"]


def __getattr__(name: str) -> object:
    # The command line imports its part of this package at every start.
    if name in __all__:
        return getattr(import_module("rlm.compile.compiling"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
