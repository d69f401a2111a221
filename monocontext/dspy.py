"""Lazy texts in DSPy (3.4), and signatures and modules that read memories and texts of any size.

    import dspy, monocontext.dspy
    from monocontext import Monocontext

    with Monocontext.open("s3://bucket/prefix") as context:
        lazy = monocontext.dspy.interpreter(context)
        program = dspy.RLM("context, question -> answer", interpreter_factory=lazy)
        print(program(**lazy.inputs, question="Who wrote it?").answer)

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
    from monocontext.adapters.dspy import interpreter
    from monocontext.memory.dspy.memory_agent import MemoryAgent, MemoryRLM
    from monocontext.memory.dspy.signatures import (
        AgentMemoryRetrieval,
        ExploreMemory,
        MemoryChainReasoning,
        SynthesizeMemories,
    )

_HOMES = {
    "AgentMemoryRetrieval": "memory.dspy.signatures",
    "ExploreMemory": "memory.dspy.signatures",
    "MemoryAgent": "memory.dspy.memory_agent",
    "MemoryChainReasoning": "memory.dspy.signatures",
    "MemoryRLM": "memory.dspy.memory_agent",
    "SynthesizeMemories": "memory.dspy.signatures",
    "interpreter": "adapters.dspy",
}

__all__ = [
    "AgentMemoryRetrieval",
    "ExploreMemory",
    "MemoryAgent",
    "MemoryChainReasoning",
    "MemoryRLM",
    "SynthesizeMemories",
    "interpreter",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"monocontext.{_HOMES[name]}"), name)
