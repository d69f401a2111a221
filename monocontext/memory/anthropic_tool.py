"""Run Anthropic's memory tool (`memory_20250818`) on a memory. Needs `pip install anthropic`.

    client.beta.messages.run_tools(..., tools=[AnthropicMemoryTool(Memory.open("s3://bucket/agent"))])

A file is an entry whose key is its path; a folder exists while it holds one. Answers are those of the SDK's own tool,
which keeps a folder on disk; here no path of a model meets a file system. A new file never replaces one, and an edit
only the version that was read, else it begins again: agents that share a memory lose no edit. A rename stores under the
new path first: if it is killed half way, or two agents rename a file at once, both paths exist.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from pydantic import ValidationError

from monocontext.errors import AlreadyExists, MonocontextError, NotFound
from monocontext.memory.entry import Entry
from monocontext.memory.memory import Memory
from monocontext.memory.objects import THREADS
from monocontext.stores.parallel import at_once

ROOT = "/memories"
_MOST_TRIES = 300
"""Of one change, each after another agent has written the file in between. One of them succeeds in every round."""
_MOST_LINES = 999_999
"""The most lines of a file that `view` shows: their numbers have six digits."""
_LEVELS = 2
"""The levels below a folder that `view` shows."""


class AnthropicMemoryTool(BetaAbstractMemoryTool):  # type: ignore[misc, unused-ignore]
    """The tool as the SDK runs it. Refusals and failures of the store are the SDK's `ToolError`.

    A command on a file costs 1 GET, a change 1 PUT more, and a new file 1 LIST and 1 HEAD for each folder above it; a
    command on a folder costs as `Memory.entries`.
    """

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__(**options)
        self.memory = memory

    def execute(self, command: Any) -> Any:
        try:
            # The SDK makes commands without a look at their fields.
            return super().execute(type(command).model_validate(dict(command)))
        except (MonocontextError, OSError, ValidationError) as error:
            raise ToolError(str(error)) from error

    def view(self, command: Any) -> str:
        path = _normalize(command.path)
        entry = self._read(path)
        if entry is None:
            return self._list(path)
        lines = (entry.value or "").split("\n")
        if len(lines) > _MOST_LINES:
            raise ToolError(f"File {path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
        first, last = 0, len(lines)
        if command.view_range and len(command.view_range) == 2:
            first = max(1, command.view_range[0]) - 1
            last = len(lines) if command.view_range[1] == -1 else command.view_range[1]
        return f"Here's the content of {path} with line numbers:\n" + _numbered(lines, first, last)

    def create(self, command: Any) -> str:
        path = _normalize(command.path)
        self._check_parents(path)
        if path == ROOT or self._below(path) or not self.memory.put_new(path, command.file_text):
            raise ToolError(f"File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self, command: Any) -> str:
        path, old = _normalize(command.path), command.old_str

        def edit(text: str) -> str:
            starts = [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)] if old else []
            if not starts:
                raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
            if text.count(old) > 1:
                numbers = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {numbers}. "
                    "Please ensure it is unique"
                )
            return text.replace(old, command.new_str)

        before, after = self._edit(path, edit)
        line = before.count("\n", 0, before.find(old))
        heading = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        return heading + _numbered(after.split("\n"), max(0, line - 2), line + 3)

    def insert(self, command: Any) -> str:
        path, number = _normalize(command.path), command.insert_line

        def edit(text: str) -> str:
            lines = text.removesuffix("\n").split("\n") if text else []
            if not 0 <= number <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {number}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(number, command.insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"

        self._edit(path, edit)
        return f"The file {path} has been edited."

    def delete(self, command: Any) -> str:
        path = _normalize(command.path)
        if path == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        if not self.memory.delete(path) and not at_once(self.memory.delete, self._below(path), THREADS):
            raise ToolError(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, command: Any) -> str:
        old, new = _normalize(command.old_path), _normalize(command.new_path)
        if old == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        if new == ROOT or new in self.memory or self._below(new):
            raise ToolError(f"The destination {new} already exists")
        keys = [old] if old in self.memory else self._below(old)
        if not keys:
            raise ToolError(f"The path {old} does not exist")
        if new.startswith(old + "/"):
            raise ToolError(f"The destination {new} lies inside {old}")
        self._check_parents(new)
        at_once(lambda key: self._move(key, new + key.removeprefix(old)), keys, THREADS)
        return f"Successfully renamed {old} to {new}"

    def clear_all_memory(self) -> str:
        self.memory.clear(ROOT + "/")
        return "All memory cleared"

    def _read(self, path: str) -> Entry | None:
        try:
            return self.memory.entry(path)
        except NotFound:
            return None

    def _files(self, folder: str) -> list[Entry]:
        """The files in a folder and below it. Keys of other callers that are no path of a file are left out."""
        return [entry for entry in self.memory.entries(folder + "/") if posixpath.normpath(entry.key) == entry.key]

    def _below(self, folder: str) -> list[str]:
        return [entry.key for entry in self._files(folder)]

    def _list(self, path: str) -> str:
        files = self._files(path)
        if not files and path != ROOT:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        sizes = {"": sum(entry.value_bytes for entry in files)}
        for entry in files:
            names = entry.key.removeprefix(path).split("/")
            for level, name in enumerate(names[1 : _LEVELS + 1], 1):
                if name.startswith("."):
                    break
                row = "/".join(names[: level + 1]) + ("/" if names[level + 1 :] else "")
                sizes[row] = sizes.get(row, 0) + entry.value_bytes
        heading = f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding hidden items:\n"
        rows = sorted(sizes, key=lambda row: row.split("/"))
        return heading + "\n".join(f"{_size(sizes[row])}\t{path}{row}" for row in rows)

    def _check_parents(self, path: str) -> None:
        """Refuse a path for a new file that lies below a file."""
        for parent in PurePosixPath(path).parents[:-2]:
            if str(parent) in self.memory:
                raise ToolError(f"The path {parent} is not a directory.")

    def _edit(self, path: str, edit: Callable[[str], str]) -> tuple[str, str]:
        """Change a file; returns its text before and after. Begins again if another agent has written it meanwhile."""
        for _ in range(_MOST_TRIES):
            entry = self._read(path)
            if entry is None:
                is_folder = path == ROOT or self._below(path)
                why = "is not a file." if is_folder else "does not exist. Please provide a valid path."
                raise ToolError(f"The path {path} {why}")
            before = entry.value or ""
            after = edit(before)
            try:
                self.memory.put(path, after, entry.ttl_seconds, if_match=entry.etag, metadata=entry.metadata)
            except (AlreadyExists, NotFound):
                continue
            return before, after
        raise ToolError(f"{path} was not edited: other agents write it all the time. Try again later.")

    def _move(self, old: str, new: str) -> None:
        """Move one file. If another agent writes or moves it meanwhile, the copy goes, and the move begins again."""
        for _ in range(_MOST_TRIES):
            entry = self._read(old)
            if entry is None:
                raise ToolError(f"The path {old} does not exist")
            try:
                copy = self.memory.put(new, entry.value or "", entry.ttl_seconds, create=True, metadata=entry.metadata)
            except AlreadyExists:
                raise ToolError(f"The destination {new} already exists") from None
            with suppress(AlreadyExists):
                if self.memory.delete(old, if_match=entry.etag):
                    return
            self.memory.delete(new, if_match=copy)
        raise ToolError(f"{old} was not renamed: other agents write it all the time. Try again later.")


class AsyncAnthropicMemoryTool(BetaAsyncAbstractMemoryTool):  # type: ignore[misc, unused-ignore]
    """The same in a thread, for the SDK's async client."""

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__(**options)
        self.memory = memory
        self._tool = AnthropicMemoryTool(memory)

    async def _run(self, command: Any) -> Any:
        return await asyncio.to_thread(self._tool.execute, command)

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self._tool.clear_all_memory)


def _normalize(path: str) -> str:
    """The path of a file or folder below the root. Raises `ToolError` for one that leads elsewhere."""
    inner = posixpath.normpath(path)
    if not f"{path}/".startswith(ROOT + "/"):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    if not f"{inner}/".startswith(ROOT + "/"):
        raise ToolError(f"Path {path} would escape {ROOT} directory")
    return inner


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first:last], first + 1))


def _size(count: int) -> str:
    """Bytes as the SDK's tool shows them: `512B`, `1.5K`, `2M`."""
    unit = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**unit
    return f"{int(size) if size.is_integer() else format(size, '.1f')}{'BKMG'[unit]}"
