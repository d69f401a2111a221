"""The results of `split` and `sub` for texts too large for one `str`: a lazy list, and a derived text."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from typing import Any

from monocontext.errors import ContextTooLarge
from monocontext.text import lazy_lists as splits
from monocontext.text.lazy_lists import LazyList
from monocontext.text.regex.plan import Plan
from monocontext.text.regex.stream import Scan, check
from monocontext.text.source import Span
from monocontext.text.splitting import Blocks
from monocontext.text.str_methods import StrLike

PIECE_CHARACTERS = 1 << 18
"""The characters that `sub` makes in one piece; more if one match is replaced by more."""

Replacement = Callable[[re.Match[str], int, int], Any]
"""A function (match, base, number) that returns the text for a match in a window that begins at character `base`.
`number` matches come before it."""


class Passes:
    """Makes passes of one pattern over one text, from the beginning or from a place that an earlier pass reached.

    A place is a number, `2 * at + replay`. The matches before character `at` are known, and `replay` is 1 if the last
    of them was empty and ended there (see `stream`). The beginning is 0, and places increase.
    """

    def __init__(self, plan: Plan, text: StrLike):
        self._plan = plan
        self.text = text = text._snapshot
        self.span: Span = text.span
        self._limit = text._limit
        self.end = len(text)
        check(plan, self.end, self._limit)

    def scan_from(self, place: int) -> Scan:
        """A pass from a place on, over all of the text."""
        return Scan(self._plan, self.span, self._limit, place >> 1, self.end, replay=bool(place & 1))

    def matches(self) -> Iterator[tuple[re.Match[str], int]]:
        """All matches, each with the first character of its window. Frames without a match need not be read."""
        scan = Scan(self._plan, self.span, self._limit, 0, self.end, narrow=True)
        return ((found, scan.base) for found in scan.hits() if found is not None)


class PatternSplit(LazyList):
    """The items of `re.split(pattern, text)`. An item above the text's limit is a view. `len` costs one pass."""

    def __init__(self, passes: Passes, groups: int, most: int):
        """`most`: the most matches to split at; 0 for all."""
        super().__init__(passes.span)
        self._passes = passes
        self._groups = groups
        self._most = most or sys.maxsize

    def to_list(self, most: int) -> list[Any] | None:
        """The items as a real list, or None if their characters and their number together are more than `most`."""
        items: list[Any] = []
        for item in self:
            items.append(item)
            most -= 1 + (len(item) if type(item) is str else 0)
            if most < 0:
                return None
        return items

    def _blocks(self, place: int, first: int) -> Blocks:
        """Items from a place on. Each block has the items of one window."""
        cuts = first // (1 + self._groups)
        scan = self._passes.scan_from(place)
        piece = _Piece(self._passes.text, place >> 1)
        items: list[Any] = []
        for found in scan.hits() if cuts < self._most else ():
            if found is None:
                piece.take(scan, scan.at)
                if items:
                    yield items, place
                    items = []
                continue
            piece.take(scan, scan.base + found.start())
            items.append(piece.text(scan.base + found.end()))
            if self._groups:
                items += found.groups()[: self._groups]
            place = _place_after(found, scan.base)
            cuts += 1
            if cuts == self._most:
                break
        items.append(self._passes.text._part(piece.start, self._passes.end))
        yield items, place

    def __len__(self) -> int:
        """The number of items. Costs one pass over the frames in which a match may begin."""
        if self._length < 0:
            number = last = 0
            for number, (found, base) in enumerate(islice(self._passes.matches(), self._most), 1):
                place = _place_after(found, base)
                if number % splits.CHECKPOINT_EVERY == 0 or place - last >= splits.CHECKPOINT_CHARACTERS:
                    self._remember(number * (1 + self._groups), place)
                    last = place
            self._length = number * (1 + self._groups) + 1
        return self._length


class _Piece:
    """The text between two matches, collected from windows. Above the limit only its range is kept."""

    def __init__(self, text: StrLike, start: int):
        self._text = text
        self.start = start
        self._stop = start
        self._parts: list[str] = []

    def take(self, scan: Scan, stop: int) -> None:
        """Add the characters up to `stop`, from the window of the scan."""
        if stop - self.start > self._text._limit:
            self._parts = []
        elif stop > self._stop:
            self._parts.append(scan.window[self._stop - scan.base : stop - scan.base])
        self._stop = max(stop, self._stop)

    def text(self, next_start: int) -> str | StrLike:
        """Return the piece, and begin the next one at `next_start`."""
        whole = self._stop - self.start <= self._text._limit
        text = "".join(self._parts) if whole else self._text._part(self.start, self._stop)
        self.start = self._stop = next_start
        self._parts = []
        return text


