"""A text that is read without any thread but the caller's."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from begun_threads import begun_threads

from monocontext import Monocontext
from monocontext.errors import ContextClosed, StoreFailure
from monocontext.stores.protocol import Blob
from monocontext.testing import FaultyStore, SlowStore, WrappedStore, fail
from monocontext.writing.publish import publish

from .counted import Counted, stored, wait_until_idle

TEXT = "".join(f"line {number:04d} é漢\n" for number in range(3000))


class Watched(WrappedStore):
    """Notes which threads ask."""

    def __init__(self, store: object) -> None:
        super().__init__(store)  # type: ignore[arg-type]
        self.askers: set[int] = set()

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        self.askers.add(threading.get_ident())
        return super().get_range(key, start, length, etag=etag)


READS: dict[str, Callable[[Monocontext], object]] = {
    "slice": lambda c: c[1000:30_000],
    "str": str,
    "find": lambda c: c.find("missing"),
    "lines": lambda c: list(c.lines),
    "backwards": lambda c: list(reversed(c)),
    "grep": lambda c: list(c.grep("line 2999")),
    "preload": lambda c: c._reader.preload(),  # type: ignore[union-attr]
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_everything_is_done_by_the_caller(name: str, cache_bytes: int) -> None:
    if name == "preload" and not cache_bytes:
        return
    watched = Watched(stored(TEXT, frame_bytes=100, codec="zstd"))
    expected = READS[name](Monocontext.open(watched.store))
    with begun_threads() as begun:
        context = Monocontext.open(watched, threads=False, cache_bytes=cache_bytes)
        assert READS[name](context) == expected
    assert watched.askers == {threading.get_ident()}
    assert not begun
    wait_until_idle(context)


def test_the_same_requests_as_with_threads() -> None:
    for read in READS.values():
        plain = Counted(stored(TEXT, frame_bytes=500), {"cache_bytes": 1 << 22})
        inline = Counted(stored(TEXT, frame_bytes=500), {"cache_bytes": 1 << 22, "threads": False})
        read(plain.context)
        read(inline.context)
        assert sorted(plain.asked()) == sorted(inline.asked())


def test_an_abandoned_iterator_leaves_nothing_behind() -> None:
    context = Monocontext.open(stored(TEXT, frame_bytes=500), threads=False)
    iterator = iter(context)
    next(iterator)
    del iterator
    scheduler = context._reader.fetcher.scheduler  # type: ignore[union-attr]
    assert (scheduler.running, scheduler.reserved_bytes, scheduler._by_key) == (0, 0, {})


def test_errors_and_the_end() -> None:
    context = Monocontext.open(FaultyStore(stored(TEXT, frame_bytes=500), [None, None, fail()]), threads=False)
    with pytest.raises(StoreFailure):
        str(context)
    wait_until_idle(context)
    assert str(context) == TEXT
    context.close()
    with pytest.raises(ContextClosed):
        str(context)


def test_several_callers_read_at_the_same_time() -> None:
    context = Monocontext.open(SlowStore(stored(TEXT, frame_bytes=500), 0.001), threads=False, cache_bytes=10_000)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(str(context))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [TEXT] * 8
    wait_until_idle(context)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_another_thread_reads() -> None:
    context = Monocontext.open(SlowStore(stored(TEXT, frame_bytes=500), 0.002), threads=False, cache_bytes=0)
    reading = threading.Thread(target=lambda: str(context))
    reading.start()
    for _ in range(3):
        child = os.fork()
        if not child:
            os._exit(0 if context[:5000] == TEXT[:5000] else 1)
        assert os.waitpid(child, 0)[1] == 0
    reading.join(60)
    wait_until_idle(context)


def test_a_pickle_keeps_to_it(tmp_path: Path) -> None:
    publish(TEXT, tmp_path / "context")
    with begun_threads() as begun:
        again = pickle.loads(pickle.dumps(Monocontext.open(tmp_path / "context", threads=False)))
        assert str(again) == TEXT
    assert not begun
