"""Reading ahead in real use: threads, forks, closing, options, and what model code gives it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest
from begun_threads import begun_threads

from engine.counted import stored, wait_until_idle
from monocontext import Monocontext, append
from monocontext.testing import CountingStore, SlowStore
from rlm import RLM, ScriptedLM

TEXT = "".join(f"line {i:04d}\n" for i in range(100))  # 10 characters each
FRAME = 100


def opened(**options: object) -> tuple[Monocontext, CountingStore]:
    store = CountingStore(stored(TEXT, frame_bytes=FRAME))
    return Monocontext.open(store, **options), store  # type: ignore[call-overload, no-any-return]


def within_seconds(ready: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


@pytest.mark.parametrize("mode", ["on", "", None, True])
def test_a_mode_that_is_none(mode: object) -> None:
    with pytest.raises(ValueError, match="prefetch must be 'all', 'code', 'history' or 'off', not"):
        opened(prefetch=mode)


def test_prefetch_returns_at_once_and_what_it_names_is_there() -> None:
    context, store = opened()
    context.prefetch([(150, 450), (900, 10**9), (0, 0)])
    assert within_seconds(lambda: context.stats.prefetch.gets == 5)
    wait_until_idle(context)
    before = len(store.log)
    assert context[150:450] == TEXT[150:450]
    assert context[900:] == TEXT[900:]
    assert len(store.log) == before
    stats = context.stats
    assert (stats.gets, stats.prefetch.gets) == (6, 5)
    assert "5 GETs prefetched 500 bytes, 100 % of them used" in str(stats)


BAD: list[object] = [[(5, 2)], [(-1, 5)], [5], [(1, 2, 3)], [("a", "b")], [(0.0, 1.0)], [None]]


@pytest.mark.parametrize("ranges", BAD)
def test_prefetch_of_what_is_no_range(ranges: list[tuple[int, int]]) -> None:
    context, store = opened()
    with pytest.raises(ValueError, match=r"prefetch takes pairs \(start, stop\)"):
        context.prefetch(ranges)
    assert len(store.log) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("what", ["the read-ahead", "the cache"])
def test_a_failure_of_our_own_hangs_nobody(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    context, _ = opened()
    fetcher = context._reader.fetcher  # type: ignore[union-attr]
    monkeypatch.setattr(fetcher, "refill", fail) if what == "the read-ahead" else monkeypatch.setattr(
        fetcher.cache, "put", fail
    )
    read: list[str] = []
    thread = threading.Thread(target=lambda: read.append(context[500:510]), daemon=True)
    thread.start()
    thread.join(20)
    assert read == [TEXT[500:510]]


def test_off_is_off() -> None:
    context, store = opened(prefetch="off")
    with context.thinking():
        context.hint("```repl\nprint(context[300:400])\n```\n")
        context.prefetch([(0, 1000)])
    time.sleep(0.02)
    assert len(store.log) == 1


@pytest.mark.slow
def test_closing_drops_what_is_queued_and_leaves_no_thread() -> None:
    slow = SlowStore(stored(TEXT, frame_bytes=FRAME), 0.05)
    with begun_threads() as begun:
        context = Monocontext.open(slow)
        context.prefetch([(0, 1000)])
        context.close()
        begun.wait_for_the_end()
    ahead = context._reader.ahead  # type: ignore[union-attr]
    assert (ahead._requests, ahead.plans) == ([], [])


def test_a_child_of_a_fork_reads_on(recwarn: pytest.WarningsRecorder) -> None:
    slow = SlowStore(stored(TEXT, frame_bytes=FRAME), 0.05)
    context = Monocontext.open(slow)
    context.prefetch([(0, 1000)])
    child = os.fork()
    if not child:
        code = 1
        try:
            with context.thinking():
                context.hint("```repl\nprint(context[300:400])\n```\n")
            code = 0 if context[100:900] == TEXT[100:900] else 2
            wait_until_idle(context)
        finally:
            os._exit(code)
    assert context[100:900] == TEXT[100:900]
    assert os.waitpid(child, 0)[1] == 0


def test_a_failure_ahead_is_nobodys_until_somebody_asks() -> None:
    class Broken(CountingStore):
        broken = True

        def get_range(self, key, start, length, *, etag=None):  # type: ignore[no-untyped-def]
            if self.broken and key.startswith("segments/"):
                raise OSError("no way")
            return super().get_range(key, start, length, etag=etag)

    store = Broken(stored(TEXT, frame_bytes=FRAME))
    context = Monocontext.open(store)
    context.prefetch([(0, 1000)])
    wait_until_idle(context)
    with pytest.raises(OSError, match="no way"):
        _ = context[0:10]
    store.broken = False
    assert context[0:1000] == TEXT


def test_after_refresh_hints_are_of_the_new_text() -> None:
    store = stored(TEXT, frame_bytes=FRAME)
    context = Monocontext.open(store, prefetch="code")
    context.hint("```repl\nx = context[-10:]\n```\n")
    append(TEXT, store)
    context.refresh()
    with context.thinking():
        context.hint("```repl\nx = context[-10:]\n```\n")
    assert within_seconds(lambda: 19 in context._reader.cache)  # type: ignore[union-attr]
    assert context[-10:] == TEXT[-10:]


def test_without_thinking_a_reply_begins_after_code_has_run() -> None:
    context, _ = opened(prefetch="code")
    expected = context._reader.cache._expected  # type: ignore[union-attr]
    for at in (100, 500):
        context.hint(f"```repl\nx = context[{at}:{at + 300}]\n```\n")
        wait_until_idle(context)
        assert len(expected) == 3
        assert context[at : at + 10] == TEXT[at : at + 10]
    assert len(expected) == 2  # of the second reply


def test_a_run_of_rlm_needs_no_setting() -> None:
    """The second reply looks where the first has found something: what names hold tells where that is."""
    context, _ = opened()
    held = []

    def ask(messages: object) -> str:
        held.append(context._reader.ahead.calls > 0)  # type: ignore[union-attr]
        wait_until_idle(context)
        return replies.pop(0)

    code = ["at = context.find('line 0042')", "print(context[at + 300 : at + 350])"]
    # A request that has not started counts as one of the cell that waits for it.
    replies = [*(f"```repl\nwait()\n{block}\nprint(1)\n```" for block in code), "FINAL(done)"]
    tools = {"wait": lambda: wait_until_idle(context)}
    rlm = RLM(lm=ScriptedLM(ask), sub_lm=ScriptedLM(str), custom_tools=tools)
    assert rlm.completion("q", context=context).answer == "done"
    assert held == [True] * 3
    stats = context.stats
    assert stats.gets == 1 + stats.prefetch.gets  # the root: all else was on its way before it was asked for
    assert context.stats.prefetch.bytes_used > 0
