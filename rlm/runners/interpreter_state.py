"""Repair the interpreter of a worker after a cell that changed it, and tell whether it is still usable."""

from __future__ import annotations

import builtins
import gc
import signal
import sys
from typing import Any

from rlm.runners.cell_thread import Router


class InterpreterState:
    """The state of a worker's interpreter before its first cell."""

    def __init__(self) -> None:
        self._builtins: dict[str, Any] = dict(vars(builtins))
        self._modules = frozenset(name for name, module in sys.modules.items() if module is not None)
        lists: list[list[Any]] = [sys.path, sys.meta_path, sys.path_hooks]
        self._lists = [(paths, tuple(paths)) for paths in lists]
        self._recursion_limit = sys.getrecursionlimit()
        self._streams = {"stdout": sys.stdout, "stderr": sys.stderr}

    def repair(self) -> None:
        """Restore builtins, module search paths, the recursion limit and streams; end tracing; enable `gc`."""
        if sys.getrecursionlimit() < self._recursion_limit:
            sys.setrecursionlimit(self._recursion_limit)
        vars(builtins).update(self._builtins)
        for paths, before in self._lists:
            paths.extend([item for item in before if item not in paths])
        sys.settrace(None)
        sys.setprofile(None)
        gc.enable()
        for name, stream in self._streams.items():
            if not isinstance(getattr(sys, name, None), Router):
                setattr(sys, name, stream)
        if sys.platform != "emscripten":  # WebAssembly has no such mask
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

    def is_broken(self) -> bool:
        """Whether a cell blocked a module (None in `sys.modules`), or removed more than a quarter of the modules."""
        is_blocked = any(name in sys.modules and sys.modules[name] is None for name in self._modules)
        gone = sum(name not in sys.modules for name in self._modules)
        return is_blocked or gone > len(self._modules) // 4
