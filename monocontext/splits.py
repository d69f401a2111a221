"""Lazy lists: what `split` and `splitlines` give where a real list would not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import SupportsIndex, overload

from monocontext.source import Span


class LazyList(Sequence[str]):
    """A list of strings that is computed as it is read. Equal to a list with the same items; slices are real lists."""

    def __init__(self, span: Span):
        self._span = span

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> str | list[str]:
        size = len(self)
        if isinstance(key, slice):
            start, stop, step = key.indices(size)
            if step > 0:
                return list(self._range(start, stop))[::step]
            return list(self._range(stop + 1, start + 1))[::step]
        index = key.__index__()
        if not -size <= index < size:
            raise IndexError("list index out of range")
        return next(self._range(index % size, index % size + 1))

    def _range(self, start: int, stop: int) -> Iterator[str]:
        """Items [start, stop)."""
        for i, item in enumerate(self):
            if i >= stop:
                return
            if i >= start:
                yield item

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | LazyList):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._span):,} characters; a lazy list: iterate or slice it>"


class LineSplit(LazyList):
    r"""`text.split("\n")`: the length is known, any item is 2 GETs at most, iteration streams."""

    def __len__(self) -> int:
        return self._span.newlines + 1

    def __iter__(self) -> Iterator[str]:
        return split_newlines(self._span.texts())

    def _range(self, start: int, stop: int) -> Iterator[str]:
        if stop <= start:
            return iter(())
        span = self._span
        end = span.line_start(stop) - 1 if stop < len(self) else len(span)
        return split_newlines(span.texts(span.line_start(start), end))


def split_newlines(texts: Iterable[str]) -> Iterator[str]:
    r"""The items of `"".join(texts).split("\n")`."""
    rest: list[str] = []
    for text in texts:
        head, newline, tail = text.partition("\n")
        rest.append(head)
        if not newline:
            continue
        yield "".join(rest)
        *lines, last = tail.split("\n")
        yield from lines
        rest = [last]
    yield "".join(rest)


class SplitLines(LazyList):
    """`text.splitlines(keepends)`: streamed; its length takes one pass, which is remembered."""

    def __init__(self, span: Span, keepends: bool):
        super().__init__(span)
        self._keepends = keepends
        self._length: int | None = None

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length

    def __iter__(self) -> Iterator[str]:
        return split_lines(self._span.texts(), self._keepends)


def split_lines(texts: Iterable[str], keepends: bool) -> Iterator[str]:
    """The items of `"".join(texts).splitlines(keepends)`; CR LF is one end although a piece may end between them."""
    rest = ""
    for text in texts:
        lines = (rest + text).splitlines(keepends=True)
        rest = lines.pop() if lines else ""  # may be complete, or end in a CR whose LF is still to come
        for line in lines:
            yield line if keepends else _without_end(line)
    for line in rest.splitlines(keepends):
        yield line


def _without_end(line: str) -> str:
    return line.splitlines()[0]
