"""What is asked of a memory. The memory's field is annotated `str` and is given a lazy text: `dspy.RLM` checks names
alone, and the model meets something that it reads as a `str`."""

import dspy


class ExploreMemory(dspy.Signature):  # type: ignore[misc]
    """Recursively explore memory database to find relevant information."""

    query: str = dspy.InputField(desc="What information to find")
    memory_context: str = dspy.InputField(desc="All memories as searchable text")
    search_depth: int = dspy.InputField(desc="How many recursive explorations to allow")

    exploration_strategy: str = dspy.OutputField(desc="How to decompose the search")
    relevant_memories: list[str] = dspy.OutputField(desc="Found relevant memories")
    confidence: float = dspy.OutputField(desc="Confidence in retrieval quality")


class MemoryChainReasoning(dspy.Signature):  # type: ignore[misc]
    """Follow chains of reasoning across multiple memories."""

    question: str = dspy.InputField(desc="Question requiring multi-hop reasoning")
    memory_bank: str = dspy.InputField(desc="All available memories")

    reasoning_chain: str = dspy.OutputField(desc="Step-by-step memory traversal")
    connected_memories: list[str] = dspy.OutputField(desc="Memories used in chain")
    answer: str = dspy.OutputField(desc="Final synthesized answer")


class SynthesizeMemories(dspy.Signature):  # type: ignore[misc]
    """Explore and synthesize information from vast memory stores."""

    task: str = dspy.InputField(desc="Task requiring memory synthesis")
    memory_database: str = dspy.InputField(desc="Complete memory context")
    temporal_range: str = dspy.InputField(desc="Time range to focus on (e.g., 'last week', 'all time')")

    search_plan: str = dspy.OutputField(desc="Recursive exploration strategy")
    synthesis: str = dspy.OutputField(desc="Aggregated insights from memories")
    supporting_evidence: list[str] = dspy.OutputField(desc="Key memories referenced")


class AgentMemoryRetrieval(dspy.Signature):  # type: ignore[misc]
    """Agent explores its memory to inform decision-making."""

    current_situation: str = dspy.InputField(desc="Current state/context")
    agent_memories: str = dspy.InputField(desc="All past experiences, knowledge, observations")
    goal: str = dspy.InputField(desc="Agent's current goal")

    memory_exploration: str = dspy.OutputField(desc="Recursive search through memories")
    relevant_experiences: list[str] = dspy.OutputField(desc="Past experiences that apply")
    recommended_action: str = dspy.OutputField(desc="Action based on memory insights")
