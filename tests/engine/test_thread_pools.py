"""One crew of threads for all contexts of a process: few threads, frames decoded on all cores, memory given back."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from monocontext import Monocontext
from monocontext.engine.fetch import cache, threads
from monocontext.engine.fetch import threads as daemon_threads
from monocontext.engine.fetch.threads import LOCK, DaemonThreads, Outcome, ThreadPools, in_threads, shared_pools
from monocontext.errors import DamagedData
from monocontext.stores.protocol import Blob
from monocontext.testing import CountingStore, WrappedStore

from .counted import stored

TEXT = "".join(f"line {i:05d} of é漢😀 text\n" * (i % 3) + f"plain {i}\n" for i in range(3000))


def started(names: str = "monocontext") -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(names) and thread.ident]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, started()
        gc.collect()
        time.sleep(0.01)


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> ThreadPools:
    """A crew with one helper, whatever this machine has."""
    monkeypatch.setattr(threads, "cores", lambda: 2)
    made = ThreadPools()
    monkeypatch.setattr(threads, "_current", lambda: made)
    return made


@pytest.mark.slow
def test_contexts_share_threads_which_end_after_the_last_close(
    two_cores: ThreadPools, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = [Monocontext.open(stored(TEXT, frame_bytes=1000, codec="zstd")) for _ in range(20)]
    for context in contexts:
        assert context.count("漢") == TEXT.count("漢")
    assert len({id(context._reader.fetcher.workers._pools.get()) for context in contexts}) == 1  # type: ignore[union-attr]
    threads = (
        two_cores.fetching._shared.threads | two_cores.decoding._shared.threads | two_cores._helping._shared.threads
    )
    assert 1 <= len(two_cores.decoding._shared.threads) <= 1
    for context in contexts:
        context.close()
    del two_cores
    monkeypatch.undo()
    wait_for(lambda: not any(thread.is_alive() for thread in threads))


@pytest.mark.slow
def test_a_thread_without_jobs_ends_by_itself() -> None:
    with Monocontext.open(stored(TEXT, frame_bytes=1000)) as context:
        assert context.count("plain") == 3000
        mine = shared_pools()
        wait_for(lambda: not mine.fetching._shared.threads and not mine.decoding._shared.threads)
        assert context[5000:5010] == TEXT[5000:5010]


class Watched:
    """Tells when helpers are called."""

    def __init__(self, helping: DaemonThreads, helped: threading.Semaphore) -> None:
        self._helping, self._helped = helping, helped

    def call(self, work: Callable[[], None]) -> Outcome[None]:
        self._helped.release()
        return self._helping.call(work)


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_helpers_decode_to_the_same_text(two_cores: ThreadPools, codec: str) -> None:
    helped = threading.Semaphore(0)
    helping = two_cores._helping
    two_cores._helping = Watched(helping, helped)  # type: ignore[assignment]
    context = Monocontext.open(stored(TEXT, frame_bytes=1000, frames_per_segment=50, codec=codec))
    assert str(context) == TEXT
    assert helped.acquire(blocking=False)
    context.close()


class Damaging(WrappedStore):
    """Changes one byte of each segment at a place."""

    at = 0

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        blob = super().get_range(key, start, length, etag=etag)
        if not key.startswith("segments/") or not start <= self.at < start + length:
            return blob
        data = bytearray(blob.data)
        data[self.at - start] ^= 1
        return replace(blob, data=bytes(data))


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_damage_in_any_frame_of_a_request_is_an_error(two_cores: ThreadPools, codec: str) -> None:
    store = Damaging(stored(TEXT, frame_bytes=4000, frames_per_segment=10**6, codec=codec))
    table = Monocontext.open(store.store)._reader.table  # type: ignore[union-attr]
    frames = [frame for block in table.blocks(0, len(TEXT)) for frame in block]
    assert len(frames) > 20
    for frame in frames[::7]:
        store.at = frame.offset + frame.stored_bytes // 2
        with Monocontext.open(store) as context, pytest.raises(DamagedData, match=f"frame {frame.number} of"):
            str(context)


def test_the_first_error_ends_what_is_left(two_cores: ThreadPools) -> None:
    done = []

    def fail() -> None:
        raise ValueError("this one")

    works = [fail, *[lambda: done.append(1)] * 1000]
    with LOCK:
        outcome = two_cores.decoding.call(lambda: two_cores.share(works))
    with pytest.raises(ValueError, match="this one"):
        outcome.result()
    assert len(done) < 1000


def test_an_index_error_of_the_work_is_not_the_end_of_the_list(two_cores: ThreadPools) -> None:
    def fail() -> None:
        raise IndexError("of the work")

    with LOCK:
        outcome = two_cores.decoding.call(lambda: two_cores.share([fail, fail]))
    with pytest.raises(IndexError, match="of the work"):
        outcome.result()


def test_contexts_that_fetched_long_ago_give_their_text_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_WARM", 3)
    monkeypatch.setattr(cache, "_warm", type(cache._warm)())
    store = CountingStore(stored(TEXT, frame_bytes=1000))
    contexts = [Monocontext.open(store) for _ in range(5)]
    for context in contexts:
        assert context[:5] == TEXT[:5]
    kept = [context._reader.cache.used_bytes >= 1000 for context in contexts]  # type: ignore[union-attr]
    assert kept == [False, False, True, True, True]
    store.reset()
    assert (contexts[4][:5], store.gets) == (TEXT[:5], 0)
    assert (contexts[0][:5], store.gets) == (TEXT[:5], 1)
    for context in contexts:
        context.close()
    assert not cache._warm


@pytest.mark.slow
def test_a_thousand_contexts() -> None:
    """In a process of their own: few threads, little memory each, and it is given back."""
    code = """
