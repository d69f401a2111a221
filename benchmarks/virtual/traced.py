"""A context that writes down which operations code performs on it; the answers are those of `Monocontext`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex

from monocontext import Monocontext, regex


@dataclass(slots=True)
class Operation:
    """One look at the text."""

    kind: str
    """`slice`, `find`, `scan`, ...: the method's name, a slice or a pass."""
    start: int
    stop: int
    """Characters [start, stop): of a slice what it gives, of a search where it may look."""
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

    def begin(self, kind: str, start: int, stop: int) -> None:
        """An operation begins; the one before has ended, if code has not kept an iterator of it."""
        self.settle()
        self.operations.append(Operation(kind, start, stop, self.free_seconds))

    def settle(self) -> None:
        """What was used since the last call was used by the last operation."""
        used = self._used()
        if self.operations:
            self.operations[-1].used_bytes += used - self._counted
        self._counted = used


def make_traced_class(recorder: Recorder) -> type[Monocontext]:
    """A class of contexts that tell the recorder. Iterators count for the operation that made them, until the next."""

    class Traced(Monocontext):
        __slots__ = ()

        def _begin(self, kind: str, start: Any = None, stop: Any = None) -> None:
            low, high, _ = slice(start, stop).indices(len(self))
            recorder.begin(kind, self._start + low, self._start + max(low, high))

        def __getitem__(self, key: SupportsIndex | slice) -> Any:
            if isinstance(key, slice):
                self._begin("slice", key.start, key.stop)
            else:
                index = key.__index__()
                self._begin("item", index, index + 1 or None)
            return super().__getitem__(key)

        def __contains__(self, needle: object) -> bool:
            self._begin("in")
            return super().__contains__(needle)

        def find(self, sub: str, start: Any = None, end: Any = None, /) -> int:
            self._begin("find", start, end)
            return super().find(sub, start, end)

        def rfind(self, sub: str, start: Any = None, end: Any = None, /) -> int:
            self._begin("rfind", start, end)
            return super().rfind(sub, start, end)

        def count(self, sub: str, start: Any = None, end: Any = None, /) -> int:
            self._begin("count", start, end)
            return super().count(sub, start, end)

        def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> Any:
            self._begin("scan")
            return super().split(sep, maxsplit)

        def splitlines(self, keepends: bool = False) -> Any:
            self._begin("scan")
            return super().splitlines(keepends)

        def __iter__(self) -> Iterator[str]:
            self._begin("scan")
            return super().__iter__()

        def chunks(self, characters: int = 100_000) -> Iterator[str]:
            self._begin("scan")
            return super().chunks(characters)

        def lower(self) -> Any:
            self._begin("lower")
            return super().lower()

    return Traced


class TracedRegex:
    """`re` for code over a traced context."""

    M = MULTILINE = regex.MULTILINE
    I = IGNORECASE = regex.IGNORECASE  # noqa: E741  (its name in `re`)
    escape = staticmethod(regex.escape)

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def finditer(self, pattern: Any, string: Any, flags: Any = 0) -> Iterator[Any]:
        self._begin("finditer", string)
        return regex.finditer(pattern, string, flags)

    def findall(self, pattern: Any, string: Any, flags: Any = 0) -> list[Any]:
        self._begin("findall", string)
        return regex.findall(pattern, string, flags)

    def search(self, pattern: Any, string: Any, flags: Any = 0) -> Any:
        self._begin("search", string)
        return regex.search(pattern, string, flags)

    def _begin(self, kind: str, string: Any) -> None:
        if isinstance(string, Monocontext):
            self._recorder.begin(kind, 0, len(string))
