"""Many threads on one text: one request for what they all want, right text under a cache that holds nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from monocontext import Monocontext
from monocontext.engine.fetch.workers import ThreadWorkers
from monocontext.errors import ContextClosed, StoreFailure
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import FaultyStore, WrappedStore, fail
from tests.simulated import SimulatedWorkers
from tests.virtual import virtual_context

from .counted import Counted, Slim, stored, wait_until_idle
from .damaged import READINGS

TEXT = "".join(f"line {i:04d} é漢😀\u2028\r\n" * (i % 3) + f"plain {i}\n" for i in range(300))


class Gate(WrappedStore):
    """Lets segments through once it is opened."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.open = threading.Event()
        self.arrived = threading.Semaphore(0)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        self.arrived.release()
        assert self.open.wait(60)
        return super().get_range(key, start, length, etag=etag)


def together(threads: int, task: Callable[[int], object], gate: Gate | None = None) -> list[object]:
    """Let tasks begin at the same time; a gate is opened when one of them waits at it."""
    barrier = threading.Barrier(threads)

    def one(number: int) -> object:
        barrier.wait()
        return task(number)

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(one, number) for number in range(threads)]
        if gate:
            assert gate.arrived.acquire(timeout=60)
            # The others are in time to join whether they come before the bytes or after them.
            gate.open.set()
        return [future.result(timeout=60) for future in futures]


@pytest.mark.parametrize(
    "read",
    [lambda c: c[1005:1010], lambda c: c.find("missing"), str, lambda c: list(c.lines)],
    ids=["slice", "find", "str", "lines"],
)
def test_eight_threads_that_read_the_same_cold_frame(read: Callable[[Monocontext], object]) -> None:
    gate = Gate(stored(TEXT, frame_bytes=1000, frames_per_segment=10**6))
    context = Counted(gate, {})
    expected = read(Monocontext.open(gate.store))
    assert together(8, lambda number: read(context.context), gate) == [expected] * 8
    # `lines` asks for the last frame first and then for the rest; all of it lies in one segment.
    assert context.asked() in (["segment"], ["segment", "segment"])
    assert context.context[5:10] == TEXT[5:10]


def test_eight_threads_that_read_a_cold_page() -> None:
    gate = Gate(Slim(stored(TEXT, frame_bytes=1000)))
    context = Counted(gate, {})
    assert together(8, lambda number: context.context[5:10], gate) == [TEXT[5:10]] * 8
    assert context.asked() == ["page", "segment"]


def test_an_error_reaches_all_who_wait_and_is_not_kept() -> None:
    gate = Gate(stored(TEXT, frame_bytes=10**6))
    failing = FaultyStore(gate, [None, fail(StoreFailure("the segment: no answer"))])
    context = Monocontext.open(failing)

    def read(number: int) -> str:
        try:
            return context[5:10]
        except StoreFailure as error:
            return str(error)

    results = together(8, read, gate)
    # Whoever came after the failure asked anew.
    assert set(results) <= {"the segment: no answer", TEXT[5:10]}
    assert "the segment: no answer" in results
    assert context[5:10] == TEXT[5:10]
    wait_until_idle(context)


def test_an_abandoned_iterator_drops_what_has_not_started() -> None:
    workers = SimulatedWorkers(lambda request: 1.0, max_running=1)
    context = Monocontext.open(stored(TEXT, frame_bytes=500), workers=workers)
    iterator = iter(context)
    next(iterator)
    assert "1 running" in repr(context._reader)
    assert " 0 queued" not in repr(context._reader)
    del iterator
    workers.pass_time(100)
    assert "0 running, 0 queued" in repr(context._reader)
    assert context.stats.gets == 3  # the root, the frame that was read, the one that had started


# -- the end ----------------------------------------------------

OPERATIONS: dict[str, Callable[[Monocontext], object]] = {
    **READINGS, "slice in the frame last read": lambda c: c[0:3], "in": lambda c: "missing" in c,
    "a line": lambda c: c.lines[40], "startswith": lambda c: c.startswith("line"),
    "preload": lambda c: c._reader.preload(),  # type: ignore[union-attr]
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("warm", [False, True])
def test_a_closed_text_says_so(name: str, warm: bool) -> None:
    context = Monocontext.open(stored(TEXT, frame_bytes=500))
    _ = context[0:3], str(context) if warm else ""
    context.close()
    context.close()
    with pytest.raises(ContextClosed, match=r"memory://\w+/prefix is closed"):
        OPERATIONS[name](context)
    assert len(context) == len(TEXT)
    assert "Monocontext" in repr(context)


def test_a_store_that_was_handed_in_stays_open() -> None:
    closed = []

    class Watched(WrappedStore):
        def close(self) -> None:
            closed.append(self)

    Monocontext.open(Watched(stored(TEXT))).close()
    assert closed == []


def test_an_iterator_that_outlives_the_text() -> None:
    context = Monocontext.open(virtual_context(4000, "x" * (256 << 10)))
    iterator = iter(context)
    next(iterator)
    context.close()
    with pytest.raises(ContextClosed):
        for _ in iterator:
            pass


@pytest.mark.parametrize("connections", [1, 3])
def test_close_while_others_wait(connections: int) -> None:
    """Whoever waits for what was queued is told; nobody waits for ever."""
    gate = Gate(stored(TEXT, frame_bytes=100))
    context = Monocontext.open(gate, workers=ThreadWorkers(max_running=connections))

    def read(number: int) -> str:
        try:
            return str(context) if number % 2 else context[300 * number : 300 * number + 5]
        except ContextClosed:
            return "closed"

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(read, number) for number in range(6)]
        for _ in range(connections):
            assert gate.arrived.acquire(timeout=60)
        context.close()
        gate.open.set()
        results = [future.result(timeout=60) for future in futures]
    assert "closed" in results
    for number, result in enumerate(results):
        assert result in ("closed", TEXT if number % 2 else TEXT[300 * number : 300 * number + 5])
    wait_until_idle(context)


def test_a_thread_that_outlives_the_main_one_reads_on() -> None:
    """Executors of the standard library take no work then."""
    code = """
import threading
from monocontext import Monocontext, publish

publish("some words\\n" * 100_000, "memory://late", frame_bytes=10_000)
context = Monocontext.open("memory://late")

def read_on():
    threading.main_thread().join()
    print(context.count("word"), repr(context[-6:]))

threading.Thread(target=read_on).start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("100000 'words\\n'\n", "")
