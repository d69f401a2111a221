"""An event loop of asyncio for the WebAssembly module: it has timers and callbacks, but no sockets and no threads.

Imported after Pyodide's asyncio is forgotten: `asyncio` is then Python's own.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import Any

_NAP_SECONDS = 0.05  # the longest sleep before the loop looks for messages of the host again


class _Sleep(selectors.SelectSelector):
    """A selector without files, which only waits."""

    def select(self, timeout: float | None = None) -> list[Any]:
        time.sleep(_NAP_SECONDS if timeout is None else max(0.0, min(timeout, _NAP_SECONDS)))
        return []


class _HostLoop(asyncio.SelectorEventLoop):
    """A loop without the pair of sockets by which threads wake one: the module has neither. Overriding these methods is
    not public, but cells would get a false `socket.socketpair` too, and asyncio offers no other way."""

    def __init__(self) -> None:
        super().__init__(_Sleep())

    def _make_self_pipe(self) -> None:
        pass

    _close_self_pipe = _write_to_self = _make_self_pipe


def install() -> None:
    """Let `asyncio.run` and `asyncio.new_event_loop` make such loops: Python 3.14 deprecates policies."""
    asyncio._set_running_loop(None)
    asyncio.new_event_loop = asyncio.events.new_event_loop = _HostLoop
