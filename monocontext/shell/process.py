"""Run a function in another Python process, which reads texts through this one and is ended if it takes too long.

That process has no credentials and no environment. A message is its length (4 bytes, big endian), then its bytes. To a
call, the process sends any number of messages with `+` and a part of the reply, then one with the reply. Until then it
may ask for data by `?`, the number of a text (4 bytes) and a request: the host sends `=` and data, or `!` and an error.
"""

from __future__ import annotations

import errno
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO

from monocontext.errors import MonocontextError


class Ended(Exception):
    """The process has ended without a reply."""


class Child:
    """A process that runs `main` of a module, and exits if a call takes more than `seconds`."""

    def __init__(self, module: str, seconds: float) -> None:
        home = str(Path(__file__).resolve().parents[2])
        code = f"import sys; sys.path[:] = {[home, *sys.path]!r}; from {module} import main; main()"
        # -I and -S: no variables of Python and no `site`, since `code` sets `sys.path`. Windows needs SYSTEMROOT.
        command = [sys.executable, "-I", "-S", "-c", code, str(seconds)]
        environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.close = weakref.finalize(self, _kill, self.process)
        self.is_late = False  # whether it has ended because a call took too long
        self._seconds = seconds

    def call(
        self, message: bytes, answer: Callable[[int, bytes], bytes], on_part: Callable[[bytes], None] | None = None
    ) -> bytes:
        """Send a call and return the reply. `answer` takes the number of a text and a request, and returns data;
        `on_part` takes parts of the reply. Any exception kills the process. Raises `Ended` if there is no reply."""
        outward, inward = self.process.stdin, self.process.stdout
        assert outward is not None
        assert inward is not None
        began = time.monotonic()
        try:
            _write(outward, message)
            while received := _read(inward):
                if received[:1] == b"?":
                    _write(outward, _answer(answer, received))
                elif received[:1] != b"+":
                    return received
                elif on_part is not None:
                    on_part(received[1:])
            raise Ended
        except BaseException as error:
            self.is_late = time.monotonic() - began >= self._seconds
            self.close()
            if isinstance(error, BrokenPipeError):
                raise Ended from None
            raise


def _answer(answer: Callable[[int, bytes], bytes], request: bytes) -> bytes:
    try:
        return b"=" + answer(int.from_bytes(request[1:5], "big"), request[5:])
    except (MonocontextError, OSError, ValueError) as error:
        return b"!" + str(error).encode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()  # wait for its end, and close the pipes


class Host:
    """The pipes to the host, for `main` in the other process. Safe for use by many threads."""

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host
        self._nowhere = open(os.devnull, "w")  # noqa: SIM115  # as long as the process lives
        self._inward, self._outward = sys.stdin.buffer, sys.stdout.buffer
        self._lock = threading.Lock()

    def receive(self) -> bytes:
        """Wait for the next call, and start its time limit. Empty if the host has ended."""
        faulthandler.cancel_dump_traceback_later()
        message = _read(self._inward)
        # The thread of faulthandler ends this process even while `re` holds the GIL, or after the host has died.
        faulthandler.dump_traceback_later(float(sys.argv[1]), exit=True, file=self._nowhere)
        return message

    def send(self, message: bytes) -> None:
        with self._lock:
            _write(self._outward, message)

    def ask(self, number: int, request: bytes) -> bytes:
        """Ask the host for data of the text `number`. Raises `OSError` with the message of an error in the host."""
        with self._lock:
            _write(self._outward, b"?" + number.to_bytes(4, "big") + request)
            answer = _read(self._inward)
        if answer[:1] != b"=":
            raise OSError(errno.EIO, answer[1:].decode(errors="replace") or "the host has ended")
        return answer[1:]


def _write(file: IO[bytes], message: bytes) -> None:
    file.write(len(message).to_bytes(4, "big") + message)
    file.flush()


def _read(file: IO[bytes]) -> bytes:
    """Read a message; empty if the other side has closed the pipe."""
    size = file.read(4)
    return file.read(int.from_bytes(size, "big")) if len(size) == 4 else b""
