"""What is late is asked for once more: when, how often, and what becomes of the two answers."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable

import pytest

from monocontext import Monocontext
from monocontext.engine.fetch.congestion import Pressure
from monocontext.engine.fetch.listeners import BURST, RULES, SAMPLES, Hedge, Hedging, Latencies
from monocontext.engine.fetch.scheduler import Fetch, FetchItem, Priority, RangeRequest, Scheduler
from monocontext.errors import ContextClosed, StoreFailure
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, WrappedStore, profile
from tests.simulated import SimulatedWorkers

from .counted import stored, wait_until_idle

PIECE = 1000
TEXT = "".join(f"{number:099d}\n" for number in range(50 * PIECE // 100))
"""50 segments of 1000 bytes; what 100 KB take on the way is added to the latency instead."""
ANSWER = Blob(b"", "etag", 0)


# -- the rule, by itself ---------------------------------------


def fetch(size: int = 1000, priority: Priority = Priority.DEMAND, waiters: int = 1) -> Fetch:
    request = RangeRequest("object", 0, size, (FetchItem("key", "object", 0, size, 0, bytes),))
    found = Fetch(request, priority, Scheduler(1, size))
    found.waiters = waiters
    return found


def taught(hedge: Hedge, seconds: float = 0.1, samples: int = 100) -> Hedging:
    """After so many requests that took all the same time."""
    hedging = Hedging(hedge, Pressure(64))
    for _ in range(samples):
        one = fetch()
        hedging.sent([one], 0.0, False)
        hedging.answered(one, ANSWER, seconds)
    return hedging


def test_percentiles_are_those_of_the_last_samples() -> None:
    rng, latencies, seen = random.Random(1), Latencies(), []
    for _ in range(3 * SAMPLES):
        seconds = rng.choice([0.1, rng.random()])
        latencies.add(seconds)
        seen.append(seconds)
        last = sorted(seen[-SAMPLES:])
        assert len(latencies) == len(last)
        for percent in (50, 95, 99):
            assert latencies.percentile(percent) == last[len(last) * percent // 100]


def test_nothing_is_known_at_first() -> None:
    assert taught("p99", samples=3).late_after(1000) is None
    assert taught("p99", samples=4).late_after(1000) == pytest.approx(0.3)
    assert taught("p95", samples=19).late_after(1000) is None
    assert taught("p95", samples=20).late_after(1000) == 0.1


def test_sizes_are_told_apart() -> None:
    hedging = taught("p99")
    assert hedging.late_after(1) == hedging.late_after(65_535)
    assert hedging.late_after(1 << 20) is None


def test_a_size_with_few_answers_is_late_when_a_larger_one_would_be() -> None:
    hedging = Hedging("p95", Pressure(64))
    for size, seconds in ((1 << 20, 0.2), (8 << 20, 0.5)):
        for _ in range(RULES["p95"].least_samples):
            one = fetch(size)
            hedging.sent([one], 0.0, False)
            hedging.answered(one, ANSWER, seconds)
    small = fetch(1000)
    hedging.sent([small], 10.0, False)
    assert hedging.late_after(1000) == 0.2
    assert hedging.late_after(64 << 20) is None
    assert hedging.next_due() == 10.2
    assert hedging.overdue(10.19) == []
    assert hedging.overdue(10.2) == [small]


def test_what_answers_at_once_is_not_hedged() -> None:
    assert taught("p95", seconds=0.0005).late_after(1000) is None


def test_an_unknown_rule() -> None:
    with pytest.raises(ValueError, match="'p99', 'p95' or None, not 'p50'"):
        Monocontext.open("memory://nowhere", hedge="p50")  # type: ignore[call-overload]


def test_late_requests_once_each() -> None:
    hedging = taught("p95")
    early, late = fetch(), fetch()
    hedging.sent([early], 10.0, False)
    hedging.sent([late], 10.05, False)
    assert hedging.next_due() == pytest.approx(10.1)
    assert hedging.overdue(10.09) == []
    assert hedging.overdue(10.11) == [early]
    assert hedging.next_due() == pytest.approx(10.15)
    assert hedging.overdue(20.0) == [late]
    assert hedging.next_due() is None
    assert hedging.overdue(30.0) == []


def test_what_was_answered_is_not_late() -> None:
    hedging = taught("p95")
    one, other = fetch(), fetch()
    hedging.sent([one], 10.0, False)
    hedging.sent([other], 10.0, False)
    hedging.answered(one, ANSWER, 0.05)
    hedging.ended(other, 10.1, True)
    assert (hedging.next_due(), hedging.overdue(20.0)) == (None, [])


def test_guesses_and_what_nobody_waits_for_are_never_hedged() -> None:
    hedging = taught("p95")
    ahead, left = fetch(priority=Priority.WARM_UP), fetch(waiters=0)
    hedging.sent([ahead], 10.0, False)
    hedging.sent([left], 10.0, False)
    assert (hedging.next_due(), hedging.overdue(20.0)) == (None, [])
    ahead.priority = Priority.DEMAND  # adopted
    assert hedging.overdue(20.0) == [ahead]


@pytest.mark.parametrize("priority", [Priority.LITERAL_HINT, Priority.COMPUTED_HINT])
def test_what_code_says_it_will_read_is_hedged_before_anybody_waits(priority: Priority) -> None:
    hedging = taught("p95")
    told = fetch(priority=priority)
    hedging.sent([told], 10.0, False)
    assert hedging.next_due() == pytest.approx(10.1)
    assert hedging.overdue(10.2) == [told]


@pytest.mark.parametrize(("hedge", "share"), [("p99", 0.02), ("p95", 0.06)])
def test_the_bucket_bounds_what_is_asked_twice(hedge: Hedge, share: float) -> None:
    """Everything is late from now on: no more than the share is asked for again, and the burst."""
    hedging, hedged = taught(hedge), 0
    for number in range(1000):
        one = fetch()
        hedging.sent([one], float(number), False)
        hedged += len(hedging.overdue(number + 0.9))
        hedging.answered(one, ANSWER, 0.1)
        if hedging._tokens < 1:
            assert hedging.next_due() is None  # else a caller would turn on the spot
    assert hedged <= 1000 * share + BURST
    assert hedged >= 1000 * share


# -- a tail, on a virtual clock ----------------------------------------------------------------------------------------


def slices(hedge: Hedge | None) -> tuple[float, float, float]:
    """1000 slices of 50 segments: mean and p99 seconds, and extra GETs in percent."""
    rng, far = random.Random(5), profile("far_150")
    workers = SimulatedWorkers(lambda request: far.seconds(rng) + 100_000 / 90e6)
    context = Monocontext.open(stored(TEXT, frame_bytes=PIECE), cache_bytes=0, workers=workers, hedge=hedge)
    took = []
    for _ in range(1000):
        began = workers.now()
        assert len(context[:]) == len(TEXT)
        took.append(workers.now() - began)
        workers.pass_time(1.0)
    workers.pass_time(60.0)
    wait_until_idle(context)
    stats = context.stats
    assert stats.gets - stats.hedges == 1 + 50 * 1000
    return sum(took) / 1000, sorted(took)[990], 100 * stats.hedges / 50_000


@pytest.mark.slow
def test_slices_of_50_segments_from_afar() -> None:
    plain_mean, plain_p99, none = slices(None)
    assert (plain_mean, none) == (pytest.approx(0.427, rel=0.03), 0.0)
    mean, p99, extra = slices("p99")
    assert mean <= 0.360
    assert p99 <= 0.6 * plain_p99
    assert extra <= 2.0
    mean, p99, extra = slices("p95")
    assert mean <= 0.320
    assert p99 <= 0.6 * plain_p99
    assert extra <= 6.0


# -- two answers -------------------------------------------------------------------------------------------------------


class Script:
    """Seconds of each request: 0.1, but for those that are told otherwise, by number."""

    def __init__(self, **slow: float) -> None:
        self.slow = {int(name.removeprefix("n")): seconds for name, seconds in slow.items()}
        self.asked = 0

    def __call__(self, request: RangeRequest) -> float:
        self.asked += 1
        return self.slow.get(self.asked - 1, 0.1)


class Failing(WrappedStore):
    """Fails the GETs with these numbers, the root's not counted."""

    def __init__(self, store: Store, *numbers: int) -> None:
        super().__init__(store)
        self.numbers, self.asked = numbers, 0

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        self.asked += 1
        if self.asked - 1 in self.numbers:
            raise StoreFailure(f"attempt {self.asked - 1}")
        return super().get_range(key, start, length, etag=etag)


