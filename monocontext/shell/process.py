"""Run a function in another process of this Python, which may be killed and reads texts through this one.

It has no keys and no environment. A message is its length (4 bytes, big endian), then its bytes, of which the first
tells the kind: `?` asks for text, `+` is a part of a reply, anything else a reply.
"""

from __future__ import annotations

import errno
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO

from monocontext.errors import MonocontextError

_ORPHAN_SECONDS = 60.0
"""A process whose host has died ends by itself this long after its last message; no call may take longer."""
_running: weakref.WeakSet[Child] = weakref.WeakSet()


class Ended(Exception):
    """The process has ended without a reply."""


class Child:
    """A process that runs `main` of a module."""

    def __init__(self, module: str) -> None:
        home = str(Path(__file__).resolve().parents[2])
        code = f"import sys; sys.path[:] = {[home, *sys.path]!r}; from {module} import main; main()"
        environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.close = weakref.finalize(self, _end, self.process)
        self.is_late = False
        """Whether it was killed because a call took too long."""
        _running.add(self)

    def call(
        self,
        message: bytes,
        answer: Callable[[int, bytes], bytes],
        seconds: float,
        take: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Send a message and return the reply. `answer` gets requests for text, and the number of the text; `take` gets
        parts of the reply. After any exception the process has ended; raises `Ended` if it did so by itself or took
        more than `seconds`."""
        killer = threading.Timer(seconds, self._kill)
        killer.daemon = True
        killer.start()
        outward, inward, is_done = self.process.stdin, self.process.stdout, False
        assert outward is not None
        assert inward is not None
        try:
            _write(outward, message)
            while received := _read(inward):
                if received[:1] == b"?":
                    _write(outward, _answer(answer, received))
                elif received[:1] != b"+":
                    is_done = True
                    return received
                elif take is not None:
                    take(received[1:])
            raise Ended
        except BrokenPipeError:
            raise Ended from None
        finally:
            killer.cancel()
            if not is_done:
                self.close()

    def _kill(self) -> None:
        self.is_late = True
        self.process.kill()


def _answer(answer: Callable[[int, bytes], bytes], request: bytes) -> bytes:
    try:
        return b"=" + answer(int.from_bytes(request[1:5], "big"), request[5:])
    except (MonocontextError, OSError, ValueError) as error:
        return b"!" + str(error).encode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def kill_all() -> None:
    """Kill the processes that run, before this one exits."""
    for child in list(_running):
        child.process.kill()


class Host:
    """The host, from the side of the process. Safe for use by many threads."""

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host
        self._nowhere = open(os.devnull, "w")  # noqa: SIM115  # as long as the process lives
        self._inward, self._outward = sys.stdin.buffer, sys.stdout.buffer
        self._lock = threading.Lock()

    def receive(self) -> bytes:
        """Wait for the message of a call; empty if the host is gone."""
        faulthandler.cancel_dump_traceback_later()
        message = _read(self._inward)
        faulthandler.dump_traceback_later(_ORPHAN_SECONDS, exit=True, file=self._nowhere)
        return message

    def send(self, message: bytes) -> None:
        with self._lock:
            _write(self._outward, message)

    def ask(self, number: int, request: bytes) -> bytes:
        """The answer to a request about a text. Raises `OSError`."""
        with self._lock:
            _write(self._outward, b"?" + number.to_bytes(4, "big") + request)
            answer = _read(self._inward)
        if answer[:1] != b"=":
            raise OSError(errno.EIO, answer[1:].decode(errors="replace") or "the host is gone")
        return answer[1:]


def _write(file: IO[bytes], message: bytes) -> None:
    file.write(len(message).to_bytes(4, "big") + message)
    file.flush()


def _read(file: IO[bytes]) -> bytes:
    """Read a message; empty if the other side has closed the pipe."""
    size = file.read(4)
    return file.read(int.from_bytes(size, "big")) if len(size) == 4 else b""
