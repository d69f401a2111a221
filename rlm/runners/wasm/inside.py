"""Run cells inside the WebAssembly module, once no object of JavaScript is left. Never imported by the host."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from types import FrameType, ModuleType
from typing import Any

from rlm.runners import worker
from rlm.runners.link import WorkerLink

ABSENT = ("google_crc32c", "zstandard")  # compiled libraries that check and compress stored data; the host does that
_JAVASCRIPT = ("js", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core", "asyncio")
"""Packages that contain objects of JavaScript; asyncio contains Pyodide's event loop."""


class OneThreadLink(WorkerLink):
    """The link of a process with one thread, whose reads block."""

    def poll_interrupt(self) -> bool:
        """Whether the host wants the running cell to end, according to the messages read so far."""
        return self.is_interrupt_wanted


class PolledThread(worker.MainThread):
    """Runs cells where the system has no timer: the interpreter raises the signal some fifty times a second instead."""

    _due_at = 0.0

    def _set_timer(self, seconds: float) -> None:
        self._due_at = time.monotonic() + seconds

    def _on_timer(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() >= self._due_at:
            super()._on_timer(number, frame)


class _Absent(ModuleType):
    """A stand-in for a missing module: importing it works, using it raises ImportError."""

    def __getattr__(self, name: str) -> Any:
        raise ImportError(f"{self.__name__} is not in the sandbox")


def main() -> None:
    """Run the worker over /dev/channel. Once that is open, the module can ask only for files and clocks."""
    sys.modules.update({name: _Absent(name) for name in ABSENT})
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    worker.prepare()
    forget_javascript()
    channel = os.open("/dev/channel", os.O_RDWR)
    link = OneThreadLink(channel, os.dup(channel))
    worker.main(PolledThread(link), confinement="wasm")


def forget_javascript() -> None:
    """Remove all objects of JavaScript and all ways to get one. Raises RuntimeError if an object is left."""
    import _asyncio

    import js  # type: ignore[import-not-found]

    proxy_type = type(js)
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]  # without Pyodide's, which hold its objects
    for name in [name for name in sys.modules if name.partition(".")[0] in _JAVASCRIPT]:
        del sys.modules[name]
    del js
    _asyncio._set_running_loop(None)
    for holder in gc.get_objects():  # the collector tracks what refers to them, not the objects themselves
        if type(holder) is dict:
            for key in [key for key, value in list(holder.items()) if issubclass(type(value), proxy_type)]:
                del holder[key]
        elif str(type(holder).__module__).startswith("_pyodide") and hasattr(holder, "__dict__"):
            vars(holder).clear()  # its loaders of modules
    gc.collect()
    remaining = [item for item in gc.get_objects() if issubclass(type(item), proxy_type)]
    if remaining:
        raise RuntimeError(f"JavaScript objects are still reachable: {remaining[:5]}")
