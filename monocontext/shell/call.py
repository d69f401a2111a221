"""The call of a command: its arguments, paths, input and output. `Output` is the result of a whole command line."""

from __future__ import annotations

import getopt
import io
import posixpath
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from monocontext.format.documents import Document
from monocontext.shell.tree import TextFiles

_WRITE_CHARACTERS = 64 << 10  # output is written in pieces of about this size
NOT_A_FILE = {"": "No such file or directory", "directory": "Is a directory"}  # as coreutils complain, by kind
_NO_VALUE = "=\0"  # marks `--color` without a value, since getopt lacks options with an optional one

Command = Callable[["ShellCall"], Awaitable[int]]
"""Runs a call and returns its exit code. Raises `LeftToShell`, or an error whose message is printed on stderr."""


class LeftToShell(Exception):
    """A call is not supported by our command: bashkit's own command must run it."""


class ShellCall:
    """The call of a command. `context`: bashkit's `CommandContext`. `texts`: the files of each text, by its folder."""

    def __init__(self, context: Any, texts: Mapping[str, TextFiles]) -> None:
        self.name: str = context.name
        self.arguments: list[str] = context.argv
        self.cwd: str = context.cwd
        self.files = context.fs  # all files of the shell: bashkit's `FileSystem`
        self.texts = texts
        self._context = context
        self._first_input = b""  # the chunk that `has_input` has read from stdin
        self._buffer = io.StringIO()
        self.written_bytes = 0  # the bytes of stdout that bashkit has taken
        self.least_status = 0  # the exit code if bashkit's own command returns 0

    def options(self, names: Mapping[str, str], others: Iterable[str] = ()) -> tuple[list[tuple[str, str]], list[str]]:
        """Parse the arguments into options, without `--color`, and operands. Raises `LeftToShell` for unknown options.
        `names`: long names by letter. `{"q": "quiet", "n:": "lines="}`, where `n` takes a value, turns `-qn5 FILE` into
        `[("quiet", ""), ("lines", "5")]` and `["FILE"]`. `others`: long names of options without a letter."""
        arguments = [word + _NO_VALUE if word in ("--col", "--colo", "--color") else word for word in self.arguments]
        try:
            flags, operands = getopt.gnu_getopt(arguments, "".join(names), [*names.values(), *others, "color="])
        except getopt.GetoptError:
            raise LeftToShell from None
        by_letter = {f"-{letter[0]}": name.rstrip("=") for letter, name in names.items()}
        flags = [(option, value.removesuffix(_NO_VALUE)) for option, value in flags if option != "--color"]
        named = [(by_letter.get(option, option[2:]), value) for option, value in flags]
        return named, [operand.removesuffix(_NO_VALUE) for operand in operands]

    def path(self, operand: str) -> str:
        """The absolute path of an operand."""
        return "/" + posixpath.normpath(posixpath.join(self.cwd, operand)).lstrip("/")

    def locate(self, path: str) -> tuple[TextFiles, str] | None:
        """The files of the text whose folder holds a path, and the path below that folder; None if no text holds it."""
        folders = [folder for folder in self.texts if path == folder or path.startswith(folder + "/")]
        folder = max(folders, key=len, default="")
        return (self.texts[folder], path.removeprefix(folder) or "/") if folder else None

    def document(self, operand: str) -> tuple[TextFiles, Document] | None:
        """The document that an operand names, with the files of its text; None if it names anything else."""
        location = None if operand.endswith("/") else self.locate(self.path(operand))
        record = location[0].find(location[1]) if location else None
        return (location[0], record) if location and record is not None else None

    async def check_kind(self, operand: str) -> str:
        """The file type of an operand; empty if it is missing. Complains about a missing operand and about a folder."""
        path = self.path(operand)
        kind = str(self.files.stat(path)["file_type"]) if self.files.exists(path) else ""
        if kind in NOT_A_FILE:
            await self.complain(f"{operand}: {NOT_A_FILE[kind]}")
        return kind

    async def has_input(self) -> bool:
        """Whether stdin has data. Keeps the chunk that it reads for `read_input`."""
        self._first_input = await self._context.stdin.read_chunk() or b""
        return bool(self._first_input)

    async def read_input(self) -> bytes:
        """Read stdin to its end. Returns all data, with the chunk that `has_input` read."""
        return b"".join([self._first_input, *[chunk async for chunk in self._context.stdin]])

    async def write(self, text: str) -> None:
        self._buffer.write(text)
        if self._buffer.tell() >= _WRITE_CHARACTERS:
            await self.flush()

    async def flush(self) -> None:
        """Write the buffered text to stdout. Raises `BrokenPipeError` if the reader has closed the pipe."""
        data = self._buffer.getvalue().encode(errors="surrogateescape")
        self._buffer = io.StringIO()
        await self._write_bytes(data)

    async def complain(self, message: str) -> None:
        await self._write_error(f"{self.name}: {message}\n".encode(errors="surrogateescape"))

    async def run_plain(self, bash: Any) -> int:
        """Run bashkit's own command in `bash`, a new shell, without our command of that name. Returns its exit code."""
        bash.remove_builtin(self.name)
        bash.mount("/", self.files)
        bash.add_command("__input", self._read_input)
        bash.add_command("__output", self._write_output)
        line = " ".join([self.name, *map(self._quoted, self.arguments)])
        if self.name != "rg" or self._first_input or await self.has_input():  # without a pipe, rg searches the folder
            line = f"__input | {line}"
        if self.name != "find":  # bashkit's stops at 1 MiB of names, and reports that only without a pipe
            line = f"set -o pipefail; {line} | __output"
        result = await bash.execute(line, stdout=self._write_bytes, stderr=self._write_error)
        return int(result.exit_code) or self.least_status

    def _quoted(self, word: str) -> str:
        """Quote a word for the other shell, where `__input` reads a file that `<(...)` made in this shell."""
        is_file = re.fullmatch(r"/dev/fd/\d+", word) and self.files.exists(word)
        return f"<(command __input {word})" if is_file else shlex.quote(word)

    async def _read_input(self, inner: Any) -> int:
        """A command of the other shell: write the stdin of this call, or a file of this shell, to stdout."""
        with suppress(BrokenPipeError):  # the reader has closed the pipe
            if inner.argv:
                await inner.stdout.write(self.files.read_file(inner.argv[0]))
                return 0
            await inner.stdout.write(self._first_input)
            async for chunk in self._context.stdin:
                await inner.stdout.write(chunk)
        return 0

    async def _write_output(self, inner: Any) -> int:
        """A command of the other shell: pass its stdin on as the output of this call."""
        with suppress(BrokenPipeError):
            async for chunk in inner.stdin:
                await self._write_bytes(chunk)
        return 0

    async def _write_bytes(self, data: bytes) -> None:
        if data:
            await self._context.stdout.write(data)
            self.written_bytes += len(data)

    async def _write_error(self, data: bytes) -> None:
        await self._context.stderr.write(data)


@dataclass(frozen=True, slots=True)
class Output:
    """What a command line wrote, and its exit code. `note` says what was cut, and how to see the rest."""

    stdout: str
    stderr: str
    exit_code: int
    note: str