def opened(
    script: Callable[[RangeRequest], float], *failing: int, **options: object
) -> tuple[Monocontext, SimulatedWorkers]:
    """A text of 50 segments, and workers on a virtual clock; GET 50 is the first that can be hedged."""
    workers = SimulatedWorkers(script)
    store = Failing(stored(TEXT, frame_bytes=PIECE), *failing)
    context = Monocontext.open(store, cache_bytes=0, workers=workers, **options)  # type: ignore[arg-type]
    assert context[:] == TEXT
    workers.pass_time(10)
    return context, workers


def test_the_first_answer_counts_and_the_other_is_dropped() -> None:
    context, workers = opened(Script(n50=5.0))
    began, gets = workers.now(), context.stats.gets
    assert context[:10] == TEXT[:10]
    assert workers.now() - began == pytest.approx(0.3 + 0.1)
    scheduler = context._reader.fetcher.scheduler  # type: ignore[union-attr]
    assert (scheduler.running, len(scheduler._by_key)) == (1, 0)  # the slow one is still on its way, and counted
    assert scheduler.reserved_bytes == PIECE  # a raw frame is received in place
    assert (context.stats.gets, context.stats.hedges) == (gets + 1, 1)
    workers.pass_time(10)
    wait_until_idle(context)
    assert context.stats.gets == gets + 2


