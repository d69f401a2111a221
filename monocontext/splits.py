"""Lazy lists: what `split` and `splitlines` give where a real list would not fit."""

from __future__ import annotations

import operator
import sys
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, SupportsIndex, cast, overload

from monocontext.errors import NotPicklable
from monocontext.kinds import LazyItems
from monocontext.source import Span

CHECKPOINT_EVERY = 4096
"""Items between two remembered places: `parts[i]` scans from the nearest one."""


HELD_CHARACTERS = 8 << 20
"""`splitlines` waits this long for a newline before it looks for rarer line ends, which takes three times as long."""


class LazyList(Sequence[str], LazyItems):
    """A list of strings, computed as it is read; equal to a `list` with the same items. Slices are real lists."""

    _recipe: tuple[Any, ...] | None = None

    def __init__(self, span: Span):
        self._span = span

    def made_by(self, text: object, method: str, *arguments: Any) -> list[str]:
        """This list, said to be the `list` that it stands for; the call that made it is what a pickle holds."""
        self._recipe = (text, method, *arguments)
        return cast("list[str]", self)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is None:
            raise NotPicklable(f"{self!r} does not know the text it is part of")
        return _make_again, self._recipe

    @abstractmethod
    def __iter__(self) -> Iterator[str]: ...

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> str | list[str]:
        if isinstance(key, slice):
            return self._slice(key)
        if not hasattr(key, "__index__"):
            raise TypeError(f"list indices must be integers or slices, not {type(key).__name__}")
        index = key.__index__()
        if index < 0:
            index += len(self)
        item = next(self._range(index, index + 1), None) if index >= 0 else None
        if item is None:
            raise IndexError("list index out of range")
        return item

    def _slice(self, key: slice) -> list[str]:
        forward = (key.step is None or operator.index(key.step) > 0) and all(
            bound is None or operator.index(bound) >= 0 for bound in (key.start, key.stop)
        )
        if forward and key.stop is not None:  # what `parts[:k]` asks for needs no length
            start = operator.index(key.start) if key.start is not None else 0
            stop = operator.index(key.stop)
            return list(self._range(min(start, sys.maxsize), min(stop, sys.maxsize)))[:: key.step]
        start, stop, step = key.indices(len(self))
        if step > 0:
            return list(self._range(start, stop))[::step]
        return list(self._range(stop + 1, start + 1))[::step]

    def _range(self, start: int, stop: int) -> Iterator[str]:
        """Items [start, stop), as far as there are."""
        return islice(iter(self), start, max(start, stop))

    def __reversed__(self) -> Iterator[str]:
        size = len(self)
        for stop in range(size, 0, -CHECKPOINT_EVERY):
            yield from reversed(list(self._range(max(stop - CHECKPOINT_EVERY, 0), stop)))

    def __contains__(self, item: object) -> bool:
        return any(item == mine for mine in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | LazyList):
            return NotImplemented
        theirs = iter(other)
        for item in self:
            if next(theirs, None) != item:
                return False
        return next(theirs, None) is None

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: object) -> list[str]:
        if not isinstance(other, list | LazyList):
            return NotImplemented
        return [*self, *other]

    def __radd__(self, other: object) -> list[str]:
        if not isinstance(other, list):
            return NotImplemented
        return [*other, *self]

    def __mul__(self, times: SupportsIndex) -> list[str]:
        return list(self) * operator.index(times)

    def copy(self) -> list[str]:
        """A real list."""
        return list(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._span):,} characters; a lazy list: iterate or slice it>"


def _make_again(text: object, method: str, *arguments: Any) -> Any:
    """What the pickle of a lazy list calls."""
    return getattr(text, method)(*arguments)


class LineSplit(LazyList):
    r"""`text.split("\n")`: the length is known, an item costs 4 GETs at most (2 of index pages), iteration streams."""

    def __len__(self) -> int:
        return self._span.newlines + 1

    def __iter__(self) -> Iterator[str]:
        return split_text(self._span.texts(), "\n")

    def _range(self, start: int, stop: int) -> Iterator[str]:
        size = len(self)
        start, stop = min(start, size), min(stop, size)
        if stop <= start:
            return iter(())
        span = self._span
        end = span.line_start(stop) - 1 if stop < size else len(span)
        return split_text(span.texts(span.line_start(start), end), "\n")


