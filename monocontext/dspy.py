"""DSPy signatures and modules that read memories and texts of any size.

    import dspy
    from monocontext.dspy import MemoryAgent
    from monocontext.sessions import Sessions

    agent = MemoryAgent()
    memory = Sessions.open("s3://team/agents").project("api")
    agent(query="Why did the deployment fail?", memory_db=memory, temporal_range="last week").synthesis

An import of this module does not import `dspy`; the use of its names does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.memory.dspy.memory_agent import MemoryAgent, MemoryRLM
    from monocontext.memory.dspy.signatures import (
        AgentMemoryRetrieval,
        ExploreMemory,
        MemoryChainReasoning,
        SynthesizeMemories,
    )

_HOMES = {
    "AgentMemoryRetrieval": "signatures",
    "ExploreMemory": "signatures",
    "MemoryAgent": "memory_agent",
    "MemoryChainReasoning": "signatures",
    "MemoryRLM": "memory_agent",
    "SynthesizeMemories": "signatures",
}

__all__ = [
    "AgentMemoryRetrieval",
    "ExploreMemory",
    "MemoryAgent",
    "MemoryChainReasoning",
    "MemoryRLM",
    "SynthesizeMemories",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"monocontext.memory.dspy.{_HOMES[name]}"), name)
