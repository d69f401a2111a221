"""Run cells inside the WebAssembly module, after JavaScript is forgotten. Never imported by the host."""

from __future__ import annotations

import gc
import importlib
import os
import random
import selectors
import signal
import sys
import time
from collections.abc import Iterable
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from types import FrameType, ModuleType
from typing import Any

from rlm.runners import worker
from rlm.runners.link import WorkerLink

ABSENT = ("google_crc32c", "zstandard")
"""Compiled libraries that check and compress stored data; the host does that."""
_NAP_SECONDS = 0.05
"""The longest sleep before the event loop looks for messages again."""
_JAVASCRIPT = ("js", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core", "asyncio")
"""Packages that contain objects of JavaScript; asyncio contains Pyodide's event loop."""
_plain_asyncio: dict[str, ModuleType] = {}
"""The modules of asyncio without that loop, if they were imported ahead."""


class OneThreadLink(WorkerLink):
    """The link of a process with one thread, whose reads block."""

    def interrupted(self) -> bool:
        """Whether the host wants the running cell to end, by the messages that were read so far."""
        return self._is_interrupted


class PolledThread(worker.MainThread):
    """Runs cells where the system has no timer: Python's steps raise the signal some fifty times a second."""

    _due_at = 0.0

    def _set_timer(self, seconds: float) -> None:
        self._due_at = time.monotonic() + seconds

    def _on_timer(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() >= self._due_at:
            super()._on_timer(number, frame)


class _Sleep(selectors.SelectSelector):
    """A selector without files, which only waits."""

    def select(self, timeout: float | None = None) -> list[Any]:
        time.sleep(_NAP_SECONDS if timeout is None else max(0.0, min(timeout, _NAP_SECONDS)))
        return []


class _Absent(ModuleType):
    """A module that is not there; it can be imported, but not used."""

    def __getattr__(self, name: str) -> Any:
        raise ImportError(f"{self.__name__} is not in the sandbox")


def import_ahead(modules: Iterable[str]) -> None:
    """Import what workers need, for a snapshot of this module's memory."""
    _leave_out_absent()
    for name in modules:
        importlib.import_module(name)
    patched = _take_modules(("asyncio",))
    importlib.import_module("asyncio")
    _plain_asyncio.update(_take_modules(("asyncio",)))
    sys.modules.update(patched)


def main() -> None:
    """Run the worker over /dev/channel. Once that is open, the module can ask only for files and clocks."""
    _leave_out_absent()
    _reseed()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    worker.prepare()
    forget_javascript()
    channel = os.open("/dev/channel", os.O_RDWR)
    link = OneThreadLink(channel, os.dup(channel))
    worker.main(link, PolledThread(link), {"confinement": "wasm"})


def forget_javascript() -> None:
    """Remove all objects of JavaScript and all ways to get one. Raises RuntimeError if one is left."""
    import js  # type: ignore[import-not-found]

    kind = type(js)
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]
    _take_modules(_JAVASCRIPT)
    del js
    _use_plain_asyncio()
    for holder in gc.get_objects():  # the collector tracks what refers to them, not the objects themselves
        if type(holder) is dict:
            for key in [key for key, value in list(holder.items()) if issubclass(type(value), kind)]:
                del holder[key]
        elif str(type(holder).__module__).startswith("_pyodide") and hasattr(holder, "__dict__"):
            vars(holder).clear()  # its loaders of modules
    gc.collect()
    remaining = [item for item in gc.get_objects() if issubclass(type(item), kind)]
    if remaining:
        raise RuntimeError(f"JavaScript objects are still reachable: {remaining[:5]}")


def _leave_out_absent() -> None:
    sys.modules.update({name: _Absent(name) for name in ABSENT if name not in sys.modules})


def _reseed() -> None:
    """Seed random generators again: other workers may have begun with a copy of the same memory."""
    for generator in gc.get_objects():
        if isinstance(generator, random.Random):
            generator.seed()


def _take_modules(packages: tuple[str, ...]) -> dict[str, ModuleType]:
    """Remove the modules of packages from the imported ones."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in packages}


def _use_plain_asyncio() -> None:
    """Use asyncio without Pyodide's patches, with a loop that has timers and callbacks, but no sockets or threads."""
    sys.modules.update(_plain_asyncio)
    import asyncio

    class HostLoop(asyncio.SelectorEventLoop):
        def __init__(self) -> None:
            super().__init__(_Sleep())

        def _make_self_pipe(self) -> None:
            pass

        def _close_self_pipe(self) -> None:
            pass

        def _write_to_self(self) -> None:
            pass

    asyncio._set_running_loop(None)
    asyncio.new_event_loop = asyncio.events.new_event_loop = HostLoop
