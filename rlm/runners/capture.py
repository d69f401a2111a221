"""Capture what a cell prints, apart from what other threads of the process print.

While cells run, a router replaces `sys.stdout` and looks at the writing thread: threads of cells write to their own
buffer, all others to the stream that was there before. Output to file descriptor 1 (child processes) is not captured,
nor that of library code in threads that a cell starts; `print` there is, because the namespace has its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from rlm.context.excerpt import join_ends

SLACK = 200
"""The characters by which an output may exceed its limit before it is cut: the note on a cut takes about as many."""
NOTES_CHARACTERS = 2_000
"""The most characters of notes that a runner adds to the output of a cell, beyond the limit."""

_thread = threading.local()
_lock = threading.Lock()
_cells = 0
"""Cells that run now."""
_hosts: dict[str, TextIO] = {}
"""The streams that routers replaced last, by name."""


class Buffer:
    """A text stream that keeps its first and last `limit` characters and counts the others: bounded memory."""

    encoding = "utf-8"

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head: list[str] = []
        self._tail: list[str] = []
        self._head_room = limit
        self._tail_characters = 0
        self._lock = threading.Lock()
        self.total = 0
        """Characters written so far."""

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._lock:
            self.total += len(text)
            head, rest = text[: self._head_room], text[self._head_room :]
            if head:
                self._head.append(head)
                self._head_room -= len(head)
            if rest:
                self._tail.append(self._last(rest))
                self._tail_characters += len(self._tail[-1])
                if self._tail_characters > 2 * self._limit:
                    self._tail = [self._last("".join(self._tail))]
                    self._tail_characters = len(self._tail[0])
        return len(text)

    def _last(self, text: str) -> str:
        return text[max(0, len(text) - self._limit) :]

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Writes arrive at once."""

    def isatty(self) -> bool:
        return False

    def text(self, limit: int | None = None) -> str:
        """The text so far, or its head and tail if it exceeds `limit`, by default and at most the buffer's own."""
        limit = self._limit if limit is None else max(0, min(limit, self._limit))
        with self._lock:
            head, tail = "".join(self._head), "".join(self._tail)
            if self.total <= min(limit + SLACK, 2 * self._limit):
                return head + tail
            both = head + tail
            return join_ends(head[: limit - limit // 2], both[len(both) - limit // 2 :], self.total - limit)


@dataclass
class Router:
    """Stands in for `sys.stdout` or `sys.stderr` while cells run. Threads without a cell keep writing to `before`."""

    _name: str
    before: TextIO

    def _target(self) -> Any:
        return getattr(_thread, self._name, None) or self.before

    def write(self, text: str) -> int:
        return int(self._target().write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)


@contextmanager
def route_streams() -> Iterator[None]:
    """Inside, replace `sys.stdout` and `sys.stderr` by routers. For the thread that waits: a cell's may never end."""
    global _cells
    with _lock:
        _cells += 1
        for name in ("stdout", "stderr"):
            if not isinstance(stream := getattr(sys, name), Router):
                _hosts[name] = stream
                setattr(sys, name, Router(name, stream))
    try:
        yield
    finally:
        with _lock:
            _cells -= 1
            for name in ("stdout", "stderr"):
                if not _cells and isinstance(stream := getattr(sys, name), Router):
                    setattr(sys, name, stream.before)


@contextmanager
def capture_thread(out: Buffer, err: Buffer) -> Iterator[None]:
    """Inside, send the output of this thread from the routers to these buffers."""
    _thread.stdout, _thread.stderr = out, err
    try:
        yield
    finally:
        _thread.stdout = _thread.stderr = None


def redirection() -> Any:
    """The stream that a cell put in place of `sys.stdout`, as `redirect_stdout` does; None where it did not."""
    now = sys.stdout
    return None if isinstance(now, Router) or now is _hosts.get("stdout") else now
