"""Read, in a worker, a text that its host serves; the worker requests the frames that it has not cached."""

from __future__ import annotations

import ast
import json
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from cachetools import LRUCache

from monocontext import errors
from monocontext.engine.candidates import Candidates
from monocontext.engine.documents import DocumentTable
from monocontext.engine.frame import FrameText
from monocontext.engine.read_log import PieceLog, ReadLog
from monocontext.engine.remote import wire
from monocontext.engine.remote.frame_cache import FrameCache
from monocontext.engine.stats import PrefetchStats, RealStats, SearchStats, Stats
from monocontext.format.documents import DocumentPage
from monocontext.format.filters.query import Query
from monocontext.format.index import Frame

CACHE_BYTES = 64 << 20
"""Memory for frames in the worker; the host has the main cache."""
FIRST_BATCH_BYTES = 256 << 10
"""The text that a pass requests at first, since its caller may stop early."""
MAX_BATCH_BYTES = 4 << 20
"""A pass begins with about a frame a message, and doubles that up to this: most `find`s of a model end early."""
SMALL_READ = 64 << 10
"""A first read of at most this many characters is requested alone; the second near it requests the whole frame."""
NEIGHBOURHOOD = 1 << 18
"""Two reads of as many characters of the text are near each other."""
NEIGHBOURHOODS = 4096
"""The most neighbourhoods whose first read is remembered."""
MOST_CACHED_CANDIDATES = 4096
"""The most candidates that are looked for in the cache."""
RUNS_AT_ONCE = 10_000
"""The most runs of candidates in one request."""
REPORTED_AT_ONCE = 1_000
"""The most ranges of reads in one request."""
MOST_RECORDS = 10_000
"""The most records of frames that are kept."""
DOCUMENT_PAGES = 32
"""The most pages of documents that are kept: some 20 MB."""

Ask = Callable[[bytes], bytes | memoryview]
"""Carries a request to the host and gives the answer; may be called by many threads."""


