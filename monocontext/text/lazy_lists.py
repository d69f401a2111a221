"""Lazy lists: the results of `split` and `splitlines` of texts that are too large for a real list.

A lazy list computes its items in blocks (`splitting`) and keeps the last block. It also remembers *checkpoints*,
characters at which items begin, and can split again from each. So a loop by index costs about as much as a loop over
the items.
"""

from __future__ import annotations

import operator
import sys
import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, SupportsIndex, cast, overload

from monocontext.records import NamedTuple
from monocontext.text.lazy_kinds import LazyItems
from monocontext.text.source import Span
from monocontext.text.splitting import Blocks, split_text

ITEMS_PER_CHECKPOINT = 4096
"""A checkpoint is set where a block begins, at least this many items after the one before. To find `parts[i]`, the text
is split again from the last checkpoint before it."""
CHECKPOINT_CHARACTERS = 1 << 18
"""A checkpoint is also set this many characters after the one before, if an item has begun since."""

_READ_CHARACTERS = 8 << 20  # the most characters of lines that are read at once, without a pass


class Block(NamedTuple):
    """Consecutive items of a list, which come from characters [start, stop) of its text."""

    first: int
    """The number of the first item."""
    items: list[str]
    start: int
    stop: int

    @property
    def numbers(self) -> range:
        """The numbers of the items."""
        return range(self.first, self.first + len(self.items))


