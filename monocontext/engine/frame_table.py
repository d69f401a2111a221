"""Find the frame that holds a character, and the record of a frame.

Index pages are fetched when they are needed, and before them the directories that name the pages of a large text. Open
directories stay in memory: some 0.6 KB for each GB of text that was read.

Some look-ups also serve the read-ahead, which must not wait. Such a look-up fetches nothing: it returns its result, or
`Missing` with the items that it needs. `FrameTable.look_up_and_fetch` repeats it for a caller that waits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from monocontext.engine.candidates import Candidates
from monocontext.engine.fetch.requests import FetchItem, Missing
from monocontext.engine.fetch.workers import LOCK
from monocontext.engine.frame import FrameText
from monocontext.engine.stats import SearchStats
from monocontext.format import codec
from monocontext.format.directories import entries_in
from monocontext.format.index import Frame, Page
from monocontext.format.refs import PageDirectory, PageRef

if TYPE_CHECKING:
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.format.manifest import Manifest

BLOCK_FRAMES = 64  # the frames of a page that a pass looks up at once: a quarter of a millisecond
PAGES_AHEAD = 64  # the index pages that are fetched at once if all are wanted
CANDIDATE_PAGES = 16  # the index pages that are fetched at once for a search, for which the first match may be enough

_T = TypeVar("_T")

GetLoaded = Callable[[Hashable], Any]  # returns the value of an item by its key, or None if it is not in memory


Column = Literal["characters", "frames", "bytes", "newlines", "pages"]  # the unit of a place in the text


class UnopenedDirectory:
    """A directory that has to be fetched before the index pages that it names are known."""

    def __init__(self, parent: _Node, index: int, entry: PageDirectory):
        self._parent, self._index, self._entry = parent, index, entry

    def item(self) -> FetchItem:
        """The item to fetch for the directory; decoding it opens the directory."""
        size = self._entry.size_bytes
        return FetchItem(("directory", self._entry.id), self._entry.key, 0, size, 20 * size, self._open)

    def _open(self, body: memoryview) -> _Node:
        parent, index = self._parent, self._index
        before = parent.entries[index - 1] if index else parent.before
        node = _Node(entries_in(self._entry, bytes(body), before), before, parent.firsts[index])
        parent.children[index] = node
        return node


class _Node:
    """The entries of a root or of a directory."""

    size_bytes = 1000  # little for the cache: the tree keeps it anyway

    def __init__(self, entries: Sequence[PageRef], before: PageRef | None, first: int):
        self.entries, self.before = entries, before
        pages = (entry.pages if isinstance(entry, PageDirectory) else 1 for entry in entries)
        self.firsts = list(accumulate(pages, initial=first))  # the number of the first page of each entry
        self.columns: dict[Column, list[int]] = {
            "characters": [entry.characters for entry in entries],
            "frames": [entry.frames for entry in entries],
            "bytes": [entry.bytes for entry in entries],
            "newlines": [entry.newlines for entry in entries],
            "pages": self.firsts[1:],
        }
        self.children: dict[int, _Node] = {}


class PageTree:
    """The index pages of one text, by number. Safe for use by many threads."""

    def __init__(self, pages: Sequence[PageRef]):
        self._top = _Node(pages, None, 0)
        self.count = self._top.firsts[-1]

    def number(self, column: Column, value: int) -> int | UnopenedDirectory:
        """The number of the page that holds the character, frame, byte or newline with this number."""
        result = self._find(column, value)
        return result if isinstance(result, UnopenedDirectory) else result[0].firsts[result[1]]

    def page(self, number: int) -> tuple[PageRef, PageRef | None] | UnopenedDirectory:
        """A page, and the entry before it."""
        result = self._find("pages", number)
        if isinstance(result, UnopenedDirectory):
            return result
        node, index = result
        return node.entries[index], node.entries[index - 1] if index else node.before

    def _find(self, column: Column, value: int) -> tuple[_Node, int] | UnopenedDirectory:
        """The node that names a page, and the page's index in it; or the directory that has to be opened first."""
        node = self._top
        while True:
            index = bisect_right(node.columns[column], value)
            entry = node.entries[index] if index < len(node.entries) else None
            if not isinstance(entry, PageDirectory):
                return node, index
            child = node.children.get(index)
            if child is None:
                return UnopenedDirectory(node, index, entry)
            node = child


