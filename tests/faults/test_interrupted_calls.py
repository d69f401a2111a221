"""Interrupts at random moments of calls of models: no budget stays reserved, nobody waits for ever, clocks stop."""

from __future__ import annotations

import time
from contextlib import nullcontext
from random import Random

import pytest

from rlm import Budget, ScriptedLM, SubCache, Usage
from rlm.calls.gateway import Gateway
from rlm.calls.subcalls import SubCalls

from .interrupting import WAYS, Interrupted, Interrupter, soon
from .test_interrupts import interrupted


def campaign(way: str, interrupts: int, seed: int) -> str:
    random, interrupter = Random(seed), Interrupter(way, seed)
    usage = Usage()
    gateway = Gateway(usage, Budget(calls=10**9), cache=SubCache())
    calls = SubCalls(ScriptedLM(str.upper), usage, gateway=gateway)
    with interrupter.ready():
        while interrupter.struck < interrupts:
            number = random.randrange(1 << 30)
            prompts = [f"a{number + i}" for i in range(random.randrange(1, 20))]
            with soon():
                if random.random() < 0.5:
                    result = interrupter.strike(lambda: calls.llm_query(prompts[0]), "one")  # noqa: B023
                    assert result in (Interrupted, prompts[0].upper())
                else:
                    result = interrupter.strike(lambda: calls.llm_query_batched(prompts), "batch")  # noqa: B023
                    assert result in (Interrupted, [prompt.upper() for prompt in prompts])
            with soon():
                assert calls.llm_query_batched(prompts) == [prompt.upper() for prompt in prompts]
    end = time.monotonic() + 30
    while gateway._in_progress:
        assert time.monotonic() < end, gateway._in_progress
        time.sleep(0.01)
    waited = calls.waited.seconds
    time.sleep(0.02)
    assert calls.waited.seconds == waited, "the clock of a cell would stand still"
    return f"{way}, seed {seed}: {interrupter.struck} struck"


@pytest.mark.slow
@pytest.mark.parametrize("interrupts", [10, pytest.param(340, marks=[pytest.mark.fuzz, pytest.mark.timeout(1200)])])
@pytest.mark.parametrize("way", WAYS)
def test_an_interrupted_call_leaves_nothing_behind(way: str, interrupts: int) -> None:
    interrupted(nullcontext(), way, lambda _: campaign(way, interrupts, seed=1))
