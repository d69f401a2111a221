"""Read a text in a worker, which asks its host for the frames that it has not cached."""

from __future__ import annotations

import json
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

from monocontext import errors
from monocontext.engine.candidates import Candidates, Runs
from monocontext.engine.documents import DocumentTable
from monocontext.engine.frame import FrameText
from monocontext.engine.read_log import PieceLog, ReadLog
from monocontext.engine.remote import wire
from monocontext.engine.remote.frame_cache import FrameCache
from monocontext.engine.stats import PrefetchStats, RealStats, SearchStats, Stats
from monocontext.format.documents import DocumentPage
from monocontext.format.filters.query import Query
from monocontext.format.index import Frame
from monocontext.format.refs import DocumentPageRef
from monocontext.records import replace

_CACHE_BYTES = 64 << 20  # memory for frames in the worker; the host has the main cache
_FIRST_BATCH_BYTES = 256 << 10  # the text of the first request of a pass, which may stop early; each next one doubles
_SMALL_READ_CHARACTERS = 64 << 10
"""The first read in a neighbourhood requests only its characters, if they are at most this many; the next, a frame."""
_NEIGHBOURHOOD_CHARACTERS = 1 << 18  # the text is divided into neighbourhoods of so many characters
_MOST_NEIGHBOURHOODS = 4096  # the most neighbourhoods that are remembered as read
_MOST_CACHED_CANDIDATES = 4096  # the most candidates that are looked for in the cache
_MOST_RUNS = 10_000  # the most runs of candidates in one request
_MOST_RECORDS = 10_000  # the most records of frames that are kept
_MOST_DOCUMENT_PAGES = 32  # the most pages of documents that are kept: some 20 MB
_MOST_REAL_TEXTS = 100  # the most texts that became a real `str` in one report

Ask = Callable[[bytes], bytes | memoryview]  # sends a request to the host, returns its answer; many threads may call it


