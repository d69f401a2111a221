"""A context that writes down which operations code performs on it; the answers are those of `Monocontext`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from monocontext import Monocontext, regex

_METHODS = (
    "__getitem__", "__contains__", "__iter__", "find", "rfind", "count", "split", "splitlines", "chunks", "lower",
)  # fmt: skip
_FUNCTIONS = ("finditer", "findall", "search")


@dataclass(slots=True)
class Operation:
    """One look at the text."""

    free_seconds: float
    """Time that has passed since the beginning in which no code waited for storage: thinking and sub-calls."""
    used_bytes: int = 0
    """Stored bytes that it was the first to look at, with what it took to find them."""


class Recorder:
    """The operations of one run. `used` says at each of them how many bytes were looked at until now."""

    def __init__(self, used: Callable[[], int]) -> None:
        self.operations: list[Operation] = []
        self.free_seconds = 0.0
        self._used = used
        self._counted = 0

    def begin(self) -> None:
        """An operation begins; the one before has ended, if code has not kept an iterator of it."""
        self.settle()
        self.operations.append(Operation(self.free_seconds))

    def settle(self) -> None:
        """What was used since the last call was used by the last operation."""
        used = self._used()
        if self.operations:
            self.operations[-1].used_bytes += used - self._counted
        self._counted = used

    def record(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, each call with a context an operation."""

        @wraps(function)
        def recorded(*args: Any, **options: Any) -> Any:
            if any(isinstance(each, Monocontext) for each in args):
                self.begin()
            return function(*args, **options)

        return recorded


def make_traced_class(recorder: Recorder) -> type[Monocontext]:
    """A class of contexts that tell the recorder. Iterators count for the operation that made them, until the next."""
    methods = {name: recorder.record(getattr(Monocontext, name)) for name in _METHODS}
    return type("Traced", (Monocontext,), {"__slots__": (), **methods})


class TracedRegex:
    """`re` for code over a traced context."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        found = getattr(regex, name)
        return self._recorder.record(found) if name in _FUNCTIONS else found
