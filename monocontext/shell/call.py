"""One call of a command of ours: its arguments, its paths and what it writes."""

from __future__ import annotations

import getopt
import io
import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from monocontext.format.documents import Document
from monocontext.shell.tree import TextFiles

_WRITE_CHARACTERS = 64 << 10
"""Output is written in pieces of about this size."""


class LeftToShell(Exception):
    """A call that the shell's own command is to answer."""


class ShellCall:
    """One call. `context` is bashkit's `CommandContext`; `texts` are the files of each text by its folder."""

    def __init__(self, context: Any, texts: Mapping[str, TextFiles]) -> None:
        self.name: str = context.name.removeprefix("__")
        self.arguments: list[str] = context.argv
        self.files = context.fs
        self._texts = texts
        self._context = context
        self._buffer = io.StringIO()
        self.written_bytes = 0
        """What was handed to bashkit."""

    def options(self, words: Mapping[str, str], others: Iterable[str] = ()) -> tuple[list[tuple[str, str]], list[str]]:
        """The options by their long names, with their values, and the operands. `words` are long names by letter, with
        `:` and `=` if they take a value; `others` have no letter. Raises `getopt.GetoptError` for any other option."""
        flags, operands = getopt.gnu_getopt(self.arguments, "".join(words), [*words.values(), *others])
        by_letter = {f"-{letter[0]}": word.rstrip("=") for letter, word in words.items()}
        return [(by_letter.get(option, option[2:]), value) for option, value in flags], operands

    def path(self, operand: str) -> str:
        """The absolute path of an operand."""
        return "/" + posixpath.normpath(posixpath.join(self._context.cwd, operand)).lstrip("/")

    def locate(self, path: str) -> tuple[TextFiles, str] | None:
        """The files of the text that a path is in, and the path in it; None for other paths."""
        folders = [folder for folder in self._texts if path == folder or path.startswith(folder + "/")]
        folder = max(folders, key=len, default="")
        return (self._texts[folder], path.removeprefix(folder) or "/") if folder else None

    def document(self, operand: str) -> tuple[TextFiles, Document] | None:
        """The document of an operand; None if it names anything else."""
        location = None if operand.endswith("/") else self.locate(self.path(operand))
        record = location[0].find(location[1]) if location else None
        return (location[0], record) if location and record is not None else None

    async def lines(self, operand: str) -> list[str]:
        """All lines of a file, or of stdin for `-`, without their ends."""
        if operand == "-":
            data = b"".join([chunk async for chunk in self._context.stdin])
        else:
            data = self.files.read_file(self.path(operand))
        text = data.decode(errors="surrogateescape")
        return text.removesuffix("\n").split("\n") if text else []

    async def write(self, text: str) -> None:
        self._buffer.write(text)
        if self._buffer.tell() >= _WRITE_CHARACTERS:
            await self.flush()

    async def flush(self) -> None:
        """Write what is buffered. Raises `BrokenPipeError` if nobody reads on."""
        data = self._buffer.getvalue().encode(errors="surrogateescape")
        self._buffer = io.StringIO()
        if data:
            await self._context.stdout.write(data)
            self.written_bytes += len(data)

    async def complain(self, message: str) -> None:
        await self._context.stderr.write(f"{self.name}: {message}\n".encode(errors="surrogateescape"))