def test_the_first_attempt_may_still_win() -> None:
    context, workers = opened(Script(n50=0.35, n51=5.0))
    began = workers.now()
    assert context[:10] == TEXT[:10]
    assert workers.now() - began == pytest.approx(0.35)
    workers.pass_time(10)
    wait_until_idle(context)


@pytest.mark.parametrize("failing", [50, 51])
def test_an_error_of_one_attempt_does_not_count(failing: int) -> None:
    """Whichever of the two it is, the caller gets what the other brings."""
    slow = {50: {"n50": 0.35, "n51": 0.2}, 51: {"n50": 1.0, "n51": 0.1}}[failing]
    # The store is asked when the answer arrives: 50 is the attempt that arrives first.
    context, workers = opened(Script(**slow), 50)
    assert context[:10] == TEXT[:10]
    assert context.stats.hedges == 1
    workers.pass_time(10)
    wait_until_idle(context)


def test_an_error_of_both_counts() -> None:
    context, workers = opened(Script(n50=0.5), 50, 51)
    with pytest.raises(StoreFailure, match="attempt 51"):
        _ = context[:10]
    workers.pass_time(10)
    wait_until_idle(context)
    assert context[:10] == TEXT[:10]


def test_a_hedge_that_comes_to_nothing_after_an_answer() -> None:
    context, workers = opened(Script(n50=0.35), 51)
    assert context[:10] == TEXT[:10]
    workers.pass_time(10)
    wait_until_idle(context)
    assert context[:10] == TEXT[:10]


def test_all_late_requests_of_a_slice_are_hedged_while_its_caller_waits_for_one() -> None:
    context, workers = opened(Script(n50=5.0, n57=5.0, n60=5.0))
    began = workers.now()
    assert context[: 20 * PIECE] == TEXT[: 20 * PIECE]
    assert workers.now() - began == pytest.approx(0.4)
    assert context.stats.hedges == 3


def test_without_hedging() -> None:
    context, workers = opened(Script(n50=5.0), hedge=None)
    began = workers.now()
    assert context[:10] == TEXT[:10]
    assert workers.now() - began == pytest.approx(5.0)
    assert context.stats.hedges == 0


def test_a_hedge_waits_for_a_connection_and_goes_first() -> None:
    workers = SimulatedWorkers(Script(n50=5.0), max_running=4)
    store = stored(TEXT, frame_bytes=PIECE)
    context = Monocontext.open(store, cache_bytes=0, workers=workers)
    assert context[:] == TEXT
    began = workers.now()
    assert context[:] == TEXT
    assert workers.now() - began == pytest.approx(1.7, abs=0.11)  # 17 waves of three
    workers.pass_time(10)
    wait_until_idle(context)


def test_both_attempts_are_within_the_budget() -> None:
    context, workers = opened(Script(n50=5.0))
    scheduler = context._reader.fetcher.scheduler  # type: ignore[union-attr]
    scheduler._budget_bytes = 3 * PIECE // 2
    began = workers.now()
    assert context[:10] == TEXT[:10]
    assert workers.now() - began == pytest.approx(5.0)
    assert context.stats.hedges == 0
    wait_until_idle(context)


