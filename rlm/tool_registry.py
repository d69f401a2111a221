"""Call tools by name, with the methods of CloudLLM's `ToolRegistry`: `ToolRegistry(MemoryTool(memory))`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ToolProtocol(Protocol):
    """A set of tools, such as `monocontext.memory.MemoryTool`."""

    @property
    def protocol_name(self) -> str:
        """The name of the set, such as `memory`."""
        ...

    def list_tools(self) -> list[dict[str, Any]]:
        """The description of each tool: `name`, `description`, `parameters`."""
        ...

    def execute(self, parameters: Mapping[str, Any], *, tool: str) -> dict[str, Any]:
        """Call a tool. Returns `success`, `output`, `error` and `metadata`. Raises `ValueError` or `LookupError`."""
        ...


class ToolRegistry:
    """Finds and calls tools by name. One registry may serve many agents, from many threads."""

    def __init__(self, *tool_sets: ToolProtocol) -> None:
        """Raises `ValueError` if two tools have the same name."""
        self._sets: dict[str, ToolProtocol] = {}  # name of a tool -> its set
        self._metadata: dict[str, dict[str, Any]] = {}  # name of a tool -> its description
        for tool_set in tool_sets:
            for metadata in tool_set.list_tools():
                name = metadata["name"]
                if name in self._sets:
                    raise ValueError(f"two tools are named {name!r}: leave one out")
                self._sets[name], self._metadata[name] = tool_set, metadata

    def list_tools(self) -> list[dict[str, Any]]:
        """The descriptions of all tools."""
        return list(self._metadata.values())

    def get_tool_metadata(self, name: str) -> dict[str, Any]:
        """The description of a tool. Raises `LookupError` for an unknown tool."""
        return self._metadata[self._checked(name)]

    def protocol_name(self, name: str) -> str:
        """The name of the set to which a tool belongs. Raises `LookupError` for an unknown tool."""
        return self._sets[self._checked(name)].protocol_name

    def execute_tool(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool: see `ToolProtocol.execute`. Raises `LookupError` for an unknown tool, and the tool's errors."""
        return self._sets[self._checked(name)].execute(parameters, tool=name)

    def _checked(self, name: str) -> str:
        if name not in self._sets:
            raise LookupError(f"no tool {name!r}; the tools are: {', '.join(map(repr, self._sets)) or 'none'}")
        return name
