"""The engine: a range of characters in, verified text out.

A read is planned (`frametable`: which frames) and fetched (`fetcher`), and what is likely read next is fetched ahead
(`expecting`); a search asks first where a match may begin (`asking`). A reader keeps one generation for life.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from monocontext.asking import Told
from monocontext.candidates import Answer, Candidates
from monocontext.expecting import Expecting
from monocontext.frametext import FrameText
from monocontext.index import Frame, Page
from monocontext.needs import Need as Sought
from monocontext.prefetch import Read
from monocontext.readlog import ReadLog
from monocontext.scheduler import Fetch

FIRST_BATCH_BYTES = 1 << 20
"""A scan begins with this much ahead, and then has at most as much ahead as it has taken: most `find`s of a model end
early, and one that does has read at most twice what it looked at."""
FIRST_CANDIDATES_BYTES = 2 << 20
"""The same for candidates of a search: some six frames, since now and then one is looked at in vain."""
REFILL = 7 / 8
"""Of what may be ahead: below it more is asked for. Asking for each frame alone would make a request of each; waiting
until a quarter is gone lets a link of 600 MB/s run dry behind one late answer (a pass over 10 GB, simulated: 18.7 s
with three quarters, 18.1 with this, for a third more requests)."""
CANDIDATE_PAGES = 16
"""The same where candidates lie in them, and the first match may be enough."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a text says of itself without reading."""

    url: str
    generation: int
    characters: int
    bytes: int
    lines: int
    stored_bytes: int


class Reader(Expecting):
    """Reads one generation of one context. Safe for use by many threads."""

    log: ReadLog | None = None
    """What is read is written down here, once somebody has asked for it."""

    @property
    def final_newline(self) -> bool:
        return self.manifest.final_newline

    @property
    def generation(self) -> int:
        return self.manifest.generation

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
        fresh, late = self._fresh, self._late
        numbers, pieces = [], []
        for piece in self.frames(start, stop, eager=True):
            frame = piece.frame
            numbers.append(frame.number)
            pieces.append(piece.slice(max(start - frame.start, 0), min(stop, frame.stop) - frame.start))
        if self._fresh != fresh:
            self._read_on(Read(start, stop, numbers[0], numbers[-1]), self._late != late)
        return "".join(pieces)

    def within(self, start: int, stop: int) -> FrameText | None:
        """The frame that holds characters [start, stop) whole, or None if no frame does (at most 1 GET each for the
        index page and the frame). The way of a short read: 2 us where both are cached."""
        page = self._page(bisect_right(self._page_chars, start))
        starts = page.starts
        i = bisect_right(starts, start) - 1
        if starts[i + 1] < stop:
            return None
        number = page.first_frame + i
        if self.log:
            self.log.add(start, stop)
        with self._quick_lock:
            if self._closed:
                self._check_open()
            found = self.cache.get(number)
            if isinstance(found, FrameText):
                self.stats.hits += 1
                if found.used:
                    return found
        late = self._late
        text = self._use(found) if isinstance(found, FrameText) else self.load(page[i])
        self._read_on(Read(start, stop, number, number), self._late != late)
        return text

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

    def at_hand(self, start: int, stop: int) -> bool:
        """Whether reading characters [start, stop) takes no request; looking does not count as a use."""
        with self._quick_lock:
            while start < stop and not self._closed:
                number = bisect_right(self._page_chars, start)
                last = self._last_page
                page = last[1] if last is not None and last[0] == number else self.cache.get(-1 - number)
                if not isinstance(page, Page):
                    return False
                i = page.at_character(start)
                if page.first_frame + i not in self.cache:
                    return False
                start = page.starts[i + 1]
        return True

    def load(self, frame: Frame) -> FrameText:
        """The text of a frame (at most 1 GET)."""
        with self._lock:
            self._check_open()
            found = self.cache.get(frame.number)
            if isinstance(found, FrameText):
                self.stats.hits += 1
                return self._use(found)
            self.stats.misses += 1
        text = self._demand(self.frame_need(frame))
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
        logged: bool = True,
    ) -> Iterator[FrameText]:
        """The frames that hold characters [start, stop), in order (or backwards), fetched ahead of the caller.

        With `eager` the caller is known to take all of them, so as much as the window allows is asked for at once;
        else the reading ahead grows while the caller goes on. An abandoned iterator drops what has not started.
        `only`: of these frames those that are candidates of a search. Not `logged`: they are read for somebody who says
        later what of them was looked at.
        """
        if stop <= start:
            return
        wanted = self._chosen(only, start, stop, reverse) if only else self._frames_between(start, stop, reverse)
        batch_bytes = self.window_bytes if eager else FIRST_CANDIDATES_BYTES if only else FIRST_BATCH_BYTES
        ahead: deque[tuple[Frame, FrameText | Fetch]] = deque()
        ahead_bytes, taken_bytes, more = 0, 0, True
        try:
            while True:
                if more and ahead_bytes <= batch_bytes * REFILL:
                    batch: list[Frame] = []
                    while ahead_bytes < batch_bytes:
                        frame = next(wanted, None)
                        if frame is None:
                            more = False
                            break
                        batch.append(frame)
                        ahead_bytes += _memory_bytes(frame, eager)
                    ahead.extend(zip(batch, self._want([self.frame_need(frame) for frame in batch]), strict=True))
                if not ahead:
                    return
                frame, found = ahead[0]
                text = self._await(frame.number, found) if isinstance(found, Fetch) else found
                ahead.popleft()
                ahead_bytes -= _memory_bytes(frame, eager)
                taken_bytes += _memory_bytes(frame, eager)
                batch_bytes = min(max(batch_bytes, taken_bytes), self.window_bytes)
                if self.log and logged:
                    self.log.add(max(start, text.frame.start), min(stop, text.frame.stop))
                yield self._use(text)
        finally:
            with self._lock:
                self._scheduler.release([f for _, f in ahead if isinstance(f, Fetch) and not f.done])
                if not eager:
                    self._ahead.scanned()

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
        found = Candidates(
            runs, start, stop, self.frame, lambda at: self.found(at) or self.locate(at), self.stats.search
        )
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
        asking = self._asking
        reason = asking.useless(need, self.manifest.frames)
        if need is None or reason:
            return Answer(0, None, reason)
        within = self.numbers(start, stop)
        if reason := asking.useless(need, len(within)):
            return Answer(0, None, reason)
        key = ("told", need, within_line)
        with self._lock:
            self._check_open()
            told = self.cache.get(key)
            if told is None and all(number in self.cache for number in within):
                return Answer(0, None, "all of the text is in memory")
        if told is None:
            blocks = asking.blocks(need)
            fetched = self._all(blocks)
            told = asking.told(need, within_line, {block.key: one for block, one in zip(blocks, fetched, strict=True)})
            with self._lock:
                self.cache.put(key, told)
        assert isinstance(told, Told)
        return asking.answer(told, need, within)

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
                    self._all([self.page_need(page) for page in pages[loaded : loaded + CANDIDATE_PAGES]])
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

    # -- the whole of it -------------------------------------------------------------------------------------------

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

    def __repr__(self) -> str:
        return f"<Reader {self.url} generation {self.manifest.generation}, {self.cache!r}, {self._scheduler!r}>"


def _memory_bytes(frame: Frame, eager: bool) -> int:
    """What a frame that is read ahead occupies: its stored form and its text, which are one where raw frames are
    received in place."""
    return frame.bytes if eager and frame.codec == "raw" else frame.bytes + frame.stored_bytes
