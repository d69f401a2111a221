"""Lazy lists in place of the results of `findall` and `split` that are too large for a real list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from monocontext.text.lazy_lists import CHECKPOINT_CHARACTERS, ITEMS_PER_CHECKPOINT, LazyList
from monocontext.text.regex.plan import PatternPlan
from monocontext.text.regex.scan import scan
from monocontext.text.source import Span
from monocontext.text.splitting import Blocks


class LazyMatches(LazyList):
    """The list of `findall`."""

    def __init__(self, plan: PatternPlan, span: Span, limit: int, recipe: tuple[Any, ...], start: int = 0):
        super().__init__(span, self._match_blocks, limit, recipe, start)
        self._plan, self._start = plan, start

    def _match_blocks(self, begin: int) -> Blocks:
        """The blocks of items from character `begin` on, at which a block begins.

        `re` finds an empty match where another match has ended, but not where an empty one has. So if a pattern has
        empty matches, each block ends with one, and the next block, which finds it again, leaves it out.
        """
        has_empty_matches = self._plan.least_width == 0
        items: list[Any] = []
        block_start = last_end = begin
        for match, base in scan(self._plan, self._span, self._limit, begin, len(self._span), narrow=True):
            start, stop = base + match.start(), base + match.end()
            is_empty = start == stop
            if is_empty and start == begin > self._start:  # the block before ended with it
                continue
            items += self._items_of(match, base, last_end)
            last_end = stop
            is_full = len(items) >= ITEMS_PER_CHECKPOINT or stop - block_start >= CHECKPOINT_CHARACTERS
            if is_full and stop > block_start and (is_empty or not has_empty_matches):
                yield items, stop - begin
                items, block_start = [], stop
        yield items + self._last_items(last_end), len(self._span) - begin

    def _items_of(self, match: re.Match[str], base: int, last_end: int) -> list[Any]:
        """The items of a match in a window that begins at character `base`. The match before ends at `last_end`."""
        return [match_item(match)]

    def _last_items(self, last_end: int) -> list[Any]:
        """The items after the last match."""
        return []

    def _size_of(self, items: Sequence[Any]) -> int:
        return sum(map(item_size, items))


class LazySplit(LazyMatches):
    """The list of `split`: the text between matches, and the groups of each match."""

    def _items_of(self, match: re.Match[str], base: int, last_end: int) -> list[Any]:
        if last_end >= base:
            return [match.string[last_end - base : match.start()], *match.groups()]
        return [self._span.read(last_end, base + match.start()), *match.groups()]

    def _last_items(self, last_end: int) -> list[Any]:
        return [self._span.read(last_end, len(self._span))]


def match_item(match: re.Match[str]) -> Any:
    """The item of a match in the result of `findall`: its text, its only group, or a tuple of its groups."""
    groups = match.re.groups
    return (match[groups] or "") if groups < 2 else match.groups("")


def item_size(item: Any) -> int:
    """The number of characters in an item: a text, the texts of groups, or None for a group that took no part."""
    return sum(map(len, item)) if isinstance(item, tuple) else len(item or "")
