"""A memory that agents share: keys and values in a store, one object each.

    from monocontext.memory import Memory, MemoryTool

    memory = Memory.open("s3://bucket/team")
    memory.put("milestone", "Step 1 complete", 3600)
    memory.get("milestone")
    MemoryTool(memory).execute({"command": "G milestone META"})

The bridge to LangGraph is a module of its own, which imports it: `langgraph_store`.
"""

from __future__ import annotations

from monocontext.memory.entry import Entry, Found, Sizes
from monocontext.memory.memory import Memory
from monocontext.memory.tool import MemoryTool

__all__ = ["Entry", "Found", "Memory", "MemoryTool", "Sizes"]
