"""Carry out the file commands of Anthropic's memory tool: a memory is a folder `/memories` of text files.

A file is an entry whose key is its path; a folder exists while it holds one. `create` and `rename` never overwrite a
file; an edit is a compare-and-swap, repeated on a conflict. So agents that share a memory lose no edit. A rename stores
under the new path first: if it is killed half way, both paths exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from monocontext.errors import AlreadyExists, InvalidEntry, NotFound, ToolRefusal
from monocontext.memory.entry import Entry
from monocontext.memory.memory import Memory

ROOT = "/memories"
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
_LEVELS_SHOWN = 2
"""Levels below a listed folder that `view` shows."""


class MemoryFiles:
    """Carries out file commands on a memory. Every refusal is a `ToolRefusal` whose message a model can act on."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def execute(self, command: Mapping[str, Any]) -> str:
        """Carry out one call of the tool, such as `{"command": "view", "path": ...}`; returns the answer."""
        name, arguments = command.get("command"), {key: value for key, value in command.items() if key != "command"}
        if name not in COMMANDS:
            raise ToolRefusal(f"Unknown command: {name}")
        for key in {"path", "old_path", "new_path"} & arguments.keys():
            arguments[key] = _normalize_path(arguments[key])
        try:
            answer: str = getattr(self, name)(**arguments)
        except (InvalidEntry, TypeError) as error:
            raise ToolRefusal(f"Invalid parameters of {name}: {error}") from None
        return answer

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Show a file with line numbers, or the contents of a folder (1 GET, or 1 LIST and the cost of
        `Memory.entries`)."""
        text = self.memory.get(path)
        if text is None:
            return self._list_folder(path)
        lines = text.split("\n")
        if view_range is not None and len(view_range) != 2:
            raise ToolRefusal(f"Invalid `view_range` parameter: {view_range}. It should be two line numbers.")
        first, last = view_range or (1, -1)
        shown = _number_lines(lines, max(1, first) - 1, len(lines) if last == -1 else last)
        return f"Here's the content of {path} with line numbers:\n{shown}"

    def create(self, path: str, file_text: str) -> str:
        """Create a file."""
        parts = path.split("/")
        for parent in ("/".join(parts[:count]) for count in range(3, len(parts))):
            if parent in self.memory:
                raise ToolRefusal(f"The path {parent} is not a directory.")
        if self._is_folder(path) or not self.memory.put_new(path, file_text):
            raise ToolRefusal(f"File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace the one occurrence of a text by another."""

        def edit(text: str) -> str:
            starts = [match.start() for match in re.finditer(f"(?={re.escape(old_str)})", text)] if old_str else []
            if len(starts) == 1:
                return text.replace(old_str, new_str)
            if not starts:
                why = f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
                raise ToolRefusal(why)
            numbers = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
            raise ToolRefusal(
                f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {numbers}. "
                "Please ensure it is unique"
            )

        before, after = self._edit(path, edit)
        line = before.count("\n", 0, before.find(old_str))
        heading = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        return heading + _number_lines(after.split("\n"), max(0, line - 2), line + 3)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert text after a line; 0 is before the first."""

        def edit(text: str) -> str:
            lines = text.removesuffix("\n").split("\n") if text else []
            if not 0 <= insert_line <= len(lines):
                raise ToolRefusal(
                    f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(insert_line, insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"

        self._edit(path, edit)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with all that it holds."""
        if path == ROOT:
            raise ToolRefusal(f"Cannot delete the {ROOT} directory itself")
        if not self.memory.delete(path) and not self.memory.clear(path + "/"):
            raise ToolRefusal(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Rename a file, or a folder with all that it holds."""
        if old_path == ROOT:
            raise ToolRefusal(f"Cannot rename the {ROOT} directory itself")
        if self._is_folder(new_path) or new_path in self.memory:
            raise ToolRefusal(f"The destination {new_path} already exists")
        if new_path.startswith(old_path + "/"):
            raise ToolRefusal(f"The destination {new_path} lies inside {old_path}")
        moved = [old_path] if old_path in self.memory else self.memory.list(old_path + "/")
        if not moved:
            raise ToolRefusal(f"The path {old_path} does not exist")
        for key in moved:
            self._move(key, new_path + key.removeprefix(old_path))
        return f"Successfully renamed {old_path} to {new_path}"

    def clear_all_memory(self) -> str:
        """Delete every file."""
        self.memory.clear(ROOT + "/")
        return "All memory cleared"

    # -- steps of the commands -------------------------------------------------------------------------------------

    def _is_folder(self, path: str) -> bool:
        return path == ROOT or bool(self.memory.list(path + "/"))

    def _edit(self, path: str, edit: Callable[[str], str]) -> tuple[str, str]:
        """Change a file; returns its texts before and after. Starts again if another agent has written it meanwhile."""
        while True:
            try:
                entry = self.memory.entry(path)
            except NotFound:
                if self._is_folder(path):
                    raise ToolRefusal(f"The path {path} is not a file.") from None
                raise ToolRefusal(f"The path {path} does not exist. Please provide a valid path.") from None
            before = entry.value or ""
            after = edit(before)
            try:
                self._put_like(entry, path, after, if_match=entry.etag)
            except (AlreadyExists, NotFound):
                continue
            return before, after

    def _move(self, old: str, new: str) -> None:
        """Move one file. If it is written meanwhile, the copy is removed, and the move begins again."""
        while True:
            try:
                entry = self.memory.entry(old)
            except NotFound:
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
        self.memory.put(path, text, entry.ttl_seconds, metadata=entry.metadata, **condition)

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
        names = sorted(sizes, key=lambda name: name.split("/"))
        rows = [f"{_format_size(sum(entry.value_bytes for entry in entries))}\t{path}"]
        rows += [f"{_format_size(sizes[name])}\t{path}/{name}" for name in names]
        about = f"the files and directories up to {_LEVELS_SHOWN} levels deep in {path}, excluding hidden items"
        return f"Here're {about}:\n" + "\n".join(rows)


def _normalize_path(path: object) -> str:
    """A path below the root, without `.`, `..` and empty parts. Raises `ToolRefusal`."""
    if not isinstance(path, str) or not (path == ROOT or path.startswith(ROOT + "/")):
        raise ToolRefusal(f"Path must start with {ROOT}, got: {path}")
    parts = [part for part in path.removeprefix(ROOT).split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ToolRefusal(f"Path {path} would escape {ROOT} directory")
    return "/".join([ROOT, *parts])


def _number_lines(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first:last], first + 1))


def _format_size(count: int) -> str:
    """Bytes as the tool shows them: `512B`, `1.5K`, `2M`."""
    unit = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**unit
    return f"{int(size)}{'BKMG'[unit]}" if size == int(size) else f"{size:.1f}{'BKMG'[unit]}"
