"""Run DSPy signatures over a memory of any size with `dspy.RLM`: the model reads it by code, in parts."""

from __future__ import annotations

from functools import partial
from typing import Any

import dspy

from monocontext.adapters.dspy import interpreter
from monocontext.memory.dspy.signatures import ExploreMemory, SynthesizeMemories
from monocontext.text.from_str import wrap_str
from monocontext.text.monocontext import Monocontext

MEMORY_FIELDS = frozenset({"memory_context", "memory_bank", "memory_database", "agent_memories"})
_LONG = 20_000
"""Characters. A longer `str` in another field is made lazy, too: `dspy.RLM` sends a `str` again with every step."""


class MemoryRLM(dspy.Module):  # type: ignore[misc]
    """Run a signature over memories with `dspy.RLM`.

        MemoryRLM(MemoryChainReasoning)(question="Who broke the build?", memory_bank=memory).answer

    A memory is a `Monocontext`, a `str`, or an object with a `context()`: a `Memory`, a project of `Sessions`. Any
    signature takes one more argument, `search_depth` (see `run_limits`). Options are those of `dspy.RLM`, except
    `interpreter_factory`: code runs in our confined worker (`runner`, as in `monocontext.dspy.interpreter`).
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
        arguments = {name: value for name, value in inputs.items() if name in self.signature.input_fields}
        texts = {name: text for name, value in arguments.items() if (text := _lazy_text(name, value)) is not None}
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
    memory = text_of(memory_db)
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


def text_of(memory: Any) -> Monocontext:
    """A memory as a lazy text. Raises `TypeError` for a value that is none."""
    if isinstance(memory, str):
        return wrap_str(memory)
    text = memory.context() if callable(getattr(memory, "context", None)) else memory
    if not isinstance(text, Monocontext):
        raise TypeError(
            f"a memory must be a Monocontext, a str or an object whose context() is one, not {type(memory).__name__}"
        )
    return text


def _lazy_text(name: str, value: Any) -> Monocontext | None:
    """The lazy text for the value of a field; None if the value is passed on unchanged."""
    if isinstance(value, str):
        return wrap_str(value) if name in MEMORY_FIELDS or len(value) > _LONG else None
    return text_of(value) if name in MEMORY_FIELDS or isinstance(value, Monocontext) else None
