"""Threads that a test's own code began: the servers that tests share begin and end theirs meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Begun(list[threading.Thread]):
    """What the thread of the test began, and what these began in turn."""

    def alive(self) -> list[threading.Thread]:
        return [thread for thread in self if thread.is_alive()]

    def wait_for_the_end(self, seconds: float = 60.0) -> None:
        """Wait until all have ended; only a hang reaches the limit."""
        end = time.monotonic() + seconds
        while self.alive():
            assert time.monotonic() < end, self.alive()
            time.sleep(0.005)


@contextmanager
def begun_threads() -> Iterator[Begun]:
    """Note the threads that are begun in the block, by this thread or by one that is noted."""
    begun, own, start = Begun(), threading.current_thread(), threading.Thread.start

    def noted(self: threading.Thread) -> None:
        if (starter := threading.current_thread()) is own or starter in begun:
            begun.append(self)
        start(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", noted)
        yield begun
