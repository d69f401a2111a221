"""Use lazy texts in DSPy (3.4), with signatures and modules that read memories and texts of any size.

    import dspy, monocontext.dspy
    from monocontext import Monocontext

    with Monocontext.open("s3://bucket/prefix") as context:
        lazy = monocontext.dspy.interpreter(context)
        program = dspy.RLM("context, question -> answer", interpreter_factory=lazy)
        print(program(**lazy.inputs, question="Who wrote it?").answer)

    from monocontext.dspy import MemoryAgent
    from monocontext.sessions import Sessions

    memory = Sessions.open("s3://team/agents").project("api")
    MemoryAgent()(query="Why did the deployment fail?", memory_db=memory).synthesis

Other modules of DSPy put a whole input into the prompt: `MemoryText` refuses a text that is too large for one (unless
`warn_on_type_mismatch` is off). DSPy reads annotations as objects, so this module does not import `annotations`.
"""

from functools import partial
from importlib.metadata import entry_points
from typing import Any

import dspy

from monocontext.errors import ContextTooLarge
from monocontext.text.from_str import wrap_str
from monocontext.text.monocontext import Monocontext

__all__ = ["AgentMemoryRetrieval", "ExploreMemory", "MemoryAgent", "MemoryChainReasoning", "MemoryRLM",
           "SynthesizeMemories", "interpreter"]  # fmt: skip

MEMORY_FIELDS = frozenset({"memory_context", "memory_bank", "memory_database", "agent_memories"})
_MOST_EAGER_CHARACTERS = 20_000
"""A longer `str` in any field is made lazy, since `dspy.RLM` sends a `str` again with every step."""
PROMPT_CHARACTERS = 200_000  # the longest lazy text that goes into a prompt: some 50,000 tokens


def interpreter(context: object, **options: Any) -> Any:
    """A factory for `dspy.RLM(..., interpreter_factory=...)`, whose code reads lazy texts as `str` (no GET).

    - `context`: a lazy text, list or dict, or a `dict` of them by the names of input fields; one alone is the field
      `context`
    - `options`: `runner` (`confined`, `subprocess`, `wasm`, `docker`), `timeout` (seconds of one step, 600), and those
      of the runner

    The factory's `inputs` are the texts as inputs of the program: `program(**factory.inputs, question=...)`. Only what
    code looks at is fetched, by this process, which keeps keys and cache. `ModuleNotFoundError` without the package
    `monocontext-rlm`, whose worker runs the code.
    """
    for entry in entry_points(group="monocontext.dspy", name="interpreter"):
        return entry.load()(context, **options)
    raise ModuleNotFoundError("monocontext.dspy.interpreter needs monocontext-rlm, whose worker runs code: install it")


class _BoundedText(type):
    """The metaclass of `MemoryText`, whose `isinstance` checks the length of a lazy text."""

    def __instancecheck__(cls, value: object) -> bool:
        """Whether a value is a text. Raises `ContextTooLarge` for a lazy text that is too large for a prompt."""
        if isinstance(value, Monocontext) and len(value) > PROMPT_CHARACTERS:
            raise ContextTooLarge(
                f"a memory of {len(value):,} characters is too large for a prompt, which takes {PROMPT_CHARACTERS:,}: "
                "monocontext.dspy.MemoryRLM(signature) reads it by code, in parts"
            )
        return isinstance(value, str | Monocontext)


