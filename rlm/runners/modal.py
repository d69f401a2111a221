"""Run cells in a Modal sandbox: the runner `modal` (needs the package `modal` and an account).

The worker is the one of `subprocess`, at the end of a process's standard streams in the sandbox; two threads carry its
bytes. The image must hold `monocontext-rlm` of this version; by default one is made with pip.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Unpack

from rlm.calls.subcalls import SubCalls
from rlm.errors import RunnerUnavailable
from rlm.runners.channel import HEAD_BYTES, MESSAGE_BYTES, Channel
from rlm.runners.confine.limits import Limits
from rlm.runners.launcher import make_container_plan
from rlm.runners.remote import RemoteRunner, SharedOptions, receive_hello

_CHUNK_BYTES = 1 << 16
LIFE_SECONDS = 4 * 3600


class ModalRunner(RemoteRunner):
    """Runs cells in a sandbox of Modal, without a network."""

    def __init__(
        self,
        context: object,
        subcalls: SubCalls,
        *,
        limits: Limits | None = None,
        app: str = "monocontext-rlm",
        image: Any = None,
        modal: Any = None,
        **shared: Unpack[SharedOptions],
    ) -> None:
        """`image`: a `modal.Image`; `modal`: the package, or a double of it. Raises RunnerUnavailable."""
        place = ModalPlace(limits or Limits(), app, image, modal)
        super().__init__(place, context, subcalls, **shared)


class ModalPlace:
    """Starts sandboxes."""

    name = "modal"

    def __init__(self, limits: Limits, app: str, image: Any, modal: Any) -> None:
        self._limits = limits
        self._app = app
        self._image = image
        self._modal = modal

    def start(self, modules: Sequence[str]) -> tuple[ModalSandbox, Mapping[str, Any]]:
        """Raises RunnerUnavailable."""
        if self._modal is None:
            try:
                import modal  # type: ignore[import-not-found]
            except ImportError:
                raise RunnerUnavailable("runner 'modal' needs the package modal: pip install modal") from None
            self._modal = modal
        try:
            image = self._image or self._modal.Image.debian_slim().pip_install("monocontext", "monocontext-rlm")
            made = self._modal.Sandbox.create(
                app=self._modal.App.lookup(self._app, create_if_missing=True),
                image=image,
                block_network=True,
                memory=max(self._limits.memory_bytes >> 20, 128),
                timeout=LIFE_SECONDS,
            )
            process = made.exec(
                "python", "-I", "-m", "rlm.runners.launcher", make_container_plan(self._limits), text=False
            )
        except Exception as exc:  # any refusal of the service
            raise RunnerUnavailable(f"runner 'modal': {type(exc).__name__}: {exc}") from exc
        sandbox = ModalSandbox(made, process)
        hello = receive_hello(sandbox.channel)
        if hello is None:
            sandbox.end()
            raise RunnerUnavailable("runner 'modal': the worker did not start; does its image hold monocontext-rlm?")
        return sandbox, {**hello, "confinement": "modal"}


class ModalSandbox:
    """A sandbox, a process in it, and its channel."""

    def __init__(self, sandbox: Any, process: Any) -> None:
        self._sandbox = sandbox
        self._process = process
        ours, self._theirs = socket.socketpair()
        fd = ours.detach()
        self.channel = Channel(fd, fd, head_bytes=HEAD_BYTES, message_bytes=MESSAGE_BYTES)
        self._ended = False
        for carry in (self._outwards, self._inwards):
            threading.Thread(target=carry, name="rlm-modal", daemon=True).start()

    def end(self, *, gone: bool = False) -> str:
        """Terminate the sandbox. Idempotent."""
        if not self._ended:
            self._ended = True
            self.channel.close()
            with suppress(OSError):
                self._theirs.shutdown(socket.SHUT_RDWR)
            self._sandbox.terminate()
        return "ended"

    def _outwards(self) -> None:
        """From the channel to the process."""
        with suppress(OSError):
            while data := self._theirs.recv(_CHUNK_BYTES):
                self._process.stdin.write(data)
                self._process.stdin.drain()

    def _inwards(self) -> None:
        """From the process to the channel, until it ends."""
        with suppress(OSError):
            for data in self._process.stdout:
                self._theirs.sendall(data)
        with suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RDWR)
