"""Run Anthropic's memory tool (`memory_20250818`) on a memory. Needs `pip install anthropic`.

    client.beta.messages.run_tools(..., tools=[AnthropicMemoryTool(Memory.open("s3://bucket/agent"))])

A file is an entry whose key is its path; a folder exists while it holds one. Commands run by the SDK's own tool in a
temporary folder with these files, and what it changed is stored: a new file only where there is none, an edit only over
the version that was read. On a conflict the command begins again. So agents that share a memory lose no edit. A rename
stores under the new path first: if it is killed half way, both paths exist.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from monocontext.errors import AlreadyExists, InvalidEntry, NotFound
from monocontext.memory.entry import Entry
from monocontext.memory.memory import Memory

ROOT = "/memories"


class AnthropicMemoryTool(BetaAbstractMemoryTool):  # type: ignore[misc, unused-ignore]
    """The tool as the SDK runs it. A command costs as `Memory.entries`, and a GET for each file that it reads."""

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__(**options)
        self.memory = memory

    def _run(self, command: Any) -> str:
        return _execute(self.memory, command)

    view = create = str_replace = insert = delete = rename = _run

    def clear_all_memory(self) -> str:
        self.memory.clear(ROOT + "/")
        return "All memory cleared"


class AsyncAnthropicMemoryTool(BetaAsyncAbstractMemoryTool):  # type: ignore[misc, unused-ignore]
    """The same in a thread, for the SDK's async client."""

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__(**options)
        self.memory = memory

    async def _run(self, command: Any) -> str:
        return await asyncio.to_thread(_execute, self.memory, command)

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        await asyncio.to_thread(self.memory.clear, ROOT + "/")
        return "All memory cleared"


def _execute(memory: Memory, command: Any) -> str:
    """Run a command of the tool. Raises the SDK's `ToolError`."""
    while True:
        with TemporaryDirectory() as folder:
            before = _lay_out(memory, command, Path(folder))
            answer: str = getattr(BetaLocalFilesystemMemoryTool(folder), command.command)(command)
            try:
                _store(memory, command, before, Path(folder))
            except InvalidEntry as error:
                raise ToolError(str(error)) from None
            except (AlreadyExists, NotFound):
                continue  # another agent has written it meanwhile
            return answer


def _lay_out(memory: Memory, command: Any, folder: Path) -> dict[str, Entry]:
    """Put the files of a memory into a folder. Files that the command does not read have their size alone."""
    read = getattr(command, "path", None) or getattr(command, "old_path", "")
    entries: dict[str, Entry] = {}
    for entry in memory.entries(ROOT + "/"):
        is_read = entry.key == read or (command.command == "rename" and entry.key.startswith(f"{read}/"))
        path = folder / entry.key.lstrip("/")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            entries[entry.key] = memory.entry(entry.key) if is_read else entry
            path.write_bytes((entries[entry.key].value or "").encode())
            os.truncate(path, entries[entry.key].value_bytes)
        except (OSError, ValueError):
            entries.pop(entry.key, None)  # it is gone by now, or its key is no path here
    return entries


def _store(memory: Memory, command: Any, before: dict[str, Entry], folder: Path) -> None:
    """Store what a command has changed in the folder."""
    after = {"/" + path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    created = []
    for key, path in after.items():
        moved = f"{command.old_path}{key.removeprefix(command.new_path)}" if command.command == "rename" else ""
        old = before.get(key) or before.get(moved)
        options: Any = {"ttl": old.ttl_seconds, "metadata": old.metadata} if old else {}
        text = path.read_bytes().decode() if key not in before or before[key].value is not None else None
        if key not in before:
            memory.put(key, text or "", create=True, **options)
            created.append(key)
        elif text != before[key].value:
            memory.put(key, text or "", if_match=before[key].etag, **options)
    for key in before.keys() - after.keys():
        try:
            memory.delete(key, if_match=before[key].etag)
        except AlreadyExists:
            for copy in created:  # of a rename: it begins again with the value that was written meanwhile
                memory.delete(copy)
            raise
