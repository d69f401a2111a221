"""Commands of the tests: a text, how to run one as a process or on a terminal, and what it left behind."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TEXT = "".join(f"line {i}: καλημέρα \U0001f600\n" if i % 7 == 3 else f"line {i}: plain\n" for i in range(20_000))


def process(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "monocontext", *map(str, arguments)]


def on_a_terminal(stream: str, *arguments: str | Path, **environment: str) -> tuple[int, str]:
    """Run a command with a terminal as its `stdout` or `stderr`: the exit code, and what the terminal saw."""
    master, slave = pty.openpty()
    try:
        streams: dict[str, int] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: slave}
        running = subprocess.Popen(
            process(*arguments),
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", **environment},
            **streams,  # type: ignore[call-overload]
        )
        os.close(slave)
        seen, end = b"", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    data = os.read(master, 65536)
                except OSError:  # Linux: the other side is closed
                    break
                if not data:
                    break
                seen += data
        return running.wait(60), seen.decode()
    finally:
        os.close(master)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    def fine(self) -> Ran:
        assert (self.code, self.err) == (0, "")
        return self

    def refused(self, *said: str) -> Ran:
        """One line that says what is wrong, exit 2, nothing on stdout."""
        assert self.err.find("\n") == len(self.err) - 1, self.err
        return self._said("monocontext: ", *said)

    def _said(self, begin: str, *said: str) -> Ran:
        assert (self.code, self.out) == (2, ""), self
        assert self.err.startswith(begin)
        for each in said:
            assert each in self.err
        return self

    def misused(self, *said: str) -> Ran:
        """The complaint of the option parser: usage and reason, exit 2."""
        assert "Traceback" not in self.err
        return self._said("Usage: ", *said)


Cli = Callable[..., Ran]
