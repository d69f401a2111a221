"""Lazy lists: the results of `split` and `splitlines` of texts that are too large for a real list.

A lazy list computes its items in blocks (`splitting`) and keeps the last block. It also remembers *checkpoints*,
characters at which items begin, and can split again from each. So a loop by index costs about as much as a loop over
the items.
"""

from __future__ import annotations

import operator
import sys
import threading
from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Self, SupportsIndex, overload

from monocontext.engine import read_log
from monocontext.errors import NotPicklable
from monocontext.text.cached_lines import CachedLines
from monocontext.text.lazy_kinds import LazyItems, is_collected
from monocontext.text.source import Span, StoredSource
from monocontext.text.splitting import Blocks, split_backward, split_text
from monocontext.text.windows import has_border

CHECKPOINT_EVERY = 4096
"""Another checkpoint is set this many items after the last one, or where the next block begins; `parts[i]` splits
again from the nearest one before it."""
CHECKPOINT_CHARACTERS = 1 << 18
"""Another checkpoint is set this many characters after the last one too, if an item has begun since."""
DENSE = 300
"""Average characters of an item below which splitting is faster than searching for each separator."""


_Block = tuple[int, list[Any], int]
"""Consecutive items: the number of the first, the items, and `read_log.marks_made` when they were read. After another
mark they are read again, so that the log records the read."""
_NOTHING: _Block = 0, [], -1


