"""Start the process of a worker with pipes as its channel, receive its first message, and end it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from rlm.errors import ChannelAbuse, RunnerUnavailable
from rlm.runners.channel import Channel, ChannelClosed

START_SECONDS = 120.0  # the limit of a start, which takes half a second, or three in `wasm`, on an idle machine
_END_SECONDS = 20.0  # the time that a process gets to end before it is killed


class Worker(Protocol):
    """A process that runs cells at the other end of a channel, on this machine or elsewhere."""

    channel: Channel

    @property
    def complaint(self) -> str:
        """What the worker, or its provider, printed or raised about its end; empty if nothing."""

    def end(self, *, hung_up: bool = False) -> str:
        """End the worker. Returns how it ended, briefly. `hung_up`: whether it has closed the channel. Idempotent."""


def receive_hello(worker: Worker, name: str = "") -> Mapping[str, Any]:
    """The fields of a worker's first message. If none comes, ends the worker and raises RunnerUnavailable with its
    complaint, after the runner's `name` if there is one."""
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
    how_ended = worker.end(hung_up=True)
    reason = f"the worker did not start: {worker.complaint or how_ended}"
    raise RunnerUnavailable(f"runner {name!r}: {reason}" if name else reason)


class PipedProcess:
    """A process whose standard input and output are the channel to its worker."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        """`options`: keywords of `Popen`. Raises OSError if the command cannot start."""
        pipe = subprocess.PIPE
        self._popen = popen = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **options)
        assert popen.stdin
        assert popen.stdout
        read_fd = os.dup(popen.stdout.fileno())
        write_fd = os.dup(popen.stdin.fileno())
        popen.stdout.close()
        popen.stdin.close()
        popen.stdin = popen.stdout = None
        self._how_ended = ""
        self.channel = Channel(read_fd, write_fd)
        self.complaint = ""  # known once the process has ended

    def end(self, *, hung_up: bool = False) -> str:
        """End the process. Returns how it ended, briefly. `hung_up`: whether it has closed the channel. Idempotent."""
        if not self._how_ended:
            self.channel.close()
            if hung_up:
                with suppress(subprocess.TimeoutExpired):
                    self._popen.wait(1.0)  # its channel has closed, so it ends soon
            by_itself = hung_up and self._popen.returncode is not None
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
        # The complaint comes last, after what is certain: a cell may have written it.
        return f"exit status {self._popen.returncode}{self.complaint and f': {self.complaint}'}"


def _find_complaint(stderr: str) -> str:
    """The last line that names an error, or else the last line; empty if there is none."""
    lines = [line for line in map(str.strip, stderr.splitlines()) if line and "--help" not in line]  # docker's advice
    errors = [line for line in lines if "error" in line.lower()] or lines
    return "".join(filter(str.isprintable, errors[-1]))[:500] if errors else ""
