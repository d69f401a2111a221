"""The command line as its users run it: a process, watched from outside."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from slow.big_text import memory_bytes


@dataclass(frozen=True, slots=True)
class Place:
    """Where a context is to lie, and how to reach it."""

    url: str
    options: dict[str, str]

    @property
    def arguments(self) -> list[str]:
        return [part for name, value in self.options.items() for part in (f"--{name}", value)]

    @contextmanager
    def store(self) -> Iterator[Store]:
        store = open_store(self.url, **self.options)
        try:
            yield store
        finally:
            store.close()


@dataclass(slots=True)
class Ended:
    """A command that has run, or was killed."""

    code: int
    peak_bytes: int
    errors: str


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "monocontext", *arguments]


def run(*arguments: str, kill_when: Callable[[], bool] = lambda: False) -> Ended:
    """Run a command to its end, or kill it (-9) as soon as `kill_when()`; looks every 10 ms."""
    peak, none = 0, subprocess.DEVNULL
    process = subprocess.Popen(command(*arguments), stdin=none, stdout=none, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        while process.poll() is None:
            peak = max(peak, memory_bytes(process.pid))
            if kill_when():
                process.kill()
            time.sleep(0.01)
        return Ended(process.wait(), peak, process.stderr.read())
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
