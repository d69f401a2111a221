"""Find the frame that holds a character, a byte or a newline of a text, and the record of a frame.

Index pages are fetched when they are needed, and before them the directories that name the pages of a large text. Open
directories stay in memory: some 0.6 KB for each GB of text that was read.

Some look-ups also serve the read-ahead, which must not wait. Such a look-up fetches nothing: it returns its result, or
the items that it lacks. For a caller that waits, `FrameTable.look_up_and_fetch` fetches these and looks up again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from monocontext.engine.candidates import Candidates, Runs
from monocontext.engine.fetch.requests import FetchItem, Missing
from monocontext.engine.fetch.workers import LOCK
from monocontext.engine.frame import FrameText
from monocontext.engine.stats import SearchStats
from monocontext.format import codec
from monocontext.format.directories import entries_in
from monocontext.format.index import Frame, Page
from monocontext.format.refs import PageDirectory, PageRef
from monocontext.records import NamedTuple

if TYPE_CHECKING:
    from monocontext.engine.fetch.fetcher import Fetcher
    from monocontext.format.manifest import Manifest

BLOCK_FRAMES = 64  # the frames of a page that a pass looks up at once: a quarter of a millisecond
PAGES_AHEAD = 64  # the index pages that are fetched at once if all are wanted
CANDIDATE_PAGES = 16  # the index pages that are fetched at once for a search, for which the first match may be enough
_DIRECTORY_GROWTH = 20  # an open directory takes some 20 times its stored bytes in memory

_T = TypeVar("_T")

GetLoaded = Callable[[Hashable], Any]  # returns the value of an item by its key, or None if it is not in memory
Column = Literal["characters", "frames", "bytes", "newlines", "pages"]  # what a position in the text counts


class UnopenedDirectory:
    """A directory of a tree that has to be fetched before the index pages that it names are known."""

    def __init__(self, parent: _Node, index: int, entry: PageDirectory):
        self._parent, self._index, self._entry = parent, index, entry

    def item(self) -> FetchItem:
        """The item to fetch for the directory; decoding it opens the directory."""
        entry = self._entry
        memory_bytes = _DIRECTORY_GROWTH * entry.size_bytes
        return FetchItem(("directory", entry.id), entry.key, 0, entry.size_bytes, memory_bytes, self._open)

    def _open(self, body: memoryview) -> _Node:
        """Add the entries of the directory to the tree, and return them for the cache."""
        parent, index = self._parent, self._index
        before = parent.entries[index - 1] if index else parent.before
        node = _Node(entries_in(self._entry, bytes(body), before), before, parent.firsts[index])
        parent.children[index] = node
        return node


class _Node:
    """The entries of a root or of a directory: index pages, or directories of them."""

    size_bytes = 1000  # little for the cache: the tree keeps it anyway

    def __init__(self, entries: Sequence[PageRef], before: PageRef | None, first: int):
        """`before`: the entry before these, if any. `first`: the number of their first page."""
        self.entries, self.before = entries, before
        page_counts = (entry.pages if isinstance(entry, PageDirectory) else 1 for entry in entries)
        self.firsts = list(accumulate(page_counts, initial=first))
        """The number of the first page of each entry, and of the page after them."""
        self.columns: dict[Column, list[int]] = {
            "characters": [entry.characters for entry in entries],
            "frames": [entry.frames for entry in entries],
            "bytes": [entry.bytes for entry in entries],
            "newlines": [entry.newlines for entry in entries],
            "pages": self.firsts[1:],
        }
        """How many characters, frames and so on the text has up to the end of each entry."""
        self.children: dict[int, _Node] = {}  # the entries of the open directories among these, by index


class _Position(NamedTuple):
    """The entry of an index page in a tree."""

    node: _Node
    entry_index: int


class PageTree:
    """The index pages of one text, by number. Safe for use by many threads."""

    def __init__(self, pages: Sequence[PageRef]):
        self._top = _Node(pages, None, 0)
        self.count = self._top.firsts[-1]

    def number(self, column: Column, value: int) -> int | UnopenedDirectory:
        """The number of the page that holds the character, frame, byte or newline with this number."""
        position = self._find(column, value)
        return position if isinstance(position, UnopenedDirectory) else position.node.firsts[position.entry_index]

    def page(self, number: int) -> tuple[PageRef, PageRef | None] | UnopenedDirectory:
        """The entry of a page, and the entry before it (None for the first page)."""
        position = self._find("pages", number)
        if isinstance(position, UnopenedDirectory):
            return position
        node, index = position
        return node.entries[index], node.entries[index - 1] if index else node.before

    def _find(self, column: Column, value: int) -> _Position | UnopenedDirectory:
        """The entry of the page that holds a position; or the directory that has to be opened first."""
        node = self._top
        while True:
            index = bisect_right(node.columns[column], value)
            entry = node.entries[index] if index < len(node.entries) else None
            if not isinstance(entry, PageDirectory):
                return _Position(node, index)
            child = node.children.get(index)
            if child is None:
                return UnopenedDirectory(node, index, entry)
            node = child


class _NumberedPage(NamedTuple):
    """An index page and its number."""

    number: int
    page: Page


class FrameTable:
    """The frames of one text. Safe for use by many threads."""

    def __init__(self, manifest: Manifest, fetcher: Fetcher):
        self.manifest = manifest
        self.characters = manifest.characters
        self.frames = manifest.frames
        self._fetcher = fetcher
        self._last_page: _NumberedPage | None = None
        """The page that was used last. It is kept outside the cache too, since every read needs one."""
        pages = manifest.pages
        self._tree = tree = PageTree(pages)
        if manifest.last_page is not None:
            before = pages[-2] if len(pages) > 1 else None
            self._last_page = _NumberedPage(tree.count - 1, Page(manifest.last_page, pages[-1], before))
            fetcher.cache.put(("page", tree.count - 1), self._last_page.page)

    def look_up_and_fetch(self, look_up: Callable[[GetLoaded], _T | Missing]) -> _T:
        """Call `look_up`, and fetch what it lacks, until it has a result (1 GET an item, those of a call at once)."""
        fetched: dict[Hashable, Any] = {}  # the cache may be too small for them

        def get_loaded(key: Hashable) -> Any:
            entry = fetched.get(key)
            return entry if entry is not None else self._cached(key)

        while isinstance(result := look_up(get_loaded), Missing):
            values = self._fetcher.fetch_all(result.items)
            fetched.update(zip([item.key for item in result.items], values, strict=True))
        return result

    def blocks(self, start: int, stop: int, backward: bool = False) -> Iterator[list[Frame]]:
        """The frames that hold characters [start, stop), in order or backward, as lists of up to `BLOCK_FRAMES` frames
        of one page (1 GET for each index page, when the caller reaches it)."""
        if stop <= start:
            return
        first, last = self._page_number("characters", start), self._page_number("characters", stop - 1)
        for number in range(last, first - 1, -1) if backward else range(first, last + 1):
            page = self.page(number)
            order = page.numbers_between(start, stop, backward)
            for offset in range(0, len(order), BLOCK_FRAMES):
                yield [page[i] for i in order[offset : offset + BLOCK_FRAMES]]

    def locate(self, character: int) -> Frame:
        """The frame that holds a character of the text (at most 1 GET, for its index page)."""
        page = self.page_at(character)
        return page[page.number_at(character)]

    def frame(self, number: int) -> Frame:
        """The record of a frame (at most 1 GET, for its index page)."""
        page = self.page(self._page_number("frames", number))
        return page[number - page.first_frame]

    def frame_at_byte(self, byte: int) -> Frame:
        """The frame that holds a byte of the text in UTF-8 (at most 1 GET, for its index page)."""
        page = self.page(self._page_number("bytes", byte))
        return page[bisect_right(page.byte_starts, byte) - 1]

    def frame_at_newline(self, newline: int) -> Frame:
        """The frame that holds newline number `newline`, from 0 (at most 1 GET, for its index page)."""
        page = self.page(self._page_number("newlines", newline))
        return page[bisect_right(page.newline_starts, newline) - 1]

    def page_at(self, character: int) -> Page:
        """The index page that covers a character (at most 1 GET)."""
        last = self._last_page
        if last is not None and last.page.starts[0] <= character < last.page.starts[-1]:  # the path of a short read
            return last.page
        return self.page(self._page_number("characters", character))

    def _page_number(self, column: Column, value: int) -> int:
        """The number of the index page with a character, frame, byte or newline (1 GET for each unopened directory)."""
        result = self._tree.number(column, value)
        while isinstance(result, UnopenedDirectory):
            self._fetcher.fetch_one(result.item())
            result = self._tree.number(column, value)
        return result

    def page(self, number: int) -> Page:
        """An index page by its number (at most 1 GET)."""
        last, fetcher = self._last_page, self._fetcher
        if last is not None and last.number == number and not fetcher.is_closed:
            return last.page
        page: Page = fetcher.fetch_one(self._page_item(number))
        self._last_page = _NumberedPage(number, page)
        return page

    def prefetch_pages(self, numbers: Iterable[int], most_pages: int | None = None) -> None:
        """Fetch the index pages of the frames with these numbers, at most `most_pages`, at once (1 GET each)."""
        self._fetch_pages(list(dict.fromkeys(self._page_numbers(list(numbers))))[:most_pages])

    def frames_of_runs(self, runs: Runs, start: int, stop: int, reverse: bool) -> Iterator[Frame]:
        """The frames in these runs that hold any of characters [start, stop), in order or backward (1 GET a page)."""
        numbers = [number for first, last in runs for number in range(first, last)]
        if reverse:
            numbers.reverse()
        frames_by_page: dict[int, list[int]] = {}
        for number, page_number in zip(numbers, self._page_numbers(numbers), strict=True):
            frames_by_page.setdefault(page_number, []).append(number)
        page_numbers = list(frames_by_page)
        for i, page_number in enumerate(page_numbers):
            if i % CANDIDATE_PAGES == 0:
                self._fetch_pages(page_numbers[i : i + CANDIDATE_PAGES])
            page = self.page(page_number)
            for number in frames_by_page[page_number]:
                frame = page[number - page.first_frame]
                if frame.stop > start and frame.start < stop:
                    yield frame

    def _page_numbers(self, frames: Sequence[int]) -> list[int]:
        """For each frame the number of its index page (1 GET for each directory that is not open, in parallel)."""
        while True:
            results = [self._tree.number("frames", frame) for frame in frames]
            items = [result.item() for result in results if isinstance(result, UnopenedDirectory)]
            if not items:
                return [number for number in results if isinstance(number, int)]
            self._fetcher.fetch_all(list({item.key: item for item in items}.values()))

    def _fetch_pages(self, numbers: Iterable[int]) -> list[Page]:
        """Index pages by number, in one round trip (1 GET each)."""
        return self._fetcher.fetch_all([self._page_item(number) for number in numbers])

    def frames_without(self, flag: int, start: int, stop: int) -> Candidates | None:
        """The frames of characters [start, stop) that lack a flag of `format.index`; None if they are more than 64, and
        more than 2 % of the text's frames (no GET if the root says that none lacks it; else 1 for each index page)."""
        runs: Runs = []
        if start < stop and not self.manifest.flags & flag:
            first_page, last_page = self._page_number("characters", start), self._page_number("characters", stop - 1)
            for first in range(first_page, last_page + 1, PAGES_AHEAD):
                for page in self._fetch_pages(range(first, min(first + PAGES_AHEAD, last_page + 1))):
                    within = page.numbers_between(start, stop)
                    if not page.all_frames_have(flag, within.start, within.stop):
                        frames = [page[i] for i in within]
                        runs += [(frame.number, frame.number + 1) for frame in frames if not frame.flags & flag]
                if len(runs) > max(64, self.frames // 50):
                    return None
        return Candidates(runs, start, stop, self.frame, self.locate, SearchStats())

    def frames_of_characters(self, characters: range) -> Candidates:
        """The frames that hold these characters, a non-empty ascending range (1 GET for each index page)."""
        runs: Runs = []
        for character in characters:
            number = self.locate(character).number
            if not runs or number > runs[-1][1]:  # a gap before this frame
                runs.append((number, number + 1))
            elif number == runs[-1][1]:  # the frame after the run; otherwise its last frame
                runs[-1] = (runs[-1][0], number + 1)
        return Candidates(runs, characters[0], characters[-1] + 1, self.frame, self.locate, SearchStats())

    # -- in memory (no GET) ----------------------------------------------------------------------------------------

    def _cached(self, key: Hashable) -> Any:
        """The value of an item in the cache; None if it is not there. Raises `ContextClosed`."""
        with LOCK:
            self._fetcher.check_open()
            return self._fetcher.cache.get(key)

    def is_in_memory(self, start: int, stop: int) -> bool:
        """Whether the frames of characters [start, stop) and their index pages are in memory. This counts as no use."""
        cache, last = self._fetcher.cache, self._last_page
        with LOCK:
            while start < stop and not self._fetcher.is_closed:
                number = self._tree.number("characters", start)
                if isinstance(number, UnopenedDirectory):
                    return False
                page = last.page if last is not None and last.number == number else cache.peek(("page", number))
                if not isinstance(page, Page):
                    return False
                i = page.number_at(start)
                if page.first_frame + i not in cache:
                    return False
                start = page.starts[i + 1]
        return True

    def forget_page(self) -> None:
        """Drop the page that is kept outside the cache."""
        self._last_page = None

    def page_or_item(self, column: Column, value: int, get_loaded: GetLoaded | None = None) -> Page | FetchItem:
        """The index page of a character, frame, byte or newline if it is in memory, else the item to fetch first."""
        number = self._tree.number(column, value)
        if isinstance(number, UnopenedDirectory):
            return number.item()
        last = self._last_page
        if last is not None and last.number == number:
            return last.page
        page = (get_loaded or self._cached)(("page", number))
        return page if isinstance(page, Page) else self._page_item(number)

    def range_in_memory(self, start: int, stop: int, get_loaded: GetLoaded | None = None) -> range | Missing:
        """The numbers of the frames that hold characters [start, stop), a non-empty range; or the missing index pages.

        An end of the range that is an end of the text needs no index page.
        """
        first = self._number_or_item(start, get_loaded) if start > 0 else 0
        last = self._number_or_item(stop - 1, get_loaded) if stop < self.characters else self.frames - 1
        if isinstance(first, int) and isinstance(last, int):
            return range(first, last + 1)
        missing = {item.key: item for item in (first, last) if isinstance(item, FetchItem)}
        return Missing(tuple(missing.values()))

    def _number_or_item(self, character: int, get_loaded: GetLoaded | None) -> int | FetchItem:
        """The number of the frame that holds a character, or the item to fetch first."""
        page = self.page_or_item("characters", character, get_loaded)
        return page.first_frame + page.number_at(character) if isinstance(page, Page) else page

    def _page_item(self, number: int) -> FetchItem:
        """The item to fetch for an index page (1 GET for each directory above it that is not open)."""
        while isinstance(entry := self._tree.page(number), UnopenedDirectory):
            self._fetcher.fetch_one(entry.item())
        ref, before = entry
        return FetchItem(
            ("page", number), ref.key, 0, ref.size_bytes, ref.size_bytes,
            lambda body: Page(bytes(body), ref, before),
        )  # fmt: skip


class NotInMemory(Exception):
    """The record of a frame is not in memory: `item`, an index page or its directory, has to be fetched first."""

    def __init__(self, item: FetchItem):
        super().__init__(item.key)
        self.item = item


class RecordsInMemory:
    """The records of frames whose index pages are in memory. For other frames each method raises `NotInMemory`."""

    def __init__(self, table: FrameTable):
        self._table = table

    def prefetch_pages(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._page("frames", number)

    def frame(self, number: int) -> Frame:
        page = self._page("frames", number)
        return page[number - page.first_frame]

    def locate(self, character: int) -> Frame:
        page = self._page("characters", character)
        return page[page.number_at(character)]

    def _page(self, column: Column, value: int) -> Page:
        page = self._table.page_or_item(column, value)
        if not isinstance(page, Page):
            raise NotInMemory(page)
        return page


def frame_item(frame: Frame) -> FetchItem:
    """The item to fetch for a frame."""
    return FetchItem(
        frame.number, frame.object, frame.offset, frame.stored_bytes, frame.bytes,
        lambda body: FrameText(frame, codec.decode(body, frame)), frame.etag, is_raw=frame.codec == "raw",
    )  # fmt: skip
