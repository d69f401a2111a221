"""The process of a shell: runs command lines one after another, and asks its host for the texts."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from getopt import GetoptError
from typing import Any

import bashkit

from monocontext.engine.remote import ServedReader
from monocontext.errors import MonocontextError
from monocontext.shell.call import LeftToShell, ShellCall
from monocontext.shell.capsule import Capsule
from monocontext.shell.find import find
from monocontext.shell.grep import grep
from monocontext.shell.listing import ls
from monocontext.shell.parts import head_or_tail, sed, wc
from monocontext.shell.process import Host
from monocontext.shell.tree import TextFiles
from monocontext.text.monocontext import Monocontext, served_text

_MOST_COMMANDS = 50_000
_MOST_LOOPS = 200_000
_READ_SHARE = 8 / 9
"""Texts are read in this part of the time of a command line, so that it can say what it has not reached."""
_MOST_MEMORY_BYTES = 2 << 30
"""Of the process: it runs out of memory before the machine does."""
_CACHE_BYTES = 16 << 20
"""The frames of each text that are kept here; the host has the main cache."""
_KEPT_BYTES = 10 << 20
"""What bashkit keeps of the output of a command of ours where no pipe takes it: it drops the rest without a word."""
_KEEPS = re.compile(r"[(){}<>&;`\n]|-exec|\b(?:xargs|timeout|nohup|env|command|eval|sh|bash|time|if|while|for|until)\b")
"""What a command line without any has no place in which output would be kept, other than that of its last command."""
_LEFT_TO_SHELL = 125
"""The exit code of a command of ours that leaves the call to the shell's own."""
_COMMANDS = {"grep": grep, "egrep": grep, "fgrep": grep, "rg": grep, "ls": ls}
_PARTLY = {"head": head_or_tail, "tail": head_or_tail, "sed": sed, "wc": wc, "find": find}
"""Commands of which we answer some calls, under a name of ours, and the shell the rest."""
_ASK_FIRST = (
    '{0}() {{ __{0} "$@" </dev/null && return; local c=$?; [ $c = {1} ] || return $c; command {0} "$@"{2}; }}\n'
)
_TELL = " 2>/.find && c=0 || c=$?; cat /.find >&2; rm /.find; return $c"
"""In a pipe, bashkit's `find` tells nobody but a file that it stops at 1 MiB of names."""
_PRELUDE = "".join(_ASK_FIRST.format(name, _LEFT_TO_SHELL, _TELL if name == "find" else "") for name in _PARTLY)
_FEEDS = re.compile(r"""\|&?(?:\s|#.*\n)*(?:(?:while|until|for|if|case|[{!])\s|\((?!\S*['"]))""")
"""What a command line without has no loop or group that reads a pipe."""
_TAKE_INPUT = (*_COMMANDS, "cat", "seq", "yes")
"""In a loop or group that reads a pipe, bashkit gives the first of these the rest of it, unless `command` runs it. Not
for plain pipes, since it is then given all of its input at once."""


