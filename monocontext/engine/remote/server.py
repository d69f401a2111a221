"""Answer, in the host, a worker's requests for one text and no other.

The worker is not trusted. It may ask for the text that it was given (frames are cut to it), for counts of the frames
around it, and for statistics. Requests are bounded, and each field is checked. There is no request for keys, addresses
or other objects.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from monocontext.engine.candidates import Candidates
from monocontext.engine.frame import FrameText
from monocontext.engine.read_log import ReadLog
from monocontext.engine.reader import Reader
from monocontext.engine.remote import wire
from monocontext.engine.remote.wire import BadRequest
from monocontext.engine.stats import SearchStats
from monocontext.errors import MonocontextError
from monocontext.format.index import ENDS_LINE

MAX_BATCH_BYTES = 4 << 20
"""The most text in one answer. Larger ones are no faster, and delay the answers to other threads."""
MAX_READ = 1 << 20
"""The most characters of one read."""
MAX_PASSES = 64
"""The most passes under way. One more ends the least recently used one, whose worker then begins another at the same
place."""
MAX_LOOKED = 1_000
"""The most ranges in one report of reads."""
_LARGEST = 1 << 62
"""The largest number in a request."""


class ReaderServer:
    """Answers for characters [start, stop) of a reader. Safe for use by many threads."""

    def __init__(
        self,
        reader: Reader,
        start: int,
        stop: int,
        *,
        limit: int,
        steps: tuple[tuple[str, list[Any]], ...] = (),
    ):
        """`limit`: the most characters of one real `str`. `steps`: the methods, with arguments, by which the worker
        derives its text from the served one."""
        self._reader = reader
        self._start, self._stop = start, stop
        self._limit = limit
        self.steps = steps
        self._lock = threading.Lock()
        self._passes: OrderedDict[int, _ServedPass] = OrderedDict()
        self._count = 0

    def then(self, steps: tuple[tuple[str, list[Any]], ...]) -> ReaderServer:
        """A server of the same characters, for the text that these methods derive."""
        return ReaderServer(self._reader, self._start, self._stop, limit=self._limit, steps=steps)

    entry = "monocontext.text:served_text"
    """The function with which the worker makes the text, as `module:name`."""
    modules = ("monocontext.text.namespace.kit", "monocontext.text.namespace.printing", "monocontext.engine.remote")
    """Modules that the worker imports for the text."""
    bad_request = BadRequest
    """The error for a request that no honest worker sends."""

    def answer(self, request: bytes) -> bytes:
        """The answer to one request; may wait for storage.

        Raises `BadRequest` for a message that no `ServedReader` sends. Errors of reads are answers, which the worker
        raises unchanged.
        """
        fields = wire.parse(request)
        ask = _OPERATIONS.get(fields["op"])
        if ask is None:
            raise BadRequest(f"unknown operation {fields['op'][:50]!r}")
        self._count_search(fields)
        self._end(fields.get("ended", []))
        self._count_real(fields.get("real", []))
        try:
            return ask(self, fields)
        except MonocontextError as error:
            return wire.answer({"error": type(error).__name__, "message": str(error)})

    def ready(self, request: bytes) -> bool:
        """Whether a request can be answered without waiting for storage."""
        fields = wire.parse(request)
        match fields["op"]:
            case "open" | "stats" | "looked" | "handed":
                return True
            case "read":
                start, stop = self._range(fields, MAX_READ)
                return self._reader.ends.within(start, stop) is not None or self._reader.is_in_memory(start, stop)
            case "frame":
                at = self._character(fields)
                return self._reader.is_in_memory(at, at + 1)
        return False

    def close(self) -> None:
        """End all passes. The reader stays as it is."""
        with self._lock:
            passes, self._passes = self._passes, OrderedDict()
        for one in passes.values():
            one.close()

    # -- operations: the text --------------------------------------------------------------------------------------

    def _open(self, fields: dict[str, Any]) -> bytes:
        reader = self._reader
        return wire.answer(
            {
                "url": reader.url,
                "generation": reader.generation,
                "characters": reader.characters,
                "final_newline": reader.final_newline,
                "start": self._start,
                "stop": self._stop,
                "limit": self._limit,
                "steps": self.steps,
            }
        )

    def _stats(self, fields: dict[str, Any]) -> bytes:
        return wire.answer(asdict(self._reader.stats) | {"credentials_source": ""})  # a path of the host's

    def _read(self, fields: dict[str, Any]) -> bytes:
        start, stop = self._range(fields, MAX_READ)
        return wire.answer({}, self._pieces(start, stop))

    def _pieces(self, start: int, stop: int) -> Iterator[bytes]:
        end = self._reader.ends.within(start, stop) if start < stop else None
        for text in [end] if end else self._reader.frames(start, stop, eager=True, logged=False):
            frame = text.frame
            low, high = max(start - frame.start, 0), min(stop - frame.start, frame.characters)
            yield text.data[text.to_byte(low) : text.to_byte(high)]

    def _frame(self, fields: dict[str, Any]) -> bytes:
        at = self._character(fields)
        text = self._reader.frame_within(at, at + 1)
        assert text is not None  # a frame holds each character
        return self._batch([self._clip(text)], None)

    def _pass(self, fields: dict[str, Any]) -> bytes:
        start, stop = self._range(fields, _LARGEST)
        reverse, eager = fields.get("reverse") is True, fields.get("eager") is True
        only = self._only(fields.get("runs"), start, stop)
        needles = () if fields.get("search") is True else None
        texts = self._reader.frames(start, stop, reverse=reverse, eager=eager, only=only, logged=False, needles=needles)
        one = _ServedPass(texts, self._clip)
        with self._lock:
            self._count += 1
            number = self._count
            self._passes[number] = one
            ended = self._passes.popitem(last=False)[1] if len(self._passes) > MAX_PASSES else None
        if ended:
            ended.close()
        return self._more(number, one, fields)

    def _next(self, fields: dict[str, Any]) -> bytes:
        number = wire.number(fields, "pass", 1, _LARGEST)
        with self._lock:
            one = self._passes.get(number)
            if one is None:
                return wire.answer({"gone": True})
            self._passes.move_to_end(number)
        return self._more(number, one, fields)

    def _more(self, number: int, one: _ServedPass, fields: dict[str, Any]) -> bytes:
        texts, more = one.take(wire.number(fields, "bytes", 1, MAX_BATCH_BYTES))
        if not more:
            with self._lock:
                self._passes.pop(number, None)
        return self._batch(texts, number if more else None)

    def _batch(self, texts: list[FrameText], number: int | None) -> bytes:
        rows = [wire.frame_row(text.frame) for text in texts]
        return wire.answer({"frames": rows, "pass": number}, (text.data for text in texts))

    # -- operations: searches --------------------------------------------------------------------------------------

    def _candidates(self, fields: dict[str, Any]) -> bytes:
        start, stop = self._range(fields, _LARGEST)
        query = wire.query_of(fields.get("need"))
        return self._runs(self._reader.candidates(query, start, stop, fields.get("within_line") is True))

    def _holding(self, fields: dict[str, Any]) -> bytes:
        start, stop = self._range(fields, _LARGEST)
        query = wire.query_of(fields.get("need"))
        return self._runs(self._reader.holding(query, start, stop) if query is not None else None)

    def _frequency(self, fields: dict[str, Any]) -> bytes:
        query = wire.query_of(fields.get("need"))
        return wire.answer({"value": self._reader.frequency(query) if query is not None else None})

    def _lacking(self, fields: dict[str, Any]) -> bytes:
        start, stop = self._range(fields, _LARGEST)
        return self._runs(self._reader.frames_without(wire.number(fields, "flag", 1, 1 << 16), start, stop))

    def _runs(self, found: Candidates | None) -> bytes:
        if found is None:
            return wire.answer({"some": False})
        ends = array("Q", (number for run in found.runs for number in run))
        return wire.answer({"some": True, "start": found.start, "stop": found.stop}, [ends.tobytes()])

    def _all_have(self, fields: dict[str, Any]) -> bytes:
        start, stop = self._range(fields, _LARGEST)
        flag = wire.number(fields, "flag", 1, 1 << 16)
        return wire.answer({"value": self._reader.all_frames_have(flag, start, stop)})

    # -- operations: lines and records of frames -------------------------------------------------------------------

    def _line_start(self, fields: dict[str, Any]) -> bytes:
        return wire.answer({"value": self._reader.line_start(wire.number(fields, "line", 0, _LARGEST))})

    def _line_of(self, fields: dict[str, Any]) -> bytes:
        character = wire.number(fields, "character", 0, _LARGEST)
        return wire.answer({"value": self._reader.line_of(character)})

    def _record(self, fields: dict[str, Any]) -> bytes:
        number = wire.number(fields, "frame", 0, self._reader.manifest.frames - 1)
        return wire.answer({"frame": wire.frame_row(self._reader.frame(number))})

    def _locate(self, fields: dict[str, Any]) -> bytes:
        return wire.answer({"frame": wire.frame_row(self._reader.locate(self._character(fields)))})

    # -- operations: documents -------------------------------------------------------------------------------------

    def _documents(self, fields: dict[str, Any]) -> bytes:
        """The places of all documents; none for a part of a text, whose worker must not learn other names."""
        table = self._reader.documents
        if not self._is_whole or not table.count:
            return wire.answer({"pages": []})
        rows = [wire.page_row(ref) for ref in table.refs]
        return wire.answer({"pages": rows, "names": table.name_count, "doubled": table.first_duplicate})

    def _document_page(self, fields: dict[str, Any]) -> bytes:
        table = self._reader.documents
        number = wire.number(fields, "page", 0, len(table.refs) - 1 if self._is_whole else -1)
        return wire.answer({}, [table.page(number).data])

    def _document_named(self, fields: dict[str, Any]) -> bytes:
        name = fields.get("name")
        if not isinstance(name, str) or not self._is_whole:
            raise BadRequest("`name` must be a str, and the served text a whole one")
        return wire.answer({"number": self._reader.documents.find(name)})

    @property
    def _is_whole(self) -> bool:
        return self._start == 0 and self._stop == self._reader.characters

    # -- operations: reports of the worker ---------------------------------------------------------------------------

    def _looked(self, fields: dict[str, Any]) -> bytes:
        """Receive the log of the worker's reads: the server sees only whole frames, some fetched ahead of the code."""
        return self._add_to(self._reader.log, fields)

    def _handed(self, fields: dict[str, Any]) -> bytes:
        """Receive the log of the pieces that the worker's code received."""
        return self._add_to(self._reader.handed, fields)

    def _add_to(self, log: ReadLog | None, fields: dict[str, Any]) -> bytes:
        ranges = fields.get("ranges")
        if not isinstance(ranges, list) or len(ranges) > MAX_LOOKED:
            raise BadRequest(f"`ranges` must be a list of up to {MAX_LOOKED:,}")
        for one in ranges:
            match one:
                case [int(start), int(stop)] if self._start <= start <= stop <= self._stop:
                    if log:
                        log.add(start, stop)
                case _:
                    raise BadRequest(f"expected a range of the text, found {str(one)[:50]}")
        return wire.answer({})

    # -- bounds ----------------------------------------------------------------------------------------------------

    def _range(self, fields: dict[str, Any], most: int) -> tuple[int, int]:
        start = wire.number(fields, "start", self._start, self._stop)
        return start, wire.number(fields, "stop", start, min(self._stop, start + most))

    def _character(self, fields: dict[str, Any]) -> int:
        return wire.number(fields, "character", self._start, self._stop - 1)

    def _only(self, runs: Any, start: int, stop: int) -> Candidates | None:
        """The candidates that a request names; None if it names none."""
        if runs is None:
            return None
        if not isinstance(runs, list):
            raise BadRequest("`runs` must be a list")
        before, frames = 0, self._reader.manifest.frames
        pairs = []
        for run in runs:
            match run:
                case [int(first), int(end)] if before <= first < end <= frames:
                    pairs.append((first, end))
                    before = end
                case _:
                    raise BadRequest(f"expected a run of frames from {before} to {frames}, found {str(run)[:50]}")
        return Candidates(pairs, start, stop, self._reader.frame, self._reader.locate, SearchStats())

    def _clip(self, text: FrameText) -> FrameText:
        """The part of a frame within the served text."""
        frame = text.frame
        if frame.start >= self._start and frame.stop <= self._stop:
            return text
        low, high = max(self._start - frame.start, 0), min(self._stop - frame.start, frame.characters)
        first, last = text.to_byte(low), text.to_byte(high)
        data = text.data[first:last]
        whole = frame._replace(
            characters=high - low,
            bytes=len(data),
            newlines=data.count(b"\n"),
            flags=frame.flags & ~ENDS_LINE | (ENDS_LINE if data.endswith(b"\n") else 0),
            start=frame.start + low,
            start_byte=frame.start_byte + first,
            start_newline=frame.start_newline + text.data.count(b"\n", 0, first),
        )
        return FrameText(whole, data)

    def _end(self, numbers: Any) -> None:
        """Close passes that the worker has given up."""
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise BadRequest("`ended` must be a list of numbers")
        with self._lock:
            ended = [self._passes.pop(number, None) for number in numbers]
        for one in ended:
            if one:
                one.close()

    def _count_search(self, fields: dict[str, Any]) -> None:
        """Count the worker's finds in candidate frames."""
        if "looked_at" not in fields and "hits" not in fields:
            return
        looked_at, hits = (wire.number(fields, name, 0, _LARGEST) for name in ("looked_at", "hits"))
        search = self._reader.stats.search
        with self._lock:
            search.looked_at += looked_at
            search.hits += hits

    def _count_real(self, sizes: Any) -> None:
        """Count the texts that the worker materialized, by their sizes."""
        if not isinstance(sizes, list) or not all(type(size) is int and 0 <= size < _LARGEST for size in sizes):
            raise BadRequest("`real` must be a list of sizes")
        for size in sizes:
            self._reader.made_real(size)


