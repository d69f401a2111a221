"""Read one generation of a context: slices, passes, searches and lines, with verified text.

A reader joins a frame table (the frames that a read needs), search filters (the frames in which a match may begin), a
fetcher (stored data) and a read-ahead (likely next reads). It never changes to another generation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from monocontext.engine.candidates import Candidates, Narrowing, Runs
from monocontext.engine.fetch.fetcher import Fetcher, FindForeign, wave_bytes
from monocontext.engine.fetch.requests import FetchItem, FetchRequest
from monocontext.engine.fetch.workers import LOCK, Workers
from monocontext.engine.filter_lookup import FilterLookup, FilterSearch
from monocontext.engine.frame import FRAME_OVERHEAD_BYTES, FrameText
from monocontext.engine.frame_table import CANDIDATE_PAGES, FrameTable, frame_item
from monocontext.engine.prefetch.read_ahead import ReadAhead
from monocontext.engine.prefetch.streams import Prefetch, SeenRead
from monocontext.engine.read_log import PieceLog, ReadLog
from monocontext.engine.stats import Stats
from monocontext.engine.text_ends import TextEnds
from monocontext.engine.text_in_root import TextInRoot
from monocontext.format.filters.query import Query
from monocontext.format.index import Frame, Page
from monocontext.format.inline import LARGEST_END_BYTES
from monocontext.format.manifest import Manifest
from monocontext.records import NamedTuple, replace
from monocontext.stores.protocol import RangeReader

if TYPE_CHECKING:
    from monocontext.engine.documents import DocumentTable

FIRST_BATCH_BYTES = 1 << 20  # a pass begins with this much ahead, and then has at most as much ahead as it has used
WAVE_GROWTH = 4  # a pass that one wave carries has this many times the used text ahead: 20 MB take four round trips
FIRST_CANDIDATES_BYTES = 2 << 20
"""A search among candidates begins with this much: about six frames, since some of them may have no match."""
ONE_CANDIDATE_BYTES = 1 << 20
"""A search that ends at the first match begins with this much: four frames. Eight moved 3 to 4 times the text used."""
REFILL_SHARE = 7 / 8
"""The window is refilled when at most this share of it is ahead. With a larger one, each frame is a request of its own;
with three quarters, a link of 600 MB/s runs dry after one late answer (10 GB, simulated: 18.7 s instead of 18.1)."""


class _AheadFrame(NamedTuple):
    """A frame that a pass fetches ahead of its caller."""

    item: FetchItem
    memory_bytes: int  # the memory of its text, and of its stored form until that is decoded


class Reader:
    """Reads one generation of one context. Safe for use by many threads."""

    def __init__(
        self,
        manifest: Manifest,
        store: RangeReader,
        workers: Workers,
        *,
        url: str,
        cache_bytes: int,
        find_foreign: FindForeign,
        stats: Stats | None,
        prefetch: Prefetch,
        round_trip_seconds: float | None,
    ):
        """`find_foreign`: finds the objects outside the context. `prefetch`: which reads are fetched ahead.
        `round_trip_seconds`: that of the store; 0 if it is near, None if it was not measured."""
        self.manifest = manifest
        self.url = url
        self._store = store
        self.characters, self.text_bytes = manifest.characters, manifest.text_bytes
        self.final_newline, self.generation = manifest.final_newline, manifest.generation
        self.fetcher = fetcher = Fetcher(
            store, workers, url=url, cache_bytes=cache_bytes, find_foreign=find_foreign, stats=stats,
            round_trip_seconds=round_trip_seconds,
        )  # fmt: skip
        self.stats, self.cache = fetcher.stats, fetcher.cache
        self.table = table = FrameTable(manifest, fetcher)
        self.frame, self.locate, self.is_in_memory = table.frame, table.locate, table.is_in_memory
        self.frames_without, self.frames_of_characters = table.frames_without, table.frames_of_characters
        self._earliest_tail = self.characters - LARGEST_END_BYTES  # no tail begins before: characters take 1 to 4 bytes
        self.ahead = ReadAhead(
            "off" if workers.max_running < 2 else prefetch,  # a caller needs the only request at a time
            table, lambda: self._filters, fetcher,
        )  # fmt: skip
        self.read_log: ReadLog | None = None  # the characters that were read; None until a caller starts the log
        self.piece_log: PieceLog | None = None
        """The pieces that code received: slices, lines of hits, matches, passages. None until the log starts."""
        # `read` compares these counts before and after: did it use frames for the first time, and did it wait for any?
        self._first_uses = 0  # how often a frame was used for the first time since it was fetched
        self._awaited_uses = 0  # how often a caller waited for such a frame
        self._last_hit: Frame | None = None  # the frame with the last hit of a search

    @cached_property
    def ends(self) -> TextEnds:
        """The beginning and the end of the text, which came with the root (no GET)."""
        return TextEnds(self.manifest)

    @cached_property
    def _filters(self) -> FilterLookup:
        return FilterLookup(self.table, self.fetcher)

    @cached_property
    def documents(self) -> DocumentTable:
        """The documents of the text (no GET)."""
        from monocontext.engine.documents import DocumentTable, StoredDocuments

        ref = self.manifest.documents
        return DocumentTable() if ref is None else StoredDocuments(ref, self.fetcher)

    @property
    def is_closed(self) -> bool:
        return self.fetcher.is_closed

    def close(self) -> None:
        """Drop the cache and the text of the root; later reads raise `ContextClosed`. Idempotent."""
        if isinstance(self._store, TextInRoot):
            self._store.close()
        self.manifest = self.table.manifest = replace(self.manifest, text="", head="", tail="")
        self.ends = TextEnds(self.manifest)
        self.table.forget_page()
        self.fetcher.close()
        self.ahead.forget()

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop) of the text as one `str`.

        GETs: none for cached data. Else at most one for each index page; then, for the frames, ceil(stored / part) + 1
        for each object, in parallel, where part is stored / 16, but at least 1 and at most 8 MiB.
        """
        if stop <= start:
            return ""
        text = self.text_within(start, stop)
        if text is not None:
            return text.slice(start - text.frame.start, stop - text.frame.start)
        first_uses, awaited_uses = self._first_uses, self._awaited_uses
        numbers, pieces = [], []
        for text in self.frames(start, stop, eager=True):
            numbers.append(text.frame.number)
            pieces.append(text.part(start, stop))
        if self._first_uses != first_uses:
            with LOCK:
                self.ahead.note_read(SeenRead(start, stop, numbers[0], numbers[-1]), self._awaited_uses != awaited_uses)
        return "".join(pieces)

    def text_within(self, start: int, stop: int) -> FrameText | None:
        """The frame, or the end of the text in the root, that holds all of characters [start, stop); None if neither
        does (at most 1 GET each for the index page and the frame).

        This is the path of a short read: 2 us if both are cached.
        """
        if start >= LARGEST_END_BYTES and stop <= self._earliest_tail:
            return self.frame_within(start, stop)
        ends = self.ends
        if ends.head_stop < stop and start < ends.tail_start:
            return self.frame_within(start, stop)
        end = ends.within(start, stop)
        self.fetcher.check_open()
        if self.read_log:
            self.read_log.add(start, stop)
        return end

    def frame_within(self, start: int, stop: int) -> FrameText | None:
        """The frame that holds all of characters [start, stop); None if no frame does (at most 2 GETs)."""
        page = self.table.page_at(start)
        starts = page.starts
        i = bisect_right(starts, start) - 1
        if starts[i + 1] < stop:
            return None
        number = page.first_frame + i
        if self.read_log:
            self.read_log.add(start, stop)
        awaited_uses = self._awaited_uses
        text = self._in_memory(number) or self.fetcher.fetch_one(frame_item(page[i]))
        assert isinstance(text, FrameText)
        if text.is_used:
            return text
        self._note_use(text)
        with LOCK:
            self.ahead.note_read(SeenRead(start, stop, number, number), self._awaited_uses != awaited_uses)
        return text

    def peek(self, character: int) -> FrameText | None:
        """The frame that holds a character, if it and its index page are in memory (no GET)."""
        page = self.table.page_or_item("characters", character)
        if not isinstance(page, Page):
            return None
        result = self._in_memory(page.first_frame + page.number_at(character))
        return None if result is None else self._note_use(result)

    def load(self, frame: Frame) -> FrameText:
        """The text of a frame (at most 1 GET)."""
        return self._note_use(self.fetcher.fetch_one(frame_item(frame)))

    def _in_memory(self, number: int) -> FrameText | None:
        """A frame by its number, which the cache counts as used; None if it is not in memory."""
        with LOCK:
            if self.fetcher.is_closed:
                self.fetcher.check_open()
            result = self.cache.get(number)
            if isinstance(result, FrameText):
                self.stats.hits += 1
                return result
        return None

    def _note_use(self, text: FrameText) -> FrameText:
        """Count the first use of a frame since it was fetched; returns the frame."""
        if not text.is_used:
            with LOCK:
                text.is_used = True
                self._first_uses += 1
                self._awaited_uses += text.was_awaited
                self.stats.bytes_used += text.frame.stored_bytes
                if text.is_prefetched:
                    self.stats.prefetch.bytes_used += text.frame.stored_bytes
                if text.is_prefetched or self.ahead.plans:
                    self.ahead.note_use(text)
        return text

    def frames(
        self,
        start: int,
        stop: int,
        *,
        reverse: bool = False,
        eager: bool = False,
        only: Candidates | None = None,
        logged: bool = True,
        is_search: bool = False,
    ) -> Iterator[FrameText]:
        """The frames that hold characters [start, stop), in order or backwards, fetched ahead of the caller.

        - `eager`: the caller takes all of them, so as much as the window allows is requested at once; else the
          read-ahead grows while the caller continues. An abandoned iterator drops requests that have not started.
        - `only`: the candidates of a search; other frames are left out.
        - `logged`: whether the read log counts these frames as read; else the caller reports later what it read.
        - `is_search`: the caller looks for something, so that as much as one wave carries is requested first; else it
          takes text in order and may stop at any line.
        """
        if stop <= start:
            return
        if only is not None:
            frames = self.table.frames_of_runs(only.runs, start, stop, reverse)
        else:
            frames = chain.from_iterable(self.table.blocks(start, stop, reverse))
        is_wave = only is None and not eager and self.is_one_wave(start, stop)
        if eager or (is_wave and is_search):
            first_bytes = self.fetcher.window_bytes
        elif only is not None:
            first_bytes = ONE_CANDIDATE_BYTES if only.ends_at_first else FIRST_CANDIDATES_BYTES
        else:
            first_bytes = FIRST_BATCH_BYTES  # the caller may not go to the end
        growth, log = WAVE_GROWTH if is_wave else 1, self.read_log if logged else None
        for text in _stream_frames(self.fetcher, frames, first_bytes=first_bytes, growth=growth, eager=eager):
            if log:
                log.add(max(start, text.frame.start), min(stop, text.frame.stop))
            yield self._note_use(text)

    # -- search ----------------------------------------------------------------------------------------------------

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """The candidates for matches that begin in characters [start, stop); None if all frames are candidates, or if
        reading all of them is cheaper than asking the filters.

        `within_line`: neither a match nor its look-around crosses a newline. GETs: one for each row of each filter (up
        to 16 a literal and 16 GiB of text) in 1 to 3 waves; also the index pages around literals that may occur far
        after the beginning of a match. Answers are kept in the cache. Nothing is fetched if all the text is in memory.
        """
        narrowed = self.narrow(query, start, stop, within_line) if start < stop else None
        if narrowed is None or narrowed.runs is None:
            return None
        # A search needs the records of these frames first; page by page would take a round trip each.
        ends = chain.from_iterable((first, stop - 1) for first, stop in narrowed.runs[:CANDIDATE_PAGES])
        self.table.prefetch_pages(ends, CANDIDATE_PAGES)
        return self._make_candidates(narrowed.runs, start, stop, narrowed.frames)

    def frames_holding(self, query: Query, start: int, stop: int) -> Candidates | None:
        """Like `candidates`, but also if most frames are candidates or in memory; None if no filter can tell, or if
        more than `filter_lookup.MOST_LISTED` frames are candidates. The cost is the same, except that the index pages
        of the candidates are not fetched."""
        if stop <= start:
            return None
        result = self._look_up_filters(FilterSearch(query, start, stop))
        runs = result.dense_runs if result.runs is None else result.runs
        return None if runs is None else self._make_candidates(runs, start, stop, result.frames)

    def _make_candidates(self, runs: Runs, start: int, stop: int, frames: int) -> Candidates:
        """Make the candidates of a search in characters [start, stop), of `frames` frames, and count the search."""
        search = self.stats.search
        result = Candidates(runs, start, stop, self.frame, self.record_hit, search)
        with LOCK:
            search.searches += 1
            search.frames += frames
            search.pruned += frames - result.frame_count
        return result

    def narrow(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Narrowing:
        """The frames that filters leave for matches in [start, stop), a non-empty range (GETs: see `candidates`)."""
        if self.manifest.text:
            return Narrowing(frames=0, runs=None, reason="all of the text came with the root")
        if self.is_one_wave(start, stop):
            return Narrowing(frames=0, runs=None, reason="all of the text takes one round trip, as its filters do")
        return self._look_up_filters(FilterSearch(query, start, stop, within_line, needs_text=True))

    def _look_up_filters(self, search: FilterSearch) -> Narrowing:
        """The frames that filters leave for a search. Fetches the rows and index pages that this needs."""
        return self.table.look_up_and_fetch(
            lambda get_loaded: self._filters.narrow(search, get_loaded, records=self.table)
        )

    def filter_borders(self, start: int, stop: int) -> list[int]:
        """The characters between `start` and `stop` at which other search filters begin to apply: one per TB of a text
        with directories of filters, none in other texts (3 waves of 2 GETs)."""
        if stop <= start or not self.manifest.filter_directories:
            return []
        within = self.table.look_up_and_fetch(lambda get_loaded: self.table.range_in_memory(start, stop, get_loaded))
        first_frames = self._filters.borders(within)
        self.table.prefetch_pages(first_frames)
        return [self.frame(number).start for number in first_frames]

    def is_one_wave(self, start: int, stop: int) -> bool:
        """Whether a pass requests all of characters [start, stop) at once, and a search uses no filter (no GET)."""
        manifest, cache = self.manifest, self.cache
        share = (stop - start) / max(self.characters, 1)
        stored_bytes = int(manifest.stored_bytes * share)
        memory_bytes = stored_bytes + int(self.text_bytes * share)
        return 4 * memory_bytes <= cache.capacity_bytes and stored_bytes <= wave_bytes(self.fetcher.link)

    def record_hit(self, character: int) -> Frame:
        """Record a hit of a search, for the read-ahead. Returns its frame (at most 1 GET)."""
        frame = self._last_hit
        if frame is None or not frame.start <= character < frame.stop:
            self._last_hit = frame = self.locate(character)
            with LOCK:
                self.ahead.note_hit(character)
        return frame

    # -- lines -----------------------------------------------------------------------------------------------------

    def line_start(self, line: int) -> int:
        """The first character of line `line`, from 0; the length of the text after the last line (at most 2 GETs)."""
        manifest = self.manifest
        if line <= 0:
            return 0
        if line > manifest.newlines:
            return manifest.characters
        text = self.ends.with_newline(line - 1) or self.load(self.table.frame_at_newline(line - 1))
        return text.frame.start + text.nth_newline(line - 1 - text.frame.start_newline) + 1

    def line_of(self, character: int) -> int:
        """The number of newlines before `character`: its line, from 0 (at most 2 GETs: index page and frame)."""
        if character >= self.manifest.characters:
            return self.manifest.newlines
        if character <= 0:
            return 0
        text = self.ends.within(character, character) or self.load(self.locate(character))
        return text.frame.start_newline + text.newlines_before(text.to_byte(character - text.frame.start))

    def count_real(self, size_bytes: int) -> None:
        """Count a lazy text of `size_bytes` that became a real `str`, for a function that needs one."""
        with LOCK:
            self.stats.real.texts += 1
            self.stats.real.bytes += size_bytes

    def preload(self) -> None:
        """Fetch the whole text into the cache (GETs: see `read`). Raises `ValueError` if the cache cannot hold it."""
        manifest, capacity = self.manifest, self.cache.capacity_bytes
        needed = manifest.text_bytes + FRAME_OVERHEAD_BYTES * manifest.frames
        if needed > capacity:
            raise ValueError(f"preload needs cache_bytes={needed:,} or more, not {capacity:,}")
        deque(self.frames(0, manifest.characters, eager=True), maxlen=0)

    def __repr__(self) -> str:
        return f"<Reader {self.url} generation {self.manifest.generation}, {self.cache!r}, {self.fetcher!r}>"


def _stream_frames(
    fetcher: Fetcher, frames: Iterator[Frame], *, first_bytes: int, growth: int, eager: bool
) -> Iterator[FrameText]:
    """The texts of frames, in order; later ones are requested ahead of the caller.

    The window is the memory of the frames that are requested ahead. It begins with `first_bytes` and grows to
    `growth` times the frames that the caller has taken, up to `fetcher.window_bytes`. `eager`: the caller takes all
    frames, in large slices. An abandoned iterator drops the requests that have not started.
    """
    window_bytes, ahead_bytes, taken_bytes = min(first_bytes, fetcher.window_bytes), 0, 0
    ahead: deque[tuple[_AheadFrame, FrameText | FetchRequest]] = deque()
    has_more = True
    try:
        while has_more or ahead:
            if has_more and ahead_bytes <= window_bytes * REFILL_SHARE:
                batch = _next_batch(frames, window_bytes - ahead_bytes, eager)
                ahead_bytes += sum([frame.memory_bytes for frame in batch])
                has_more = ahead_bytes >= window_bytes  # else the frames have ended
                if batch:
                    ahead.extend(zip(batch, fetcher.begin_fetch([frame.item for frame in batch]), strict=True))
                continue
            frame, result = ahead.popleft()
            if isinstance(result, FrameText):
                text = result
            else:
                text = result.values.get(frame.item.key) or fetcher.wait(frame.item, result)
            ahead_bytes -= frame.memory_bytes
            taken_bytes += frame.memory_bytes
            window_bytes = min(max(window_bytes, growth * taken_bytes), fetcher.window_bytes)
            del result  # a request keeps all of its texts
            yield text
    finally:
        ahead.clear()


def _next_batch(frames: Iterator[Frame], room_bytes: int, eager: bool) -> list[_AheadFrame]:
    """The next frames to request, until they take `room_bytes` of memory or more."""
    batch: list[_AheadFrame] = []
    while room_bytes > 0 and (frame := next(frames, None)) is not None:
        is_in_place = eager and frame.codec == "raw"  # its stored form is its text
        memory_bytes = frame.bytes if is_in_place else frame.bytes + frame.stored_bytes
        batch.append(_AheadFrame(frame_item(frame), memory_bytes))
        room_bytes -= memory_bytes
    return batch