class _Worker:
    """The file systems of a shell, which live on between two command lines."""

    def __init__(self, host: Host, folders: list[str]) -> None:
        self._host, self._folders = host, folders
        self._end = 0.0
        self._capsules = [Capsule(self._files(i)) for i in range(len(folders))]
        self._systems = [bashkit.FileSystem.from_capsule(capsule.value) for capsule in self._capsules]
        self._scratch = bashkit.FileSystem()
        for entry in self._scratch.read_dir("/"):
            self._scratch.remove(f"/{entry['name']}", recursive=True)

    def _files(self, index: int) -> TextFiles:
        def ask(request: bytes) -> bytes:
            if time.monotonic() > self._end:
                raise MonocontextError("stopped for lack of time, before the end: search fewer files, or a rarer word")
            return self._host.ask(index, request)

        return TextFiles(lambda: served_text(ServedReader(ask, cache_bytes=_CACHE_BYTES)), _size_of)

    async def run(self, command: str, changed: list[int], seconds: float, most_bytes: int) -> dict[str, Any]:
        """Run a command line and return the fields of `Output`. `changed`: the texts to open again."""
        self._end = time.monotonic() + _READ_SHARE * seconds
        for i in changed:
            self._capsules[i].files = self._files(i)
        calls: list[ShellCall] = []
        bash = self._new_bash(seconds, calls)
        await bash.execute(_PRELUDE)
        if _FEEDS.search(command):
            names = (n for n in _TAKE_INPUT if not re.search(rf"\b{n}\s*\(\)|function\s+{n}\b", command))
            await bash.execute("shopt -s expand_aliases\n" + "".join(f"alias {n}='command {n}'\n" for n in names))
        written, complaints = bytearray(), bytearray()
        result = await bash.execute(command, stdout=partial(_collect, written), stderr=partial(_collect, complaints))
        failures = self._failures(command, sum(call.written_bytes for call in calls))
        errors = failures + complaints.decode(errors="replace")
        if result.error and result.error not in errors:
            errors += f"{result.error}\n"
        shown, told = _cut(written, most_bytes), _cut(errors.encode(), most_bytes // 4)
        notes = ["the shell keeps no more output than this: print less, or into files"] * result.stdout_truncated
        if len(shown) < len(written):
            goes_on = self._keep(written, shown.count(b"\n") + 1)
            notes.append(f"cut: {len(shown):,} of {len(written):,} bytes; {goes_on}")
        if len(told) < len(errors.encode()):
            notes.append("errors are cut: see all with 2> /tmp/errors")
        return {
            "stdout": shown.decode(errors="replace"),
            "stderr": told.decode(errors="ignore"),
            "exit_code": result.exit_code or int(bool(failures)),
            "note": "; ".join(notes),
        }

    def _new_bash(self, seconds: float, calls: list[ShellCall]) -> bashkit.Bash:
        """A shell with the folders of the texts and our commands, whose calls are added to `calls`."""
        bash = bashkit.Bash(
            username="user", hostname="monocontext", cwd=self._folders[0] if len(self._folders) == 1 else "/",
            timeout_seconds=seconds, max_commands=_MOST_COMMANDS, max_loop_iterations=_MOST_LOOPS,
            profile=bashkit.ExecutionProfile.Interactive,
        )  # fmt: skip
        for folder in self._folders:
            bash.mkdir(folder.rpartition("/")[0] or "/", recursive=True)
        for folder, system in zip(self._folders, self._systems, strict=True):
            bash.mount(folder, system, read_only=True)
        bash.mount("/tmp", self._scratch)
        texts = {folder: capsule.files for folder, capsule in zip(self._folders, self._capsules, strict=True)}
        for name, work in (_COMMANDS | {f"__{name}": work for name, work in _PARTLY.items()}).items():
            bash.add_command(name, partial(_run_command, work, texts, calls))
        return bash

    def _failures(self, command: str, written_bytes: int) -> str:
        """What bashkit does not say of a command line: files that could not be read, and output that may be lost."""
        failures = ""
        for capsule in self._capsules:
            failures += f"not all could be read: {capsule.failure}\n" if capsule.failure else ""
            capsule.failure = ""
        if written_bytes > _KEPT_BYTES and _KEEPS.search(command.replace("2>/dev/null", "")):
            failures += f"more than {_KEPT_BYTES:,} bytes of output, of which the shell may have lost some: "
            failures += "write less, or use nothing but a pipe, as in `grep WORD FILE | sort`\n"
        return failures

    def _keep(self, written: bytearray, first: int) -> str:
        """Keep the whole output, of which the lines from `first` on are not shown; returns how to go on."""
        try:
            self._scratch.write_file("/output", bytes(written))
        except RuntimeError:
            return "/tmp is full, so the rest is lost: remove files there, or print less"
        return f"go on with sed -n '{first},{first + 200}p' /tmp/output, or search there"


def _size_of(text: Monocontext) -> int:
    """The bytes of a text; one that is a part of what is stored is read for them."""
    reader: ServedReader = text.span.source.reader  # type: ignore[attr-defined]
    is_whole = len(text) == reader.characters
    return reader.described["bytes"] if is_whole else sum(len(chunk.encode()) for chunk in text.chunks())


async def _collect(data: bytearray, piece: bytes) -> None:
    data.extend(piece)


def _cut(data: bytes | bytearray, most_bytes: int) -> bytes:
    """The beginning of some data, of whole lines if possible."""
    if len(data) <= most_bytes:
        return bytes(data)
    return bytes(data[: data.rfind(b"\n", most_bytes // 2, most_bytes) + 1 or most_bytes])


async def _run_command(
    work: Callable[[ShellCall], Awaitable[int]], texts: Mapping[str, TextFiles], calls: list[ShellCall], context: Any
) -> int:
    call = ShellCall(context, texts)
    calls.append(call)
    try:
        status = await work(call)
        await call.flush()
        return status
    except (LeftToShell, GetoptError) as error:
        if context.name.removeprefix("__") in _PARTLY:
            return _LEFT_TO_SHELL
        await call.complain(f"not supported here: {error}")
        return 2
    except BrokenPipeError:
        return 141  # as of a program that SIGPIPE ends: the next command reads no further
    except (MonocontextError, OSError, re.error, ValueError, OverflowError, RuntimeError) as error:
        with suppress(BrokenPipeError):
            await call.flush()
        await call.complain(str(error))
        return 2


def main() -> None:
    """The main function of the process, whose messages are those of `Shell`."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    host, worker = Host(), None
    with asyncio.Runner() as runner:
        while message := host.receive():
            request = json.loads(message)
            folders = request.pop("folders")
            worker = worker or _Worker(host, folders)
            host.send(json.dumps(runner.run(worker.run(**request))).encode())
