"""A shell over texts, from the side of the host: starts its process and answers its requests for text."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from monocontext.engine.remote import ReaderServer
from monocontext.errors import MonocontextError, ToolRefusal, install_line
from monocontext.shell.messages import read_message, write_message
from monocontext.text.monocontext import Monocontext

SECONDS = 30.0
"""A command line may take this long."""
_KILL_SECONDS = 10.0
"""A process that does not end a command line by itself is killed this much later."""
_MOST_CHARACTERS = 100_000
"""The longest command line."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command line wrote, and how it ended. `note` says how to go on if output is missing; empty if none is."""

    stdout: str
    stderr: str
    exit_code: int
    note: str


class Shell:
    """A shell over texts. Command lines run one after another; `/tmp` lives on between them. Safe for many threads.

    `texts` has a function for each folder, such as `/logs`, that returns its text. It is called when the folder is
    first used, then for each command line: where it returns another text, the folder has the files of that.
    """

    def __init__(self, texts: Mapping[str, Callable[[], Monocontext]], *, seconds: float = SECONDS) -> None:
        if importlib.util.find_spec("bashkit") is None:
            raise MonocontextError(f"the shell is missing: {install_line('shell')}")
        self._folders, self._open = list(texts), list(texts.values())
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Shell] | None = None
        self._versions = [0] * len(texts)
        self._opened: dict[int, tuple[Monocontext, ReaderServer]] = {}
        """The texts that the process has used."""

    def run(self, command: str, most_bytes: int) -> Ran:
        """Run a command line; returns at most `most_bytes` of its output (the GETs of what it reads).

        Raises `ToolRefusal` if its process had to be ended.
        """
        if len(command) > _MOST_CHARACTERS:
            raise ToolRefusal(f"a command has at most {_MOST_CHARACTERS:,} characters, this one has {len(command):,}")
        with self._lock:
            process = self._process or self._start()
            killer = threading.Timer(self._seconds + _KILL_SECONDS, process.kill)
            killer.daemon = True
            killer.start()
            try:
                return self._relay(process, command, most_bytes)
            except (BrokenPipeError, EOFError):
                is_late = killer.finished.is_set()
                why = (
                    f"was stopped after {self._seconds + _KILL_SECONDS:g} s"
                    if is_late
                    else "has died, perhaps for lack of memory"
                )
                raise ToolRefusal(f"the shell {why}; it begins anew, and /tmp is empty") from None
            except BaseException:
                process.kill()  # it still waits for an answer
                raise
            finally:
                killer.cancel()
                if process.poll() is not None or sys.exception() is not None:
                    self.close()

    def close(self) -> None:
        """End the process. Idempotent; the next `run` starts another."""
        if self._end is not None:
            self._end()
        self._process = None
        for _, server in self._opened.values():
            server.close()
        self._opened.clear()

    def _start(self) -> subprocess.Popen[bytes]:
        home = str(Path(__file__).resolve().parents[2])
        code = f"import sys; sys.path[:] = {[home, *sys.path]!r}; from monocontext.shell.worker import main; main()"
        environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # no keys
        self._process = process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._end = weakref.finalize(self, _kill, process)
        assert process.stdin
        write_message(process.stdin, json.dumps(self._folders).encode())
        return process

    def _relay(self, process: subprocess.Popen[bytes], command: str, most_bytes: int) -> Ran:
        """Send a command line, answer requests for text, and return what came of it."""
        for index, (text, server) in list(self._opened.items()):
            if self._open[index]() is not text:
                server.close()
                del self._opened[index]
                self._versions[index] += 1
        request = {"command": command, "versions": self._versions, "seconds": self._seconds, "most_bytes": most_bytes}
        assert process.stdin
        assert process.stdout
        write_message(process.stdin, json.dumps(request).encode())
        while message := read_message(process.stdout):
            if message[:1] == b"=":
                return Ran(**json.loads(message[1:]))
            write_message(process.stdin, self._answer(int.from_bytes(message[1:5], "big"), message[5:]))
        raise EOFError

    def _answer(self, index: int, request: bytes) -> bytes:
        """The answer to a request about a text; an error if there is no such text now."""
        try:
            if index not in self._opened:
                text = self._open[index]()
                self._opened[index] = text, text.serve()
            return b"=" + self._opened[index][1].answer(request)
        except (MonocontextError, OSError, ValueError) as error:
            return b"!" + str(error).encode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
