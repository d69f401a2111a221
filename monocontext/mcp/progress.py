"""What a call does now, for the reports to its client."""

from __future__ import annotations

from contextvars import ContextVar


class Progress:
    """The message of the next report about one call."""

    message = "still running"


_PROGRESS: ContextVar[Progress | None] = ContextVar("progress", default=None)


def begin_call() -> Progress:
    """The progress of a call that begins: `tell` changes it in this task, and in threads with a copy of its context."""
    progress = Progress()
    _PROGRESS.set(progress)
    return progress


def tell(message: str) -> None:
    """Say what the call under way does now. Does nothing outside of a call."""
    progress = _PROGRESS.get()
    if progress is not None:
        progress.message = message
