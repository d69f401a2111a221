"""The scheduler with speculation in it, event by event."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from monocontext.engine.fetch.scheduler import Fetch, FetchItem, Priority, Scheduler
from monocontext.engine.stats import PrefetchStats
from tests.budget import examples

BUDGET = 1000
CONNECTIONS = 4


def need(key: int, size: int = 100) -> FetchItem:
    """A need that is never coalesced with another."""
    return FetchItem(key, f"object {key}", 0, size, 0, bytes)


def near(key: int) -> FetchItem:
    """An item that lies beside that of the next key."""
    return FetchItem(key, "object", key * 100, 100, 0, bytes)


def finish(scheduler: Scheduler, fetch: Fetch) -> None:
    fetch.values, fetch.done = {}, True
    scheduler.finish(fetch)


def at_rest(scheduler: Scheduler) -> bool:
    counts = scheduler.running, scheduler.reserved_bytes, scheduler.ahead_running, scheduler.ahead_bytes
    return (*counts, scheduler._by_key) == (0, 0, 0, 0, {})


def test_speculation_leaves_half_of_the_connections() -> None:
    scheduler = Scheduler(CONNECTIONS, BUDGET)
    scheduler.speculate([need(key) for key in range(6)], Priority.LITERAL_HINT)
    assert len(scheduler.start()) == 2
    wanted = scheduler.want([need(10), need(11)], Priority.DEMAND)
    assert scheduler.start() == [wanted[10], wanted[11]]
    assert (scheduler.running, scheduler.ahead_running) == (4, 2)


def test_speculation_leaves_half_of_the_budget() -> None:
    scheduler = Scheduler(10, BUDGET)
    scheduler.speculate([need(key, 200) for key in range(4)], Priority.SEQUENTIAL)
    assert len(scheduler.start()) == 2
    assert scheduler.ahead_bytes == 400
    wanted = scheduler.want([need(10, 500)], Priority.DEMAND)
    assert scheduler.start() == [wanted[10]]


def test_one_speculation_larger_than_its_share_is_let_through() -> None:
    scheduler = Scheduler(CONNECTIONS, BUDGET)
    scheduler.speculate([need(1, 900)], Priority.WARM_UP)
    assert len(scheduler.start()) == 1


def test_speculation_holds_back_while_demand_waits() -> None:
    scheduler = Scheduler(2, BUDGET)
    first = scheduler.want([need(0), need(1)], Priority.DEMAND)
    scheduler.start()
    scheduler.speculate([need(2)], Priority.LITERAL_HINT)
    last = scheduler.want([need(3)], Priority.DEMAND)
    finish(scheduler, first[0])
    assert scheduler.start() == [last[3]]


def test_demand_adopts_what_runs_and_frees_the_share() -> None:
    stats = PrefetchStats()
    scheduler = Scheduler(2, BUDGET, stats)
    scheduler.speculate([need(0)], Priority.WARM_UP)
    [running] = scheduler.start()
    assert running.sent_ahead
    assert scheduler.want([need(0)], Priority.DEMAND)[0] is running
    assert running.priority == Priority.DEMAND
    assert (stats.adopted, scheduler.running, scheduler.ahead_running, scheduler.ahead_bytes) == (1, 1, 0, 0)
    scheduler.want([need(0)], Priority.DEMAND)
    assert stats.adopted == 1  # once
    finish(scheduler, running)
    assert at_rest(scheduler)


def test_demand_takes_its_part_out_of_what_is_queued() -> None:
    scheduler = Scheduler(2, BUDGET)
    scheduler.speculate([need(100)], Priority.LITERAL_HINT)
    scheduler.start()
    scheduler.speculate([near(key) for key in range(4)], Priority.LITERAL_HINT)
    wanted = scheduler.want([near(1), near(2)], Priority.DEMAND)
    assert wanted[1] is wanted[2]
    assert [one.key for one in wanted[1].request.items] == [1, 2]
    assert scheduler.start() == [wanted[1]]
    assert 0 in scheduler
    assert 3 in scheduler


def test_what_demand_leaves_is_speculation_again() -> None:
    scheduler = Scheduler(2, BUDGET)
    first = scheduler.want([need(0), need(1)], Priority.DEMAND)
    scheduler.start()
    scheduler.speculate([need(2)], Priority.SEQUENTIAL)
    left = scheduler.want([need(2)], Priority.DEMAND)[2]
    scheduler.release([left])
    assert (left.priority, left.speculative) == (Priority.SEQUENTIAL, True)
    other = scheduler.want([need(3)], Priority.COMPUTED_HINT)[3]
    finish(scheduler, first[0])
    assert scheduler.start() == [other]


def test_cancel_frees_what_is_queued_and_nothing_else() -> None:
    stats = PrefetchStats()
    scheduler = Scheduler(2, BUDGET, stats)
    scheduler.speculate([need(0)], Priority.SEQUENTIAL)
    [running] = scheduler.start()
    scheduler.speculate([need(1), need(2), near(10), near(11)], Priority.SEQUENTIAL)
    wanted = scheduler.want([need(2)], Priority.DEMAND)[2]
    assert set(scheduler.cancel([0, 1, 2, 10])) == {1}  # 11 is still expected, and comes with 10
    assert set(scheduler.cancel([10, 11])) == {10, 11}
    assert stats.cancelled == 2
    assert scheduler.start() == [wanted]
    finish(scheduler, running)
    finish(scheduler, wanted)
    assert scheduler.start() == []
    assert at_rest(scheduler)


def test_after_a_fork_speculation_is_forgotten() -> None:
    scheduler = Scheduler(CONNECTIONS, BUDGET)
    scheduler.speculate([need(0), need(1)], Priority.SEQUENTIAL)
    scheduler.start()
    adopted = scheduler.want([need(1)], Priority.DEMAND)[1]
    assert scheduler.restart_after_fork() == [adopted]
    assert 0 not in scheduler
    finish(scheduler, adopted)
    assert at_rest(scheduler)


def test_a_store_that_refuses_is_asked_for_nothing_ahead_while_anything_runs() -> None:
    scheduler = Scheduler(CONNECTIONS, BUDGET)
    demand = scheduler.want([need(0)], Priority.DEMAND)
    scheduler.start()
    scheduler.pressure.refused(0.0, 1.0, 3)
    assert scheduler.pressure.is_throttled
    scheduler.speculate([need(1), need(2)], Priority.LITERAL_HINT)
    assert scheduler.start() == []
    finish(scheduler, demand[0])
    assert len(scheduler.start()) == 1  # one at a time, so that it is noticed when the store is well again


def test_the_instrument_panel_tells_speculation() -> None:
    scheduler = Scheduler(CONNECTIONS, BUDGET)
    scheduler.speculate([need(0)], Priority.WARM_UP)
    scheduler.want([need(1)], Priority.DEMAND)
    scheduler.start()
    assert repr(scheduler) == "<Scheduler 2 running (1 ahead), 0 queued, 200/1,000 bytes reserved>"


class AnyOrder(RuleBasedStateMachine):
    """Callers and speculation want, leave, cancel; requests start and end in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(CONNECTIONS, BUDGET)
        self.callers: list[list[Fetch]] = []
        self.running: list[Fetch] = []

    @rule(first=st.integers(0, 12), count=st.integers(1, 4))
    def want(self, first: int, count: int) -> None:
        found = self.scheduler.want([near(key) for key in range(first, first + count)], Priority.DEMAND)
        for key, fetch in found.items():
            assert key in [one.key for one in fetch.request.items]
            assert fetch.priority == Priority.DEMAND
        self.callers.append(list(found.values()))

    @rule(first=st.integers(0, 12), count=st.integers(1, 4), priority=st.sampled_from(list(Priority)[1:]))
    def speculate(self, first: int, count: int, priority: Priority) -> None:
        self.scheduler.speculate([near(key) for key in range(first, first + count)], priority)
        assert all(key in self.scheduler for key in range(first, first + count))

    @rule(keys=st.lists(st.integers(0, 16)))
    def cancel(self, keys: list[int]) -> None:
        for key in self.scheduler.cancel(keys):
            assert key not in self.scheduler

    @rule()
    def start(self) -> None:
        demand = {id(f): f for fetches in self.callers for f in fetches if not f.started and not f.done}
        started = self.scheduler.start()
        self.running += started
        if any(fetch.priority > Priority.DEMAND for fetch in started):
            assert all(fetch.started for fetch in demand.values())

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 99), fails=st.booleans())
    def finish(self, which: int, fails: bool) -> None:
        fetch = self.running.pop(which % len(self.running))
        if fails:
            fetch.error, fetch.done = OSError(), True
        else:
            fetch.values, fetch.done = {}, True
        self.scheduler.finish(fetch)

    @precondition(lambda self: self.callers)
    @rule(which=st.integers(0, 99))
    def leave(self, which: int) -> None:
        fetches = self.callers.pop(which % len(self.callers))
        self.scheduler.release([fetch for fetch in fetches if not fetch.done])

    @invariant()
    def limits(self) -> None:
        scheduler = self.scheduler
        ahead = [fetch for fetch in self.running if fetch.in_share]
        assert scheduler.running == len(self.running) <= CONNECTIONS
        assert scheduler.reserved_bytes == sum(fetch.request.memory_bytes for fetch in self.running)
        assert scheduler.ahead_running == len(ahead) <= CONNECTIONS // 2
        assert scheduler.ahead_bytes == sum(fetch.request.memory_bytes for fetch in ahead)
        assert scheduler.ahead_bytes <= BUDGET // 2 or len(ahead) == 1

    @invariant()
    def single_flight(self) -> None:
        fetches = {id(fetch): fetch for fetch in self.scheduler._by_key.values()}.values()
        keys = [one.key for fetch in fetches for one in fetch.request.items]
        assert len(keys) == len(set(keys))
        assert set(keys) == set(self.scheduler._by_key)
        assert all(fetch.waiters > 0 or fetch.started for fetch in fetches)

    def teardown(self) -> None:
        self.scheduler.cancel(range(20))
        for fetches in self.callers:
            self.scheduler.release([fetch for fetch in fetches if not fetch.done])
        self.scheduler.cancel(range(20))
        for fetch in self.running:
            finish(self.scheduler, fetch)
        assert self.scheduler.start() == []
        assert at_rest(self.scheduler)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=examples(80), stateful_step_count=40)
