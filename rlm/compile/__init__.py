"""Compile new sessions of agents into the brief with which the next one begins. An edge: it imports `monocontext`.

| file | contents |
|---|---|
| `compiling.py` | one run: find new sessions, digest them, merge the brief, publish |
| `digest.py` | digest one session by a model or by rules: statements with their turns |
| `state.py` | the digested sessions, committed by compare-and-swap |
| `lease.py` | let one machine compile at a time |
| `meter.py` | record the costs of calls, and keep the limits of a run and of a day |
| `watching.py` | compile all new sessions, on any number of machines |
| `webhook_listener.py` | wake a watcher by HTTP |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.compile.compiling import BRIEF_CHARACTERS, CompileResult, compile_sessions
    from rlm.compile.watching import watch_sessions

__all__ = ["BRIEF_CHARACTERS", "CompileResult", "compile_sessions", "watch_sessions"]


def __getattr__(name: str) -> object:
    # The command line imports its part of this package at every start.
    if name in __all__:
        module = "watching" if name == "watch_sessions" else "compiling"
        return getattr(import_module(f"rlm.compile.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
