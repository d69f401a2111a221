"""Share threads among all contexts of a process: many that fetch, one that makes room for text, helpers that decode.

The threads are made on first use, and end once no context holds the crew any more: after the last close. Freed memory
is then given back to the system, and again once the closed contexts are forgotten: a thousand of them hold 20 MB.

One thread makes room, because the C library gives each thread that allocates a heap of its own, and frames that leave
the cache free room in one heap only: a pass over 1 GB and 1000 slices, with a cache of 64 MiB, took 278 MiB of memory
with every thread decoding into room of its own, 213 with two decoders and the caller, and takes 142 so. Helpers fill
that room, on as many cores as there are, and the one makes room for the next answer before they run out of work.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast
from weakref import finalize, ref

from monocontext.engine.fetch.threads import DaemonThreads
from monocontext.engine.malloc import give_back_memory

MAX_FETCHING = 256
"""Threads that fetch for all contexts together: as many connections as four of them have at most."""

LOCK = threading.RLock()
"""Of the crew and of every reader that it works for. One, since the collector may close an iterator of one reader while
another changes its state: with a lock each, two threads could wait for each other."""

A = TypeVar("A")
T = TypeVar("T")
Begin = Callable[[], Sequence[Callable[[], T]]]
"""Makes room for what is large, and returns works that fill it: these allocate nothing large."""
Done = Callable[[Callable[[], list[T]]], None]
"""Is told how to get what came of works: what they returned, in order, or an error, which is raised."""


class Freed:
    """What closed contexts still hold of their crew: memory is given back after the last of them."""

    def __init__(self) -> None:
        finalize(self, give_back_memory).atexit = False


class Crew:
    """The threads. All are called under `LOCK`, `decode` takes it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._helpers = cores() - 1
        self.fetching = DaemonThreads(MAX_FETCHING, "monocontext")
        self.decoding = DaemonThreads(1, "monocontext-decode")
        self._helping = DaemonThreads(self._helpers, "monocontext-help")
        self._waiting: deque[tuple[Begin[Any], Done[Any]]] = deque()
        """Answers for which room is to be made."""
        self._left: deque[Callable[[], None]] = deque()
        """Works for which it was made."""
        self.freed = Freed()
        finalize(self, give_back_memory).atexit = False

    def decode(self, begin: Begin[T], done: Done[T]) -> None:
        """Make room by `begin` in the one thread for that, have the works that it returns carried out on all cores, and
        tell `done`, in some thread, how to get what they return, in order, or the first error. Not under `LOCK`."""
        self._waiting.append((begin, done))
        with LOCK:
            is_done_here = not self.decoding.submit(self._decode)
        if is_done_here:
            self._decode()

    def _decode(self) -> None:
        """Until nothing is left: make room for one more answer where the helpers would soon have nothing, or help."""
        while True:
            if len(self._left) <= self._helpers and (answer := _pop(self._waiting)):
                works = _begun(*answer)
                self._left.extend(works)
                with LOCK:
                    self._helping.submit_all([self._help] * min(self._helpers, len(works) - 1))
            elif work := _pop(self._left):
                work()
            else:
                return

    def _help(self) -> None:
        while work := _pop(self._left):
            work()


def _begun(begin: Begin[T], done: Done[T]) -> list[Callable[[], None]]:
    """Works that never raise; the last of them to end tells `done`. None if there is nothing to do: it is told then."""
    errors: list[BaseException] = []

    def result() -> list[T]:
        if errors:
            raise errors[0]
        return cast(list[T], values)

    try:
        works = begin()
    except BaseException as error:  # handed to whoever waits
        errors.append(error)
        works = ()
    values: list[T | None] = [None] * len(works)
    unfinished = list(range(len(works)))

    def carry(number: int, work: Callable[[], T]) -> None:
        try:
            if not errors:
                values[number] = work()
        except BaseException as error:  # handed to whoever waits
            errors.append(error)
        if unfinished.pop() == 0:  # one thread gets the last one
            done(result)

    if not works:
        done(result)
    return [partial(carry, number, work) for number, work in enumerate(works)]


_current: Callable[[], Crew | None] = lambda: None  # noqa: E731


def hire(mine: Crew | None = None) -> Crew:
    """The crew of this process, which lasts as long as anybody holds it; `mine` if it is that. Called under `LOCK`."""
    global _current
    for crew in (mine, _current()):
        if crew is not None and crew.pid == os.getpid():  # threads do not come along to the child of a fork
            return crew
    made = Crew()
    _current = ref(made)
    return made


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pop(waiting: deque[A]) -> A | None:
    try:
        return waiting.popleft()
    except IndexError:  # another took the last one
        return None