class LazyList(LazyItems, Sequence[str]):
    """A list of strings that is computed as it is read; equal to a `list` of the same items.

    `len` costs a pass over the text, once; an item costs a read of the text before it, once. A slice is a real list up
    to the limit of the text, above it a `LazyListSlice`.
    """

    def __init__(
        self, span: Span, find_blocks: Callable[[int], Blocks], limit: int, recipe: tuple[Any, ...], start: int = 0
    ):
        """`find_blocks(begin)` yields the blocks (`splitting.Blocks`) from character `begin` on, where a block begins.
        `recipe`: the text, the method and the arguments that make this list; pickles hold it. `start`: where in the
        span the first block begins."""
        self._span = span
        self._find_blocks = find_blocks
        self._limit = limit
        self._recipe = recipe
        self._length: int | None = None
        """The number of items; None while unknown."""
        self._block = Block(0, [], 0, 0)
        self._last_item = -2
        """The number of the item that was read last; -2, which is next to no item, before the first read."""
        self._next_blocks: Iterator[Block] | None = None
        """The blocks after the kept one, if a loop over the items reads on there."""
        self._lock = threading.RLock()
        self._checkpoint_items, self._checkpoint_characters = array("Q", [0]), array("Q", [start])
        """Checkpoints, in order: the numbers of items, and the characters at which they begin."""

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _last_checkpoint(self, item: int) -> tuple[int, int]:
        """The last checkpoint at or before an item: the number of an item, and the character at which it begins."""
        with self._lock:
            index = bisect_right(self._checkpoint_items, item) - 1
            return self._checkpoint_items[index], self._checkpoint_characters[index]

    def _add_checkpoint(self, item: int, character: int) -> None:
        """Add a checkpoint, if it is far enough from the one before it."""
        with self._lock:
            index = bisect_right(self._checkpoint_items, item)
            last_item, last_character = self._checkpoint_items[index - 1], self._checkpoint_characters[index - 1]
            is_far = character - last_character >= CHECKPOINT_CHARACTERS and item > last_item
            if is_far or item - last_item >= ITEMS_PER_CHECKPOINT:
                self._checkpoint_items.insert(index, item)
                self._checkpoint_characters.insert(index, character)

    def _blocks_from(self, item: int) -> Iterator[Block]:
        """The block that has an item, and the blocks after it."""
        first, begin = self._last_checkpoint(item)
        start = begin
        for items, characters in self._find_blocks(begin):
            stop = begin + characters
            if items:
                self._add_checkpoint(first, start)  # only now is it known that an item begins there
                if first + len(items) > item:
                    yield Block(first, items, start, stop)
                first += len(items)
            start = stop
        self._length = first

    def _item(self, item: int) -> str:
        """An item by its number from 0. Raises `IndexError`."""
        block = self._block
        if item not in block.numbers:
            block = self._keep_block(item)
        self._span.log_read(block.start, block.stop)
        return block.items[item - block.first]

    def _keep_block(self, item: int) -> Block:
        """Keep the block that has an item. If it follows the kept block, the pass stays open and fetches ahead."""
        with self._lock:
            end = self._block.numbers.stop
            blocks = self._next_blocks if self._next_blocks and item == end else self._blocks_from(item)
            block = next(blocks, None)
            if block is None:
                raise IndexError("list index out of range")
            self._block = block
            self._next_blocks = blocks if block.first == end else None
            return block

    # -- as a list -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self._length is None:
            for _ in self._blocks_from(self._checkpoint_items[-1]):
                pass
        return cast(int, self._length)  # which the last block sets

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(block.items for block in self._blocks_from(0))

    def __reversed__(self) -> Iterator[str]:
        """Items from the last to the first; streams in groups, or one by one where a group is above the limit."""
        for stop in range(len(self), 0, -ITEMS_PER_CHECKPOINT):
            first = max(stop - ITEMS_PER_CHECKPOINT, 0)
            items = LazyList._real_items(self, first, stop)  # which does not log that code received all of them
            if items is None:
                yield from map(self.__getitem__, range(stop - 1, first - 1, -1))
            else:
                yield from reversed(items)

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[str]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> str | Sequence[str]:
        if isinstance(key, slice):
            return self._slice(key)
        first, items, start, stop = self._block  # which other threads replace as a whole
        if type(key) is int and abs(key - self._last_item) == 1 and 0 <= key - first < len(items):  # a loop: 0.3 us
            self._last_item = key
            self._span.log_read(start, stop)
            return items[key - first]
        if type(key) is not int and not hasattr(key, "__index__"):
            return cast(str, [][key])  # raises the error of `list`
        index = key if type(key) is int else key.__index__()
        if index < 0:
            index += len(self)
        if index < 0:
            raise IndexError("list index out of range")
        item = self._item(index)
        self._last_item = index
        return item

    def _slice(self, key: slice) -> Sequence[str]:
        """A slice: a real list up to the limit, else a lazy one. Counts the items (a pass, once) for a lazy result, a
        negative bound or step, and a slice without `stop`."""
        key.indices(0)  # raises the errors of `list`
        bounds = (0 if key.start is None else key.start, key.stop, 1 if key.step is None else key.step)
        needs_length = None in bounds or min(map(operator.index, bounds)) < 0
        start, stop, step = map(operator.index, key.indices(len(self)) if needs_length else bounds)
        items = self._real_items(start, stop) if step > 0 else self._real_items(stop + 1, start + 1)
        return LazyListSlice(self, range(len(self))[key]) if items is None else items[::step]

    def _real_items(self, start: int, stop: int) -> list[str] | None:
        """Items [start, stop), fewer at the end; None if they are too large for a real list."""
        items: list[str] = []
        size, rest = 0, self.iterate(start, stop)
        while block := list(islice(rest, ITEMS_PER_CHECKPOINT)):
            size += len(block) + self._size_of(block)
            if size > self._limit:
                return None
            items += block
        return items

    def _size_of(self, items: Sequence[str]) -> int:
        return sum(map(len, items))

    def iterate(self, start: int, stop: int) -> Iterator[str]:
        """Items [start, stop), fewer at the end; streams."""
        start, stop = min(start, sys.maxsize), min(stop, sys.maxsize)
        if stop <= start:
            return iter(())
        blocks = self._blocks_from(start)
        block = next(blocks, Block(start, [], 0, 0))
        rest = chain.from_iterable(block.items for block in blocks)
        return islice(chain(block.items, rest), start - block.first, stop - block.first)

    def __reduce__(self) -> tuple[Any, ...]:
        receiver, method, *arguments = self._recipe
        return operator.methodcaller(method, *arguments), (receiver,)

    def __repr__(self) -> str:
        return f"<LazyList of {len(self._span):,} characters; a lazy list of str: iterate or slice it>"


