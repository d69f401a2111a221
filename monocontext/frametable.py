"""The table of frames: which frame holds a character, and where a frame lies. Its pages are fetched when needed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from monocontext import codec
from monocontext.candidates import Candidates
from monocontext.fetcher import Fetcher, Places, refuse_foreign
from monocontext.frametext import FrameText
from monocontext.hedging import Hedge
from monocontext.index import Frame, Page
from monocontext.manifest import Manifest
from monocontext.plan import Need
from monocontext.stats import SearchStats, Stats
from monocontext.store import RangeReader
from monocontext.workers import Workers

PAGES_AHEAD = 64
"""Index pages that are fetched at once where all are wanted."""


class FrameTable(Fetcher):
    """Fetches for one reader, and knows the frames of its text. Safe for use by many threads."""

    def __init__(
        self,
        manifest: Manifest,
        store: RangeReader,
        workers: Workers,
        *,
        url: str = "",
        cache_bytes: int = 256 << 20,
        places: Places = refuse_foreign,
        stats: Stats | None = None,
        hedge: Hedge | None = None,
    ):
        super().__init__(store, workers, url=url, cache_bytes=cache_bytes, places=places, stats=stats, hedge=hedge)
        self.manifest = manifest
        self._last_page: tuple[int, Page] | None = None  # kept whatever the cache's size: every read needs one
        pages = manifest.pages
        if manifest.last_page is not None:
            before = pages[-2] if len(pages) > 1 else None
            self._last_page = (len(pages) - 1, Page(manifest.last_page, pages[-1], before))
            self.cache.put(-len(pages), self._last_page[1])
        self._page_chars = [page.characters for page in pages]
        self._page_frames = [page.frames for page in pages]
        self._page_newlines = [page.newlines for page in pages]

    @property
    def characters(self) -> int:
        return self.manifest.characters

    def locate(self, character: int) -> Frame:
        """The frame that holds a character of the text (at most 1 GET, for its index page)."""
        page = self._page(bisect_right(self._page_chars, character))
        return page[page.at_character(character)]

    def numbers(self, start: int, stop: int) -> range:
        """The numbers of the frames that hold characters [start, stop), which is not empty (1 GET for the index page of
        an end that is not the text's)."""
        first = 0 if start <= 0 else self.locate(start).number
        return range(first, self.manifest.frames if stop >= self.characters else self.locate(stop - 1).number + 1)

    def frame(self, number: int) -> Frame:
        """The record of a frame (at most 1 GET, for its index page)."""
        page = self._page(bisect_right(self._page_frames, number))
        return page[number - page.first_frame]

    def number_at(self, character: int) -> int:
        """The number of the frame that holds a character of the text (at most 1 GET, for its index page)."""
        return self.locate(character).number

    def page_of_character(self, character: int) -> int:
        """The number of the index page that covers a character."""
        return bisect_right(self._page_chars, character)

    def page_of_frame(self, number: int) -> int:
        """The number of the index page that has a frame's record."""
        return bisect_right(self._page_frames, number)

    def page_of_newline(self, newline: int) -> int:
        """The number of the index page that covers newline number `newline` (from 0)."""
        return bisect_right(self._page_newlines, newline)

    def page_at_hand(self, number: int) -> Page | None:
        """An index page, if it is in memory (no GET)."""
        last = self._last_page
        if last is not None and last[0] == number:
            return last[1]
        found = self.in_memory(-1 - number)
        return found if isinstance(found, Page) else None

    def bring(self, numbers: Iterable[int], most: int = 1 << 16) -> None:
        """Fetch the index pages of some frames, at most so many, in one round trip (1 GET each)."""
        pages = dict.fromkeys(bisect_right(self._page_frames, number) for number in numbers)
        self._all([self.page_need(page) for page in list(pages)[:most]])

    def all_have(self, flag: int, start: int, stop: int) -> bool:
        """Whether every frame of characters [start, stop) has a flag of `index` (1 GET an index page, many at once)."""
        if stop <= start:
            return True
        numbers = range(bisect_right(self._page_chars, start), bisect_right(self._page_chars, stop - 1) + 1)
        for first in numbers[::PAGES_AHEAD]:
            needs = [self.page_need(number) for number in range(first, min(first + PAGES_AHEAD, numbers.stop))]
            for page in self._all(needs):
                low = page.at_character(max(start, page.starts[0]))
                high = page.at_character(min(stop, page.starts[-1]) - 1)
                if not page.all_have(flag, low, high + 1):
                    return False
        return True

    def lacking(self, flag: int, start: int, stop: int) -> Candidates | None:
        """The frames of characters [start, stop) that lack a flag; None: they are more than 64, and than 2 % of all
        (1 GET an index page that `all_have` has not read)."""
        most = max(64, self.manifest.frames // 50)
        numbers = [frame.number for frame in self._frames_between(start, stop, False) if not frame.flags & flag]
        if len(numbers) > most:
            return None
        runs = [(number, number + 1) for number in numbers]
        return Candidates(runs, start, stop, self.frame, self.locate, SearchStats())

    def frame_need(self, frame: Frame) -> Need:
        def decode(body: memoryview) -> FrameText:
            return FrameText(frame, codec.decode(body, frame))

        is_raw = frame.codec == "raw"
        return Need(
            frame.number, frame.object, frame.offset, frame.stored_bytes, frame.bytes, decode, frame.etag, is_raw=is_raw
        )

    def close(self) -> None:
        """Drop the cache; later reads raise `ContextClosed`. Idempotent."""
        super().close()
        self._last_page = None

    def _frames_between(self, start: int, stop: int, reverse: bool) -> Iterator[Frame]:
        first_page = bisect_right(self._page_chars, start)
        last_page = bisect_right(self._page_chars, stop - 1)
        order = range(last_page, first_page - 1, -1) if reverse else range(first_page, last_page + 1)
        for number in order:
            page = self._page(number)
            low = page.at_character(start) if number == first_page else 0
            high = page.at_character(stop - 1) if number == last_page else len(page) - 1
            for i in range(high, low - 1, -1) if reverse else range(low, high + 1):
                yield page[i]

    def _page(self, number: int) -> Page:
        last = self._last_page
        if last is not None and last[0] == number and not self._closed:
            return last[1]
        with self._lock:
            self._check_open()
            found = self.cache.get(-1 - number)
            if isinstance(found, Page):
                self.stats.hits += 1
                self._last_page = (number, found)
                return found
            self.stats.misses += 1
        page = self._demand(self.page_need(number))
        assert isinstance(page, Page)
        self._last_page = (number, page)
        return page

    def page_need(self, number: int) -> Need:
        pages = self.manifest.pages
        ref = pages[number]
        before = pages[number - 1] if number else None
        return Need(
            -1 - number, ref.key, 0, ref.size_bytes, ref.size_bytes, lambda body: Page(bytes(body), ref, before)
        )