import base64, gc, random, resource, threading
from monocontext import Monocontext, publish

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

text = base64.b64encode(random.Random(1).randbytes(6 << 20)).decode()  # more than rides in a root
publish(text, "memory://thousand", filters=False)
first, middle = text[:500], text[1_000_000:1_000_500]
del text
with Monocontext.open("memory://thousand") as context:
    assert context[1_000_000:1_000_500] == middle
gc.collect()
before = resident()
contexts = [Monocontext.open("memory://thousand") for _ in range(1000)]
for context in contexts:
    assert (context[:500], context[1_000_000:1_000_500]) == (first, middle)
threads, each = threading.active_count(), (resident() - before) // 1000
for context in contexts:
    context.close()
del context, contexts
gc.collect()
print(threads, each, resident() / before)
"""
    if sys.platform != "linux":
        pytest.skip("reads /proc")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    threads, each, after = done.stdout.split()
    assert int(threads) <= 16
    assert int(each) <= 150 << 10
    assert float(after) <= 1.2


def test_a_thread_that_was_taken_for_lost_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its start was interrupted, and it began after all."""
    monkeypatch.setattr(daemon_threads, "_IDLE_SECONDS", 0.01)
    pool = DaemonThreads(2, "test")
    assert pool.call(lambda: 1).result() == 1
    (thread,) = pool._shared.threads
    pool._shared.threads.clear()
    wait_for(lambda: not thread.is_alive())
    assert pool.call(lambda: 2).result() == 2


def test_work_in_threads_comes_in_order_and_ends_at_the_first_error() -> None:
    other, ended = threading.Event(), threading.Event()
    done: list[int] = []

    def work(number: int) -> int:
        if number == 2:
            assert other.wait(60)
            raise ValueError(number)
        if number == 3:
            other.set()
            assert ended.wait(60)
        done.append(number)
        return number * number

    assert in_threads(work, range(2), 4, "test") == [0, 1]
    assert in_threads(work, [], 4, "test") == []
    threading.Timer(0.1, ended.set).start()
    with pytest.raises(ValueError, match="2"):
        in_threads(work, range(4), 2, "test")
    assert 3 in done  # it had begun, so it was waited for


@pytest.mark.slow
def test_a_job_that_never_came_keeps_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt between the count of a job and the queue; and what is submitted afterwards is done."""
    monkeypatch.setattr(daemon_threads, "_IDLE_SECONDS", 0.01)
    pool = DaemonThreads(2, "test")
    assert pool.call(lambda: 1).result() == 1
    pool._shared.unfinished += 1
    wait_for(lambda: not pool._shared.threads)
    assert [one.result() for one in [pool.call(lambda: 2), pool.call(lambda: 3)]] == [2, 3]
    pool.close()