class _ServedPass:
    """The frames that a pass of the worker still takes; the reader fetches them ahead."""

    def __init__(self, texts: Iterator[FrameText], clip: Callable[[FrameText], FrameText]):
        self._texts = texts
        self._clip = clip
        self._lock = threading.Lock()
        self._next: FrameText | None = None
        self._ended = False

    def take(self, size_bytes: int) -> tuple[list[FrameText], bool]:
        """The next frames, at least one, of about `size_bytes`; and whether more may follow."""
        try:
            return self._take(size_bytes)
        finally:
            if self._ended:
                self.close()

    def _take(self, size_bytes: int) -> tuple[list[FrameText], bool]:
        taken: list[FrameText] = []
        with self._lock:
            text = self._next or next(self._texts, None)
            self._next = None
            while text is not None:
                size_bytes -= len(text.data)
                if taken and size_bytes < 0:
                    self._next = text
                    break
                taken.append(self._clip(text))
                text = next(self._texts, None) if size_bytes > 0 else None
            return taken, bool(taken)

    def close(self) -> None:
        """Drop the frames that were not taken. Never waits: if a thread is taking one, which storage may delay, that
        thread ends the pass."""
        self._ended = True
        if self._lock.acquire(blocking=False):
            try:
                self._texts.close()  # type: ignore[attr-defined]
            finally:
                self._lock.release()


_OPERATIONS: dict[str, Callable[[ReaderServer, dict[str, Any]], bytes]] = {
    "open": ReaderServer._open,
    "stats": ReaderServer._stats,
    "read": ReaderServer._read,
    "frame": ReaderServer._frame,
    "pass": ReaderServer._pass,
    "next": ReaderServer._next,
    "candidates": ReaderServer._candidates,
    "holding": ReaderServer._holding,
    "frequency": ReaderServer._frequency,
    "lacking": ReaderServer._lacking,
    "all_have": ReaderServer._all_have,
    "line_start": ReaderServer._line_start,
    "line_of": ReaderServer._line_of,
    "record": ReaderServer._record,
    "locate": ReaderServer._locate,
    "documents": ReaderServer._documents,
    "document_page": ReaderServer._document_page,
    "document_named": ReaderServer._document_named,
    "looked": ReaderServer._looked,
    "handed": ReaderServer._handed,
}
