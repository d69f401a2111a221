"""The results of `findall` and `split` of a pattern that are too large for a real list, as lazy lists."""

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
    """The list of `findall`, or with `is_split` that of `split`, which also has the text between the matches."""

    def __init__(
        self, plan: PatternPlan, span: Span, limit: int, recipe: tuple[Any, ...], start: int = 0, is_split: bool = False
    ):
        super().__init__(span, self._match_blocks, limit, recipe)
        self._plan, self._start, self._is_split = plan, start, is_split
        self._checkpoint_characters[0] = start

    def _match_blocks(self, begin: int) -> Blocks:
        """The blocks of items from character `begin` on, at which a block begins.

        `re` finds an empty match where another match has ended, but not where an empty one has. So if a pattern has
        empty matches, a block ends after one of them, and the next block skips it.
        """
        may_be_empty = self._plan.least_width == 0
        items: list[Any] = []
        block_start = last_end = begin
        for match, base in scan(self._plan, self._span, self._limit, begin, len(self._span), narrow=True):
            low, high = base + match.start(), base + match.end()
            is_empty = low == high
            if is_empty and low == begin > self._start:  # the block before ended after it
                continue
            if self._is_split:
                in_window = last_end >= base
                piece = match.string[last_end - base : match.start()] if in_window else self._span.read(last_end, low)
                items += [piece, *match.groups()]
            else:
                items.append(match_item(match))
            last_end = high
            is_full = len(items) >= ITEMS_PER_CHECKPOINT or last_end - block_start >= CHECKPOINT_CHARACTERS
            if is_full and last_end > block_start and is_empty == may_be_empty:
                yield items, last_end - begin
                items, block_start = [], last_end
        if self._is_split:
            items.append(self._span.read(last_end, len(self._span)))
        yield items, len(self._span) - begin

    def _size_of(self, items: Sequence[Any]) -> int:
        return sum(map(item_size, items))


def match_item(match: re.Match[str]) -> Any:
    """The item of a match in the result of `findall`."""
    groups = match.re.groups
    return (match[groups] or "") if groups < 2 else match.groups("")


def item_size(item: Any) -> int:
    """The number of characters in an item: a text, the texts of groups, or None for a group that took no part."""
    return sum(map(len, item)) if isinstance(item, tuple) else len(item or "")
