"""Run cells in a Modal sandbox: the runner `modal` (needs the package `modal` and an account).

The image must contain `monocontext-rlm` of this version; by default, pip makes one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

from rlm.calls.subcalls import SubCalls
from rlm.errors import RunnerUnavailable
from rlm.runners.confine.limits import Limits
from rlm.runners.remote import SharedOptions
from rlm.runners.sandbox import SandboxRunner

LIFE_SECONDS = 4 * 3600


class ModalRunner(SandboxRunner):
    """Runs cells in a sandbox of Modal, without a network."""

    name = "modal"

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
        """`image`: a `modal.Image`. `modal`: the package, or a double of it in tests. Raises RunnerUnavailable."""
        if modal is None:
            try:
                import modal  # type: ignore[import-not-found,no-redef]
            except ImportError:
                raise RunnerUnavailable("runner 'modal' needs the package modal: pip install modal") from None
        limits = limits or Limits()
        make = partial(ModalSandbox, modal, app, image, limits)
        super().__init__(context, subcalls, make=make, python="python", limits=limits, **shared)


class ModalSandbox:
    """A sandbox of Modal, and a command in it."""

    def __init__(self, modal: Any, app: str, image: Any, limits: Limits) -> None:
        self._sandbox = modal.Sandbox.create(
            app=modal.App.lookup(app, create_if_missing=True),
            image=image or modal.Image.debian_slim().pip_install("monocontext", "monocontext-rlm"),
            block_network=True,
            memory=max(limits.memory_bytes >> 20, 128),
            timeout=LIFE_SECONDS,
        )

    def start(self, command: str) -> None:
        self._process = self._sandbox.exec("sh", "-c", command)

    def listen(self, receive: Callable[[str], object]) -> None:
        for text in self._process.stdout:
            receive(text)

    def write(self, text: str) -> None:
        self._process.stdin.write(text)
        self._process.stdin.drain()

    def end(self) -> None:
        self._sandbox.terminate()