class MemoryText(str, metaclass=_BoundedText):
    """The type of a field for a memory: a `str`, or a lazy text that is small enough for a prompt."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """The pydantic schema of `str`, since signatures are pydantic models."""
        return handler(str)


MemoryText.__name__ = "str"  # its name in prompts


class ExploreMemory(dspy.Signature):  # type: ignore[misc]
    """Recursively explore memory database to find relevant information."""

    query: str = dspy.InputField(desc="What information to find")
    memory_context: MemoryText = dspy.InputField(desc="All memories as searchable text")
    search_depth: int = dspy.InputField(desc="How many recursive explorations to allow")

    exploration_strategy: str = dspy.OutputField(desc="How to decompose the search")
    relevant_memories: list[str] = dspy.OutputField(desc="Found relevant memories")
    confidence: float = dspy.OutputField(desc="Confidence in retrieval quality")


class MemoryChainReasoning(dspy.Signature):  # type: ignore[misc]
    """Follow chains of reasoning across multiple memories."""

    question: str = dspy.InputField(desc="Question requiring multi-hop reasoning")
    memory_bank: MemoryText = dspy.InputField(desc="All available memories")

    reasoning_chain: str = dspy.OutputField(desc="Step-by-step memory traversal")
    connected_memories: list[str] = dspy.OutputField(desc="Memories used in chain")
    answer: str = dspy.OutputField(desc="Final synthesized answer")


class SynthesizeMemories(dspy.Signature):  # type: ignore[misc]
    """Explore and synthesize information from vast memory stores."""

    task: str = dspy.InputField(desc="Task requiring memory synthesis")
    memory_database: MemoryText = dspy.InputField(desc="Complete memory context")
    temporal_range: str = dspy.InputField(desc="Time range to focus on (e.g., 'last week', 'all time')")

    search_plan: str = dspy.OutputField(desc="Recursive exploration strategy")
    synthesis: str = dspy.OutputField(desc="Aggregated insights from memories")
    supporting_evidence: list[str] = dspy.OutputField(desc="Key memories referenced")


class AgentMemoryRetrieval(dspy.Signature):  # type: ignore[misc]
    """Agent explores its memory to inform decision-making."""

    current_situation: str = dspy.InputField(desc="Current state/context")
    agent_memories: MemoryText = dspy.InputField(desc="All past experiences, knowledge, observations")
    goal: str = dspy.InputField(desc="Agent's current goal")

    memory_exploration: str = dspy.OutputField(desc="Recursive search through memories")
    relevant_experiences: list[str] = dspy.OutputField(desc="Past experiences that apply")
    recommended_action: str = dspy.OutputField(desc="Action based on memory insights")


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
        rlm, arguments = self._prepare(inputs)
        return rlm(**arguments)

    async def aforward(self, **inputs: Any) -> Any:
        """The prediction of one run, for `acall`. Texts are opened and cells run in the thread of the event loop."""
        rlm, arguments = self._prepare(inputs)
        return await rlm.acall(**arguments)

    def _prepare(self, inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """A `dspy.RLM` whose code runs in our worker, and its inputs."""
        limits = {} if inputs.get("search_depth") is None else run_limits(inputs["search_depth"])
        arguments = {name: value for name, value in inputs.items() if name in self.signature.input_fields}
        texts = {name: text for name, value in arguments.items() if (text := _lazy_text(name, value)) is not None}
        lazy = self._interpreter(texts)
        return dspy.RLM(self.signature, interpreter_factory=lazy, **limits | self.options), arguments | lazy.inputs


class MemoryAgent(dspy.Module):  # type: ignore[misc]
    """Explores a memory for facts about a query, then combines them in one answer.

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

    async def aforward(self, query: str, memory_db: Any, **options: Any) -> Any:
        """The prediction of `forward`, for `acall`."""
        explore, synthesize = _questions(query, memory_db, **options)
        return _combine(await self.explore.acall(**explore), await self.synthesize.acall(**synthesize))


def _questions(
    query: str, memory_db: Any, search_depth: int = 3, temporal_range: str = "all time"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs of both modules of an agent, which share one open text."""
    memory = text_of(memory_db)
    explore = {"query": query, "memory_context": memory, "search_depth": search_depth}
    synthesize = {"task": query, "memory_database": memory, "temporal_range": temporal_range}
    return explore, synthesize | {"search_depth": search_depth}


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
    """The limits of a run: for each exploration a step to search, a step to read and four sub-calls."""
    if isinstance(search_depth, bool) or not isinstance(search_depth, int) or search_depth < 1:
        raise ValueError(f"search_depth must be at least 1 exploration, not {search_depth!r}")
    return {"max_iters": 2 + 2 * search_depth, "max_llm_calls": 4 * search_depth}


def text_of(memory: Any) -> Monocontext:
    """A memory as a lazy text. Raises `TypeError` for a value that is not a memory."""
    if isinstance(memory, str):
        return wrap_str(memory)
    text = memory.context() if callable(getattr(memory, "context", None)) else memory
    if not isinstance(text, Monocontext):
        raise TypeError(
            f"a memory must be a Monocontext, a str or have a context() that returns one, not {type(memory).__name__}"
        )
    return text


def _lazy_text(name: str, value: Any) -> Monocontext | None:
    """The lazy text to pass instead of the value of a field; None to pass the value itself."""
    if isinstance(value, str):
        return wrap_str(value) if name in MEMORY_FIELDS or len(value) > _MOST_EAGER_CHARACTERS else None
    return text_of(value) if name in MEMORY_FIELDS or isinstance(value, Monocontext) else None
