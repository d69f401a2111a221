"""A reader's table of frames, with the reading ahead of it: what is expected, what comes of it, and when."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from monocontext.asking import Asking
from monocontext.fetcher import Places, refuse_foreign
from monocontext.frametable import FrameTable
from monocontext.frametext import FrameText
from monocontext.hedging import Hedge
from monocontext.index import Frame
from monocontext.manifest import Manifest
from monocontext.prefetch import Prefetch, Read, checked
from monocontext.readahead import Course, ReadAhead
from monocontext.routes import Routes
from monocontext.scheduler import Fetch
from monocontext.stats import Stats
from monocontext.store import RangeReader
from monocontext.workers import InlineWorkers, Workers


class Expecting(FrameTable):
    """Fetches for one reader, for its callers and ahead of them. Safe for use by many threads."""

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
        prefetch: Prefetch = "all",
    ):
        super().__init__(
            manifest, store, workers, url=url, cache_bytes=cache_bytes, places=places, stats=stats, hedge=hedge
        )
        self._asking = Asking(manifest, self)
        # Whoever carries requests out itself, or one at a time, would wait for what nobody has asked for.
        alone = isinstance(workers, InlineWorkers) or workers.max_running < 2
        self._ahead = ReadAhead(
            "off" if alone else checked(prefetch),
            Routes(self, self._asking),
            self.cache,
            self._scheduler,
            workers.now,
            self.frame_need,
            frames=manifest.frames,
            text_bytes=manifest.text_bytes,
            window_bytes=self.window_bytes,
        )
        self._fresh = 0
        """Frames that were looked at for the first time since they were fetched."""
        self._late = 0
        """Of these, frames that somebody waited for."""
        self._last_hit = range(0)

    def begin_thinking(self) -> None:
        """A model is at work: time to read ahead. Calls may overlap; each has its `end_thinking`."""
        self._ahead_of(self._ahead.begin_thinking)

    def end_thinking(self) -> bool:
        """Whether no other is at work."""
        with self._lock:
            return self._ahead.end_thinking()

    @property
    def is_thinking(self) -> bool:
        """Whether a model is known to be at work."""
        return self._ahead.think.is_thinking

    def turn(self) -> None:
        """A new reply of the model begins: what earlier code was expected to read is not expected any more."""
        self._ahead_of(self._ahead.turn)

    def expect(self, courses: Iterable[Course], *, runs_now: bool = False) -> None:
        """Fetch ahead what code will read (returns at once). `runs_now`: before what any other code will."""
        self._ahead_of(lambda: self._ahead.expect(courses, runs_now=runs_now))

    def look(self) -> None:
        """Time has gone by and nobody waits: what code will read, and is late, is asked for once more. Cheap."""
        with self._lock:
            due = self._hedging.next_due()
        if due is not None and due <= self._workers.now():
            self._hedge()

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held while a state of the reader is touched, and over a fork."""
        return self._quick_lock

    @property
    def routes(self) -> Routes:
        return self._ahead.routes

    @property
    def follows_code(self) -> bool:
        """Whether what code says is fetched ahead."""
        return self._ahead.follows_code

    @property
    def prefetch(self) -> Prefetch:
        """What is read ahead; "off" where nothing can be."""
        return self._ahead.prefetch

    def found(self, character: int) -> Frame | None:
        """A search found something that begins here; its frame (1 GET for its index page), None where it is that of the
        hit before."""
        if character in self._last_hit:
            return None
        frame = self.locate(character)
        self._last_hit = range(frame.start, frame.stop)
        with self._lock:
            self._ahead.found(character, frame.number)
        return frame

    def _read_on(self, read: Read, waited: bool) -> None:
        if self._ahead.follows_reads:
            self._ahead_of(lambda: self._ahead.read(read, waited))

    def _ahead_of(self, step: Callable[[], None]) -> None:
        """Let the read-ahead take a step, and send what that starts. A closed reader takes none."""
        self._resume()
        with self._lock:
            if self._closed:
                return
            step()
            started = self._start()
        self._send(started)

    def _use(self, text: FrameText) -> FrameText:
        if not text.used:
            with self._lock:
                if text.used:
                    return text
                text.used = True
                self.stats.bytes_used += text.frame.stored_bytes
                self._fresh += 1
                self._late += text.late
                if text.ahead:
                    self.stats.prefetch.bytes_used += text.frame.stored_bytes
                self._ahead.used(text)
                started = [] if self._closed else self._start()
            self._send(started)
        return text

    def _keep(self, fetch: Fetch, key: Hashable, value: Any) -> None:
        if isinstance(value, FrameText):
            value.ahead = fetch.sent_ahead
            value.late = not fetch.speculative
        self.cache.put(key, value, used=not self._ahead.is_expected(key))

    def _landed(self, fetch: Fetch) -> None:
        self._ahead.landed(fetch)

    def _setting_out(self) -> None:
        self._ahead.sent()

    def _lost(self) -> None:
        self._ahead.lost()

    def close(self) -> None:
        """Drop the cache; later reads raise `ContextClosed`. Idempotent."""
        with self._lock:
            self._ahead.close()
        super().close()
