"""The process of a shell: runs command lines one after another, and asks its host for text."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

import bashkit

from monocontext.engine.remote import ServedReader
from monocontext.errors import MonocontextError
from monocontext.shell.call import Command, LeftToShell, Output, ShellCall
from monocontext.shell.capsule import Capsule
from monocontext.shell.grep import grep
from monocontext.shell.listing import find, ls
from monocontext.shell.parts import STOPPING, drop_unreadable, head_or_tail, sed, wc
from monocontext.shell.process import Host
from monocontext.shell.tree import TextFiles
from monocontext.text.monocontext import served_text

_READ_SHARE = 8 / 9  # of a command line's time, for reading texts; in the rest it reports what it did not reach
_MOST_MEMORY_BYTES = 2 << 30  # the limit of this process, which must run out of memory before the machine does
_CACHE_BYTES = 16 << 20  # for frames of each text; the host has the main cache
_KEPT_OUTPUT_BYTES = 10 << 20  # of our commands' output; bashkit drops the rest if it does not go to a pipe
_KEEPS = re.compile(r"[(){}<>&;`\n]|-exec|\b(?:xargs|timeout|nohup|env|command|eval|sh|bash|time|if|while|for|until)\b")
"""Matches a command line in which the output of our commands may not go to a pipe, as in `x=$(ls)`; not `ls | sort`."""
_COMMANDS: dict[str, Command] = {
    "grep": grep, "egrep": grep, "fgrep": grep, "rg": grep, "ls": ls, "find": find,
    "head": head_or_tail, "tail": head_or_tail, "sed": sed, "wc": wc,
}  # fmt: skip
_LOOP_READS_PIPE = re.compile(r"""\|&?(?:\s|#.*\n)*(?:(?:while|until|for|if|case|[{!])\s|\((?!\S*['"]))""")
"""Matches a command line in which a loop or a group reads a pipe, as in `| while read f; do`."""
_TAKING_INPUT = (*_COMMANDS, *STOPPING, "cat", "seq", "yes")
"""Commands that need `command` before them in such a loop or group, lest they take the rest of the pipe."""
_STOPPING_CALL = re.compile(rf"\b({'|'.join(STOPPING)})\b(?=(?:[^|;&\n]*?\s[^\s|;&-][^\s|;&]*+){{2}}|[^|;&\n]*[{{*?[])")
"""Matches a call of a command in `STOPPING` with several operands, as `tac a b` or `tac *.log`; not `tac -s x`."""


class _Worker:
    """Runs command lines. The texts and `/tmp` stay open between them."""

    def __init__(self, host: Host, folders: list[str]) -> None:
        self._host, self._folders = host, folders
        self._capsules = {folder: Capsule(self._open_files(number)) for number, folder in enumerate(folders)}
        self._scratch = bashkit.FileSystem()
        for entry in self._scratch.read_dir("/"):
            self._scratch.remove(f"/{entry['name']}", recursive=True)
        self._seconds = self._end = 0.0  # the time limit of a command line, and when it stops reading texts
        self._written_bytes = 0  # the output of all our commands in the command line

    def _open_files(self, number: int) -> TextFiles:
        def ask(request: bytes) -> bytes:
            if time.monotonic() > self._end:
                raise MonocontextError("stopped for lack of time, before the end: search fewer files or a rarer word")
            return self._host.ask(number, request)

        return TextFiles(lambda: served_text(ServedReader(ask, cache_bytes=_CACHE_BYTES)))

    async def run(self, command: str, changed: list[int], seconds: float, most_bytes: int) -> Output:
        """Run a command line; cut stdout to `most_bytes`, stderr to a quarter. `changed`: texts to open again."""
        self._seconds = seconds
        self._end = time.monotonic() + _READ_SHARE * seconds
        self._written_bytes = 0
        for number in changed:
            self._capsules[self._folders[number]].files = self._open_files(number)
        bash = await self._new_bash_for(command)
        written, complaints = bytearray(), bytearray()
        result = await bash.execute(command, stdout=partial(_collect, written), stderr=partial(_collect, complaints))
        failures = self._failures(command)
        errors = failures + complaints.decode(errors="replace")
        if result.error and result.error not in errors:
            errors += f"{result.error}\n"
        shown, told = _cut(written, most_bytes), _cut(errors.encode(), most_bytes // 4)
        notes = ["the shell has dropped the rest: print less, or write to /tmp"] if result.stdout_truncated else []
        if len(shown) < len(written):
            goes_on = self._keep(written, shown.count(b"\n") + 1)
            notes.append(f"cut: {len(shown):,} of {len(written):,} bytes; {goes_on}")
        if len(told) < len(errors.encode()):
            notes.append("errors are cut: see all with 2> /tmp/errors")
        exit_code = result.exit_code or int(bool(failures))
        return Output(shown.decode(errors="replace"), told.decode(errors="ignore"), exit_code, "; ".join(notes))

    async def _new_bash_for(self, command: str) -> bashkit.Bash:
        """Make a shell with our commands, and with the further commands and aliases that a command line needs."""
        bash = self._new_bash(self._folders[0] if len(self._folders) == 1 else "/")
        for name in STOPPING if "xargs" in command else set(_STOPPING_CALL.findall(command)):
            bash.add_command(name, partial(self._run_command, drop_unreadable))
        if _LOOP_READS_PIPE.search(command):
            names = [name for name in _TAKING_INPUT if not re.search(rf"\b{name}\s*\(\)|function\s+{name}\b", command)]
            aliases = "".join(f"alias {name}='command {name}'\n" for name in names)
            await bash.execute(f"shopt -s expand_aliases\n{aliases}")
        return bash

    def _new_bash(self, cwd: str) -> bashkit.Bash:
        """Make a shell with the folders of the texts, and with our commands."""
        bash = bashkit.Bash(
            username="user", hostname="monocontext", cwd=cwd, profile=bashkit.ExecutionProfile.Interactive,
            timeout_seconds=self._seconds, max_commands=50_000, max_loop_iterations=200_000,
        )  # fmt: skip
        for folder in self._folders:
            bash.mkdir(folder.rpartition("/")[0] or "/", recursive=True)
        for folder, capsule in self._capsules.items():
            bash.mount(folder, bashkit.FileSystem.from_capsule(capsule.value), read_only=True)
        bash.mount("/tmp", self._scratch)
        for name, command in _COMMANDS.items():
            bash.add_command(name, partial(self._run_command, command))
        return bash

    async def _run_command(self, command: Command, context: Any) -> int:
        """Run one of our commands; returns the exit code. `context` is bashkit's `CommandContext`."""
        call = ShellCall(context, {folder: capsule.files for folder, capsule in self._capsules.items()})
        try:
            status = await command(call)
            await call.flush()
            return status
        except LeftToShell:
            return await call.run_plain(self._new_bash(call.cwd))
        except BrokenPipeError:
            return 141  # the exit code of a program that SIGPIPE has ended: the next command reads no further
        except (MonocontextError, OSError, re.error, ValueError, OverflowError, RuntimeError) as error:
            with suppress(BrokenPipeError):
                await call.flush()
            await call.complain(str(error))
            return 2
        finally:
            self._written_bytes += call.written_bytes

    def _failures(self, command: str) -> str:
        """Take the errors that bashkit does not report, a line each: unread texts, output that may be lost."""
        failures = ""
        for capsule in self._capsules.values():
            failures += f"not all files could be read: {capsule.failure}\n" if capsule.failure else ""
            capsule.failure = ""
        if self._written_bytes > _KEPT_OUTPUT_BYTES and _KEEPS.search(command.replace("2>/dev/null", "")):
            failures += f"the shell may have lost some of more than {_KEPT_OUTPUT_BYTES:,} bytes of output: "
            failures += "write less, or use nothing but a pipe, as in `grep WORD FILE | sort`\n"
        return failures

    def _keep(self, written: bytearray, first: int) -> str:
        """Keep the whole output in a file. Returns advice on how to read it from line `first` on."""
        try:
            self._scratch.write_file("/output", bytes(written))
        except RuntimeError:
            return "/tmp is full, so the rest is lost: remove files there, or print less"
        return f"go on with sed -n '{first},{first + 200}p' /tmp/output, or search there"


async def _collect(data: bytearray, piece: bytes) -> None:
    data.extend(piece)


def _cut(data: bytes | bytearray, most_bytes: int) -> bytes:
    """At most the first `most_bytes` of data, cut after a line if one ends in their second half."""
    if len(data) <= most_bytes:
        return bytes(data)
    return bytes(data[: data.rfind(b"\n", most_bytes // 2, most_bytes) + 1 or most_bytes])


def main() -> None:
    """Run the process of a `Shell`: answer its calls, each with a command line, until it ends."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    host, worker = Host(), None
    with asyncio.Runner() as runner:
        while message := host.receive():
            request = json.loads(message)
            folders = request.pop("folders")
            worker = worker or _Worker(host, folders)
            host.send(json.dumps(asdict(runner.run(worker.run(**request)))).encode())
