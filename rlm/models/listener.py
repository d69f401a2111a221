"""Pass on the pieces of a reply, and separate exceptions of the caller's own function from other failures."""

from __future__ import annotations

from collections.abc import Callable


class Listener:
    """An `on_delta` that remembers its exception: it is the caller's own, and not a failure of the endpoint.

    While a model thinks there are no pieces of text. An `on_delta` with a method `alive` is called then, and may end
    the call.
    """

    def __init__(self, on_delta: Callable[[str], object] | None) -> None:
        self._on_delta = on_delta
        self.raised: BaseException | None = None
        self.has_heard = False
        """Whether text has arrived."""

    def __call__(self, delta: str) -> None:
        self.has_heard = True
        if self._on_delta:
            self._call(self._on_delta, delta)

    def alive(self) -> None:
        """Note that the endpoint is thinking, or has sent a sign of life."""
        if callable(beat := getattr(self._on_delta, "alive", None)):
            self._call(beat)

    def _call(self, function: Callable[..., object], *arguments: str) -> None:
        try:
            function(*arguments)
        except BaseException as exc:
            self.raised = exc
            raise