class Substituted:
    """`re.sub(pattern, replacement, text)` as a `Derivation`. Its states are places of `Passes`."""

    keeps_length = False
    keeps_newlines = False
    map_piece = None

    def __init__(self, passes: Passes, replacement: Replacement, most: int):
        """`most`: the most matches to replace; 0 for all."""
        self.base = passes.span
        self._passes = passes
        self._replacement = replacement
        self._most = most or sys.maxsize
        self._done = {0: 0}
        """The number of matches that are replaced before each state."""

    def pieces(self, state: int, stop: int | None = None) -> Iterator[tuple[str, int]]:
        if state > 2 * self._passes.end + 1:  # the state after the last piece
            return
        scan = self._passes.scan_from(state)
        done, taken = self._done[state], state >> 1  # `taken`: the text before it is replaced or in a piece
        parts: list[str] = []
        characters = 0
        for found in scan.hits() if done < self._most else ():
            stop_of_part = scan.at if found is None else scan.base + found.start()
            if stop_of_part > taken:
                parts.append(scan.window[taken - scan.base : stop_of_part - scan.base])
                characters += stop_of_part - taken
                taken = stop_of_part
            place = 2 * scan.at + scan.replays
            if found is not None:
                text = self._replacement(found, scan.base, done)
                if text:
                    parts.append(text)
                    characters += len(text)
                done += 1
                taken = scan.base + found.end()
                place = _place_after(found, scan.base)
                if done == self._most:
                    break
            if found is None or characters > PIECE_CHARACTERS:
                self._done[place] = done
                yield "".join(parts), place
                parts, characters = [], 0
        if done >= self._most:  # the rest stays unchanged
            self._done[2 * taken + 1] = done  # not the place of `taken`, where an empty match may follow
            if parts:
                yield "".join(parts), 2 * taken + 1
            for text in self.base.texts(taken, self._passes.end):
                taken += len(text)
                self._done[2 * taken] = done
                yield text, 2 * taken
            return
        if taken < self._passes.end:
            parts.append(scan.read(taken))
        if parts:
            self._done[2 * self._passes.end + 2] = done
            yield "".join(parts), 2 * self._passes.end + 2


def _place_after(found: re.Match[str], base: int) -> int:
    """The place after a match in a window that begins at character `base`."""
    return 2 * (base + found.end()) + (found.end() == found.start())


class FunctionResults:
    """The results of a replacement function, which is called once for each match in order, as `re` does.

    They are kept for later reads, since a function may count its calls or have other effects. Raises `ContextTooLarge`
    for results that together have more characters than the limit, where each counts 8 more.
    """

    def __init__(self, passes: Passes, function: Callable[[re.Match[str], int], Any], most: int):
        self._block_size = splits.CHECKPOINT_EVERY
        self._blocks: list[str] = []
        """The results, joined in blocks, which take less memory than a string for each."""
        self._ends: list[array[int]] = []
        """The end of each result in its block."""
        batch: list[str] = []
        limit = room = passes.text._limit
        self.number = 0
        """The number of results."""
        for found, base in islice(passes.matches(), most or None):
            result = function(found, base)
            if result is not None and not isinstance(result, str):
                raise TypeError(
                    f"sequence item {2 * self.number + 1}: expected str instance, {type(result).__name__} found"
                )
            batch.append(result or "")
            self.number += 1
            room -= len(batch[-1]) + 8
            if room < 0:
                raise ContextTooLarge(
                    f"re.sub: the results of the function for matches up to character {base + found.end():,} are more "
                    f"than {limit:,} characters (materialize_limit): use a template such as r'<\\1>', or re.sub a "
                    "part, context[a:b]"
                )
            if len(batch) == self._block_size:
                self._add_block(batch)
                batch = []
        self._add_block(batch)

    def _add_block(self, batch: list[str]) -> None:
        self._blocks.append("".join(batch))
        self._ends.append(array("Q", accumulate(map(len, batch))))

    def __call__(self, found: re.Match[str], base: int, number: int) -> str:
        """The result for the match with this number: a `Replacement`."""
        block, within = divmod(number, self._block_size)
        ends = self._ends[block]
        return self._blocks[block][ends[within - 1] if within else 0 : ends[within]]
