"""The registry of tools of CloudLLM's guide to its memory tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monocontext.memory import Memory, MemoryTool
from rlm import ToolRegistry


class Clock:
    protocol_name = "clock"

    def list_tools(self) -> list[dict[str, Any]]:
        return [{"name": "now", "description": "The time.", "parameters": []}]

    def execute(self, parameters: Any, *, tool: str) -> dict[str, Any]:
        return {"success": True, "output": {"tool": tool, **parameters}, "error": None, "metadata": {}}


def test_a_registry_lists_and_calls_tools(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path)
    registry = ToolRegistry(MemoryTool(memory), Clock())
    assert [tool["name"] for tool in registry.list_tools()] == ["memory", "now"]
    assert registry.get_tool_metadata("memory")["parameters"][0]["name"] == "command"
    assert (registry.protocol_name("memory"), registry.protocol_name("now")) == ("memory", "clock")
    assert registry.execute_tool("memory", {"command": "P doc_name Important_Report 3600"})["output"]["status"] == "OK"
    assert registry.execute_tool("memory", {"command": "G doc_name"})["output"] == {"value": "Important_Report"}
    assert registry.execute_tool("now", {"zone": 1})["output"] == {"tool": "now", "zone": 1}
    for work in (registry.get_tool_metadata, registry.protocol_name, lambda name: registry.execute_tool(name, {})):
        with pytest.raises(LookupError, match="no tool 'other'; the tools are: 'memory', 'now'"):
            work("other")
    with pytest.raises(ValueError, match="two tools are named 'now'"):
        ToolRegistry(Clock(), Clock())