class LazyListSlice(LazyItems, Sequence[str]):
    """A slice of a lazy list that is above the limit of the text. An item costs as much as in the list."""

    def __init__(self, items: LazyList, numbers: range):
        self._items = items
        self._numbers = numbers
        """The numbers of its items in the list."""

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        if self._numbers.step == 1:
            return self._items.iterate(self._numbers.start, self._numbers.stop)
        return map(self._items.__getitem__, self._numbers)

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[str]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> str | Sequence[str]:
        if isinstance(key, slice):
            numbers = self._numbers[key]
            return self._items[_slice_of(numbers)] if numbers else []
        if not hasattr(key, "__index__") or not -len(self) <= key.__index__() < len(self):
            return cast(str, [][key])  # raises the error of `list`
        return self._items[self._numbers[key]]

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, (self._items, _slice_of(self._numbers))

    def __repr__(self) -> str:
        first = self._numbers.start  # else equal slices of other items would read the same
        return f"<LazyListSlice of {len(self):,} items from {first:,}; a lazy list of str: iterate or slice it>"


def _slice_of(numbers: range) -> slice:
    """The slice that selects these numbers, none of which is negative."""
    return slice(numbers.start, numbers.stop if numbers.stop >= 0 else None, numbers.step)


class LazyListOfParts(LazyList):
    """The list of `text.split(separator)`. `len` costs a search for the separator in the whole text."""

    def __init__(self, span: Span, separator: str, limit: int, recipe: tuple[Any, ...]):
        super().__init__(span, lambda begin: split_text(span.texts(begin), separator), limit, recipe)
        self._separator = separator

    def __len__(self) -> int:
        if self._length is None:
            self._length = self._span.count(self._separator) + 1
        return self._length


class LazyListOfLines(LazyListOfParts):
    r"""The list of `text.split("\n")`. `len` costs no pass, an item at most 4 GETs, 2 of them for index pages."""

    def __len__(self) -> int:
        if self._length is None:
            self._length = self._span.newlines + 1
        return self._length

    def _last_checkpoint(self, item: int) -> tuple[int, int]:
        """The index tells where each line begins, so every item is a checkpoint."""
        return item, self._span.line_start(item)

    def _item(self, item: int) -> str:
        """Like `LazyList._item`, but only a loop over adjacent lines reads blocks; any other line is read alone."""
        if item >= len(self):
            raise IndexError("list index out of range")
        if abs(item - self._last_item) != 1:
            start, stop = self._line_range(item, item + 1)
            self._span.log_received(start, stop)
            return self._span.read(start, stop)
        if item < self._last_item and item not in self._block.numbers:
            self._keep_block_up_to(item)
        return super()._item(item)

    def _line_range(self, start: int, stop: int) -> tuple[int, int]:
        """The characters of lines [start, stop), without the last newline."""
        span = self._span
        return span.line_start(start), span.line_start(stop) - 1 if stop < len(self) else len(span)

    def _keep_block_up_to(self, item: int) -> None:
        """Keep the block that ends with an item, for a loop that runs backwards, unless the block is too large."""
        first, span = max(item + 1 - ITEMS_PER_CHECKPOINT, 0), self._span
        low, high = span.line_start(first), span.line_start(item + 1)
        if high - low <= min(self._limit, _READ_CHARACTERS):
            with self._lock:
                self._block = Block(first, span.read(low, high).split("\n")[: item + 1 - first], low, high)
                self._next_blocks = None

    def _real_items(self, start: int, stop: int) -> list[str] | None:
        stop = min(stop, len(self))
        if stop <= start:
            return []
        low, high = self._line_range(start, stop)
        if high - low > min(self._limit, _READ_CHARACTERS):
            return super()._real_items(start, stop) if high - low <= self._limit else None
        self._span.log_received(low, high)
        return self._span.read(low, high).split("\n")

    def _blocks_from(self, item: int) -> Iterator[Block]:
        return super()._blocks_from(item) if item < len(self) else iter(())
