"""When to ask again and how long to wait: by numbers alone."""

from __future__ import annotations

import pytest

from monocontext.stores.http.client import MOST_RETRIES, RetryBudget
from monocontext.stores.http.timer import SLOWEST_BYTES_PER_SECOND, ExchangeTimer, Overdue, Pace, Stalled


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def timer_of(
    time: Time, timeout: float, most: float, end: float, retry: bool, pace: Pace | None = None
) -> ExchangeTimer:
    return ExchangeTimer(
        timeout_seconds=timeout, longest_silence_seconds=most, deadline=time.now + end, clock=time,
        can_retry=lambda: retry, pace=pace,
    )  # fmt: skip


def test_a_tenth_of_the_successes_may_be_asked_twice() -> None:
    budget = RetryBudget(Time(), most=3)
    assert [budget.take() for _ in range(4)] == [True, True, True, False]
    taken = 0
    for _ in range(1000):
        budget.add_success()
        taken += budget.take()
    assert 99 <= taken <= 100


def test_the_budget_fills_again_to_its_floor() -> None:
    time = Time()
    budget = RetryBudget(time)
    while budget.take():
        pass
    time.now += 1.5
    assert (budget.take(), budget.take()) == (True, False)
    time.now += 1e6
    assert sum(budget.take() for _ in range(1000)) == MOST_RETRIES


def test_the_timeout_is_four_times_the_slowest_in_a_hundred() -> None:
    pace = Pace(10.0)
    assert [pace.timeout_after(silences) for silences in range(5)] == [1, 2, 4, 8, 10]
    for _ in range(200):
        pace.add_first_byte(0.03)
    assert pace.timeout_seconds == 1.0
    pace.add_first_byte(0.5)  # one in 200
    assert pace.timeout_seconds == 1.0
    for _ in range(10):
        pace.add_first_byte(0.5)
    assert pace.timeout_seconds == pytest.approx(2.0)
    for _ in range(300):
        pace.add_first_byte(0.03)
    assert pace.timeout_seconds == 1.0
    for _ in range(300):
        pace.add_first_byte(9.0)
    assert pace.timeout_seconds == 10.0


def test_silence_is_given_up_when_a_retry_can_be_paid_for() -> None:
    time = Time()
    with pytest.raises(Stalled, match=r"the server sent no byte for 1\.0 s"):
        timer_of(time, 1.0, 10.0, 60, True).add_silence()
    poor = timer_of(time, 1.0, 3.0, 60, False)
    assert [poor.add_silence(), poor.add_silence()] == [1.0, 1.0]
    poor.add_bytes(1)
    assert [poor.add_silence(), poor.add_silence()] == [1.0, 1.0]
    with pytest.raises(Stalled, match=r"the server sent no byte for 3\.0 s"):
        poor.add_silence()


def test_no_wait_passes_the_deadline() -> None:
    time = Time()
    timer = timer_of(time, 1.0, 10.0, 1.5, False)
    assert timer.next_timeout() == 1.0
    time.now += 1
    assert timer.add_silence() == 0.5
    time.now += 0.5
    with pytest.raises(Overdue):
        timer.add_silence()


# -- slow bodies -------------------------------------------------------------------------------------------------------


def arriving(timer: ExchangeTimer, time: Time, bytes_per_second: float, seconds: float, step: float = 0.1) -> float:
    """A body that comes at some speed for so long; returns when it is given up, counted from now."""
    began = time.now
    while time.now < began + seconds:
        time.now += step
        timer.add_bytes(round(bytes_per_second * step))
    return time.now - began


def test_a_body_that_drips_is_given_up_after_a_second() -> None:
    time = Time()
    timer = timer_of(time, 1.0, 10.0, 60, True, Pace(10.0))
    with pytest.raises(Stalled, match=r"the server sent only \d+ bytes in 0\.\d s"):
        arriving(timer, time, 100, 60)
    assert 101.0 < time.now < 101.5


def test_a_new_connection_may_begin_slowly() -> None:
    """14 KB in the first round trip, twice as much in each that follows: at 250 ms 210 KB in the first second."""
    time = Time()
    timer = timer_of(time, 1.0, 10.0, 60, True, Pace(10.0))
    for trip in range(8):
        timer.add_bytes(14_000 << trip)
        time.now += 0.25


def test_all_bodies_of_a_thin_line_are_slow() -> None:
    """16 at once, 15 KB a second each: after half a second all have said so, and none is given up."""
    time, pace = Time(), Pace(10.0)
    for _ in range(16):
        pace.add_speed(90_000_000, 1.0)
    assert pace.slowest_bytes_per_second == SLOWEST_BYTES_PER_SECOND
    waits = [timer_of(time, 1.0, 10.0, 60, True, pace) for _ in range(32)]
    for _ in range(100):
        time.now += 0.1
        for timer in waits:
            timer.add_bytes(1500)
    assert pace.slowest_bytes_per_second == pytest.approx(750, rel=0.05)


def test_without_a_retry_to_pay_with_what_drips_is_waited_for() -> None:
    time = Time()
    arriving(timer_of(time, 1.0, 10.0, 60, False, Pace(10.0)), time, 100, 30)
    arriving(timer_of(time, 10.0, 10.0, 60, True), time, 100, 30)  # the last attempt
    with pytest.raises(Overdue):
        arriving(timer_of(time, 10.0, 10.0, 60, True), time, 100, 61)
