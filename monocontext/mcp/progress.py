"""What a call does now, for the reports to its client."""

from __future__ import annotations

from contextvars import ContextVar

_MESSAGE: ContextVar[list[str] | None] = ContextVar("message", default=None)


def begin_call() -> list[str]:
    """The message of a call that begins: `tell` changes it in this task, and in threads with a copy of its context."""
    message = ["still running"]
    _MESSAGE.set(message)
    return message


def tell(message: str) -> None:
    """Say what the call under way does now. Does nothing outside of a call."""
    current = _MESSAGE.get()
    if current is not None:
        current[:] = [message]
