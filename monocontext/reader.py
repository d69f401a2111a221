"""The engine: a range of characters in, verified text out.

A read is planned (which frames), looked up (cache), scheduled (which requests, when), carried out (workers), verified
and decoded. Only bytes that passed every check enter the cache.

Invariants:
- a reader keeps one generation for life; every object is pinned to the ETag first seen or recorded;
- memory is the cache, plus at most `window_bytes` of requests in flight, plus what callers hold;
- no lock is held while a request runs or a caller waits.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from monocontext import codec
from monocontext.cache import Cache
from monocontext.candidates import Answer, Candidates
from monocontext.errors import ContextChanged, ContextClosed, DamagedData, ForeignObject, StoreFailure
from monocontext.filters.grams import GRAM_BYTES
from monocontext.filters.layout import Layout
from monocontext.filters.planner import Planner
from monocontext.frametext import FrameText
from monocontext.hedging import Hedge, Hedging
from monocontext.index import Frame, Page
from monocontext.manifest import Manifest
from monocontext.needs import Need as Sought
from monocontext.needs import literals
from monocontext.plan import FILTER_GAP_BYTES, Need, Request
from monocontext.scheduler import Fetch, Priority, Scheduler
from monocontext.stats import SearchStats, Stats
from monocontext.store import Blob, RangeReader
from monocontext.workers import Workers

MIN_WINDOW_BYTES = 24 << 20
"""Requests in flight may take this much memory whatever the cache's size: without it an uncached reader of a far store
would fetch one frame after another."""
FIRST_BATCH_BYTES = 1 << 20
"""A scan begins with this much ahead, and then has at most as much ahead as it has taken: most `find`s of a model end
early, and one that does has read at most twice what it looked at."""
FIRST_CANDIDATES_BYTES = 2 << 20
"""The same for candidates of a search: some six frames, since now and then one is looked at in vain."""
LEAST_FRAMES = 8
"""A search in fewer frames asks no filter: that would be a round trip of its own."""
DENSE = 0.4
"""Share of frames from which on candidates are no candidates: a pass without gaps is cheaper."""
PAGES_AHEAD = 64
"""Index pages that are fetched at once where all are wanted."""
CANDIDATE_PAGES = 16
"""The same where candidates lie in them, and the first match may be enough."""

Places = Callable[[str], tuple[RangeReader, str]]
"""From a foreign object's URL to a store and key; raises `ForeignObject` for what the caller does not allow."""


@runtime_checkable
class Keeping(RangeReader, Protocol):
    """A store that may answer from what it kept."""

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """What was kept of these bytes, under the ETag that was asked for, is not what it should be."""
        ...


def refuse_foreign(url: str) -> tuple[RangeReader, str]:
    raise ForeignObject(f"{url} lies outside the context; open it with allow=[...] to read there")


@dataclass(frozen=True, slots=True)
class Described:
    """What a text says of itself without reading."""

    url: str
    generation: int
    characters: int
    bytes: int
    lines: int
    stored_bytes: int


