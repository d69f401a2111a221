"""From what is expected to the frames that it takes, in order, a step at a time; nothing is fetched or waited for here.

A route is an iterator of steps: a frame to fetch ahead, or a gate, things stored without which the route does not know
its way (index pages, blocks of filters). Whoever walks it has a gate fetched and goes on when it is at hand.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from monocontext.asking import Asking, Block, Told
from monocontext.frametable import FrameTable
from monocontext.hints import Reach
from monocontext.index import Frame, Page
from monocontext.needs import Need as Sought
from monocontext.plan import Need

CANDIDATES_BYTES = 8 << 20
"""Text of a search's candidates that is fetched ahead: a `find` looks at one or two frames, a window around each of the
first hits of a `finditer` takes some more."""


COMMON_BYTES = 1 << 20
"""The same of what most frames hold: the first of them has it, or the next."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What has to be at hand before the route goes on; where it cannot be had the route ends."""

    needs: tuple[Need, ...]


Route = Iterator[Frame | Gate]


class _NotAtHand(Exception):
    """An index page that a filter's answer depends on."""

    def __init__(self, page: int):
        self.page = page


class Routes:
    """Routes through one text. Its owner holds the lock while it walks them."""

    def __init__(self, table: FrameTable, asking: Asking):
        self._table = table
        self._asking = asking
        self.characters = table.characters

    def frames(self, numbers: Iterable[int]) -> Route:
        """Frames by number."""
        for number in numbers:
            page = yield from self._page(self._table.page_of_frame(number))
            if page is None:
                return
            yield page[number - page.first_frame]

    def ranges(self, start: int, width: int, step: int, count: int) -> Route:
        """The frames of `count` ranges of `width` characters, each `step` after the one before; each frame once where
        ranges lie side by side. Ranges in a frame that was given are passed over, however many they are."""
        low = high = 0
        k = 0
        while k < count:
            first = start + k * step
            for frame in self._between(max(first, 0), min(first + width, self.characters)):
                if isinstance(frame, Frame):
                    if low <= frame.start and frame.stop <= high:
                        continue
                    low, high = frame.start, frame.stop
                yield frame
            k += 1
            if step > 0 and high > first:
                k = max(k, (high - width - start) // step + 1)  # the first that reaches beyond the frame
            elif step < 0 and low <= first:
                k = max(k, (start - low) // -step + 1)

    def lines(self, start: int, stop: int) -> Route:
        """The frames of lines [start, stop)."""
        newlines = self._table.manifest.newlines
        first = 0
        if start > 0:
            if start > newlines:
                return
            page = yield from self._page(self._table.page_of_newline(start - 1))
            if page is None:
                return
            first = page.first_frame + page.at_newline(start - 1)
        last = self._table.manifest.frames - 1
        if stop <= newlines:
            page = yield from self._page(self._table.page_of_newline(stop - 1))
            if page is None:
                return
            last = page.first_frame + page.at_newline(stop - 1)
        yield from self.frames(range(first, last + 1))

    def whole(self, start: int, stop: int, backward: bool = False) -> Route:
        """Everything in [start, stop), in order or from the end."""
        return self._between(start, stop, backward)

    def search(
        self, need: Sought | None, start: int, stop: int, within_line: bool, backward: bool, reach: Reach = "all"
    ) -> Route:
        """What a search reads first: what filters ask for, then the first candidates. Where no filter can tell,
        everything in its way, if it is known where that begins; where filters say that most frames hold it, no further
        than one that ends at the first place is likely to go."""
        table, asking = self._table, self._asking
        if stop <= start:
            return
        frames = table.manifest.frames
        if need is None or asking.useless(need, frames):
            if reach != "unplaced":
                yield from self.whole(start, stop, backward)
            return
        ends = []
        for character in (start, stop - 1):
            page = yield from self._page(table.page_of_character(character))
            if page is None:
                return
            ends.append(page.first_frame + page.at_character(character))
        within = range(ends[0], ends[1] + 1)
        if asking.useless(need, len(within)):
            if reach != "unplaced":
                yield from self.whole(start, stop, backward)
            return
        told = yield from self._told(need, within_line)
        if told is None:
            return
        answer = asking.answer(told, need, within)
        if answer.runs is None:
            if reach == "all":
                yield from self.whole(start, stop, backward)
            elif reach == "first":
                yield from _first(self.whole(start, stop, backward), COMMON_BYTES)
            return
        runs = reversed(answer.runs) if backward else answer.runs
        numbers = (n for run in runs for n in (range(run[1] - 1, run[0] - 1, -1) if backward else range(*run)))
        yield from _first(self.frames(numbers), CANDIDATES_BYTES)

    def _told(self, need: Sought, within_line: bool) -> Generator[Gate, None, Told | None]:
        """What filters say, remembered where the search itself looks for it."""
        key = ("told", need, within_line)
        told = self._table.in_memory(key)
        if isinstance(told, Told):
            return told
        needs = self._asking.blocks(need)
        yield Gate(tuple(needs))
        blocks = {one.key: block for one in needs if isinstance(block := self._table.in_memory(one.key), Block)}
        if len(blocks) < len(needs):
            return None
        asked: set[int] = set()
        while True:
            try:
                told = self._asking.told(need, within_line, blocks, _AtHand(self._table))
            except _NotAtHand as missing:
                if missing.page in asked:
                    return None
                asked.add(missing.page)
                yield Gate((self._table.page_need(missing.page),))
            else:
                self._table.cache.put(key, told)
                return told

    def _between(self, start: int, stop: int, backward: bool = False) -> Route:
        if stop <= start:
            return
        first, last = self._table.page_of_character(start), self._table.page_of_character(stop - 1)
        for number in range(last, first - 1, -1) if backward else range(first, last + 1):
            page = yield from self._page(number)
            if page is None:
                return
            low = page.at_character(start) if number == first else 0
            high = page.at_character(stop - 1) if number == last else len(page) - 1
            for i in range(high, low - 1, -1) if backward else range(low, high + 1):
                yield page[i]

    def _page(self, number: int) -> Generator[Gate, None, Page | None]:
        page = self._table.page_at_hand(number)
        if page is None:
            yield Gate((self._table.page_need(number),))
            page = self._table.page_at_hand(number)
        return page


class _AtHand:
    """The records of frames, as far as their index pages are in memory."""

    def __init__(self, table: FrameTable):
        self._table = table

    def bring(self, numbers: Sequence[int]) -> None:
        for page in dict.fromkeys(map(self._table.page_of_frame, numbers)):
            self._page(page)

    def frame(self, number: int) -> Frame:
        page = self._page(self._table.page_of_frame(number))
        return page[number - page.first_frame]

    def number_at(self, character: int) -> int:
        page = self._page(self._table.page_of_character(character))
        return page.first_frame + page.at_character(character)

    def _page(self, number: int) -> Page:
        page = self._table.page_at_hand(number)
        if page is None:
            raise _NotAtHand(number)
        return page


def _first(route: Route, most_bytes: int) -> Route:
    """A route up to so much text."""
    for step in route:
        if isinstance(step, Frame):
            most_bytes -= step.bytes
            if most_bytes < 0:
                return
        yield step