class LazyList(Sequence[str], LazyItems):
    """A list of strings that is computed as it is read; equal to a `list` of the same items. Slices are real lists."""

    _refusal = "a lazy list cannot be changed: make a real one of it first, parts = list(parts)"
    _recipe: tuple[Any, ...] | None = None
    """The text, the method and the arguments that made this list."""

    def __init__(self, span: Span):
        self._span = span
        self._length = -1
        """The number of items; -1 while unknown."""
        self._block = _NOTHING
        self._open: list[tuple[int, Iterator[tuple[int, list[Any]]]]] = []
        """At most one unfinished pass: the number of its next item, and its blocks."""
        self._lock = threading.Lock()
        self._firsts, self._places = array("Q", [0]), array("Q", [0])
        """Checkpoints, in order: the numbers of items, and the characters at which they begin (in `OffsetSplit`: the
        numbers again)."""

    def with_recipe(self, text: object, method: str, *arguments: Any) -> Self:
        """Remember the call that made this list, for pickles, and return the list."""
        self._recipe = (text, method, *arguments)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is None:
            raise NotPicklable(
                f"{self._short_repr()} cannot be pickled, since the text that it was split from cannot be opened "
                f"again: pickle list(parts)"
            )
        return _make_again, self._recipe

    # -- blocks ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def _blocks(self, place: int, first: int) -> Blocks:
        """Blocks from item `first` on, which begins at character `place`: pairs of the items, and the character at
        which the next block begins."""

    def _blocks_from(self, item: int) -> Iterator[tuple[int, list[Any]]]:
        """Pairs of the number of a block's first item, and its items.

        Begins at the last checkpoint at or before `item`; sets `_length` at the end.
        """
        with self._lock:
            i = bisect_right(self._firsts, item) - 1
            first, place = self._firsts[i], self._places[i]
        for items, after in self._blocks(place, first):
            if items:
                self._remember(first, place)  # only now is it known that an item begins there
                yield first, items
                first += len(items)
            place = after
        self._length = first

    def _remember(self, item: int, place: int) -> None:
        """Add a checkpoint, if it is far enough from the one before it."""
        with self._lock:
            i = bisect_right(self._firsts, item)
            last, known = self._firsts[i - 1], self._places[i - 1]
            if item - last >= CHECKPOINT_EVERY or (item > last and place - known >= CHECKPOINT_CHARACTERS):
                self._firsts.insert(i, item)
                self._places.insert(i, place)

    def _find(self, item: int) -> Any:
        """An item by its number from 0. Raises `IndexError`.

        If its block follows the kept one, the pass stays open, so that later blocks are fetched ahead.
        """
        first, items, _ = self._block
        expected = first + len(items)
        try:
            number, blocks = self._open.pop()  # taken in one step, so no other thread has it now
        except IndexError:
            number, blocks = -1, iter(())
        if number != item:
            blocks = self._blocks_from(item)
        for first, items in blocks:
            if item < first + len(items):
                self._block = first, items, read_log.marks_made
                if first == expected > 0:
                    self._open = [(first + len(items), blocks)]
                return items[item - first]
        raise IndexError("list index out of range")

    # -- as a list -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self._length < 0:
            for _ in self._blocks_from(self._firsts[-1]):
                pass
        return self._length

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(items for _, items in self._blocks_from(0))

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> str | list[str]:
        first, items, marks = self._block
        try:  # A loop by index spends its time here, so the key is not checked first.
            if key >= first and marks == read_log.marks_made:  # type: ignore[operator]
                return items[key - first]  # type: ignore[no-any-return, operator]
        except (IndexError, TypeError, ValueError):  # in a later block, or not a number
            pass
        if isinstance(key, slice):
            return self._slice(key)
        if not hasattr(key, "__index__"):
            raise TypeError(f"list indices must be integers or slices, not {type(key).__name__}")
        found: str = self._item(key.__index__())
        return found

    def _item(self, index: int) -> Any:
        if index < 0:
            index += len(self)
        if index < 0:
            raise IndexError("list index out of range")
        return self._find(index)

    def _slice(self, key: slice) -> list[str]:
        """`parts[a:b:c]` as a real list. Needs the length only for a negative bound or step, or no `stop`."""
        forward = (key.step is None or operator.index(key.step) > 0) and all(
            bound is None or operator.index(bound) >= 0 for bound in (key.start, key.stop)
        )
        if forward and key.stop is not None:  # `parts[:k]` needs no length
            start = operator.index(key.start) if key.start is not None else 0
            stop = operator.index(key.stop)
            return list(self._range(min(start, sys.maxsize), min(stop, sys.maxsize)))[:: key.step]
        start, stop, step = key.indices(len(self))
        if step > 0:
            return list(self._range(start, stop))[::step]
        return list(self._range(stop + 1, start + 1))[::step]

    def _range(self, start: int, stop: int) -> Iterator[str]:
        """Items [start, stop); fewer at the end."""
        blocks = self._blocks_from(start) if stop > start else iter(())
        first, items = next(blocks, (start, []))
        rest = chain.from_iterable(items for _, items in blocks)
        return islice(chain(items, rest), start - first, max(start, stop) - first)

    def __reversed__(self) -> Iterator[Any]:
        stop = len(self)
        for first in reversed(list(self._firsts)):
            yield from reversed(list(self._range(first, stop)))
            stop = first

    def __contains__(self, item: object) -> bool:
        return any(item in items for _, items in self._blocks_from(0))

    def index(self, item: object, start: SupportsIndex = 0, stop: SupportsIndex = sys.maxsize, /) -> int:
        """The number of the first equal item; reads up to it. `ValueError` if there is none."""
        low, high = self._bounds(start, stop)
        for first, items in self._blocks_from(low):
            if first >= high:
                break
            with suppress(ValueError):
                return first + items.index(item, max(low - first, 0), high - first)
        raise ValueError(f"{item!r} is not in list")

    def count(self, item: object) -> int:
        """The number of equal items; reads all."""
        return sum(items.count(item) for _, items in self._blocks_from(0))

    def _bounds(self, start: SupportsIndex, stop: SupportsIndex) -> tuple[int, int]:
        """The bounds of `index` as numbers from 0."""
        low, high = operator.index(start), operator.index(stop)
        if low < 0 or high < 0:
            size = len(self)
            low, high = (max(bound + size, 0) if bound < 0 else bound for bound in (low, high))
        return low, high

    def _short_repr(self) -> str:
        size = f"{len(self._span):,}" if self._span.length_is_known else "?"
        return f"<{type(self).__name__} of {size} characters; a lazy list: iterate or slice it>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The array that numpy makes of `list(self)`, of any size; for pandas an array of objects."""
        import numpy as np

        if dtype is None and is_collected(sys._getframe(1), "pandas"):
            dtype = object
        return np.array(list(self), dtype=dtype)


def _make_again(text: object, method: str, *arguments: Any) -> Any:
    """Rebuild a lazy list; pickles call it."""
    return getattr(text, method)(*arguments)


class StreamSplit(LazyList):
    """A split that streams through the text. The length costs a pass, once; an item costs a read of the text before it,
    once."""

    def __init__(self, span: Span, split: Callable[[Iterable[str]], Blocks]):
        """`split` yields the blocks of the text that it is given, which may begin at any item."""
        super().__init__(span)
        self._split = split

    def _blocks(self, place: int, first: int) -> Blocks:
        return ((items, place + after) for items, after in self._split(self._span.texts(place)))


