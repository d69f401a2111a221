"""Anthropic's memory tool as the SDK runs it: our answers beside those of its own file store. Run as a program."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from monocontext.memory import Memory
from monocontext.memory.anthropic_tool import AnthropicMemoryTool, AsyncAnthropicMemoryTool

CALLS = [
    {"command": "create", "path": "/memories/notes.txt", "file_text": "one\ntwo\nthree\n"},
    {"command": "create", "path": "/memories/notes.txt", "file_text": "again"},
    {"command": "create", "path": "/memories/deep/er/file.md", "file_text": "no line end"},
    {"command": "view", "path": "/memories/notes.txt"},
    {"command": "view", "path": "/memories/notes.txt", "view_range": [2, 3]},
    {"command": "view", "path": "/memories/notes.txt", "view_range": [2, -1]},
    {"command": "view", "path": "/memories/none"},
    {"command": "str_replace", "path": "/memories/notes.txt", "old_str": "two", "new_str": "2\n2.5"},
    {"command": "str_replace", "path": "/memories/notes.txt", "old_str": "e", "new_str": "E"},
    {"command": "str_replace", "path": "/memories/notes.txt", "old_str": "absent", "new_str": "E"},
    {"command": "str_replace", "path": "/memories/none", "old_str": "a", "new_str": "b"},
    {"command": "str_replace", "path": "/memories/deep", "old_str": "a", "new_str": "b"},
    {"command": "insert", "path": "/memories/notes.txt", "insert_line": 1, "insert_text": "inserted\n"},
    {"command": "insert", "path": "/memories/notes.txt", "insert_line": 99, "insert_text": "x"},
    {"command": "insert", "path": "/memories/deep/er/file.md", "insert_line": 1, "insert_text": "last"},
    {"command": "view", "path": "/memories/notes.txt"},
    {"command": "view", "path": "/memories/deep/er/file.md"},
    {"command": "rename", "old_path": "/memories/notes.txt", "new_path": "/memories/deep/er/file.md"},
    {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/x"},
    {"command": "rename", "old_path": "/memories/notes.txt", "new_path": "/memories/moved/notes.txt"},
    {"command": "rename", "old_path": "/memories/deep", "new_path": "/memories/other"},
    {"command": "view", "path": "/memories/other/er/file.md"},
    {"command": "rename", "old_path": "/memories", "new_path": "/memories/x"},
    {"command": "delete", "path": "/memories"},
    {"command": "delete", "path": "/memories/none"},
    {"command": "delete", "path": "/memories/other"},
    {"command": "view", "path": "/memories/other/er/file.md"},
    {"command": "view", "path": "/etc/passwd"},
    {"command": "view", "path": "/memories/../../etc/passwd"},
    {"command": "delete", "path": "/memories/moved/notes.txt"},
]


def call_tool(tool: object, call: dict[str, object]) -> tuple[str, str]:
    try:
        return "done", str(tool.call(call))  # type: ignore[attr-defined]
    except ToolError as error:
        return "refused", str(error)


async def in_async_code(folder: str) -> None:
    tool = AsyncAnthropicMemoryTool(Memory.open(f"{folder}/async"))
    assert "created" in str(await tool.call(CALLS[0]))
    (refused,) = await asyncio.gather(tool.call(CALLS[1]), return_exceptions=True)
    assert isinstance(refused, ToolError)
    assert str(refused) == "File /memories/notes.txt already exists"
    await tool.clear_all_memory()
    assert tool.memory.list() == []


def edits_of_many_agents_are_kept(folder: str) -> None:
    url = f"{folder}/many"
    AnthropicMemoryTool(Memory.open(url)).call({"command": "create", "path": "/memories/log", "file_text": ""})

    def agent(number: int) -> None:
        tool = AnthropicMemoryTool(Memory.open(url))
        for line in range(3):
            text = f"agent {number} line {line}"
            tool.call({"command": "insert", "path": "/memories/log", "insert_line": 0, "insert_text": text})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(agent, range(4)))
    lines = Memory.open(url)["/memories/log"].splitlines()
    assert sorted(lines) == sorted(f"agent {number} line {line}" for number in range(4) for line in range(3))


def lifetimes_and_texts_are_kept(folder: str) -> None:
    memory = Memory.open(f"{folder}/kept")
    memory.put("/memories/a/b", "one\r\ntwo", 3600, metadata={"by": "me"})
    memory.put("/etc/passwd", "not a file of the tool's")
    memory.put("/memories/a\0b", "no path")
    tool = AnthropicMemoryTool(memory)
    tool.call({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/c"})
    entry = memory.entry("/memories/c/b")
    assert (entry.value, entry.ttl_seconds, entry.metadata) == ("one\r\ntwo", 3600, {"by": "me"})
    tool.call({"command": "delete", "path": "/memories/c"})
    assert memory.list() == ["/etc/passwd", "/memories/a\0b"]


def main(folder: str) -> None:
    theirs = BetaLocalFilesystemMemoryTool(f"{folder}/theirs")
    ours = AnthropicMemoryTool(Memory.open(f"{folder}/ours"))
    assert ours.to_dict() == theirs.to_dict() == {"type": "memory_20250818", "name": "memory"}
    for call in CALLS:
        expected, found = call_tool(theirs, call), call_tool(ours, call)
        assert found == expected, f"{call}\n  theirs {expected}\n  ours   {found}"
    assert ours.clear_all_memory() == theirs.clear_all_memory()
    asyncio.run(in_async_code(folder))
    edits_of_many_agents_are_kept(folder)
    lifetimes_and_texts_are_kept(folder)
    print(f"{len(CALLS)} answers kept")


if __name__ == "__main__":
    main(sys.argv[1])
