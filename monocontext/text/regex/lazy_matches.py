"""The results of `findall` and `split` of a pattern that are too large for a real list, as lazy lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from monocontext.text.lazy_lists import CHECKPOINT_CHARACTERS, ITEMS_PER_CHECKPOINT, Block, LazyList
from monocontext.text.regex.plan import PatternPlan
from monocontext.text.regex.scan import scan
from monocontext.text.source import Span


class LazyMatches(LazyList):
    """The list of `findall`. Items are found by a pass over the text, in which blocks begin after matches."""

    def __init__(self, plan: PatternPlan, span: Span, limit: int, recipe: tuple[Any, ...], start: int = 0):
        super().__init__(span, lambda texts: iter(()), limit, recipe)
        self._checkpoint_characters[0] = start
        self._plan = plan
        self._may_be_empty = plan.least_width == 0
        """Whether a match may be empty. At the end of an empty match `re` finds no second one, but at the end of any
        other match it does. So a pass begins only after matches of one kind."""

    def _items_of(self, match: re.Match[str], base: int, start: int) -> list[Any]:
        """The items of a match, whose string begins at character `base`. The match before it ended at `start`."""
        return [match_item(match)]

    def _blocks_from(self, item: int) -> Iterator[Block]:
        first, begin = self._checkpoint(item)
        items: list[Any] = []
        start = location = begin
        can_begin = True
        for match, base in scan(self._plan, self._span, self._limit, begin, len(self._span), narrow=True):
            is_empty = match.end() == match.start()
            if first > 0 and is_empty and self._may_be_empty and base + match.end() == begin:
                continue  # the match before the checkpoint
            items += self._items_of(match, base, start)
            start = base + match.end()
            if len(items) >= ITEMS_PER_CHECKPOINT or start - location >= CHECKPOINT_CHARACTERS:
                if can_begin:
                    self._remember(first, location)
                if first + len(items) > item:
                    yield Block(first, items, location, start)
                first, items, location = first + len(items), [], start
                can_begin = is_empty == self._may_be_empty
        items += self._last_items(start)
        if items:
            yield Block(first, items, location, len(self._span))
        self._length = first + len(items)

    def _last_items(self, start: int) -> list[Any]:
        """The items after the last match, which ends at `start`."""
        return []

    def _size_of(self, items: Sequence[Any]) -> int:
        return sum(len("".join(item) if isinstance(item, tuple) else item or "") for item in items)


class LazyPieces(LazyMatches):
    """The list of `split`: pieces of text, and the groups of the match between two."""

    def _items_of(self, match: re.Match[str], base: int, start: int) -> list[Any]:
        begin = match.start()
        piece = match.string[start - base : begin] if start >= base else self._span.read(start, base + begin)
        return [piece, *match.groups()]

    def _last_items(self, start: int) -> list[Any]:
        return [self._span.read(start, len(self._span))]


def match_item(match: re.Match[str]) -> Any:
    """The item of a match in the result of `findall`."""
    groups = match.re.groups
    return (match[groups] or "") if groups < 2 else match.groups("")
