"""Note what a running call is doing, for the reports that the server sends to its client."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """What one call is doing, shared by its task and the threads that the task starts."""

    message: str = "still running"


_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


def begin_call() -> Progress:
    """Return the progress of a new call, which `tell` changes from now on."""
    progress = Progress()
    _CURRENT.set(progress)
    return progress


def tell(message: str) -> None:
    """Say what the current call is doing. Does nothing outside of a call."""
    progress = _CURRENT.get()
    if progress is not None:
        progress.message = message
