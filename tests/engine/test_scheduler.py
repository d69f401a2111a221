"""The scheduler, event by event: no threads, no time, no I/O."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from monocontext.engine.fetch.scheduler import Fetch, FetchItem, Priority, Scheduler
from tests.budget import examples

BUDGET = 1000
CONNECTIONS = 3


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
    return (scheduler.running, scheduler.reserved_bytes, scheduler._by_key) == (0, 0, {})


def test_single_flight() -> None:
    scheduler = Scheduler(CONNECTIONS, BUDGET)
    first = scheduler.want([need(1)], Priority.DEMAND)[1]
    assert scheduler.want([need(1)], Priority.DEMAND)[1] is first
    assert scheduler.start() == [first]
    assert scheduler.start() == []
    assert scheduler.want([need(1)], Priority.DEMAND)[1] is first  # running: joined, not fetched again
    assert scheduler.start() == []
    finish(scheduler, first)
    assert at_rest(scheduler)
    assert scheduler.want([need(1)], Priority.DEMAND)[1] is not first


def test_needs_that_lie_together_are_one_fetch() -> None:
    scheduler = Scheduler(CONNECTIONS, BUDGET)
    found = scheduler.want([near(1), near(2)], Priority.DEMAND)
    assert found[1] is found[2]
    wider = scheduler.want([near(0), near(1), near(2), near(3)], Priority.DEMAND)
    assert wider[1] is found[1]  # what is under way is joined, only the rest is new
    assert {fetch.request.start for fetch in wider.values()} == {0, 100, 300} or wider[0] is wider[3]
    assert sum(len(fetch.request.items) for fetch in {id(f): f for f in wider.values()}.values()) == 4


def test_order_of_start_is_priority_then_arrival() -> None:
    scheduler = Scheduler(1, BUDGET)
    wanted = [Priority.WARM_UP, Priority.SEQUENTIAL, Priority.DEMAND, Priority.LITERAL_HINT, Priority.DEMAND]
    fetches = [scheduler.want([need(i)], priority)[i] for i, priority in enumerate(wanted)]
    order = []
    while started := scheduler.start():
        order += started
        finish(scheduler, started[0])
    assert [fetches.index(fetch) for fetch in order] == [2, 4, 3, 1, 0]


def test_adoption_raises_the_priority() -> None:
    scheduler = Scheduler(1, BUDGET)
    running = scheduler.want([need(0)], Priority.DEMAND)[0]
    assert scheduler.start() == [running]
    speculative = scheduler.want([need(1)], Priority.WARM_UP)[1]
    other = scheduler.want([need(2)], Priority.SEQUENTIAL)[2]
    assert scheduler.want([need(1)], Priority.DEMAND)[1] is speculative
    assert speculative.priority == Priority.DEMAND
    finish(scheduler, running)
    assert scheduler.start() == [speculative]
    finish(scheduler, speculative)
    assert scheduler.start() == [other]  # and the old entry of the raised one is not started twice
    finish(scheduler, other)
    assert scheduler.start() == []
    assert at_rest(scheduler)


def test_adoption_never_lowers_the_priority() -> None:
    scheduler = Scheduler(1, BUDGET)
    fetch = scheduler.want([need(1)], Priority.DEMAND)[1]
    scheduler.want([need(1)], Priority.WARM_UP)
    assert fetch.priority == Priority.DEMAND


def test_release_drops_what_is_queued() -> None:
    scheduler = Scheduler(1, BUDGET)
    running = scheduler.want([need(0)], Priority.DEMAND)[0]
    scheduler.start()
    queued = scheduler.want([need(1)], Priority.DEMAND)[1]
    scheduler.release([running, queued])
    finish(scheduler, running)
    assert scheduler.start() == []
    assert at_rest(scheduler)
    assert scheduler.want([need(1)], Priority.DEMAND)[1] is not queued


def test_release_does_not_drop_what_another_waits_for() -> None:
    scheduler = Scheduler(1, BUDGET)
    queued = scheduler.want([need(1)], Priority.DEMAND)[1]
    scheduler.want([need(1)], Priority.DEMAND)
    scheduler.release([queued])
    assert scheduler.start() == [queued]


def test_release_does_not_stop_what_runs() -> None:
    scheduler = Scheduler(1, BUDGET)
    fetch = scheduler.want([need(1)], Priority.DEMAND)[1]
    scheduler.start()
    scheduler.release([fetch])
    assert scheduler.running == 1
    assert scheduler.want([need(1)], Priority.DEMAND)[1] is fetch
    finish(scheduler, fetch)
    assert at_rest(scheduler)


def test_released_once_for_a_fetch_of_several_needs() -> None:
    scheduler = Scheduler(1, BUDGET)
    found = scheduler.want([near(1), near(2), near(3)], Priority.DEMAND)
    scheduler.want([near(2)], Priority.DEMAND)
    scheduler.release([found[1], found[2], found[3]])
    assert found[1].waiters == 1


def test_the_budget_is_reserved_before_the_start() -> None:
    scheduler = Scheduler(10, BUDGET)
    fetches = [scheduler.want([need(i, 400)], Priority.DEMAND)[i] for i in range(4)]
    assert scheduler.start() == fetches[:2]
    assert scheduler.reserved_bytes == 800
    finish(scheduler, fetches[0])
    assert scheduler.start() == [fetches[2]]


def test_one_fetch_is_let_through_whatever_its_size() -> None:
    scheduler = Scheduler(10, BUDGET)
    huge = [scheduler.want([need(i, 10 * BUDGET)], Priority.DEMAND)[i] for i in range(2)]
    assert scheduler.start() == huge[:1]
    assert scheduler.start() == []
    finish(scheduler, huge[0])
    assert scheduler.start() == huge[1:]
    finish(scheduler, huge[1])
    assert at_rest(scheduler)


def test_a_large_fetch_is_not_overtaken_for_ever() -> None:
    scheduler = Scheduler(10, BUDGET)
    small = scheduler.want([need(0, 600)], Priority.DEMAND)[0]
    large = scheduler.want([need(1, 900)], Priority.DEMAND)[1]
    scheduler.want([need(2, 10)], Priority.DEMAND)
    assert scheduler.start() == [small]
    finish(scheduler, small)
    assert scheduler.start()[0] is large


def test_drop_queued_leaves_what_runs() -> None:
    scheduler = Scheduler(1, BUDGET)
    running, queued = (scheduler.want([need(i)], Priority.DEMAND)[i] for i in range(2))
    scheduler.want([need(1)], Priority.DEMAND)
    scheduler.start()
    assert scheduler.drop_queued() == [queued]
    finish(scheduler, running)
    assert scheduler.start() == []
    assert at_rest(scheduler)


def test_a_second_attempt_goes_first_and_is_counted() -> None:
    scheduler = Scheduler(2, BUDGET)
    late, other = (scheduler.want([need(i)], Priority.DEMAND)[i] for i in range(2))
    assert scheduler.start() == [late, other]
    queued = scheduler.want([need(2)], Priority.DEMAND)[2]
    scheduler.repeat(late)
    assert scheduler.start() == []
    finish(scheduler, other)
    assert scheduler.start() == [late]
    assert (late.attempts, scheduler.running, scheduler.reserved_bytes) == (2, 2, 200)
    finish(scheduler, late)  # one of them brought it: its keys are free, the other attempt's bytes are not
    assert scheduler.want([need(0)], Priority.DEMAND)[0] is not late
    assert (scheduler.running, scheduler.reserved_bytes) == (1, 100)
    assert scheduler.start() == [queued]
    scheduler.finish(late)
    assert (scheduler.running, scheduler.reserved_bytes) == (1, 100)


def test_a_failed_attempt_leaves_the_fetch_to_the_other() -> None:
    scheduler = Scheduler(2, BUDGET)
    late = scheduler.want([need(0)], Priority.DEMAND)[0]
    scheduler.start()
    scheduler.repeat(late)
    assert scheduler.start() == [late]
    scheduler.finish(late)  # without values
    assert scheduler.want([need(0)], Priority.DEMAND)[0] is late
    late.error, late.done = OSError(), True
    scheduler.finish(late)
    assert at_rest(scheduler)


def test_a_second_attempt_of_what_is_done_is_not_started() -> None:
    scheduler = Scheduler(1, BUDGET)
    late = scheduler.want([need(0)], Priority.DEMAND)[0]
    scheduler.start()
    scheduler.repeat(late)
    finish(scheduler, late)
    assert scheduler.start() == []
    assert at_rest(scheduler)


def test_after_a_fork_each_fetch_has_one_attempt() -> None:
    scheduler = Scheduler(5, BUDGET)
    done, late, plain = (scheduler.want([need(i)], Priority.DEMAND)[i] for i in range(3))
    scheduler.start()
    scheduler.repeat(done)
    scheduler.repeat(late)
    assert scheduler.start() == [done, late]
    finish(scheduler, done)
    queued = scheduler.want([need(3)], Priority.DEMAND)[3]
    assert scheduler.restart_after_fork() == [late, plain]
    assert (scheduler.running, scheduler.reserved_bytes) == (2, 200)
    assert scheduler.start() == [queued]
    for fetch in (late, plain, queued):
        finish(scheduler, fetch)
    assert at_rest(scheduler)


def test_repr_is_the_instrument_panel() -> None:
    scheduler = Scheduler(1, BUDGET)
    scheduler.want([need(1)], Priority.DEMAND)
    scheduler.want([need(2)], Priority.DEMAND)
    scheduler.start()
    assert repr(scheduler) == "<Scheduler 1 running, 1 queued, 100/1,000 bytes reserved>"


class AnyOrderOfEvents(RuleBasedStateMachine):
    """Callers come, wait or go; requests start and end in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(CONNECTIONS, BUDGET)
        self.callers: list[list[Fetch]] = []
        self.running: list[Fetch] = []
        self.seen: dict[int, Fetch] = {}
        self.hedged: dict[int, Fetch] = {}

    @rule(
        first=st.integers(0, 20),
        count=st.integers(1, 4),
        apart=st.booleans(),
        priority=st.sampled_from(list(Priority)),
    )
    def want(self, first: int, count: int, apart: bool, priority: Priority) -> None:
        keys = range(first, first + count)
        wanted = [need(100 + key, 50 * key + 1) if apart else near(key) for key in keys]
        found = self.scheduler.want(wanted, priority)
        assert set(found) == {one.key for one in wanted}
        for one in wanted:
            assert one in found[one.key].request.items
            assert found[one.key].started or found[one.key].priority <= priority
        self.callers.append(list(found.values()))
        self.seen |= {id(fetch): fetch for fetch in found.values()}

    @rule()
    def start(self) -> None:
        waiting = [f for f in self.seen.values() if not f.started and f.waiters]
        started = self.scheduler.start()
        if not self.running and waiting:
            assert started
        again = [fetch for fetch in started if fetch in self.running]
        assert started[: len(again)] == again
        assert all(fetch.attempts == 2 for fetch in again)
        started = started[len(again) :]
        self.running += again
        for fetch in started:
            assert fetch.started
            assert fetch.waiters
            left = [f for f in waiting if not f.started]
            assert all(fetch.priority <= other.priority for other in left)
        assert [f.priority for f in started] == sorted(f.priority for f in started)
        self.running += started

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 99))
    def hedge(self, which: int) -> None:
        fetch = self.running[which % len(self.running)]
        if fetch.attempts == 1 and not fetch.done and id(fetch) not in self.hedged:
            self.hedged[id(fetch)] = fetch
            self.scheduler.repeat(fetch)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 99), fails=st.booleans())
    def finish(self, which: int, fails: bool) -> None:
        fetch = self.running.pop(which % len(self.running))
        if not fails:
            fetch.values, fetch.done = {}, True
        elif fetch.attempts == 1 and not fetch.done:
            fetch.error, fetch.done = OSError(), True
        self.scheduler.finish(fetch)

    @precondition(lambda self: self.callers)
    @rule(which=st.integers(0, 99))
    def leave(self, which: int) -> None:
        fetches = self.callers.pop(which % len(self.callers))
        self.scheduler.release([fetch for fetch in fetches if not fetch.done])

    @invariant()
    def limits(self) -> None:
        sizes = [fetch.request.memory_bytes for fetch in self.running]
        assert self.scheduler.running == len(self.running) <= CONNECTIONS
        assert self.scheduler.reserved_bytes == sum(sizes)
        assert sum(sizes) <= BUDGET or len(sizes) == 1

    @invariant()
    def single_flight(self) -> None:
        under_way = [f for f in self.seen.values() if not f.done and (f.started or f.waiters)]
        keys = [one.key for fetch in under_way for one in fetch.request.items]
        assert len(keys) == len(set(keys))
        assert set(self.scheduler._by_key) == set(keys)

    def teardown(self) -> None:
        for fetches in self.callers:
            self.scheduler.release([fetch for fetch in fetches if not fetch.done])
        for fetch in self.running:
            finish(self.scheduler, fetch)
        assert self.scheduler.start() == []
        assert at_rest(self.scheduler)


TestAnyOrderOfEvents = AnyOrderOfEvents.TestCase
TestAnyOrderOfEvents.settings = settings(max_examples=examples(60), stateful_step_count=40)
