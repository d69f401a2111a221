"""The process of a worker as its host sees it: its channel, its first message, and its end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from rlm.errors import ChannelAbuse, RunnerUnavailable
from rlm.runners.channel import Channel, ChannelClosed

START_SECONDS = 120.0  # a start takes half a second, three in the runner `wasm`, and longer on a busy machine
_END_SECONDS = 20.0  # the time that a process gets to end before it is killed


class Worker(Protocol):
    """A process that runs cells at the other end of a channel, on this machine or elsewhere."""

    channel: Channel

    @property
    def complaint(self) -> str:
        """Why the worker ended, as it printed or raised it; empty if it said nothing."""
        ...

    def end(self, *, gone: bool = False) -> str:
        """End the worker. Returns how it ended, in few words. `gone`: its channel has closed by itself. Idempotent."""
        ...


def receive_hello(worker: Worker, name: str = "") -> Mapping[str, Any]:
    """The fields of a worker's first message. Raises RunnerUnavailable with its complaint and the runner's `name`."""
    message = None
    try:
        message = worker.channel.receive(START_SECONDS)
    except (ChannelClosed, ChannelAbuse):
        pass
    except BaseException:  # a Ctrl-C
        worker.end()
        raise
    if message and message.head.get("op") == "hello":
        return message.head
    how_ended = worker.end(gone=True)
    reason = f"the worker did not start: {worker.complaint or how_ended}"
    raise RunnerUnavailable(f"runner {name!r}: {reason}" if name else reason)


class PipedProcess:
    """A process whose standard input and output are the channel to its worker."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        """`options`: of `Popen`. Raises OSError."""
        pipe = subprocess.PIPE
        self._popen = popen = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **options)
        assert popen.stdin
        assert popen.stdout
        read_fd, write_fd = os.dup(popen.stdout.fileno()), os.dup(popen.stdin.fileno())
        popen.stdout.close()
        popen.stdin.close()
        popen.stdin = popen.stdout = None
        self._how_ended = ""
        self.channel = Channel(read_fd, write_fd)
        self.complaint = ""  # known once it has ended

    def end(self, *, gone: bool = False) -> str:
        """End the process. Returns how it ended, in few words. `gone`: its channel has closed by itself. Idempotent."""
        if not self._how_ended:
            self.channel.close()
            if gone:
                with suppress(subprocess.TimeoutExpired):
                    self._popen.wait(1.0)  # its channel has closed, so it ends soon
            by_itself = gone and self._popen.returncode is not None
            if not by_itself:
                self.kill()
            try:
                stderr = self._popen.communicate(timeout=_END_SECONDS)[1]
            except subprocess.TimeoutExpired:
                self._popen.kill()
                stderr = self._popen.communicate()[1]
            self.complaint = _find_complaint(stderr.decode("utf-8", "replace"))
            self._how_ended = self.describe_exit() if by_itself else "ended"
        return self._how_ended

    def kill(self) -> None:
        """Make the process end."""
        self._popen.kill()

    def describe_exit(self) -> str:
        """How the process ended by itself, in a few words."""
        # After the certain facts: a cell may have written it.
        return f"exit status {self._popen.returncode}{self.complaint and f': {self.complaint}'}"


def _find_complaint(stderr: str) -> str:
    """The last line that names an error, or else the last line; empty if there is none."""
    lines = [line for line in map(str.strip, stderr.splitlines()) if line and "--help" not in line]  # docker's advice
    errors = [line for line in lines if "error" in line.lower()] or lines
    return "".join(filter(str.isprintable, errors[-1]))[:500] if errors else ""