class ServedReader:
    """A reader that asks its host over a channel. Safe for use by many threads.

    Methods cost the GETs of the host's reader, and a message unless the answer is cached here.
    """

    def __init__(self, ask: Ask, *, cache_bytes: int = _CACHE_BYTES):
        self._send = ask
        self._cache = FrameCache(cache_bytes)
        self._neighbourhoods: OrderedDict[int, None] = OrderedDict()  # those that were read, the latest last
        self._records: dict[int, Frame] = {}  # by number; emptied when it is full, which is safe under threads
        self._reporting = Lock()  # so that two threads do not report the same reads
        self._search_stats = SearchStats()
        self._reported_stats = SearchStats()  # those that the host knows
        self._real_bytes: deque[int] = deque()  # sizes of texts that became a real `str`, for the next reports
        self.is_closed = False
        self.read_log = ReadLog()  # the reads by code here; the host, which sees whole frames, gets it after each cell
        self.piece_log = PieceLog()  # the pieces that code received here; the host gets it after each cell
        self.count_real = self._real_bytes.append
        self._read_mark, self._piece_mark = self.read_log.since(None)[0], self.piece_log.since(None)[0]
        self.described: dict[str, Any] = self._ask("open")[0]
        """What the host says about the text: see `ReaderServer._open`."""
        self.url: str = self.described["url"]
        self.generation: int = self.described["generation"]
        self.characters: int = self.described["characters"]
        self.text_bytes: int = self.described["bytes"]
        self.peek = self._cache.at
        self.final_newline: bool | None = self.described["final_newline"]

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop), both within the text, as one `str`."""
        if stop <= start:
            return ""
        texts = self._cache.covering(start, stop)
        if texts is None and stop - start <= _SMALL_READ_CHARACTERS:
            self.read_log.add(start, stop)
            return str(self._ask("read", what="text", start=start, stop=stop)[1], "utf-8")
        if texts:
            self.read_log.add(start, stop)
        return "".join(text.part(start, stop) for text in texts or self.frames(start, stop, eager=True))

    def text_within(self, start: int, stop: int) -> FrameText | None:
        """The frame that holds all of characters [start, stop) if it is cached or worth a request; else None."""
        self._check_open()
        self.read_log.add(start, stop)
        text = self._cache.at(start)
        if text is None:
            neighbourhood = start // _NEIGHBOURHOOD_CHARACTERS
            if neighbourhood not in self._neighbourhoods and stop - start <= _SMALL_READ_CHARACTERS:
                self._neighbourhoods[neighbourhood] = None
                if len(self._neighbourhoods) > _MOST_NEIGHBOURHOODS:
                    self._neighbourhoods.popitem(last=False)
                return None
            (text,) = self._texts_of(*self._ask("read", what="frame", start=start, stop=start + 1))
            self._cache.put([text])
        return text if stop <= text.frame.stop else None

    def frames(
        self,
        start: int,
        stop: int,
        *,
        reverse: bool = False,
        eager: bool = False,
        only: Candidates | None = None,
        is_search: bool = False,
    ) -> Iterator[FrameText]:
        """The frames that hold characters [start, stop), in order or backwards; with `only`, the candidates among them.
        `eager`, `is_search`: see `Reader.frames`."""
        self._check_open()
        groups: list[Runs | None] = [None]  # all frames
        if only is not None:
            groups = [only.runs[i : i + _MOST_RUNS] for i in range(0, len(only.runs), _MOST_RUNS)]
        for runs in reversed(groups) if reverse else groups:
            cached = self._cache.covering(start, stop) if runs is None else self._cached_candidates(runs, start, stop)
            if cached is None:
                texts: Iterable[FrameText] = self._request_frames(
                    start, stop, runs, reverse=reverse, eager=eager, is_search=is_search or runs is not None
                )
            else:
                texts = reversed(cached) if reverse else cached
            for text in texts:
                self.read_log.add(max(start, text.frame.start), min(stop, text.frame.stop))
                yield text

    def _cached_candidates(self, runs: Runs, start: int, stop: int) -> list[FrameText] | None:
        """The frames of these runs that hold any of characters [start, stop); None unless all runs are cached."""
        if sum(end - first for first, end in runs) > _MOST_CACHED_CANDIDATES:
            return None
        texts = self._cache.by_number([number for first, end in runs for number in range(first, end)])
        if texts is None:
            return None
        return [text for text in texts if text.frame.stop > start and text.frame.start < stop]

    def _request_frames(
        self, start: int, stop: int, runs: Runs | None, *, reverse: bool, eager: bool, is_search: bool
    ) -> Iterator[FrameText]:
        """The frames that hold characters [start, stop), in growing batches; only those in `runs` unless it is None."""
        size_bytes, kept_bytes = wire.MAX_BATCH_BYTES if eager else _FIRST_BATCH_BYTES, 0
        while start < stop:
            header, body = self._ask(
                "read", what="pass", start=start, stop=stop, bytes=size_bytes, reverse=reverse, eager=eager,
                search=is_search, runs=runs,
            )  # fmt: skip
            texts = self._texts_of(header, body)
            if not texts:
                return
            kept_bytes += sum(text.size_bytes for text in texts)
            if kept_bytes <= self._cache.capacity_bytes // 2:  # a longer pass would evict all other frames
                self._cache.put(texts)
            for text in texts:
                if reverse:
                    stop = text.frame.start
                else:
                    start = text.frame.stop
                yield text
            size_bytes = min(2 * size_bytes, wire.MAX_BATCH_BYTES)

    # -- search ----------------------------------------------------------------------------------------------------

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """The candidates for matches that begin in characters [start, stop); None if all frames are candidates."""
        return self._narrow("candidates", start, stop, query, within_line=within_line)

    def frames_holding(self, query: Query, start: int, stop: int) -> Candidates | None:
        """Like `candidates`, but also if most frames are candidates; None if no filter can tell."""
        return self._narrow("holding", start, stop, query)

    def frames_without(self, flag: int, start: int, stop: int) -> Candidates | None:
        """The frames of characters [start, stop) that lack a flag; None if they are many (see `FrameTable`)."""
        if stop <= start:
            return Candidates([], start, stop, self.frame, self.locate, SearchStats())
        return self._ask_candidates("lacking", start, stop, flag=flag)

    def _narrow(self, what: str, start: int, stop: int, query: Query | None, **fields: Any) -> Candidates | None:
        """The candidates of a query; None if a match may begin in any frame, or if the query is too long to send."""
        row = wire.query_row(query) if query is not None and start < stop else None
        if row is None or len(json.dumps(row)) > wire.MAX_REQUEST_BYTES // 2:  # filters do not help with that many
            return None
        return self._ask_candidates(what, start, stop, query=row, **fields)

    def _ask_candidates(self, what: str, start: int, stop: int, **fields: Any) -> Candidates | None:
        header, body = self._ask("candidates", what=what, start=start, stop=stop, **fields)
        if not header["is_narrowed"]:
            return None
        ends = array("Q", body.tobytes())
        runs = list(zip(ends[::2], ends[1::2], strict=True))
        return Candidates(runs, header["start"], header["stop"], self.frame, self.locate, self._search_stats)

    # -- frames and lines ------------------------------------------------------------------------------------------

    def frame(self, number: int) -> Frame:
        """The record of a frame by its number."""
        frame = self._records.get(number)
        if frame is None:
            if len(self._records) >= _MOST_RECORDS:
                self._records.clear()
            frame = self._records[number] = wire.frame_of(self._locate("frame", number))
        return frame

    def locate(self, character: int) -> Frame:
        """The record of the frame that holds a character."""
        text = self._cache.at(character)
        return wire.frame_of(self._locate("character", character)) if text is None else text.frame

    def line_start(self, line: int) -> int:
        r"""The first character after `line` newlines; the length of the text if there are fewer."""
        if line <= 0:
            return 0
        text = self._cache.with_newline(line - 1)
        if text is not None:
            return text.frame.start + text.nth_newline(line - 1 - text.frame.start_newline) + 1
        return int(self._locate("line", line))

    def line_of(self, character: int) -> int:
        r"""The number of newlines before `character`, which may be the length of the text."""
        if character <= 0:
            return 0
        text = self._cache.at(character)
        if text is not None:
            return text.frame.start_newline + text.newlines_before(text.to_byte(character - text.frame.start))
        return int(self._locate("newlines", character))

    def record_hit(self, character: int) -> None:
        """Do nothing, since `report` tells the host about hits."""

    def filter_borders(self, start: int, stop: int) -> list[int]:
        """An empty list, since a worker searches all of [start, stop) at once."""
        return []

    def _locate(self, what: str, number: int) -> Any:
        """The answer to a request `locate`: see `ReaderServer._locate`."""
        return self._ask("locate", what=what, number=number)[0]["value"]

    @cached_property
    def documents(self) -> DocumentTable:
        """The documents of the text (1 message); their pages are requested when they are needed."""
        return _ServedDocuments(self._ask)

    # -- counts ----------------------------------------------------------------------------------------------------

    @property
    def stats(self) -> Stats:
        """The counts of the host's reader (1 message)."""
        return self.report()

    def report(self) -> Stats:
        """Tell the host what was read and received here since the last report, and return its counts (1 message)."""
        with self._reporting:
            self._read_mark, ranges = self.read_log.since(self._read_mark)
            self._piece_mark, pieces = self.piece_log.since(self._piece_mark)
            before = self._reported_stats
            self._reported_stats = current = replace(self._search_stats)
            sizes = [self._real_bytes.popleft() for _ in range(min(len(self._real_bytes), _MOST_REAL_TEXTS))]
        fields, _ = self._ask(
            "report", read=ranges, handed=pieces, real=sizes,
            looked_at=current.looked_at - before.looked_at, hits=current.hits - before.hits,
        )  # fmt: skip
        classes = {"search": SearchStats, "prefetch": PrefetchStats, "real": RealStats}
        return Stats(**fields | {name: cls(**fields[name]) for name, cls in classes.items()})

    def close(self) -> None:
        """Drop the cache; the host's text stays open. Later reads raise `ContextClosed`. Idempotent."""
        self.is_closed = True
        self._cache.clear()

    def __repr__(self) -> str:
        return f"<ServedReader {self.url} generation {self.generation}>"

    def _check_open(self) -> None:
        if self.is_closed:
            raise errors.ContextClosed(f"{self.url or 'this context'} is closed")

    def _ask(self, verb: str, **fields: Any) -> tuple[dict[str, Any], memoryview]:
        """Send a request, and return the header and the body of its answer. Raises the error of the host's reader."""
        self._check_open()
        header, body = wire.split_answer(self._send(wire.encode_request(verb, **fields)))
        if "error" in header:
            raise getattr(errors, header["error"], errors.StoreFailure)(header["message"])
        return header, body

    @staticmethod
    def _texts_of(header: dict[str, Any], body: memoryview) -> list[FrameText]:
        """The frames in the answer to a read."""
        texts = []
        for frame in map(wire.frame_of, header["frames"]):
            texts.append(FrameText(frame, bytes(body[: frame.bytes])))
            body = body[frame.bytes :]
        return texts


class _ServedDocuments(DocumentTable):
    """The documents of a text that a host serves (1 message for the entries of their pages, 1 for each page)."""

    def __init__(self, ask: Callable[..., tuple[dict[str, Any], memoryview]]):
        """`ask`: see `ServedReader._ask`."""
        self._ask = ask
        header, _ = ask("documents")
        self._refs = [wire.page_of(row) for row in header["pages"]]
        self._load_page = lru_cache(_MOST_DOCUMENT_PAGES)(self._request_page)
        last = self._refs[-1] if self._refs else None
        super().__init__(last, name_count=header["names"], first_duplicate=header["first_duplicate"])

    def _load_page_refs(self) -> Sequence[DocumentPageRef]:
        return self._refs

    def _load_pages(self, numbers: Sequence[int]) -> list[DocumentPage]:
        return [self._load_page(number) for number in numbers]

    def _request_page(self, number: int) -> DocumentPage:
        _, body = self._ask("documents", page=number)
        return DocumentPage(bytes(body), self._refs[number], self._refs[number - 1] if number else None)

    def find(self, name: str) -> int | None:
        if not self._refs:
            return None
        number: int | None = self._ask("documents", name=name)[0]["number"]
        return number
