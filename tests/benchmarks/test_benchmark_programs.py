"""The programs of the virtual clock, at the size of CI: truth, determinism, and what they are made of."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from benchmarks.patterns import PROGRAMS
from benchmarks.patterns.program import Program
from benchmarks.patterns.texts import RECORD_BYTES, count_in, day_of, filler, last_line, ordered_context, text_of
from benchmarks.virtual import suite
from benchmarks.virtual.play import play
from benchmarks.virtual.suite import POLICIES, Plan
from benchmarks.virtual.workers import Distance, LinkedWorkers
from monocontext import Monocontext
from monocontext.engine.fetch.requests import FetchItem, FetchRequest

SMALL = Plan(size_bytes=20_000_000, seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_policy_finds_the_truth(program: Program) -> None:
    setting = SMALL.setting(0)
    text = program.text(setting.frames)
    runs = [suite.check_truth(program, play(program, text, policy, setting)) for policy in POLICIES]
    assert all((run.codes, run.outputs) == (runs[0].codes, runs[0].outputs) for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_turn_prints_what_it_prints_on_a_str(program: Program) -> None:
    setting = replace(SMALL, size_bytes=4_000_000).setting(0)
    text = program.text(setting.frames)
    played = suite.check_truth(program, play(program, text, "all", setting))
    whole = Monocontext.open(program.store(text, filters=False))[:]
    printed: list[str] = []
    names = {
        "context": whole,
        "print": lambda *values: printed.append(" ".join(map(str, values)) + "\n"),
        "llm_query": program.answer,
        "llm_query_batched": lambda prompts: [program.answer(prompt) for prompt in prompts],
    }
    for code, expected in zip(played.codes, played.outputs, strict=True):
        printed.clear()
        exec(code, names)
        assert "".join(printed).replace("<class 'str'>", "") == re.sub("<class '.*Monocontext'>", "", expected)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    plan = Plan(size_bytes=4_000_000, seeds=1, programs=("grep", "sampling"))
    once, again = (suite.run(plan) for _ in range(2))
    other = suite.run(replace(plan, seed=5))
    assert once == again
    assert [row["stall_seconds"] for row in once] != [row["stall_seconds"] for row in other]


def test_the_kinds_of_text_are_as_wide_as_they_say() -> None:
    for kind in ("logs", "prose", "code", "cjk"):
        text = text_of(kind, 12)
        assert {len(line) for line in filler(kind).splitlines()} == {text.width - 1}
        at = text.plant(0.5, "one", "two")
        context = Monocontext.open(text.store(filters=True))
        assert len(context) == text.characters
        assert context[at : at + 3] == "one"
        assert context.find("two", at) == at + text.width
        assert len(context[:].encode()) == text.bytes
    with pytest.raises(ValueError, match="unknown kind 'novel'"):
        filler("novel")
    with pytest.raises(ValueError, match="at most 127 characters"):
        text_of("logs", 2).plant(0.0, "x" * 128)


def test_what_is_count_in_in_advance_is_what_is_there() -> None:
    text = text_of("logs", 3)
    text.plant(0.4, "an ALERT and another ALERT here")
    assert count_in(text, "ALERT") == 2
    assert count_in(text, " WARN ") == Monocontext.open(text.store(filters=False)).count(" WARN ")


def test_records_in_order_verify_and_ascend() -> None:
    context = Monocontext.open(ordered_context(130))
    assert len(context) == 130 * RECORD_BYTES
    assert context[-128:] == last_line(129).decode()
    assert context[64 * RECORD_BYTES - 128 : 64 * RECORD_BYTES] == last_line(63).decode()
    days = [day_of(number) for number in range(1000)]
    assert days == sorted(set(days))


def test_ten_gigabytes_take_no_longer_where_little_is_read() -> None:
    plan = Plan(size_bytes=10_000_000_000, seeds=1, programs=("bisection", "tail first"), policies=("off",))
    rows = {(row["program"], row["policy"]): row for row in suite.run(plan)}
    assert rows["bisection", "off"]["amplification"] < 2
    assert rows["tail first", "off"]["skipped"] > 0.9


def test_nobody_reads_all_of_a_terabyte() -> None:
    assert "full pass" not in [program.name for program in Plan(size_bytes=10**12).chosen]
    assert [program.name for program in Plan(programs=("full pass",)).chosen] == ["full pass"]


# -- workers ------------------------------------------------------------------------------------------------


def request(start: int, size: int) -> FetchRequest:
    return FetchRequest("segments/a", start, start + size, (FetchItem(start, "segments/a", start, size, size, bytes),))


def test_requests_share_the_link_and_each_has_its_own_connection() -> None:
    workers = LinkedWorkers(Distance("const_150", 100e6), seed=0)
    done: list[float] = []
    workers.submit(request(0, 9_000_000), lambda: done.append(workers.now()))
    workers.pass_time(1)
    assert done[0] == pytest.approx(0.15 + 9e6 / 90e6)  # alone: the connection's speed
    began = workers.now()
    for number in range(4):
        workers.submit(request(number << 30, 10_000_000), lambda: done.append(workers.now()))
    workers.pass_time(1)
    assert max(done) - began == pytest.approx(0.15 + 40e6 / 100e6, rel=0.01)
    assert min(done[1:]) - began > 0.5  # fairly: none is done long before the others


def arrivals(order: tuple[int, ...]) -> dict[int, float]:
    workers, arrived = LinkedWorkers(Distance("far_150", 1e12), seed=3), {}

    def send(number: int) -> None:
        workers.submit(request(number << 20, 1000), lambda: arrived.update({number: workers.now()}))

    for number in order:
        send(number)
    workers.pass_time(10)
    return arrived


def test_the_same_bytes_take_the_same_time_whoever_asks_first() -> None:
    once = arrivals((0, 1, 2))
    assert once == arrivals((2, 1, 0))
    assert len(set(once.values())) == 3
