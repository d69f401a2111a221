"""The programs of the virtual clock, at the size of CI: truth, determinism, and what they are made of."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from benchmarks.patterns import PROGRAMS
from benchmarks.patterns.program import Program
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
    text = program.text(SMALL.frames)
    runs = [suite.check_truth(program, play(program, text, policy, suite.FAR)) for policy in POLICIES]
    assert all((run.codes, run.outputs) == (runs[0].codes, runs[0].outputs) for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_turn_prints_what_it_prints_on_a_str(program: Program) -> None:
    text = program.text(replace(SMALL, size_bytes=4_000_000).frames)
    played = suite.check_truth(program, play(program, text, "all", suite.FAR))
    whole = Monocontext.open(program.store(text))[:]
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