class FrameTable:
    """The frames of one text. Safe for use by many threads."""

    def __init__(self, manifest: Manifest, fetcher: Fetcher):
        self.manifest = manifest
        self.characters = manifest.characters
        self.frames = manifest.frames
        self._fetcher = fetcher
        self._last_page: tuple[int, Page] | None = None
        """The page that was used last, and its number. It is outside the cache, since every read needs one."""
        pages = manifest.pages
        self._tree = tree = PageTree(pages)
        if manifest.last_page is not None:
            before = pages[-2] if len(pages) > 1 else None
            self._last_page = (tree.count - 1, Page(manifest.last_page, pages[-1], before))
            fetcher.cache.put(-tree.count, self._last_page[1])

    def look_up_and_fetch(self, look_up: Callable[[GetLoaded], _T | Missing]) -> _T:
        """Call `look_up` until nothing is missing, and fetch what is (1 GET an item, those of a call in parallel)."""
        fetched: dict[Hashable, Any] = {}  # the cache may be too small for them

        def get_loaded(key: Hashable) -> Any:
            entry = fetched.get(key)
            return entry if entry is not None else self._in_cache(key)

        while isinstance(result := look_up(get_loaded), Missing):
            values = self._fetcher.fetch_all(result.items)
            fetched.update(zip([item.key for item in result.items], values, strict=True))
        return result

    def blocks(self, start: int, stop: int, backward: bool = False) -> Iterator[list[Frame]]:
        """The frames that hold characters [start, stop), in order or from the end, as lists of up to `BLOCK_FRAMES` of
        one page (1 GET for each index page, when the caller comes to it)."""
        if stop <= start:
            return
        first, last = self._number("characters", start), self._number("characters", stop - 1)
        for number in range(last, first - 1, -1) if backward else range(first, last + 1):
            page = self.page(number)
            order = page.between(start, stop, backward)
            for offset in range(0, len(order), BLOCK_FRAMES):
                yield [page[i] for i in order[offset : offset + BLOCK_FRAMES]]

    def locate(self, character: int) -> Frame:
        """The frame that holds a character of the text (at most 1 GET, for its index page)."""
        page = self.page_at(character)
        return page[page.at_character(character)]

    def frame(self, number: int) -> Frame:
        """The record of a frame (at most 1 GET, for its index page)."""
        page = self.page(self._number("frames", number))
        return page[number - page.first_frame]

    def number_at(self, character: int) -> int:
        """The number of the frame that holds a character of the text (at most 1 GET, for its index page)."""
        return self.locate(character).number

    def numbers(self, start: int, stop: int) -> range:
        """The frames that hold characters [start, stop), a non-empty range (1 GET for each index page at its ends)."""
        return self.look_up_and_fetch(lambda get_loaded: self.range_in_memory(start, stop, get_loaded))

    def byte_frame(self, byte: int) -> Frame:
        """The frame that holds a byte of the text in UTF-8 (at most 1 GET, for its index page)."""
        page = self.page(self._number("bytes", byte))
        return page[page.at_byte(byte)]

    def newline_frame(self, newline: int) -> Frame:
        """The frame that holds newline number `newline`, from 0 (at most 1 GET, for its index page)."""
        page = self.page(self._number("newlines", newline))
        return page[page.at_newline(newline)]

    def page_at(self, character: int) -> Page:
        """The index page that covers a character (at most 1 GET)."""
        last = self._last_page
        if last is not None and last[1].starts[0] <= character < last[1].starts[-1]:  # the path of a short read
            return last[1]
        return self.page(self._number("characters", character))

    def _number(self, column: Column, value: int) -> int:
        """The number of the index page with a character, frame, byte or newline (1 GET for a directory)."""
        result = self._tree.number(column, value)
        while isinstance(result, UnopenedDirectory):
            self._fetcher.fetch_one(result.item())
            result = self._tree.number(column, value)
        return result

    def page(self, number: int) -> Page:
        """An index page (at most 1 GET)."""
        last, fetcher = self._last_page, self._fetcher
        if last is not None and last[0] == number and not fetcher.is_closed:
            return last[1]
        page: Page = fetcher.fetch_one(self.page_item(number))
        self._last_page = (number, page)
        return page

    def prefetch_pages(self, numbers: Iterable[int], most: int = 1 << 16) -> None:
        """Fetch the index pages of some frames, at most `most`, in one round trip (1 GET each)."""
        self.fetch_pages(list(dict.fromkeys(self._pages_of(list(numbers))))[:most])

    def frames_of_runs(self, runs: Iterable[tuple[int, int]], start: int, stop: int, reverse: bool) -> Iterator[Frame]:
        """The given frames that hold any of [start, stop), in order or backwards (1 GET a page, many in parallel)."""
        numbers = [number for first, last in runs for number in range(first, last)]
        if reverse:
            numbers.reverse()
        page_numbers = self._pages_of(numbers)
        pages = list(dict.fromkeys(page_numbers))
        used, page = 0, None
        for number, page_number in zip(numbers, page_numbers, strict=True):
            if used < len(pages) and page_number == pages[used]:  # the first frame of the next page
                if used % CANDIDATE_PAGES == 0:
                    self.fetch_pages(pages[used : used + CANDIDATE_PAGES])
                used, page = used + 1, self.page(page_number)
            assert page is not None
            frame = page[number - page.first_frame]
            if frame.stop > start and frame.start < stop:
                yield frame

    def _pages_of(self, frames: Sequence[int]) -> list[int]:
        """The numbers of the index pages of some frames (1 GET for each directory that is not open, in parallel)."""
        while True:
            pages: list[int] = []
            missing: dict[Hashable, FetchItem] = {}
            for frame in frames:
                page = self._tree.number("frames", frame)
                if isinstance(page, UnopenedDirectory):
                    item = page.item()
                    missing[item.key] = item
                else:
                    pages.append(page)
            if not missing:
                return pages
            self._fetcher.fetch_all(list(missing.values()))

    def fetch_pages(self, numbers: Iterable[int]) -> list[Page]:
        """Index pages by number, in one round trip (1 GET each)."""
        return self._fetcher.fetch_all([self.page_item(number) for number in numbers])

    def frames_without(self, flag: int, start: int, stop: int) -> Candidates | None:
        """The frames of characters [start, stop) that lack a flag of `format.index`; None if over 64 and over 2 %
        (no GET if the root says that none does; else 1 for each index page, `PAGES_AHEAD` in parallel)."""
        runs: list[tuple[int, int]] = []
        if start < stop and not self.manifest.flags & flag:
            pages = range(self._number("characters", start), self._number("characters", stop - 1) + 1)
            for first in pages[::PAGES_AHEAD]:
                for page in self.fetch_pages(range(first, min(first + PAGES_AHEAD, pages.stop))):
                    within = page.between(start, stop)
                    if not page.all_frames_have(flag, within.start, within.stop):
                        lacking = [frame.number for frame in map(page.__getitem__, within) if not frame.flags & flag]
                        runs += [(number, number + 1) for number in lacking]
                if len(runs) > max(64, self.frames // 50):
                    return None
        return Candidates(runs, start, stop, self.frame, self.locate, SearchStats())

    def frames_of_characters(self, characters: range) -> Candidates:
        """The frames that hold these characters, a rising range (1 GET for each index page)."""
        runs: list[tuple[int, int]] = []
        for character in characters:
            number = self.locate(character).number
            if not runs or number > runs[-1][1]:
                runs.append((number, number + 1))
            elif number == runs[-1][1]:
                runs[-1] = (runs[-1][0], number + 1)
        return Candidates(runs, characters[0], characters[-1] + 1, self.frame, self.locate, SearchStats())

    # -- in memory (no GET) ----------------------------------------------------------------------------------------

    def _in_cache(self, key: Hashable) -> Any:
        with LOCK:
            self._fetcher.check_open()
            return self._fetcher.cache.get(key)

    def is_in_memory(self, start: int, stop: int) -> bool:
        """Whether the frames of characters [start, stop) and their index pages are in memory (counts as no use)."""
        cache, last = self._fetcher.cache, self._last_page
        with LOCK:
            while start < stop and not self._fetcher.is_closed:
                number = self._tree.number("characters", start)
                if isinstance(number, UnopenedDirectory):
                    return False
                page = last[1] if last is not None and last[0] == number else cache.peek(-1 - number)
                if not isinstance(page, Page):
                    return False
                i = page.at_character(start)
                if page.first_frame + i not in cache:
                    return False
                start = page.starts[i + 1]
        return True

    def forget_page(self) -> None:
        """Drop the page that is kept outside the cache."""
        self._last_page = None

    def page_or_item(self, column: Column, value: int, get_loaded: GetLoaded | None = None) -> Page | FetchItem:
        """The index page with a character or frame if it is in memory, else the item to fetch first."""
        number = self._tree.number(column, value)
        if isinstance(number, UnopenedDirectory):
            return number.item()
        last = self._last_page
        if last is not None and last[0] == number:
            return last[1]
        page = (get_loaded or self._in_cache)(-1 - number)
        return page if isinstance(page, Page) else self.page_item(number)

    def range_in_memory(self, start: int, stop: int, get_loaded: GetLoaded | None = None) -> range | Missing:
        """The numbers of the frames that hold characters [start, stop), a non-empty range; or the missing index pages.
        Needs the page of each end that is not an end of the text."""
        ends = [(0, start)] if start > 0 else []
        ends += [(1, stop - 1)] if stop < self.characters else []
        numbers, missing = [0, self.frames - 1], []
        for side, character in ends:
            page = self.page_or_item("characters", character, get_loaded)
            if isinstance(page, Page):
                numbers[side] = page.first_frame + page.at_character(character)
            else:
                missing.append(page)
        if missing:
            return Missing(tuple({item.key: item for item in missing}.values()))
        return range(numbers[0], numbers[1] + 1)

    def page_item(self, number: int) -> FetchItem:
        """The item to fetch for an index page (in a large text 1 GET for its directory, unless that is open)."""
        while isinstance(result := self._tree.page(number), UnopenedDirectory):
            self._fetcher.fetch_one(result.item())
        ref, before = result
        return FetchItem(
            -1 - number, ref.key, 0, ref.size_bytes, ref.size_bytes, lambda body: Page(bytes(body), ref, before)
        )


def frame_item(frame: Frame) -> FetchItem:
    """The item to fetch for a frame."""
    return FetchItem(
        frame.number, frame.object, frame.offset, frame.stored_bytes, frame.bytes,
        lambda body: FrameText(frame, codec.decode(body, frame)), frame.etag, is_raw=frame.codec == "raw",
    )  # fmt: skip
