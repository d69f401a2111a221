"""Run one program on a virtual clock: code streams into `hint` while the model thinks, then the code runs.

The engine is real; its workers, the link and the clock are simulated. Random numbers depend on the seed and the name of
the program alone, so the model thinks equally long under each policy.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from random import Random
from typing import Any, cast

from benchmarks.patterns.program import Program
from benchmarks.patterns.texts import FRAME_BYTES, Text
from benchmarks.virtual.workers import Distance, LinkedWorkers, MeteredStore
from monocontext import Monocontext, regex
from monocontext.engine.prefetch import Prefetch
from tests.simulated import VirtualClock

THINK_MEDIAN_SECONDS = 3.5
THINK_SIGMA = 0.65
THINK_LEAST_SECONDS = 0.7
"""A call of the root model takes log-normal time, after published traces (p10 1.5, p90 8, p99 16)."""
SUB_CALL_SECONDS = 2.5
BATCH_TIMES = 1.3
"""The time of up to twenty sub-calls at once, against that of one."""
BATCH = 20
TOKENS_PER_SECOND = 120.0
TOKEN_CHARACTERS = 4
CACHE_BYTES = 256 << 20
PROSE_BEFORE = "Let me look at the text.\n\n```repl\n"
"""The beginning of a reply, before its code."""
AFTER = (
    "# What comes next depends on what this shows: if it is what was asked for, answer; if it is not, look\n"
    "# for another word, or read on around this place, and compare both before deciding.\ndone = False\n"
)
"""The end of each reply: in published replies some 50 tokens of code follow a literal address."""
FENCE = "```\n"
_METHODS = (
    "__getitem__", "__contains__", "__iter__", "find", "rfind", "count", "split", "splitlines", "chunks", "lower",
)  # fmt: skip
_FUNCTIONS = ("finditer", "findall", "search")


@dataclass(frozen=True, slots=True)
class Setting:
    """The conditions of a run."""

    frames: int
    distance: Distance
    seed: int = 0
    cache_bytes: int = CACHE_BYTES
    hedge: bool = True


@dataclass(slots=True)
class Played:
    """The result of one run."""

    answer: str
    truth: str
    codes: list[str]
    outputs: list[str]
    """The printed output of each turn."""
    operations: list[Operation]
    stall_seconds: float
    """Without the GET of the root, which is over before the first call of the model."""
    gets: int
    bytes: int
    index_bytes: int
    ahead_bytes: int
    ahead_used_bytes: int
    skipped_share: float
    """The share of frames that filters excluded from searches."""


def play(program: Program, text: Text, policy: str, setting: Setting) -> Played:
    """Run a program. Raises what its code raises."""
    clock = VirtualClock()
    workers = LinkedWorkers(setting.distance, setting.seed, clock)
    store = MeteredStore(program.store(text, filters=True), setting.distance, clock, setting.seed)

    def count_used() -> int:
        return context.stats.bytes_used + store.index_bytes

    recorder = Recorder(count_used)
    context = make_traced_class(recorder).open(
        store,
        cache_bytes=min(setting.cache_bytes, program.cache_bytes or setting.cache_bytes),
        workers=workers,
        hedge="p99" if setting.hedge else None,
        prefetch=cast(Prefetch, policy),
    )
    stage = _Stage(program, context, workers, recorder, setting)
    conversation = program.talk(text)
    printed = ""
    codes: list[str] = []
    outputs: list[str] = []
    try:
        while True:
            code = conversation.send(printed) if codes else next(conversation)
            codes.append(code)
            stage.think(code + AFTER)
            printed = stage.run(code + AFTER)
            outputs.append(printed)
    except StopIteration as end:
        answer = end.value
    recorder.settle()
    stats = context.stats
    played = Played(
        answer=answer,
        truth=text.truth,
        codes=codes,
        outputs=outputs,
        operations=recorder.operations,
        stall_seconds=workers.stalled_seconds,
        gets=store.gets,
        bytes=store.bytes,
        index_bytes=store.index_bytes,
        ahead_bytes=stats.prefetch.bytes_fetched,
        ahead_used_bytes=stats.prefetch.bytes_used,
        skipped_share=stats.search.pruned / stats.search.frames if stats.search.frames else 0.0,
    )
    context.close()
    return played


def ideal(program: Program, text: Text, setting: Setting) -> Played:
    """Run a program without any waiting: it shows which bytes each operation is the first to need."""
    near = Distance("zero", 1e15)
    room = max(setting.cache_bytes, min(4 * text.frames * FRAME_BYTES, 1 << 30))
    unbounded = replace(setting, distance=near, cache_bytes=room, hedge=False)
    return play(replace(program, cache_bytes=None), text, "off", unbounded)


class _Stage:
    """The REPL of a run: lets time pass for the model, and holds the namespace of its code."""

    def __init__(
        self, program: Program, context: Monocontext, workers: LinkedWorkers, recorder: Recorder, setting: Setting
    ) -> None:
        self._program = program
        self._context = context
        self._workers = workers
        self._recorder = recorder
        self._dice = Random(f"think {setting.seed} {program.name}")
        self._printed: list[str] = []
        self._regex = TracedRegex(recorder)
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
        reply = PROSE_BEFORE + code + FENCE
        tokens = [reply[at : at + TOKEN_CHARACTERS] for at in range(0, len(reply), TOKEN_CHARACTERS)]
        writing = min(len(tokens) / TOKENS_PER_SECOND, 0.8 * seconds)
        with self._context.thinking():
            self._pass(seconds - writing)
            for token in tokens:
                self._pass(writing / len(tokens))
                self._context.hint(token)

    def run(self, code: str) -> str:
        self._printed.clear()
        exec(compile(code, "<cell>", "exec"), self._names)
        return "".join(self._printed)

    def _import(self, name: str, *how: Any) -> Any:
        return self._regex if name == "re" else __import__(name, *how)

    def _print(self, *values: object, sep: str = " ") -> None:
        self._printed.append(sep.join(map(str, values)) + "\n")

    def _ask(self, prompt: str) -> str:
        self._pass(SUB_CALL_SECONDS)
        return self._program.answer(prompt)

    def _ask_all(self, prompts: list[str]) -> list[str]:
        for _ in range(0, len(prompts), BATCH):
            self._pass(BATCH_TIMES * SUB_CALL_SECONDS)
        return [self._program.answer(prompt) for prompt in prompts]

    def _pass(self, seconds: float) -> None:
        self._workers.pass_time(seconds)
        self._recorder.free_seconds += seconds


@dataclass(slots=True)
class Operation:
    """One operation on the text."""

    free_seconds: float
    """Time of thinking and sub-calls until this operation; time of waiting for storage is left out."""
    used_bytes: int = 0
    """Stored bytes that it was the first to use, those of the index and filters included."""


class Recorder:
    """The operations of one run. `used` gives the number of bytes used so far."""

    def __init__(self, used: Callable[[], int]) -> None:
        self.operations: list[Operation] = []
        self.free_seconds = 0.0
        self._used = used
        self._counted = 0

    def begin(self) -> None:
        """Begin an operation, which ends the one before."""
        self.settle()
        self.operations.append(Operation(self.free_seconds))

    def settle(self) -> None:
        """Count the bytes used since the last call for the last operation."""
        used = self._used()
        if self.operations:
            self.operations[-1].used_bytes += used - self._counted
        self._counted = used

    def record(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with each call on a context recorded as an operation."""

        @wraps(function)
        def recorded(*args: Any, **options: Any) -> Any:
            if any(isinstance(each, Monocontext) for each in args):
                self.begin()
            return function(*args, **options)

        return recorded


def make_traced_class(recorder: Recorder) -> type[Monocontext]:
    """A class of contexts whose operations are recorded. An iterator counts for the operation that made it."""
    methods = {name: recorder.record(getattr(Monocontext, name)) for name in _METHODS}
    return type("Traced", (Monocontext,), {"__slots__": (), **methods})


class TracedRegex:
    """The module `re` for code over a traced context."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        found = getattr(regex, name)
        return self._recorder.record(found) if name in _FUNCTIONS else found