class ServedReader:
    """A reader that asks its host over a channel. Safe for use by many threads.

    Methods cost the GETs of the host's reader, and a message unless the answer is cached here.
    """

    def __init__(self, ask: Ask, *, cache_bytes: int = CACHE_BYTES):
        self._send = ask
        self._cache = FrameCache(cache_bytes)
        self._touched: OrderedDict[int, None] = OrderedDict()
        self._records: OrderedDict[int, Frame] = OrderedDict()
        self._search = SearchStats()
        self._reported_search = (0, 0)
        self._real: deque[int] = deque()
        """Sizes of texts that became a real `str`, for the next request."""
        self._ended: deque[int] = deque()
        """Passes that were given up, for the next request."""
        self.is_closed = False
        self.log = ReadLog()
        """The log of reads by code here; the host, which sees only whole frames, receives it after each cell."""
        self._reported: int | None = self.log.since(None)[0]
        self.handed = PieceLog()
        """The log of the pieces that code received here; the host receives it after each cell."""
        self._reported_handed: int | None = self.handed.since(None)[0]
        described, _ = self._ask("open")
        self.described: dict[str, Any] = described
        """The host's description of the text: its place in the source, its limit."""
        self.url: str = described["url"]
        self.generation: int = described["generation"]
        self.characters: int = described["characters"]
        self.final_newline: bool | None = described["final_newline"]

    @property
    def stats(self) -> Stats:
        """The host's counts (a message)."""
        fields, _ = self._ask("stats")
        search, prefetch = SearchStats(**fields.pop("search")), PrefetchStats(**fields.pop("prefetch"))
        real = RealStats(**fields.pop("real"))
        return Stats(**fields, search=search, prefetch=prefetch, real=real)

    def made_real(self, size_bytes: int) -> None:
        """Count a text that became a real `str`, because a function does not support lazy texts."""
        self._real.append(size_bytes)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop), both within the text, as one `str`."""
        if stop <= start:
            return ""
        texts = self._cache.covering(start, stop)
        if texts is None and stop - start <= SMALL_READ:
            self.log.add(start, stop)
            _, body = self._ask("read", start=start, stop=stop)
            return str(body, "utf-8")
        if texts:
            self.log.add(start, stop)
            for text in texts:
                self._cache.keep_decoded(text)
        return "".join(text.part(start, stop) for text in texts or self.frames(start, stop, eager=True))

    def within(self, start: int, stop: int) -> FrameText | None:
        """The frame that holds all of characters [start, stop), if it is in memory or worth a message; else None."""
        self._check_open()
        self.log.add(start, stop)
        text = self._cache.at(start)
        if text is None:
            place = start // NEIGHBOURHOOD
            if place not in self._touched and stop - start <= SMALL_READ:
                self._touched[place] = None
                if len(self._touched) > NEIGHBOURHOODS:
                    self._touched.popitem(last=False)
                return None
            text = _texts_of(*self._ask("frame", character=start))[0]
            self._cache.put(text)
        elif text.decoding_work:
            self._cache.keep_decoded(text)
        return text if stop <= text.frame.stop else None

    def peek(self, character: int) -> FrameText | None:
        """The frame that holds a character if it is in memory, else None."""
        return self._cache.at(character)

    def frames(
        self,
        start: int,
        stop: int,
        *,
        reverse: bool = False,
        eager: bool = False,
        only: Candidates | None = None,
        needles: tuple[bytes, ...] | None = None,
    ) -> Iterator[FrameText]:
        """The frames that hold characters [start, stop), in order or backwards; with `only`, the candidates among them.
        `eager`: the caller takes all of them. `needles`: not None for a search, which the caller does itself."""
        self._check_open()
        if stop <= start:
            return
        for text in self._frames(start, stop, reverse, eager, only, needles is not None):
            self.log.add(max(start, text.frame.start), min(stop, text.frame.stop))
            yield text

    def _frames(
        self, start: int, stop: int, reverse: bool, eager: bool, only: Candidates | None, search: bool
    ) -> Iterator[FrameText]:
        if only is None:
            cached = self._cache.covering(start, stop)
            if cached is not None:
                yield from reversed(cached) if reverse else cached
            else:
                yield from self._stream(start, stop, reverse, eager, None, search)
            return
        groups = [only.runs[i : i + RUNS_AT_ONCE] for i in range(0, len(only.runs), RUNS_AT_ONCE)]
        for runs in reversed(groups) if reverse else groups:
            cached = self._cached_texts(runs)
            if cached is None:
                yield from self._stream(start, stop, reverse, eager, runs)
            else:
                chosen = [text for text in cached if text.frame.stop > start and text.frame.start < stop]
                yield from reversed(chosen) if reverse else chosen

    def _cached_texts(self, runs: list[tuple[int, int]]) -> list[FrameText] | None:
        """The frames of these runs, if all of them are in memory."""
        if sum(stop - start for start, stop in runs) > MOST_CACHED_CANDIDATES:
            return None
        return self._cache.by_number([number for start, stop in runs for number in range(start, stop)])

    def _stream(
        self, start: int, stop: int, reverse: bool, eager: bool, runs: list[tuple[int, int]] | None, search: bool = True
    ) -> Iterator[FrameText]:
        """The frames of characters [start, stop), of these runs if any, in growing batches from the host."""
        what = {"reverse": reverse, "eager": eager, "search": search, "runs": runs}
        size = MAX_BATCH_BYTES if eager else FIRST_BATCH_BYTES
        kept_bytes, number = 0, None
        try:
            while start < stop:
                if number is None:
                    header, body = self._ask("pass", start=start, stop=stop, bytes=size, **what)
                else:
                    header, body = self._ask("next", **{"pass": number}, bytes=size)
                    if header.get("gone"):  # the host ended it to make room: begin another pass here
                        number = None
                        continue
                number = header["pass"]
                for text in _texts_of(header, body):
                    kept_bytes += text.size_bytes
                    if kept_bytes <= self._cache.capacity_bytes // 2:  # a longer pass would evict all other frames
                        self._cache.put(text)
                    if reverse:
                        stop = text.frame.start
                    else:
                        start = text.frame.stop
                    yield text
                if number is None:
                    return
                size = min(2 * size, MAX_BATCH_BYTES)
        finally:
            if number is not None:  # the collector may run this anywhere, even while a message is being written
                self._ended.append(number)

    # -- search ----------------------------------------------------------------------------------------------------

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """The frames in which a match that starts in [start, stop) may begin; None: in any."""
        if stop <= start or (row := _row(query)) is None:
            return None
        return self._parse_candidates(
            *self._ask("candidates", need=row, start=start, stop=stop, within_line=within_line)
        )

    def holding(self, query: Query, start: int, stop: int) -> Candidates | None:
        """Like `candidates`, also if most frames are candidates; None if no filter can tell."""
        if stop <= start or (row := _row(query)) is None:
            return None
        return self._parse_candidates(*self._ask("holding", need=row, start=start, stop=stop))

    def frequency(self, query: Query) -> tuple[int, int] | None:
        """The number of frames, and the number in which a match may begin; None if no filter can tell."""
        if (row := _row(query)) is None:
            return None
        found = self._ask("frequency", need=row)[0]["value"]
        return (int(found[0]), int(found[1])) if found else None

    def frames_without(self, flag: int, start: int, stop: int) -> Candidates | None:
        """The frames of characters [start, stop) that lack a flag; None if they are many."""
        if stop <= start:
            return Candidates([], start, stop, self.frame, self.locate, SearchStats())
        return self._parse_candidates(*self._ask("lacking", flag=flag, start=start, stop=stop))

    def all_frames_have(self, flag: int, start: int, stop: int) -> bool:
        """Whether every frame of characters [start, stop) has a flag."""
        return stop <= start or bool(self._ask("all_have", flag=flag, start=start, stop=stop)[0]["value"])

    def _parse_candidates(self, header: dict[str, Any], body: memoryview) -> Candidates | None:
        if not header["some"]:
            return None
        ends = array("Q", body.tobytes())
        runs = list(zip(ends[::2], ends[1::2], strict=True))
        return Candidates(runs, header["start"], header["stop"], self.frame, self.locate, self._search)

    def frame(self, number: int) -> Frame:
        """The record of a frame by its number."""
        found = self._records.get(number)
        if found is None:
            found = self._keep(wire.frame_of(self._ask("record", frame=number)[0]["frame"]))
        return found

    def locate(self, character: int) -> Frame:
        """The record of the frame that holds a character."""
        text = self._cache.at(character)
        if text is not None:
            return text.frame
        return self._keep(wire.frame_of(self._ask("locate", character=character)[0]["frame"]))

    def _keep(self, frame: Frame) -> Frame:
        self._records[frame.number] = frame
        if len(self._records) > MOST_RECORDS:
            self._records.popitem(last=False)
        return frame

    # -- documents -------------------------------------------------------------------------------------------------

    @cached_property
    def documents(self) -> DocumentTable:
        """The documents of the text (a message); their pages are requested when they are needed."""
        found, _ = self._ask("documents")
        refs = [wire.page_of(row) for row in found["pages"]]
        pages: LRUCache[int, DocumentPage] = LRUCache(DOCUMENT_PAGES)

        def load_pages(numbers: Sequence[int]) -> list[DocumentPage]:
            loaded = []
            for number in numbers:
                page = pages.get(number)
                if page is None:
                    _, body = self._ask("document_page", page=number)
                    page = pages[number] = DocumentPage(bytes(body), refs[number], refs[number - 1] if number else None)
                loaded.append(page)
            return loaded

        def find(name: str) -> int | None:
            number: int | None = self._ask("document_named", name=name)[0]["number"] if refs else None
            return number

        return DocumentTable(
            refs, load_pages, find, name_count=found.get("names", 0), first_duplicate=found.get("doubled")
        )

    # -- lines -----------------------------------------------------------------------------------------------------

    def line_start(self, line: int) -> int:
        r"""First character after `line` newlines; the text's length when there are fewer."""
        if line <= 0:
            return 0
        text = self.cached_newline(line - 1)
        if text is not None:
            return text.frame.start + text.nth_newline(line - 1 - text.frame.start_newline) + 1
        return int(self._ask("line_start", line=line)[0]["value"])

    def cached_newline(self, newline: int) -> FrameText | None:
        r"""The frame that holds the `\n` with this number (from 0) if it is in memory, else None."""
        return self._cache.with_newline(newline)

    def line_of(self, character: int) -> int:
        r"""Number of newlines before a character."""
        if character <= 0:
            return 0
        text = self._cache.at(character)
        if text is not None:
            frame = text.frame
            return frame.start_newline + text.newlines_before(text.to_byte(character - frame.start))
        return int(self._ask("line_of", character=character)[0]["value"])

    # -- cells -----------------------------------------------------------------------------------------------------

    def block(self, tree: ast.Module, known: Mapping[str, object]) -> None:
        """Do nothing before a cell runs: the host has already predicted its reads from the reply."""

    def ran(self, known: Mapping[str, object]) -> None:
        """Report to the host after a cell: the ranges that were read, and the pieces that code received (1 message for
        each 1,000 ranges, and 1 for pieces)."""
        self._reported, ranges = self.log.since(self._reported)
        for i in range(0, len(ranges), REPORTED_AT_ONCE):
            self._ask("looked", ranges=ranges[i : i + REPORTED_AT_ONCE])
        self._reported_handed, pieces = self.handed.since(self._reported_handed)
        if pieces:
            self._ask("handed", ranges=pieces)

    # -- lifetime --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop the cache; the host's text stays open. Later reads raise `ContextClosed`. Idempotent."""
        self.is_closed = True
        self._cache.clear()

    def __repr__(self) -> str:
        return f"<ServedReader {self.url} generation {self.generation}>"

    def _check_open(self) -> None:
        if self.is_closed:
            raise errors.ContextClosed(f"{self.url or 'this context'} is closed")

    def _ask(self, op: str, **fields: Any) -> tuple[dict[str, Any], memoryview]:
        """Send a request, with reports that wait for one; return header and body of the answer, or raise its error."""
        self._check_open()
        search = self._search
        if (search.looked_at, search.hits) != self._reported_search:
            looked_at, hits = self._reported_search
            self._reported_search = (search.looked_at, search.hits)
            fields |= {"looked_at": self._reported_search[0] - looked_at, "hits": self._reported_search[1] - hits}
        if self._ended:
            fields["ended"] = [self._ended.popleft() for _ in range(min(len(self._ended), 100))]
        if self._real:
            fields["real"] = [self._real.popleft() for _ in range(min(len(self._real), 100))]
        header, body = wire.split_answer(self._send(wire.request(op, **fields)))
        if "error" in header:
            raise _make_error(header["error"], header["message"])
        return header, body


def _texts_of(header: dict[str, Any], body: memoryview) -> list[FrameText]:
    """The frames in an answer."""
    texts, at = [], 0
    for row in header["frames"]:
        frame = wire.frame_of(row)
        texts.append(FrameText(frame, bytes(body[at : at + frame.bytes])))
        at += frame.bytes
    return texts


def _make_error(name: str, message: str) -> errors.MonocontextError:
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.MonocontextError):
        return kind(message)
    return errors.StoreFailure(f"{name}: {message}")


def _row(query: Query | None) -> Any:
    """A query in the form of a request; None for no query, or for one with thousands of literals, which no filter would
    narrow."""
    row = wire.query_row(query)
    return row if len(json.dumps(row)) <= wire.MAX_REQUEST_BYTES // 2 else None