class StreamSplit(LazyList):
    """A split that is found by going through the text: its length takes one pass, which is remembered.

    `split(texts)` cuts what follows a cut; `cuts()` says where items begin.
    """

    def __init__(
        self, span: Span, split: Callable[[Iterable[str]], Iterator[str]], cuts: Callable[[], Iterator[int]] | None
    ):
        super().__init__(span)
        self._split = split
        self._cuts = cuts
        self._places: list[int] | None = None
        self._length = -1

    def __len__(self) -> int:
        if self._length < 0:
            if self._cuts is None:
                self._length = sum(1 for _ in self)
            else:
                places, number = [0], 0
                for number, cut in enumerate(self._cuts(), 1):
                    if number % CHECKPOINT_EVERY == 0:
                        places.append(cut)
                self._places, self._length = places, number + 1
        return self._length

    def __iter__(self) -> Iterator[str]:
        return self._split(self._span.texts())

    def _range(self, start: int, stop: int) -> Iterator[str]:
        if self._places is None:
            return super()._range(start, stop)
        first = min(start // CHECKPOINT_EVERY, len(self._places) - 1)
        skipped = first * CHECKPOINT_EVERY
        return islice(self._split(self._span.texts(self._places[first])), start - skipped, max(start, stop) - skipped)


def split_on(span: Span, separator: str) -> LazyList:
    """`text.split(separator)`."""
    if separator == "\n":
        return LineSplit(span)

    def cuts() -> Iterator[int]:
        for at in span.occurrences(separator):
            yield at + len(separator)

    return StreamSplit(span, lambda texts: split_text(texts, separator), cuts)


def split_spaces(span: Span) -> LazyList:
    """`text.split()`."""
    return StreamSplit(span, split_words, None)


def split_ends(span: Span, keepends: bool) -> LazyList:
    """`text.splitlines(keepends)`."""
    return StreamSplit(span, lambda texts: split_lines(texts, keepends), None)


def split_text(texts: Iterable[str], separator: str) -> Iterator[str]:
    """The items of `"".join(texts).split(separator)`. Holds one item and one piece."""
    rest: list[str] = []
    reach = len(separator) - 1
    seam = ""
    for text in texts:
        if separator not in (seam + text if seam else text):
            rest.append(text)
            if reach:
                seam = (seam + text)[-reach:]
            continue
        *items, last = ("".join([*rest, text]) if rest else text).split(separator)
        yield from items
        rest, seam = [last], last[-reach:] if reach else ""
    yield "".join(rest)


def split_words(texts: Iterable[str]) -> Iterator[str]:
    """The items of `"".join(texts).split()`."""
    rest: list[str] = []
    for text in texts:
        words = text.split()
        if rest and text[0].isspace():
            yield "".join(rest)
            rest = []
        if not words:
            continue
        last = "" if text[-1].isspace() else words.pop()
        for word in words:
            yield "".join([*rest, word]) if rest else word
            rest = []
        if last:
            rest.append(last)
    if rest:
        yield "".join(rest)


def split_lines(texts: Iterable[str], keepends: bool) -> Iterator[str]:
    """The items of `"".join(texts).splitlines(keepends)`; CR LF is one end although a piece may end between them."""
    rest: list[str] = []  # text after the last newline: other line ends in it wait for the next one, for a while
    held = 0
    for text in texts:
        newline = text.rfind("\n") + 1
        if newline:
            yield from "".join([*rest, text[:newline]]).splitlines(keepends)
            rest, held = [], 0
        rest.append(text[newline:])
        held += len(text) - newline
        if held > HELD_CHARACTERS:
            lines = "".join(rest).splitlines(keepends=True)
            last = lines.pop()  # may go on, or end in a CR whose LF is still to come
            yield from lines if keepends else (line.splitlines()[0] for line in lines)
            rest, held = [last], 0
    yield from "".join(rest).splitlines(keepends)


class OffsetSplit(LazyList):
    """A split whose cuts are known: `cuts` are the places at which a separator of `width` characters begins."""

    def __init__(self, span: Span, cuts: Sequence[int], width: int):
        super().__init__(span)
        self._cuts = cuts
        self._width = width

    def __len__(self) -> int:
        return len(self._cuts) + 1

    def __iter__(self) -> Iterator[str]:
        return self._range(0, len(self))

    def _range(self, start: int, stop: int) -> Iterator[str]:
        for i in range(start, min(stop, len(self))):
            low = self._cuts[i - 1] + self._width if i else 0
            high = self._cuts[i] if i < len(self._cuts) else len(self._span)
            yield self._span.read(low, high)


def cuts_from_right(span: Span, separator: str, most: int) -> array[int]:
    """Where `rsplit(separator, most)` cuts: occurrences that do not overlap, counted from the right; -1 for all."""
    found = span.occurrences_from_right(separator)
    cuts = array("Q", found if most < 0 else islice(found, min(most, sys.maxsize)))
    cuts.reverse()
    return cuts
