"""Run DSPy signatures over a memory of any size with `dspy.RLM`: the model reads it by code, in parts."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dspy

from monocontext.adapters.dspy import interpreter
from monocontext.memory.dspy.signatures import ExploreMemory, SynthesizeMemories
from monocontext.memory.dspy.temporal_range import ends_of
from monocontext.text.from_str import wrap_str
from monocontext.text.monocontext import Monocontext

MEMORY_FIELDS = frozenset({"memory_context", "memory_bank", "memory_database", "agent_memories"})
_LONG = 20_000
"""Characters. A longer `str` in another field is made lazy, too: `dspy.RLM` sends a `str` again with every step."""


class MemoryRLM(dspy.Module):  # type: ignore[misc]
    """Run a signature over memories with `dspy.RLM`.

        MemoryRLM(MemoryChainReasoning)(question="Who broke the build?", memory_bank=memory).answer

    A memory is a `Monocontext`, a `str`, or an object with a `context()`: a `Memory`, a project of `Sessions`. Any
    signature takes two more arguments: `search_depth` (see `run_limits`) and `temporal_range`, which keeps only a
    project's turns in that time (see `temporal_range` for the words). For other memories, and with unknown words, it is
    advice to the model. Options are those of `dspy.RLM`, except `interpreter_factory`: code runs in our confined worker
    (`runner`, as in `monocontext.dspy.interpreter`).
    """

    def __init__(self, signature: Any, *, runner: str = "confined", **options: Any) -> None:
        super().__init__()
        self._interpreter = partial(interpreter, runner=runner)
        self.signature = dspy.Signature(signature) if isinstance(signature, str) else signature
        self.options = {name: value for name, value in options.items() if value is not None}

    def forward(self, **inputs: Any) -> Any:
        """The prediction of one run. Raises `ValueError` for a `search_depth` below 1."""
        rlm, value = self._prepare(inputs)
        return rlm(**value)

    async def aforward(self, **inputs: Any) -> Any:
        """The prediction of one run, for `acall`. Texts are opened and cells run in the thread of the event loop."""
        rlm, value = self._prepare(inputs)
        return await rlm.acall(**value)

    def _prepare(self, inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """A `dspy.RLM` whose code runs in our worker, and its inputs."""
        options = dict(self.options)
        if inputs.get("search_depth") is not None:
            options = run_limits(inputs["search_depth"]) | options
        words = inputs.get("temporal_range") or ""
        arguments = {name: value for name, value in inputs.items() if name in self.signature.input_fields}
        texts = {
            name: text for name, value in arguments.items() if (text := _lazy_text(name, value, words)) is not None
        }
        lazy = self._interpreter(texts)
        return dspy.RLM(self.signature, interpreter_factory=lazy, **options), arguments | lazy.inputs


class MemoryAgent(dspy.Module):  # type: ignore[misc]
    """Explores a memory for facts about a query, then makes one answer of them.

    `options` are those of `MemoryRLM`: `sub_lm`, `runner`, ...
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.explore = MemoryRLM(ExploreMemory, **options)
        self.synthesize = MemoryRLM(SynthesizeMemories, **options)

    def forward(self, query: str, memory_db: Any, search_depth: int = 3, temporal_range: str = "all time") -> Any:
        """A prediction of `exploration`, `memories`, `synthesis`, `confidence` and `evidence`."""
        explore, synthesize = _questions(query, memory_db, search_depth, temporal_range)
        return _combine(self.explore(**explore), self.synthesize(**synthesize))

    async def aforward(
        self, query: str, memory_db: Any, search_depth: int = 3, temporal_range: str = "all time"
    ) -> Any:
        """Like `forward`, for `acall`."""
        explore, synthesize = _questions(query, memory_db, search_depth, temporal_range)
        return _combine(await self.explore.acall(**explore), await self.synthesize.acall(**synthesize))


def _questions(query: str, memory_db: Any, search_depth: int, temporal_range: str) -> tuple[dict[str, Any], ...]:
    """The inputs of both modules of an agent, which share one open text."""
    memory = text_of(memory_db, temporal_range)
    return (
        {"query": query, "memory_context": memory, "search_depth": search_depth},
        {
            "task": query, "memory_database": memory, "temporal_range": temporal_range, "search_depth": search_depth,
        },
    )  # fmt: skip


def _combine(exploration: Any, synthesis: Any) -> Any:
    """The prediction of an agent, from those of its two modules."""
    return dspy.Prediction(
        exploration=exploration.exploration_strategy,
        memories=exploration.relevant_memories,
        synthesis=synthesis.synthesis,
        confidence=exploration.confidence,
        evidence=synthesis.supporting_evidence,
    )


def run_limits(search_depth: int) -> dict[str, int]:
    """The limits of `search_depth` explorations: each a step to search and a step to read, and four sub-calls."""
    if isinstance(search_depth, bool) or not isinstance(search_depth, int) or search_depth < 1:
        raise ValueError(f"search_depth must be a number of explorations, 1 or more, not {search_depth!r}")
    return {"max_iters": 2 + 2 * search_depth, "max_llm_calls": 4 * search_depth}


def text_of(memory: Any, temporal_range: str = "") -> Monocontext:
    """A memory as a lazy text; of a project only the turns in that time. Raises `TypeError` for any other value."""
    if isinstance(memory, Monocontext):
        return memory
    if isinstance(memory, str):
        return wrap_str(memory)
    if not callable(getattr(memory, "context", None)):
        raise TypeError(
            f"a memory must be a Monocontext, a str or an object with a context(), not {type(memory).__name__}"
        )
    ends = ends_of(temporal_range, datetime.now(UTC))
    narrows = ends is not None and "since" in inspect.signature(memory.context).parameters
    text = memory.context(since=ends[0], until=ends[1]) if ends and narrows else memory.context()
    if not isinstance(text, Monocontext):
        raise TypeError(f"context() of {type(memory).__name__} must return a Monocontext, not {type(text).__name__}")
    return text


def _lazy_text(name: str, value: Any, words: str) -> Monocontext | None:
    """The lazy text for the value of a field; None if the value is passed on unchanged."""
    if isinstance(value, str):
        return wrap_str(value) if name in MEMORY_FIELDS or len(value) > _LONG else None
    if name in MEMORY_FIELDS or isinstance(value, Monocontext):
        return text_of(value, words)
    return None
