"""Interrupts at random moments of reads, searches, opens and appends: what comes after them is right, and soon.

A read that is interrupted may have registered what it would fetch, counted bytes, taken a connection. The next read
must find none of it in its way.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from monocontext import Monocontext, append, publish, regex
from monocontext.engine.fetch.workers import LOCK
from monocontext.stores.memory import forget
from monocontext.testing import S3StandIn

from .gauges import at_rest, connections, open_sockets, pool
from .interrupting import WAYS, Interrupted, Interrupter, soon

TEXT = "".join(f"line {number} of é漢😀 {number * 7919 % 100_003:x}\n" for number in range(4_000))
PIECE = "appended line {}\n"

Reads = dict[str, Callable[[Any, Random], Any]]
READS: Reads = {
    "slice": lambda text, random: _slice(text, random, 200),
    "long slice": lambda text, random: _slice(text, random, 60_000),
    "scan": lambda text, random: "".join(text.chunks(9_000)) if isinstance(text, Monocontext) else text,
    "iterate": lambda text, random: sum(1 for _ in zip(text, range(3_000), strict=False)),
    "find": lambda text, random: text.find(f"line {random.randrange(5_000)} of"),
    "count": lambda text, random: text.count("of é"),
    "regex": lambda text, random: [m.span() for m in regex.finditer(rf"line {random.randrange(99)}\d of", text)],
    "lines": lambda text, random: [text.splitlines()[random.randrange(4_000)] for _ in range(5)],
}


def _slice(text: Any, random: Random, most: int) -> str:
    start = random.randrange(len(TEXT))
    return str(text[start : start + random.randrange(1, most)])


class Opened:
    """A text that is read as it is."""

    def __init__(self, text: Any, reads: Reads) -> None:
        self.text, self.reads = text, reads

    def open(self, **_: Any) -> Any:
        return self.text

    def others(self, way: str) -> list[str]:
        """What else is interrupted."""
        return []


class Place(Opened):
    """Where a context lies, in one kind of store: it is opened again and again, and another one beside it grows."""

    def __init__(self, url: str, **options: Any):
        super().__init__(None, READS)
        self.url = url
        self.options = options
        publish(TEXT, url, store_options=options, codec="raw", frame_bytes=4_000, segment_bytes=40_000)
        publish(TEXT[:1000], self._growing, store_options=options)
        self.grown = TEXT[:1000]

    @property
    def _growing(self) -> str:
        return f"{self.url}-growing"

    def open(self, **more: Any) -> Monocontext:
        context = Monocontext.open(self.url, **self.options, **more)
        assert isinstance(context, Monocontext)
        return context

    def others(self, way: str) -> list[str]:
        # CPython 3.11 can raise in a newborn thread, and the `ThreadPoolExecutor` of a writer then waits for ever.
        return ["open", "append"] if way != "async" or sys.version_info >= (3, 12) else ["open"]

    def append(self, piece: str) -> None:
        append(piece, self._growing, store_options=self.options)

    def check_grown(self, piece: str, is_certain: bool) -> None:
        """The text has grown by a piece, or not at all if that is not certain."""
        with Monocontext.open(self._growing, **self.options) as context:
            result = str(context.refresh()[:])  # the copy of the root may lag behind what was committed
        wanted = [self.grown + piece] if is_certain else [self.grown, self.grown + piece]
        assert result in wanted, (result[len(self.grown) :], piece, is_certain)
        self.grown = result


@contextmanager
def placed(kind: str, tmp_path: Path) -> Iterator[Place]:
    if kind == "memory":
        name = f"interrupts-{time.time_ns()}"
        try:
            yield Place(f"memory://{name}/ctx")
        finally:
            forget(name)
    elif kind == "directory":
        yield Place(f"{tmp_path}/ctx")
    else:
        with S3StandIn({}) as server:
            yield Place(server.url("ctx"), endpoint=server.endpoint)


def running_threads() -> int:
    """Threads that have begun: CPython 3.11 lists one that was struck before that for ever."""
    return sum(thread.is_alive() for thread in threading.enumerate())


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def campaign(place: Opened, way: str, interrupts: int, seed: int) -> str:
    """Interrupt work so many times; each time what comes next is right. What was done, in a line."""
    random, interrupter = Random(seed), Interrupter(way, seed)
    others, tried = place.others(way), 0
    with interrupter.ready():
        context = place.open(cache_bytes=60_000)
        while interrupter.struck < interrupts:
            tried += 1
            assert tried < 50 * interrupts, f"{interrupter.struck} of {tried} struck"
            name = random.choice([*place.reads] * 3 + others)
            try:
                with soon():
                    struck(place, context, interrupter, name, random)
                with soon():
                    after, where = random.choice(list(place.reads)), random.randrange(1 << 30)
                    assert place.reads[after](context, Random(where)) == place.reads[after](TEXT, Random(where)), after
            except BaseException as error:
                error.add_note(f"seed {seed}, try {tried}, {interrupter.struck} struck, {name}")
                raise
            if others and random.random() < 0.02:
                context.close()
                context = place.open(cache_bytes=60_000)
        if others:
            assert_rested(context)
            context.close()
    return f"{way}, seed {seed}: {interrupter.struck} struck of {tried}"


def struck(place: Any, context: Any, interrupter: Interrupter, name: str, random: Random) -> None:
    """Interrupt something; what is not hit in time is right."""
    where = random.randrange(1 << 30)
    if name == "open":
        interrupter.strike(lambda: _open_and_read(place), name)
    elif name == "append":
        piece = PIECE.format(where)
        done = interrupter.strike(lambda: place.append(piece), name)
        place.check_grown(piece, done is not Interrupted)
    else:
        read = place.reads[name]
        result = interrupter.strike(lambda: read(context, Random(where)), name)
        assert result is Interrupted or result == read(TEXT, Random(where))


def _open_and_read(place: Place) -> None:
    with place.open() as context:
        context[:10]


def assert_rested(context: Monocontext) -> None:
    reader: Any = context._reader
    end = time.monotonic() + 60
    while reader.fetcher.under_way() != (0, 0) or not at_rest(reader):
        assert time.monotonic() < end, f"still under way: {reader!r}"
        time.sleep(0.01)
    assert in_thread(lambda: LOCK.acquire(timeout=10) and LOCK.release() is None)
    gc.collect()
    assert connections(pool(context))[1] == 0


def in_thread(work: Callable[[], Any]) -> Any:
    """What `work` gives in a thread of its own."""
    given: list[Any] = []

    def run() -> None:
        try:
            given.append((work(), None))
        except BaseException as error:
            given.append((None, error))

    thread = threading.Thread(target=run, name="struck", daemon=True)
    thread.start()
    thread.join()
    value, error = given[0]
    if error is not None:
        raise error
    return value


def interrupted(place: AbstractContextManager[Any], way: str, work: Callable[[Any], str]) -> None:
    """Do the work at a place, in a thread of its own if it can be; afterwards nothing is left of it."""
    before = running_threads(), open_sockets(), descriptors()
    with place as here:
        run = partial(work, here)
        print(run() if way == "signal" else in_thread(run))
    assert_nothing_left(*before)


@pytest.mark.slow
@pytest.mark.parametrize("interrupts", [10, pytest.param(420, marks=[pytest.mark.fuzz, pytest.mark.timeout(400)])])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["memory", "directory", "http"])
def test_what_comes_after_an_interrupt_is_right(kind: str, way: str, tmp_path: Path, interrupts: int) -> None:
    interrupted(placed(kind, tmp_path), way, lambda here: campaign(here, way, interrupts, seed=1))


def assert_nothing_left(threads: int, sockets: int, files: int) -> None:
    end = time.monotonic() + 60
    while True:
        gc.collect()
        if running_threads() <= threads and open_sockets() <= sockets and descriptors() <= files:
            return
        assert time.monotonic() < end, (threading.enumerate(), open_sockets(), sockets, descriptors(), files)
        time.sleep(0.05)