def test_what_a_reply_will_read_is_hedged_while_the_reply_goes_on() -> None:
    """Nobody waits yet, so each piece of the reply is a look at what is late."""
    workers = SimulatedWorkers(Script(n10=5.0))
    context = Monocontext.open(stored(TEXT, frame_bytes=PIECE), workers=workers, prefetch="code")
    assert context[: 10 * PIECE] == TEXT[: 10 * PIECE]
    with context.thinking():
        context.hint(f"```repl\nprint(context[{30 * PIECE}:{30 * PIECE + 10}])\n")
        workers.pass_time(0.29)
        context.hint("# what follows")
        assert context.stats.hedges == 0
        workers.pass_time(0.01)
        context.hint(" is commentary\n")
        assert context.stats.hedges == 1
        workers.pass_time(0.2)
    began = workers.now()
    assert context[30 * PIECE : 30 * PIECE + 10] == TEXT[30 * PIECE : 30 * PIECE + 10]
    assert workers.now() == began
    workers.pass_time(10)
    wait_until_idle(context)


def test_who_left_is_not_hedged_for() -> None:
    context, workers = opened(Script(n60=5.0))
    iterator = context.chunks(PIECE)
    next(iterator)
    del iterator
    workers.pass_time(20)
    wait_until_idle(context)
    assert context.stats.hedges == 0


# -- with threads ------------------------------------------------------------------------------------------------------


class Stalling(WrappedStore):
    """Every GET takes 5 ms, but the next of those for a key that was told, until it is let go."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.is_near = False
        self.stall = 0
        self.go = threading.Event()
        self._lock = threading.Lock()

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        with self._lock:
            waits, self.stall = self.stall > 0, max(0, self.stall - 1)
        if waits:
            assert self.go.wait(60)
        else:
            time.sleep(0.005)
        return super().get_range(key, start, length, etag=etag)


def stalling() -> tuple[Stalling, Monocontext]:
    store = Stalling(stored(TEXT, frame_bytes=PIECE))
    context = Monocontext.open(store, cache_bytes=0)
    assert context[:] == TEXT
    wait_until_idle(context)
    context._reader.fetcher.hedging._tokens = BURST  # type: ignore[union-attr]  # a busy machine uses some up
    return store, context


@pytest.mark.parametrize("stop", [10, 30 * PIECE])
def test_a_stalled_request_does_not_hold_up_its_caller(stop: int) -> None:
    store, context = stalling()
    store.stall = 1
    assert context[:stop] == TEXT[:stop]
    assert context.stats.hedges >= 1
    assert not store.go.is_set()
    store.go.set()
    wait_until_idle(context)


def test_memory_and_disks_are_not_asked_twice() -> None:
    store = Stalling(stored(TEXT, frame_bytes=PIECE))
    for store.is_near in (True, False):
        reader = Monocontext.open(store)._reader
        assert (reader.fetcher.hedging is None) == store.is_near  # type: ignore[union-attr]
    assert CountingStore(store.store).is_near


def test_many_callers_of_one_stalled_request() -> None:
    store, context = stalling()
    counting = CountingStore(store)
    context._reader.fetcher._objects._store = counting  # type: ignore[union-attr]
    store.stall = 1
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(context[5:15])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [TEXT[5:15]] * 8
    store.go.set()
    wait_until_idle(context)
    assert context.stats.gets == 51 + counting.gets


def test_close_while_both_attempts_are_under_way() -> None:
    store, context = stalling()
    store.stall = 2
    found: list[str] = []
    reading = threading.Thread(target=lambda: found.append(context[:10]))
    reading.start()
    end = time.monotonic() + 60
    while store.stall and time.monotonic() < end:
        time.sleep(0.001)
    assert store.stall == 0
    context.close()
    store.go.set()
    reading.join(60)
    assert found == [TEXT[:10]]  # it was on its way when the text was closed
    wait_until_idle(context)
    with pytest.raises(ContextClosed):
        _ = context[:10]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_both_attempts_are_under_way() -> None:
    store, context = stalling()
    store.stall = 2
    found: list[str] = []
    reading = threading.Thread(target=lambda: found.append(context[:10]))
    reading.start()
    while store.stall:
        time.sleep(0.001)
    child = os.fork()
    if not child:  # neither attempt came along: both are one again, and their bytes are counted once
        store.go = threading.Event()
        right = context[:10] == TEXT[:10]
        wait_until_idle(context)
        os._exit(0 if right else 1)
    end, status = time.monotonic() + 60, None
    while status is None and time.monotonic() < end:
        pid, code = os.waitpid(child, os.WNOHANG)
        status = code if pid else time.sleep(0.01)
    store.go.set()
    reading.join(60)
    assert status == 0
    assert found == [TEXT[:10]]
    wait_until_idle(context)
