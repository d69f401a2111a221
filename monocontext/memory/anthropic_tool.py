"""Anthropic's memory tool (`memory_20250818`) over a memory of ours. Needs `pip install anthropic`.

client.beta.messages.run_tools(..., tools=[AnthropicMemoryTool(Memory.open("s3://bucket/agent"))])
"""

from __future__ import annotations

from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError

from monocontext.errors import ToolRefusal
from monocontext.memory.files import MemoryFiles
from monocontext.memory.memory import Memory


class AnthropicMemoryTool(BetaAbstractMemoryTool):  # type: ignore[misc, unused-ignore]
    """The tool as the SDK runs it; what it does is `files.MemoryFiles`. Refusals are the SDK's `ToolError`."""

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__(**options)
        self.files = MemoryFiles(memory)

    def _run(self, command: Any) -> str:
        try:
            return self.files.execute(command.model_dump(exclude_none=True))
        except ToolRefusal as refusal:
            raise ToolError(str(refusal)) from None

    def view(self, command: Any) -> str:
        return self._run(command)

    def create(self, command: Any) -> str:
        return self._run(command)

    def str_replace(self, command: Any) -> str:
        return self._run(command)

    def insert(self, command: Any) -> str:
        return self._run(command)

    def delete(self, command: Any) -> str:
        return self._run(command)

    def rename(self, command: Any) -> str:
        return self._run(command)

    def clear_all_memory(self) -> str:
        return self.files.clear_all_memory()
