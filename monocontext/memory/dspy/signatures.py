"""Define questions to a memory as DSPy signatures.

With `dspy.RLM` the memory's field gets a lazy text, which the model reads as a `str`. Other modules of DSPy put a whole
input into the prompt. Before that they check its type (unless `warn_on_type_mismatch` is off), and `MemoryText` refuses
a text that is too large for a prompt.
"""

from typing import Any

import dspy

from monocontext.errors import ContextTooLarge
from monocontext.text.monocontext import Monocontext

PROMPT_CHARACTERS = 200_000
"""The longest lazy text that goes into a prompt: some 50,000 tokens."""


class _BoundedText(type):
    def __instancecheck__(cls, value: object) -> bool:
        """Raises `ContextTooLarge` for a lazy text that a prompt cannot hold."""
        if not isinstance(value, Monocontext):
            return isinstance(value, str)
        if len(value) > PROMPT_CHARACTERS:
            raise ContextTooLarge(
                f"a memory of {len(value):,} characters is too large for a prompt, which takes {PROMPT_CHARACTERS:,}: "
                "monocontext.dspy.MemoryRLM(signature) reads it by code, in parts"
            )
        return True


class MemoryText(str, metaclass=_BoundedText):
    """The type of a memory's field: a `str`, or a lazy text that is small enough where it goes into a prompt."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """For pydantic, of which signatures are models, it is a `str`."""
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
