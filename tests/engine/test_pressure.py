"""Fewer requests for a store that refuses them: the state machine, and the engine on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.engine.fetch.link import ConcurrencyLimit
from monocontext.errors import StoreFailure
from monocontext.stores import log
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import Blob
from monocontext.testing import FaultyStore
from tests.simulated import SimulatedWorkers

from .counted import memory

TEXT = "".join(f"{number:09d}\n" for number in range(20_000))


# -- alone -------------------------------------------------------------------------------------------------------------


def test_a_reader_that_asks_now_and_then_is_back_by_time() -> None:
    limit = ConcurrencyLimit(maximum=64, current=64)
    assert not limit.is_throttled
    limit.note_refusal(0.0, 0.0, running=64)
    limit.note_answer(10.0)
    assert limit.current == 42
    limit.note_answer(100.0)
    assert (limit.current, limit.is_throttled) == (64, False)
    limit.note_answer(50.0)  # clocks of threads may be read in another order
    assert limit.current == 64


# -- in the engine, on a virtual clock ---------------------------------------------------------------------------------


def many(frames: int) -> MemoryStore:
    store = memory()
    publish(TEXT[: frames * 100], store, frame_bytes=100, segment_bytes=100, codec="raw")
    return store


def refused(blob: Blob) -> Blob:
    return replace(blob, refusals=1)


def test_a_scripted_burst_exactly(caplog: pytest.LogCaptureFixture) -> None:
    """Each GET takes a second; those of the first two seconds are refused once each: 8 at a time, 4, 2, and back."""
    burst = {*range(1, 13)}  # after the root: the first wave of 8, and the second, of 4
    store = FaultyStore(many(60), lambda number, request: refused if number in burst else None)
    workers = SimulatedWorkers(lambda request: 1.0, max_running=8)
    context = Monocontext.open(store, workers=workers)
    fetcher: Any = context._reader.fetcher  # type: ignore[union-attr]
    running: list[tuple[float, int]] = []
    submit = workers.submit

    def counted(request: object, job: Callable[[], None]) -> None:
        running.append((workers.now(), fetcher.under_way()[0]))
        submit(request, job)  # type: ignore[arg-type]

    workers.submit = counted  # type: ignore[method-assign, assignment]
    log.emit()  # what other tests left behind
    caplog.clear()
    assert context[:6000] == TEXT[:6000]
    most = {}
    for now, count in running:
        most[round(now)] = max(most.get(round(now), 0), count)
    assert [most[second] for second in range(5)] == [8, 4, 2, 3, 4]
    assert max(most.values()) == 8
    assert (context.stats.throttled, context.stats.gets) == (12, 61)
    assert "throttled 12 times" in str(context.stats)
    log.emit()
    told = [(record.levelname, record.getMessage().rpartition(" asks for fewer ")[2]) for record in caplog.records]
    assert told == [("WARNING", f"requests: now at most {count} at once") for count in (4, 2)]
    assert most[max(most)] == 8 or "8/8 requests" in repr(fetcher), "recovered"


def test_a_refusal_that_lasts_counts_as_well() -> None:
    error = StoreFailure("HTTP 503 SlowDown")
    error.refusals = 4

    def fault(blob: Blob) -> Blob:
        raise error

    workers = SimulatedWorkers(lambda request: 1.0, max_running=8)
    context = Monocontext.open(FaultyStore(many(2), [None, fault]), workers=workers)
    with pytest.raises(StoreFailure, match="SlowDown"):
        context[:10]
    assert context.stats.throttled == 4
    assert "1/8 requests at once" in repr(context._reader)
    assert context[:10] == TEXT[:10]
