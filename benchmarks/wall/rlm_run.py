"""A scripted RLM over a text on the stand-in, wall clock: the loop of `rlm`, its hooks, a model that takes its time.

The model types at a steady pace after a silence, as an endpoint streams; what it types is a program of
`benchmarks.patterns`. The same run is measured with each policy, in turns.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, cast

from benchmarks import results
from benchmarks.patterns.program import Program
from benchmarks.patterns.texts import FRAME_BYTES, Text
from benchmarks.virtual.play import AFTER
from benchmarks.virtual.suite import PROGRAMS
from benchmarks.wall import guard
from monocontext import Monocontext
from monocontext.engine.prefetch import Prefetch
from monocontext.testing import S3StandIn, profile
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND
from rlm import RLM, ScriptedLM
from rlm.models.lm import Message, Reply
from rlm.trajectory.step import Step

TOKEN_CHARACTERS, TOKENS_PER_SECOND = 4, 120.0
THINK_SIGMA = 0.65


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    size_bytes: int = 1_000_000_000
    profile: str = "far_150"
    nic_bytes_per_second: float = 100e6
    policies: Sequence[str] = ("off", "all")
    programs: Sequence[str] = ("grep and zoom", "linear chunk scan", "literal zooms", "tail first")
    rounds: int = 1
    think_seconds: float = 2.0
    """Median of a call of the root model; shorter than the 3.5 s of the virtual clock, which costs the reader time."""
    sub_call_seconds: float = 0.7
    seed: int = 0


class TypingLM(ScriptedLM):
    """Replies of a conversation, typed at the pace of an endpoint. `heard` is told what the last code printed."""

    def __init__(self, program: Program, text: Text, think_seconds: float, seed: int) -> None:
        super().__init__(self._next_turn)
        self._talk = program.talk(text)
        self._dice = Random(f"typing {seed} {program.name}")
        self._think_seconds = think_seconds
        self._printed: str | None = None

    def heard(self, step: Step) -> None:
        if step.cells:
            self._printed = step.cells[-1].result.stdout
            if step.cells[-1].result.stderr:
                raise AssertionError(f"code of a program failed: {step.cells[-1].result.stderr}")

    def _next_turn(self, messages: Any) -> str:
        try:
            code = next(self._talk) if self._printed is None else self._talk.send(self._printed)
        except StopIteration as end:
            return f"FINAL({end.value})"
        return f"Let me look.\n\n```repl\n{code}{AFTER}```\n"

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        reply = super().complete(messages, model=model)
        tokens = [reply.text[at : at + TOKEN_CHARACTERS] for at in range(0, len(reply.text), TOKEN_CHARACTERS)]
        seconds = max(0.7, self._think_seconds * math.exp(THINK_SIGMA * self._dice.gauss(0.0, 1.0)))
        writing = min(len(tokens) / TOKENS_PER_SECOND, 0.8 * seconds)
        time.sleep(seconds - writing)
        began = time.perf_counter()
        for number, token in enumerate(tokens):
            time.sleep(max(0.0, began + writing * number / len(tokens) - time.perf_counter()))
            if on_delta:
                on_delta(token)
        return reply


def run(plan: Plan, told: Callable[[str], object] = print) -> dict[str, Any]:
    """Measure. Raises `AssertionError` where an answer is not the truth."""
    guards = guard.measure()
    rows = [row for program in PROGRAMS if program.name in plan.programs for row in _measure(program, plan, told)]
    judged = guard.may_judge(guards, profile(plan.profile).parts[0].median_seconds, plan.nic_bytes_per_second)
    return results.make("rlm", plan.seed, asdict(plan), rows, guard=guards, judged=judged)


def _measure(program: Program, plan: Plan, told: Callable[[str], object]) -> list[dict[str, Any]]:
    text = program.text(max(8, plan.size_bytes // FRAME_BYTES))
    taken: dict[str, list[dict[str, float]]] = {policy: [] for policy in plan.policies}
    with S3StandIn(
        program.store(text, filters=True),
        latency=plan.profile,
        connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND,
        link_bytes_per_second=plan.nic_bytes_per_second,
        seed=plan.seed,
    ) as server:
        for _ in range(plan.rounds):
            for policy in plan.policies:
                one = _complete(program, text, policy, plan, server)
                taken[policy].append(one)
                told(
                    f"{program.name:20} {policy:8} waited {one['wait_seconds']:6.2f} s of {one['seconds']:6.1f} s, "
                    f"{one['bytes'] / 1e6:.1f} MB"
                )
    return [
        {"program": program.name, "policy": policy, "rounds": len(runs)}
        | {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        for policy, runs in taken.items()
    ]


def _complete(program: Program, text: Text, policy: str, plan: Plan, server: S3StandIn) -> dict[str, float]:
    model = TypingLM(program, text, plan.think_seconds, plan.seed)

    def answer(prompt: str) -> str:
        time.sleep(plan.sub_call_seconds)
        return program.answer(prompt)

    server.reset_counts()
    with Monocontext.open(
        server.url(), endpoint=server.endpoint, anonymous=True, prefetch=cast(Prefetch, policy)
    ) as context:
        opened = context.stats.wait_seconds
        began = time.perf_counter()
        said = RLM(lm=model, sub_lm=ScriptedLM(answer), on_step=model.heard, output_limit=200_000).completion(
            "What is asked for?", context
        )
        seconds = time.perf_counter() - began
        if said.answer != text.truth:
            raise AssertionError(f"{program.name} found {said.answer!r}, planted was {text.truth!r}")
        return {
            "seconds": seconds,
            "wait_seconds": context.stats.wait_seconds - opened,
            "gets": float(server.requests),
            "bytes": float(server.bytes_sent),
        }
