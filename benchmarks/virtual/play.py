"""Run one program on a virtual clock: code streams into `hint` while the model thinks, then the code runs.

The engine is real; its workers, the link and the clock are simulated. Random numbers depend on the seed and the name of
the program alone, so the model thinks equally long under each policy.
"""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.patterns.program import Program
from benchmarks.patterns.texts import Text
from benchmarks.virtual.workers import Distance, LinkedWorkers, MeteredStore
from monocontext import Monocontext, regex
from monocontext.engine.prefetch.streams import Prefetch
from tests.simulated import VirtualClock

# A call of the root model takes log-normal time, after published traces (p10 1.5, p90 8, p99 16).
THINK_MEDIAN_SECONDS = 3.5
THINK_SIGMA = 0.65
THINK_LEAST_SECONDS = 0.7
SUB_CALL_SECONDS = 2.5
BATCH_CALLS = 20  # the sub-calls that run at once
BATCH_FACTOR = 1.3  # the time of a batch of sub-calls, as a multiple of that of one
TOKENS_PER_SECOND = 120.0
TOKEN_CHARACTERS = 4
PROSE_BEFORE = "Let me look at the text.\n\n```repl\n"  # the beginning of a reply, before its code
AFTER = (
    "# What comes next depends on what this shows: if it is what was asked for, answer; if it is not, look\n"
    "# for another word, or read on around this place, and compare both before deciding.\ndone = False\n"
)
"""The end of each reply: in published replies some 50 tokens of code follow a literal address."""


@dataclass(slots=True)
class Played:
    """The result of one run."""

    answer: str
    truth: str
    codes: list[str]
    outputs: list[str]  # what each turn printed
    stall_seconds: float  # without the GET of the root, which is over before the first call of the model
    bytes: int
    used_bytes: int  # those that at least one operation used, and those of the index and filters
    ahead_bytes: int
    ahead_used_bytes: int


def play(program: Program, text: Text, policy: Prefetch, distance: Distance, seed: int = 0) -> Played:
    """Run a program over a text with a policy of reading ahead. Raises what the program's code raises."""
    clock = VirtualClock()
    workers = LinkedWorkers(distance, seed, clock)
    store = MeteredStore(program.store(text), distance, clock, seed)
    context = Monocontext.open(store, cache_bytes=program.cache_bytes, workers=workers, prefetch=policy)
    stage, conversation = _Stage(program, context, workers, seed), program.talk(text)
    codes, outputs = list[str](), list[str]()
    with context:
        code = next(conversation)
        while True:
            codes.append(code)
            stage.think(code + AFTER)
            outputs.append(stage.run(code + AFTER))
            try:
                code = conversation.send(outputs[-1])
            except StopIteration as end:
                answer = end.value
                break
        stats = context.stats
    return Played(
        answer, text.truth, codes, outputs, stall_seconds=workers.stalled_seconds, bytes=store.bytes,
        used_bytes=stats.bytes_used + store.index_bytes, ahead_bytes=stats.prefetch.bytes_fetched,
        ahead_used_bytes=stats.prefetch.bytes_used,
    )  # fmt: skip


class _Stage:
    """The REPL of a run: holds the names of the model's code, and lets time pass while the model thinks."""

    def __init__(self, program: Program, context: Monocontext, workers: LinkedWorkers, seed: int) -> None:
        self._program = program
        self._context = context
        self._workers = workers
        self._dice = Random(f"think {seed} {program.name}")
        self._printed: list[str] = []
        self._names: dict[str, Any] = {
            "context": context,
            "__builtins__": {**vars(builtins), "__import__": self._import},
            "llm_query": self._ask,
            "llm_query_batched": self._ask_all,
            "print": self._print,
        }

    def think(self, code: str) -> None:
        """Let the model write a reply: a silence, then tokens at an even pace."""
        seconds = max(THINK_LEAST_SECONDS, THINK_MEDIAN_SECONDS * math.exp(THINK_SIGMA * self._dice.gauss(0.0, 1.0)))
        reply = PROSE_BEFORE + code + "```\n"
        tokens = [reply[offset : offset + TOKEN_CHARACTERS] for offset in range(0, len(reply), TOKEN_CHARACTERS)]
        writing_seconds = min(len(tokens) / TOKENS_PER_SECOND, 0.8 * seconds)
        with self._context.thinking():
            self._workers.pass_time(seconds - writing_seconds)
            for token in tokens:
                self._workers.pass_time(writing_seconds / len(tokens))
                self._context.hint(token)

    def run(self, code: str) -> str:
        self._printed.clear()
        exec(compile(code, "<cell>", "exec"), self._names)
        return "".join(self._printed)

    def _import(self, name: str, *how: Any) -> Any:
        return regex if name == "re" else __import__(name, *how)

    def _print(self, *values: object, sep: str = " ") -> None:
        self._printed.append(sep.join(map(str, values)) + "\n")

    def _ask(self, prompt: str) -> str:
        self._workers.pass_time(SUB_CALL_SECONDS)
        return self._program.answer(prompt)

    def _ask_all(self, prompts: list[str]) -> list[str]:
        for _ in range(0, len(prompts), BATCH_CALLS):
            self._workers.pass_time(BATCH_FACTOR * SUB_CALL_SECONDS)
        return [self._program.answer(prompt) for prompt in prompts]