class Reader:
    """Reads one generation of one context. Safe for use by many threads."""

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
        self.manifest = manifest
        self.url = url
        self.stats = stats or Stats()
        self.cache = Cache(cache_bytes)
        self._store = store
        self._places = places
        self._workers = workers
        self._lock = workers.condition
        self._quick_lock = workers.lock
        self.window_bytes = max(cache_bytes * 3 // 8, MIN_WINDOW_BYTES)
        self._scheduler = Scheduler(workers.max_running, self.window_bytes)
        self._hedging = Hedging(hedge, self._scheduler.pressure)
        self._etags: dict[str, str] = {}
        self._closed = False
        self._pid = os.getpid()
        self._last_page: tuple[int, Page] | None = None  # kept whatever the cache's size: every read needs one
        pages = manifest.pages
        if manifest.last_page is not None:
            before = pages[-2] if len(pages) > 1 else None
            self._last_page = (len(pages) - 1, Page(manifest.last_page, pages[-1], before))
            self.cache.put(-len(pages), self._last_page[1])
        self._page_chars = [page.characters for page in pages]
        self._page_frames = [page.frames for page in pages]
        self._page_newlines = [page.newlines for page in pages]
        self._planner = Planner(manifest.filters, manifest.frames)

    @property
    def characters(self) -> int:
        return self.manifest.characters

    @property
    def final_newline(self) -> bool:
        return self.manifest.final_newline

    def describe(self) -> Described:
        """Sizes of the text (no request)."""
        m = self.manifest
        return Described(self.url, m.generation, m.characters, m.text_bytes, m.lines, m.stored_bytes)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop), both within the text, as one `str`.

        GETs: none for what is cached; else at most one for each index page, then for the frames
        ceil(stored / part) + 1 for each object, with part = stored / 16 between 1 and 8 MiB; all in parallel.
        """
        if stop <= start:
            return ""
        text = self.within(start, stop)
        if text is not None:
            return text.slice(start - text.frame.start, stop - text.frame.start)
        return "".join(
            piece.slice(max(start - piece.frame.start, 0), min(stop, piece.frame.stop) - piece.frame.start)
            for piece in self.frames(start, stop, eager=True)
        )

    def within(self, start: int, stop: int) -> FrameText | None:
        """The frame that holds characters [start, stop) whole, or None if no frame does (at most 1 GET each for the
        index page and the frame). The way of a short read: 2 us where both are cached."""
        page = self._page(bisect_right(self._page_chars, start))
        starts = page.starts
        i = bisect_right(starts, start) - 1
        if starts[i + 1] < stop:
            return None
        with self._quick_lock:
            if self._closed:
                self._check_open()
            found = self.cache.get(page.first_frame + i)
            if isinstance(found, FrameText):
                self.stats.hits += 1
                return found if found.used else self._use(found)
        return self.load(page[i])

    def peek(self, character: int) -> FrameText | None:
        """The frame that holds a character, if it is in memory (no GET but for an index page)."""
        page = self._page(bisect_right(self._page_chars, character))
        with self._quick_lock:
            self._check_open()
            found = self.cache.get(page.first_frame + page.at_character(character))
        return self._use(found) if isinstance(found, FrameText) else None

    def holds(self, number: int) -> bool:
        """Whether the text of a frame is in memory."""
        with self._quick_lock:
            return number in self.cache

    def locate(self, character: int) -> Frame:
        """The frame that holds a character of the text (at most 1 GET, for its index page)."""
        page = self._page(bisect_right(self._page_chars, character))
        return page[page.at_character(character)]

    def numbers(self, start: int, stop: int) -> range:
        """The numbers of the frames that hold characters [start, stop), which is not empty (1 GET for the index page of
        an end that is not the text's)."""
        first = 0 if start <= 0 else self.locate(start).number
        return range(first, self.manifest.frames if stop >= self.characters else self.locate(stop - 1).number + 1)

    def load(self, frame: Frame) -> FrameText:
        """The text of a frame (at most 1 GET)."""
        with self._lock:
            self._check_open()
            found = self.cache.get(frame.number)
            if isinstance(found, FrameText):
                self.stats.hits += 1
                return self._use(found)
            self.stats.misses += 1
        text = self._demand(_need(frame))
        assert isinstance(text, FrameText)
        return self._use(text)

    def frames(
        self,
        start: int,
        stop: int,
        *,
        reverse: bool = False,
        eager: bool = False,
        only: Candidates | None = None,
    ) -> Iterator[FrameText]:
        """The frames that hold characters [start, stop), in order (or backwards), fetched ahead of the caller.

        With `eager` the caller is known to take all of them, so as much as the window allows is asked for at once;
        else the reading ahead grows while the caller goes on. An abandoned iterator drops what has not started.
        `only`: of these frames those that are candidates of a search.
        """
        if stop <= start:
            return
        wanted = self._chosen(only, start, stop, reverse) if only else self._frames_between(start, stop, reverse)
        batch_bytes = self.window_bytes if eager else FIRST_CANDIDATES_BYTES if only else FIRST_BATCH_BYTES
        ahead: deque[tuple[Frame, FrameText | Fetch]] = deque()
        ahead_bytes, taken_bytes, more = 0, 0, True
        try:
            while True:
                if more and ahead_bytes <= batch_bytes * 3 // 4:
                    batch: list[Frame] = []
                    while ahead_bytes < batch_bytes:
                        frame = next(wanted, None)
                        if frame is None:
                            more = False
                            break
                        batch.append(frame)
                        ahead_bytes += _memory_bytes(frame, eager)
                    ahead.extend(zip(batch, self._want([_need(frame) for frame in batch]), strict=True))
                if not ahead:
                    return
                frame, found = ahead[0]
                text = self._await(frame.number, found) if isinstance(found, Fetch) else found
                ahead.popleft()
                ahead_bytes -= _memory_bytes(frame, eager)
                taken_bytes += _memory_bytes(frame, eager)
                batch_bytes = min(max(batch_bytes, taken_bytes), self.window_bytes)
                yield self._use(text)
        finally:
            with self._lock:
                self._scheduler.release([f for _, f in ahead if isinstance(f, Fetch) and not f.done])

    def all_have(self, flag: int, start: int, stop: int) -> bool:
        """Whether every frame of characters [start, stop) has a flag of `index` (1 GET an index page, many at once)."""
        if stop <= start:
            return True
        numbers = range(bisect_right(self._page_chars, start), bisect_right(self._page_chars, stop - 1) + 1)
        for first in numbers[::PAGES_AHEAD]:
            needs = [self._page_need(number) for number in range(first, min(first + PAGES_AHEAD, numbers.stop))]
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

    # -- search ----------------------------------------------------------------------------------------------------

    def candidates(self, need: Sought | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """Where a match that starts in [start, stop) may begin; None: anywhere, or asking is not worth it.

        `within_line`: neither a match nor what it looks at reaches over a newline. GETs: one for each row of each
        filter that is asked (up to 16 a literal and 16 GiB of text), all at once; for literals that may stand far
        behind a match's beginning also the index pages around them. Answers are remembered; where all the text is in
        memory nothing is asked.
        """
        if stop <= start:
            return None
        answer = self.ask(need, start, stop, within_line)
        if answer.runs is None:
            return None
        runs = answer.runs
        found = Candidates(runs, start, stop, self.frame, self.locate, self.stats.search)
        if runs:  # who looks at candidates needs these first of all, and one by one they are a round trip each
            ends = (number for run in runs[:CANDIDATE_PAGES] for number in (run[0], run[1] - 1))
            self.bring(ends, CANDIDATE_PAGES)
        with self._lock:
            search = self.stats.search
            search.searches += 1
            search.frames += answer.frames
            search.pruned += answer.frames - found.frames
        return found

    def ask(self, need: Sought | None, start: int, stop: int, within_line: bool = False) -> Answer:
        """What search filters say of matches that begin in [start, stop), not an empty range. Costs as `candidates`,
        but for the index pages of the frames that it names."""
        manifest = self.manifest
        if need is None:
            return Answer(0, None, "it has no text that every match holds")
        if not manifest.filters:
            return Answer(0, None, "the context has no search filters")
        within = self.numbers(start, stop)
        first, last = within.start, within.stop
        if len(within) < LEAST_FRAMES:
            return Answer(0, None, f"filters are asked where a text has {LEAST_FRAMES} frames or more")
        key = ("told", need, within_line)
        with self._lock:
            self._check_open()
            told = self.cache.get(key)
            if told is None and all(number in self.cache for number in within):
                return Answer(0, None, "all of the text is in memory")
        if told is None:
            told = self._ask(need, within_line)
            with self._lock:
                self.cache.put(key, told)
        assert isinstance(told, _Told)
        low = bisect_right(told.runs, first, key=lambda run: run[1])
        high = bisect_left(told.runs, last, key=lambda run: run[0])
        runs = [(max(a, first), min(b, last)) for a, b in told.runs[low:high]]
        frames, left = len(within), sum(b - a for a, b in runs)
        if left <= DENSE * frames:
            return Answer(frames, runs, "")
        if self._planner.asked(need):
            return Answer(frames, None, f"{left:,} of {frames:,} frames may hold it")
        return Answer(frames, None, f"filters know of texts of {GRAM_BYTES} bytes or more")

    def _ask(self, need: Sought, within_line: bool) -> _Told:
        planner = self._planner
        blocks = {(layout, layout.block_of(row)): None for layout, row in planner.asked(need)}
        rows = dict(zip(blocks, self._all([_block_need(*block) for block in blocks]), strict=True))

        def row(layout: Layout, number: int) -> bytes:
            return layout.row(rows[layout, layout.block_of(number)].rows, number)

        frames = planner.candidates(need, row, self, within_line)
        runs = ((0, self.manifest.frames),) if frames is None else _runs(frames)
        return _Told(runs, sum(len(literal.text) for literal in literals(need)))

    def _chosen(self, only: Candidates, start: int, stop: int, reverse: bool) -> Iterator[Frame]:
        """The candidates within characters [start, stop), with their index pages fetched some at a time."""
        numbers = [number for first, last in only.runs for number in range(first, last)]
        if reverse:
            numbers.reverse()
        pages = list(dict.fromkeys(bisect_right(self._page_frames, number) for number in numbers))
        loaded = 0
        for number in numbers:
            if loaded < len(pages) and bisect_right(self._page_frames, number) == pages[loaded]:
                if loaded % CANDIDATE_PAGES == 0:
                    self._all([self._page_need(page) for page in pages[loaded : loaded + CANDIDATE_PAGES]])
                loaded += 1
            frame = self.frame(number)
            if frame.stop > start and frame.start < stop:
                yield frame

    # -- lines -----------------------------------------------------------------------------------------------------

    def line_start(self, line: int) -> int:
        r"""First character of line `line` (from 0; lines end with `\n`); the text's length for `line == lines`."""
        manifest = self.manifest
        if line <= 0:
            return 0
        if line > manifest.newlines:
            return manifest.characters
        page = self._page(bisect_right(self._page_newlines, line - 1))
        text = self.load(page[page.at_newline(line - 1)])
        return text.frame.start + text.nth_newline(line - 1 - text.frame.start_newline) + 1

    def line_of(self, character: int) -> int:
        r"""Number of newlines before a character: the line that holds it."""
        if character >= self.manifest.characters:
            return self.manifest.newlines
        if character <= 0:
            return 0
        text = self.load(self.locate(character))
        return text.frame.start_newline + text.data.count(b"\n", 0, text.to_byte(character - text.frame.start))

    # -- lifetime --------------------------------------------------------------------------------------------------

    def preload(self) -> None:
        """Fetch everything into the cache, in parallel. Raises `ValueError` when the cache cannot hold the text."""
        manifest, capacity = self.manifest, self.cache.capacity_bytes
        needed = (
            manifest.text_bytes + 600 * manifest.frames
        )  # what a frame and its place in a page take beside its text
        if needed > capacity:
            raise ValueError(f"preload needs a cache of {needed:,} bytes, it has {capacity:,}: raise cache_bytes")
        for _ in self.frames(0, self.manifest.characters, eager=True):
            pass

    def close(self) -> None:
        """Drop the cache; later reads raise `ContextClosed`. Idempotent."""
        with self._lock:
            self._closed = True
            self.cache.clear()
            self._last_page = None
            for fetch in self._scheduler.drop_queued():  # nobody will start them, and threads may wait for them
                fetch.error = self._closed_error()
            self._lock.notify_all()
        self._workers.close()

    @property
    def closed(self) -> bool:
        return self._closed

    def __repr__(self) -> str:
        return f"<Reader {self.url} generation {self.manifest.generation}, {self.cache!r}, {self._scheduler!r}>"

    # -- pages and frames ------------------------------------------------------------------------------------------

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
        page = self._demand(self._page_need(number))
        assert isinstance(page, Page)
        self._last_page = (number, page)
        return page

    def _page_need(self, number: int) -> Need:
        pages = self.manifest.pages
        ref = pages[number]
        before = pages[number - 1] if number else None
        return Need(
            -1 - number, ref.key, 0, ref.size_bytes, ref.size_bytes, lambda body: Page(bytes(body), ref, before)
        )

    def frame(self, number: int) -> Frame:
        """The record of a frame (at most 1 GET, for its index page)."""
        page = self._page(bisect_right(self._page_frames, number))
        return page[number - page.first_frame]

    def number_at(self, character: int) -> int:
        """The number of the frame that holds a character of the text (at most 1 GET, for its index page)."""
        return self.locate(character).number

    def bring(self, numbers: Iterable[int], most: int = 1 << 16) -> None:
        """Fetch the index pages of some frames, at most so many, in one round trip (1 GET each)."""
        pages = dict.fromkeys(bisect_right(self._page_frames, number) for number in numbers)
        self._all([self._page_need(page) for page in list(pages)[:most]])

    def _use(self, text: FrameText) -> FrameText:
        if not text.used:
            text.used = True
            with self._lock:
                self.stats.bytes_used += text.frame.stored_bytes
        return text

    # -- fetching --------------------------------------------------------------------------------------------------

    def _want(self, needs: Sequence[Need]) -> list[Any]:
        """What each need asks for, where it is cached, else the `Fetch` that will bring it."""
        self._resume()
        with self._lock:
            self._check_open()
            cached = [self.cache.get(need.key) for need in needs]
            missing = [need for need, entry in zip(needs, cached, strict=True) if entry is None]
            self.stats.hits += len(needs) - len(missing)
            self.stats.misses += len(missing)
            fetches = self._scheduler.want(missing, Priority.DEMAND)
            started = self._start()
        self._send(started)
        return [fetches[need.key] if entry is None else entry for need, entry in zip(needs, cached, strict=True)]

    def _all(self, needs: Sequence[Need]) -> list[Any]:
        """What all needs ask for, fetched at once."""
        wanted = self._want(needs)
        waiting = [one for one in wanted if isinstance(one, Fetch)]
        try:
            return [
                self._await(need.key, one) if isinstance(one, Fetch) else one
                for need, one in zip(needs, wanted, strict=True)
            ]
        finally:
            with self._lock:
                self._scheduler.release([fetch for fetch in waiting if not fetch.done])

    def _demand(self, need: Need) -> Any:
        """One thing, now. A request that can start at once runs in the caller's own thread, unless it may be hedged:
        that takes somebody who watches."""
        self._resume()
        with self._lock:
            self._check_open()
            if (found := self.cache.get(need.key)) is not None:
                return found  # another thread has brought it since the caller looked
            fetch = self._scheduler.want([need], Priority.DEMAND)[need.key]
            started = self._start()
            alone = started == [fetch] and self._hedging.trigger(fetch.request.stored_bytes) is None
        if alone:
            began = self._workers.now()
            self._workers.run(fetch.request, lambda: self._carry(fetch, began))
            self._waited(began)
        else:
            self._send(started)
        return self._await(need.key, fetch)

    def _await(self, key: Hashable, fetch: Fetch) -> Any:
        if not fetch.done:
            self._resume()
            began = self._workers.now()
            while not self._workers.wait(lambda: fetch.done, self._hedging.next_due):
                self._hedge()
            self._waited(began)
        if fetch.error is not None:
            raise fetch.error
        assert fetch.values is not None
        return fetch.values[key]

    def _resume(self) -> None:
        """In the child of a fork: carry out what was under way in threads of the parent, which did not come along."""
        if self._pid == os.getpid():
            return
        with self._lock:
            lost = self._scheduler.restart() if self._pid != os.getpid() else []
            self._pid = os.getpid()
            for fetch in lost:
                self._hedging.sent(fetch, self._workers.now())
        self._send(lost)

    def _start(self) -> list[Fetch]:
        """Under the lock: what may start now, to be sent after it."""
        started = self._scheduler.start()
        for fetch in started:
            if fetch.attempts == 1:
                self._hedging.sent(fetch, self._workers.now())
            else:
                self.stats.hedges += 1
        return started

    def _hedge(self) -> None:
        """Ask once more for what is late."""
        with self._lock:
            for fetch in self._hedging.overdue(self._workers.now()):
                self._scheduler.again(fetch)
            started = [] if self._closed else self._start()
        self._send(started)

    def _waited(self, began: float) -> None:
        with self._lock:
            self.stats.wait_seconds += self._workers.now() - began

    def _send(self, fetches: Iterable[Fetch]) -> None:
        now = self._workers.now()
        for fetch in fetches:
            self._workers.submit(fetch.request, lambda fetch=fetch: self._carry(fetch, now))  # type: ignore[misc]

    def _carry(self, fetch: Fetch, began: float) -> None:
        """Carry out one attempt, file what it brought, and start what may start after it. Never raises."""
        values: dict[Hashable, Any] = {}
        failed: BaseException | None = None
        try:
            try:
                values = self._get(fetch, began)
            except DamagedData:  # once more: what was damaged on the way is whole in the store
                values = self._get(fetch)
        except BaseException as error:  # handed to whoever waits
            failed = error
        with self._lock:
            if isinstance(failed, StoreFailure) and failed.refusals:
                self._heed(failed.refusals, began)
            if fetch.done:
                pass  # the other attempt was faster
            elif failed is None:
                for key, value in values.items():
                    self.cache.put(key, value)
                fetch.values = values
            elif fetch.attempts == 1:  # else the other may still bring it
                fetch.error = failed
            self._hedging.forget(fetch)
            self._scheduler.finish(fetch)
            started = [] if self._closed else self._start()
            self._lock.notify_all()
        self._send(started)

    def _get(self, fetch: Fetch, began: float | None = None) -> dict[Hashable, Any]:
        """One GET: read, compare the ETag, verify and decode; nothing where another attempt has come before."""
        request = fetch.request
        store, key = (self._places if "://" in request.object else self._own)(request.object)
        recorded = request.needs[0].etag
        etag = recorded or self._etags.get(request.object)
        blob = store.get_range(key, request.start, request.stored_bytes, etag=etag)
        with self._lock:
            self._count(request, blob)
            if not blob.local:
                self._heed(blob.refusals, began)
            if began is not None and not blob.local:
                self._hedging.answered(fetch, self._workers.now() - began)
            if fetch.done:
                return {}
        if etag and (recorded or not blob.local):
            _check_version(request, etag, blob)
        if len(blob.data) != request.stored_bytes:
            raise DamagedData(
                f"{request.object}: expected {request.stored_bytes} bytes from {request.start}, found {len(blob.data)}"
            )
        body = memoryview(blob.data)

        def decode() -> dict[Hashable, Any]:
            offsets = ((need, need.offset - request.start) for need in request.needs)
            return {need.key: need.decode(body[at : at + need.stored_bytes]) for need, at in offsets}

        try:
            values = decode() if request.is_in_place else self._workers.decode(decode)
        except DamagedData:
            if isinstance(store, Keeping):
                store.forget(key, request.start, request.stored_bytes, etag=etag)
            raise
        if not recorded and not blob.local:  # only what proved right is the version to hold on to
            with self._lock:
                first_seen = self._etags.setdefault(request.object, blob.etag)
            _check_version(request, first_seen, blob)
        return values

    def _count(self, request: Request, blob: Blob) -> None:
        if blob.local:
            self.stats.disk_hits += 1
            self.stats.disk_bytes += len(blob.data)
            return
        self.stats.gets += 1
        self.stats.bytes_fetched += len(blob.data)
        if request.object.startswith("filters/"):
            self.stats.search.filter_gets += 1
            self.stats.search.filter_bytes += len(blob.data)

    def _heed(self, refusals: int, sent: float | None) -> None:
        """Under the lock: what the answer to a request says of how many the store can take."""
        now, pressure = self._workers.now(), self._scheduler.pressure
        self.stats.throttled += refusals
        if refusals:
            pressure.refused(now if sent is None else sent, now, self._scheduler.running)
        else:
            pressure.answered(now)

    def _own(self, key: str) -> tuple[RangeReader, str]:
        return self._store, key

    def _check_open(self) -> None:
        if self._closed:
            raise self._closed_error()

    def _closed_error(self) -> ContextClosed:
        return ContextClosed(f"{self.url or 'this context'} is closed")


def _check_version(request: Request, expected: str, blob: Blob) -> None:
    if blob.etag != expected:
        raise ContextChanged(
            f"{request.object} was replaced while it was read: expected ETag {expected}, found {blob.etag}"
        )


def _need(frame: Frame) -> Need:
    def decode(body: memoryview) -> FrameText:
        return FrameText(frame, codec.decode(body, frame))

    is_raw = frame.codec == "raw"
    return Need(
        frame.number, frame.object, frame.offset, frame.stored_bytes, frame.bytes, decode, frame.etag, is_raw=is_raw
    )


def _memory_bytes(frame: Frame, eager: bool) -> int:
    """What a frame that is read ahead occupies: its stored form and its text, which are one where raw frames are
    received in place."""
    return frame.bytes if eager and frame.codec == "raw" else frame.bytes + frame.stored_bytes


def _block_need(layout: Layout, block: int) -> Need:
    key, offset = layout.address(block)
    size = layout.block_bytes

    def decode(body: memoryview) -> _Block:
        return _Block(layout.check(bytes(body), block))

    return Need((key, block), key, offset, size, size, decode, gap_bytes=FILTER_GAP_BYTES)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of a filter, as the cache keeps it."""

    rows: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.rows) + 200


@dataclass(frozen=True, slots=True)
class _Told:
    """What filters said of a search, as the cache keeps it: a loop of `find` asks again and again."""

    runs: tuple[tuple[int, int], ...]
    asked_bytes: int
    """What was asked for takes so much, about."""

    @property
    def size_bytes(self) -> int:
        return 150 * len(self.runs) + self.asked_bytes + 200


def _runs(frames: Any) -> tuple[tuple[int, int], ...]:
    """The stretches of an array of booleans that are true, half-open."""
    import numpy as np

    edges = np.flatnonzero(np.diff(frames.view(np.int8), prepend=0, append=0))
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
