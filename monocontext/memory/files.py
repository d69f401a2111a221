"""Carry out the file commands of Anthropic's memory tool: a memory is a folder `/memories` of text files.

A file is an entry whose key is its path; a folder exists while it holds one. `create` and `rename` never overwrite a
file; an edit is a compare-and-swap, repeated on a conflict. So agents that share a memory lose no edit. A rename stores
under the new path first: if it is killed half way, both paths exist.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from monocontext.errors import AlreadyExists, InvalidEntry, NotFound, ToolRefusal
from monocontext.memory.entry import Entry
from monocontext.memory.memory import Memory
from monocontext.stores import log

T = TypeVar("T")

ROOT = "/memories"
_NUMBER_WIDTH = 6
"""Characters of a line number, as in Anthropic's own tool."""
_MAX_LINES = 999_999
"""The most lines of a file that `view` shows: their numbers fit in `_NUMBER_WIDTH`."""
_LEVELS_SHOWN = 2
"""Levels below a listed folder that `view` shows."""


class MemoryFiles:
    """Carries out file commands on a memory. Every refusal is a `ToolRefusal` whose message a model can act on."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def execute(self, command: Mapping[str, Any]) -> str:
        """Carry out one call of the tool, such as `{"command": "view", "path": ...}`; returns the answer."""
        name = command.get("command")
        if name not in _COMMANDS:
            raise ToolRefusal(f"Unknown command: {name}")
        arguments = {key: value for key, value in command.items() if value is not None and key != "command"}
        work: Callable[..., str] = getattr(self, name)
        try:
            inspect.signature(work).bind(**arguments)
        except TypeError as error:
            raise ToolRefusal(f"Invalid parameters of {name}: {error}") from None
        for item, value in arguments.items():
            if item not in ("insert_line", "view_range") and not isinstance(value, str):
                raise ToolRefusal(f"Invalid parameters of {name}: {item} is a text, not {type(value).__name__}")
        return work(**arguments)

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Show a file with line numbers, or the contents of a folder (1 GET, or 1 LIST and the cost of
        `Memory.entries`)."""
        path = _normalize_path(path)
        entry = self._read_file(path)
        if entry is None:
            return self._list_folder(path)
        lines = (entry.value or "").split("\n")
        if len(lines) > _MAX_LINES:
            raise ToolRefusal(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = 0, len(lines)
        if view_range is not None:
            _check_range(view_range)
            first, last = max(1, view_range[0]) - 1, len(lines) if view_range[1] == -1 else view_range[1]
        return f"Here's the content of {path} with line numbers:\n" + _number_lines(lines, first, last)

    def create(self, path: str, file_text: str) -> str:
        """Create a file."""
        path = _normalize_path(path)
        if path == ROOT or self.memory.list(path + "/"):
            raise ToolRefusal(f"File {path} already exists")
        for parent in _parent_folders(path):
            if parent in self.memory:
                raise ToolRefusal(f"The path {parent} is not a directory.")
        try:
            self._refuse_invalid(lambda: self.memory.put(path, file_text, create=True))
        except AlreadyExists:
            raise ToolRefusal(f"File {path} already exists") from None
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace the one occurrence of a text by another."""
        path = _normalize_path(path)
        line_of_change = 0

        def edit(text: str) -> str:
            nonlocal line_of_change
            count = text.count(old_str) if old_str else 0
            if count == 0:
                raise ToolRefusal(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
                )
            if count > 1:
                starts = [match.start() for match in re.finditer(f"(?={re.escape(old_str)})", text)]
                numbers = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
                raise ToolRefusal(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {numbers}. "
                    "Please ensure it is unique"
                )
            line_of_change = text.count("\n", 0, text.find(old_str))
            return text.replace(old_str, new_str)

        lines = self._edit(path, edit).split("\n")
        heading = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        return heading + _number_lines(lines, max(0, line_of_change - 2), line_of_change + 3)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert text after a line; 0 is before the first."""
        path = _normalize_path(path)

        def edit(text: str) -> str:
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            if type(insert_line) is not int or not 0 <= insert_line <= len(lines):
                raise ToolRefusal(
                    f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(insert_line, insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"

        self._edit(path, edit)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with all that it holds."""
        path = _normalize_path(path)
        if path == ROOT:
            raise ToolRefusal(f"Cannot delete the {ROOT} directory itself")
        if not self._refuse_invalid(lambda: self.memory.delete(path)) and not self.memory.clear(path + "/"):
            raise ToolRefusal(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Rename a file, or a folder with all that it holds."""
        old, new = _normalize_path(old_path), _normalize_path(new_path)
        if old == ROOT:
            raise ToolRefusal(f"Cannot rename the {ROOT} directory itself")
        if new == ROOT or self._read_file(new) is not None or self.memory.list(new + "/"):
            raise ToolRefusal(f"The destination {new} already exists")
        if new.startswith(old + "/"):
            raise ToolRefusal(f"The destination {new} lies inside {old}")
        is_file = self._read_file(old) is not None
        moved = [old] if is_file else self.memory.list(old + "/")
        if not moved:
            raise ToolRefusal(f"The path {old} does not exist")
        for key in moved:
            self._move(key, new + key.removeprefix(old))
        return f"Successfully renamed {old} to {new}"

    def clear_all_memory(self) -> str:
        """Delete every file."""
        self.memory.clear(ROOT + "/")
        return "All memory cleared"

    # -- steps of the commands -------------------------------------------------------------------------------------

    def _read_file(self, path: str) -> Entry | None:
        try:
            return self._refuse_invalid(lambda: self.memory.entry(path))
        except NotFound:
            return None

    def _edit(self, path: str, edit: Callable[[str], str]) -> str:
        """Change a file; returns its new text. Starts again if another agent has written it meanwhile."""
        while True:
            entry = self._read_file(path)
            if entry is None:
                if path == ROOT or self.memory.list(path + "/"):
                    raise ToolRefusal(f"The path {path} is not a file.")
                raise ToolRefusal(f"The path {path} does not exist. Please provide a valid path.")
            text = edit(entry.value or "")
            try:
                self._put_like(entry, path, text, if_match=entry.etag)
            except (AlreadyExists, NotFound):
                log.note(log.INFO, "%s was written in between; edited again", path)
                continue
            return text

    def _move(self, old: str, new: str) -> None:
        """Move one file. If it is written meanwhile, the copy is removed, and the move begins again."""
        while True:
            entry = self._read_file(old)
            if entry is None:
                return
            try:
                self._put_like(entry, new, entry.value or "", create=True)
            except AlreadyExists:
                raise ToolRefusal(f"The destination {new} already exists") from None
            try:
                self.memory.delete(old, if_match=entry.etag)
            except AlreadyExists:
                self.memory.delete(new)  # written in between: move the current value
                continue
            return

    def _put_like(self, entry: Entry, path: str, text: str, **condition: Any) -> None:
        """Write a text with the lifetime and metadata of an entry."""
        self._refuse_invalid(
            lambda: self.memory.put(path, text, entry.ttl_seconds, metadata=entry.metadata, **condition)
        )

    def _refuse_invalid(self, work: Callable[[], T]) -> T:
        """The result of `work`. Raises `ToolRefusal` for what the memory refuses."""
        try:
            return work()
        except InvalidEntry as error:
            raise ToolRefusal(str(error)) from None

    def _list_folder(self, path: str) -> str:
        entries = self.memory.entries(path + "/")
        if not entries and path != ROOT:
            raise ToolRefusal(f"The path {path} does not exist. Please provide a valid path.")
        sizes: dict[str, int] = {}
        for entry in entries:
            parts = entry.key.removeprefix(path + "/").split("/")
            if any(part.startswith(".") for part in parts[:_LEVELS_SHOWN]):
                continue
            for level in range(1, min(len(parts), _LEVELS_SHOWN) + 1):
                name = "/".join(parts[:level]) + ("/" if level < len(parts) else "")
                sizes[name] = sizes.get(name, 0) + entry.value_bytes
        rows = [f"{_format_size(sum(entry.value_bytes for entry in entries))}\t{path}"]
        rows += [
            f"{_format_size(sizes[name])}\t{path}/{name}" for name in sorted(sizes, key=lambda name: name.split("/"))
        ]
        heading = (
            f"Here're the files and directories up to {_LEVELS_SHOWN} levels deep in {path}, excluding hidden items:\n"
        )
        return heading + "\n".join(rows)


def _normalize_path(path: str) -> str:
    """A path below the root, without `.`, `..` and empty parts. Raises `ToolRefusal`."""
    if not isinstance(path, str) or not (path == ROOT or path.startswith(ROOT + "/")):
        raise ToolRefusal(f"Path must start with {ROOT}, got: {path}")
    parts = [part for part in path.removeprefix(ROOT).split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ToolRefusal(f"Path {path} would escape {ROOT} directory")
    return "/".join([ROOT, *parts])


def _check_range(view_range: Sequence[int]) -> None:
    """Raise `ToolRefusal` unless this is two line numbers."""
    is_pair = isinstance(view_range, Sequence) and len(view_range) == 2
    if not is_pair or not all(type(item) is int for item in view_range):
        raise ToolRefusal(f"Invalid `view_range` parameter: {view_range}. It should be two line numbers.")


def _parent_folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(3, len(parts))]


def _number_lines(lines: list[str], first: int, last: int) -> str:
    rows = enumerate(lines[first:last], first + 1)
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in rows)


def _format_size(count: int) -> str:
    """Bytes as the tool shows them: `512B`, `1.5K`, `2M`."""
    unit = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**unit
    return f"{int(size)}{'BKMG'[unit]}" if size == int(size) else f"{size:.1f}{'BKMG'[unit]}"


_COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
