"""Run cells in the sandbox of a provider, such as E2B, Daytona, Vercel or Modal: the runner `sandbox`.

A provider needs a class with four methods: see `Sandbox`, and docs/runners.md for classes to copy. The worker is the
one of `subprocess`; its channel crosses the provider's streams as lines of text.
"""

from __future__ import annotations

import shlex
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, Unpack

from rlm.calls.subcalls import SubCalls
from rlm.errors import RunnerUnavailable
from rlm.models.log import WARNING, log
from rlm.runners.channel import Channel
from rlm.runners.confine.limits import Limits
from rlm.runners.launcher import make_container_plan
from rlm.runners.piped_process import receive_hello
from rlm.runners.relay import FROM_WORKER, TO_WORKER, LineDecoder, encode_lines
from rlm.runners.remote import RemoteRunner, SharedOptions


class Sandbox(Protocol):
    """A fresh sandbox of a provider, in which one command runs. An exception in a method ends the sandbox."""

    def start(self, command: str) -> None:
        """Start a shell command whose standard input stays open."""

    def listen(self, receive: Callable[[str], object]) -> None:
        """Call `receive` with the output of the command, in order and cut anywhere, until the command ends."""

    def write(self, text: str) -> None:
        """Send text to the standard input of the command."""

    def end(self) -> None:
        """End the command and the sandbox, so that it costs nothing more."""


class SandboxRunner(RemoteRunner):
    """Runs cells in a sandbox of a provider. Its image must contain `monocontext-rlm` of this version."""

    name = "sandbox"

    def __init__(
        self, context: object, subcalls: SubCalls, *, make: Callable[[], Sandbox], python: str = "python3",
        limits: Limits | None = None, scratch: str | None = None, **shared: Unpack[SharedOptions],
    ) -> None:  # fmt: skip
        """`make`: creates a sandbox, again whenever one is lost. `python`: the interpreter inside.
        `scratch`: a folder that cells may write to. Raises RunnerUnavailable, with the sandbox's error or output."""
        self._make = make
        words = [*shlex.split(python), "-I", "-m", "rlm.runners.relay", make_container_plan(limits or Limits())]
        self._command = f"{shlex.join([*words, scratch] if scratch else words)} 2>&1"
        super().__init__(context, subcalls, **shared)

    def launch(self) -> tuple[SandboxWorker, Mapping[str, Any]]:
        sandbox = None
        try:
            sandbox = self._make()
            sandbox.start(self._command)
        except BaseException as exc:  # whatever the provider raises, or a Ctrl-C
            _end(sandbox)
            if not isinstance(exc, Exception):
                raise
            raise RunnerUnavailable(f"runner {self.name!r}: {type(exc).__name__}: {exc}") from exc
        worker = SandboxWorker(sandbox)
        return worker, receive_hello(worker, self.name)


class SandboxWorker:
    """A worker in a sandbox. Two threads carry the bytes of its channel to and from the provider, as lines of text."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        own_end, self._theirs = socket.socketpair()
        fd = own_end.detach()
        self.channel = Channel(fd, fd)
        self._decoder = LineDecoder(FROM_WORKER)
        self._failure = ""
        self._ended = False
        for carry in (self._carry_out, lambda: sandbox.listen(self._receive)):
            threading.Thread(target=self._carry, args=(carry,), name="rlm-sandbox", daemon=True).start()

    @property
    def complaint(self) -> str:
        """The provider's error, and the last line of output that was not a message; empty if there is neither."""
        printed = self._decoder.unmarked
        return "; ".join(filter(None, [self._failure, printed and f"the sandbox printed: {printed}"]))

    def end(self, *, hung_up: bool = False) -> str:
        """End the sandbox. Returns its complaint if it closed the channel and has one, else "ended". Idempotent."""
        if not self._ended:
            self._ended = True
            self.channel.close()
            self._hang_up()
            _end(self._sandbox)
        return self.complaint if hung_up and self.complaint else "ended"

    def _carry(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as exc:  # whatever the provider raises: its sandbox is lost
            if not self._ended and not self._failure:
                self._failure = f"{type(exc).__name__}: {exc}"[:500]
        self._hang_up()

    def _carry_out(self) -> None:
        """Carry bytes from the channel to the sandbox, until the channel closes."""
        while data := self._theirs.recv(1 << 16):
            self._sandbox.write("".join(encode_lines(TO_WORKER, data)))

    def _receive(self, text: str) -> None:
        """Carry output of the command, cut anywhere, to the channel."""
        for data in self._decoder.decode(text):
            self._theirs.sendall(data)

    def _hang_up(self) -> None:
        with suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RDWR)


def _end(sandbox: Sandbox | None) -> None:
    """End a sandbox, if there is one. A failure is only logged, since the cells no longer need it."""
    try:
        if sandbox is not None:
            sandbox.end()
    except Exception as exc:  # whatever the provider raises
        log(WARNING, "a sandbox could not be ended, and may still cost money: %s: %s", type(exc).__name__, exc)
