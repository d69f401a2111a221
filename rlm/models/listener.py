"""Pass on the pieces of a reply, and separate exceptions of the caller's own functions from other failures."""

from __future__ import annotations

from collections.abc import Callable


class Listener:
    """An `on_delta` that remembers its exception: it is the caller's own, and not a failure of the endpoint."""

    def __init__(
        self, on_delta: Callable[[str], object] | None = None, check: Callable[[], object] | None = None
    ) -> None:
        """`check` is called with each piece, and with each sign of life while the model thinks: it may end the call."""
        self._on_delta = on_delta
        self._check = check
        self.raised: BaseException | None = None
        self.has_heard = False
        """Whether text has arrived."""

    def __call__(self, delta: str) -> None:
        """Pass on a piece of the text. An empty one is a sign of life: the endpoint is thinking."""
        try:
            if self._check:
                self._check()
            if delta:
                self.has_heard = True
                if self._on_delta:
                    self._on_delta(delta)
        except BaseException as exc:
            self.raised = exc
            raise


def listener_of(on_delta: Callable[[str], object] | None) -> Listener:
    """The `on_delta` itself if it is a Listener, as within a run; else a Listener around it."""
    return on_delta if isinstance(on_delta, Listener) else Listener(on_delta)