class SeparatorSplit(StreamSplit):
    """`text.split(separator)`. Length, `in` and `index` search for separators instead of splitting."""

    def __init__(self, span: Span, separator: str):
        super().__init__(span, lambda texts: split_text(texts, separator))
        self._separator = separator

    def __len__(self) -> int:
        if self._length < 0:
            # Counts separators. If items are short, the count stops, and a pass continues from the last checkpoint.
            number = last = 0
            for number, cut in enumerate(self._span.occurrences(self._separator), 1):
                if number % CHECKPOINT_EVERY == 0 or cut - last >= CHECKPOINT_CHARACTERS:
                    self._remember(number, cut + len(self._separator))
                    last = cut
                    if cut < number * DENSE:  # short items: splitting is faster
                        return super().__len__()
            self._length = number + 1
        return self._length

    def __contains__(self, item: object) -> bool:
        if type(item) is not str or has_border(self._separator):
            return super().__contains__(item)
        return self._find_item(item) is not None

    def index(self, item: object, start: SupportsIndex = 0, stop: SupportsIndex = sys.maxsize, /) -> int:
        """The number of the first equal item: finds it by a search, and counts the separators before it. `ValueError`
        if there is none."""
        low, high = self._bounds(start, stop)
        if type(item) is not str or low or has_border(self._separator):
            return super().index(item, low, high)
        at = self._find_item(item)
        number = -1 if at is None else self._count_before(at)
        if not 0 <= number < high:
            raise ValueError(f"{item!r} is not in list")
        return number

    def _find_item(self, item: str) -> int | None:
        """The first character of the first equal item; None if there is none. The separator must not overlap itself, so
        that each occurrence is a cut."""
        span, cut = self._span, self._separator
        if cut in item:
            return None
        most = len(item) + len(cut)
        head = span.read(0, min(most, len(span)) if span.length_is_known else most)
        if head == item or head == item + cut:
            return 0
        if (at := span.find(cut + item + cut)) >= 0:
            return at + len(cut)
        size = len(span)
        if size >= most and span.read(size - most, size) == cut + item:
            return size - len(item)
        return None

    def _count_before(self, character: int) -> int:
        """The number of the item that begins at a character."""
        return self._span.count(self._separator, 0, character) if character else 0


class LineSplit(SeparatorSplit):
    r"""`text.split("\n")`: the index knows the length; an item costs at most 4 GETs, 2 of them for index pages."""

    def __init__(self, span: Span):
        super().__init__(span, "\n")
        self._cached_lines = CachedLines(span)

    def __len__(self) -> int:
        if self._length < 0:
            self._length = self._span.newlines + 1
        return self._length

    def _item(self, index: int) -> Any:
        span, size = self._span, len(self)
        if not isinstance(span.source, StoredSource):
            return super()._item(index)
        if index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError("list index out of range")
        found = self._cached_lines.get(index)
        if found is not None:  # in a frame that is cached
            first, items = self._cached_lines.block
            self._block = first, items, read_log.marks_made
        else:
            start, stop = span.line_start(index), span.line_start(index + 1) - 1 if index + 1 < size else len(span)
            span.log_received(start, stop)
            found = span.read(start, stop)
        return found

    def _blocks_from(self, item: int) -> Iterator[tuple[int, list[Any]]]:
        first = item - item % CHECKPOINT_EVERY
        with self._lock:
            is_far = first > self._firsts[bisect_right(self._firsts, item) - 1]
        if is_far and first < len(self):
            self._remember(first, self._span.line_start(first))
        return super()._blocks_from(item)

    def _count_before(self, character: int) -> int:
        return self._span.line_of(character)

    def _range(self, start: int, stop: int) -> Iterator[str]:
        size = len(self)
        start, stop = min(start, size), min(stop, size)
        if stop <= start:
            return iter(())
        span = self._span
        end = span.line_start(stop) - 1 if stop < size else len(span)
        blocks = split_text(span.texts(span.line_start(start), end), "\n")
        return chain.from_iterable(items for items, _ in blocks)

    def __reversed__(self) -> Iterator[str]:
        return split_backward(self._span.texts(reverse=True))


class OffsetSplit(LazyList):
    """A split at known places: separators of `width` characters begin at the characters `cuts`."""

    def __init__(self, span: Span, cuts: Sequence[int], width: int):
        super().__init__(span)
        self._cuts = cuts
        self._width = width

    def __len__(self) -> int:
        return len(self._cuts) + 1

    def _item(self, index: int) -> str:
        size = len(self)
        if not -size <= index < size:
            raise IndexError("list index out of range")
        return next(self._range(index % size, index % size + 1))

    def _blocks(self, place: int, first: int) -> Blocks:
        # Here a place is the number of an item, not a character.
        return (([item], first + 1) for first, item in enumerate(self._range(place, len(self)), place))

    def _range(self, start: int, stop: int) -> Iterator[str]:
        for i in range(start, min(stop, len(self))):
            low = self._cuts[i - 1] + self._width if i else 0
            high = self._cuts[i] if i < len(self._cuts) else len(self._span)
            yield self._span.read(low, high)


def cuts_from_right(span: Span, separator: str, most: int) -> array[int]:
    """The characters at which `rsplit(separator, most)` cuts, ascending; `most` below 0 means all."""
    found = span.occurrences_from_right(separator)
    cuts = array("Q", found if most < 0 else islice(found, min(most, sys.maxsize)))
    cuts.reverse()
    return cuts
