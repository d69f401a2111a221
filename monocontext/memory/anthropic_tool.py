"""Run Anthropic's memory tool (`memory_20250818`) on a memory. Needs `pip install anthropic`.

    client.beta.messages.run_tools(..., tools=[AnthropicMemoryTool(Memory.open("s3://bucket/agent"))])

`AsyncAnthropicMemoryTool` is the same for the SDK's async client.
"""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from monocontext.errors import ToolRefusal
from monocontext.memory.files import MemoryFiles
from monocontext.memory.memory import Memory


def _execute(files: MemoryFiles, command: Any) -> str:
    try:
        return files.execute(command.model_dump(exclude_none=True))
    except ToolRefusal as refusal:
        raise ToolError(str(refusal)) from None


class AnthropicMemoryTool(BetaAbstractMemoryTool):  # type: ignore[misc, unused-ignore]
    """The tool as the SDK runs it; `files.MemoryFiles` carries out its commands. Refusals are the SDK's `ToolError`."""

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__(**options)
        self.files = MemoryFiles(memory)

    def _run(self, command: Any) -> str:
        return _execute(self.files, command)

    view = create = str_replace = insert = delete = rename = _run

    def clear_all_memory(self) -> str:
        return self.files.clear_all_memory()


class AsyncAnthropicMemoryTool(BetaAsyncAbstractMemoryTool):  # type: ignore[misc, unused-ignore]
    """The same in a thread, for async code."""

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__(**options)
        self.files = MemoryFiles(memory)

    async def _run(self, command: Any) -> str:
        return await asyncio.to_thread(_execute, self.files, command)

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self.files.clear_all_memory)
