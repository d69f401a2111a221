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

    def __init__(self, *tools: ToolProtocol) -> None:
        """`tools`: the sets of tools. Raises `ValueError` if two tools have the same name."""
        self._tools: dict[str, tuple[ToolProtocol, dict[str, Any]]] = {}
        for protocol in tools:
            for metadata in protocol.list_tools():
                if metadata["name"] in self._tools:
                    raise ValueError(f"two tools are named {metadata['name']!r}: leave one out")
                self._tools[metadata["name"]] = protocol, metadata

    def list_tools(self) -> list[dict[str, Any]]:
        """The descriptions of all tools."""
        return [metadata for _, metadata in self._tools.values()]

    def get_tool_metadata(self, name: str) -> dict[str, Any]:
        """The description of a tool. Raises `LookupError` for an unknown tool."""
        return self._find(name)[1]

    def protocol_name(self, name: str) -> str:
        """The name of the set to which a tool belongs. Raises `LookupError` for an unknown tool."""
        return self._find(name)[0].protocol_name

    def execute_tool(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool: see `ToolProtocol.execute`. Raises `LookupError` for an unknown tool, and the tool's errors."""
        return self._find(name)[0].execute(parameters, tool=name)

    def _find(self, name: str) -> tuple[ToolProtocol, dict[str, Any]]:
        if name not in self._tools:
            raise LookupError(f"no tool {name!r}: choose from {', '.join(map(repr, self._tools)) or 'none'}")
        return self._tools[name]
