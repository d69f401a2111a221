"""Answer, in the host, a worker's requests for one text and no other.

The worker is not trusted. It may read the whole stored text, even if its own text is only a part of it or derived from
it, and the search filters, the names of documents and the statistics. Requests are bounded, and each field is checked.
No request can ask for keys, addresses or other objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from monocontext.engine.candidates import Candidates
from monocontext.engine.fetch.requests import Priority
from monocontext.engine.fetch.workers import LOCK
from monocontext.engine.frame import FrameText
from monocontext.engine.prefetch.read_ahead import Plan
from monocontext.engine.read_log import ReadLog
from monocontext.engine.reader import Reader
from monocontext.engine.remote import wire
from monocontext.engine.remote.wire import BadRequest
from monocontext.engine.stats import SearchStats
from monocontext.errors import MonocontextError

_MAX_READ = 1 << 20  # the most characters of one read of text alone
_MAX_RANGES = 20_000  # the most ranges in one report of reads
_LARGEST = 1 << 62  # the largest number in a request


class ReaderServer:
    """Answers the requests of a worker for the text of one reader. Safe for use by many threads."""

    bad_request = BadRequest  # the error for a request that no honest worker sends

    def __init__(
        self, reader: Reader, start: int, stop: int, *, limit: int, steps: tuple[tuple[str, list[Any]], ...] = ()
    ):
        """`start`, `stop`: the characters that are the worker's text. `limit`: the most characters of one real `str`.
        `steps`: the methods, with arguments, by which the worker derives its text from them."""
        self._reader = reader
        self._start, self._stop = start, stop
        self._limit = limit
        self.steps = steps

    def with_steps(self, steps: tuple[tuple[str, list[Any]], ...]) -> ReaderServer:
        """A server of the same characters, whose worker derives its text from them by `steps`."""
        return ReaderServer(self._reader, self._start, self._stop, limit=self._limit, steps=steps)

    def answer(self, request: bytes) -> bytes:
        """The answer to one request; may wait for storage.

        Raises `BadRequest` for a message that no `ServedReader` sends. Errors of reads are answers, which the worker
        raises unchanged.
        """
        fields = wire.parse_request(request)
        verb = _VERBS.get(fields["verb"])
        if verb is None:
            raise BadRequest(f"unknown verb {fields['verb']!r:.50}: expected one of {', '.join(_VERBS)}")
        try:
            return verb(self, fields)
        except MonocontextError as error:
            return wire.encode_answer({"error": type(error).__name__, "message": str(error)})

    def is_ready(self, request: bytes) -> bool:
        """Whether a request can be answered without waiting for storage. Raises `BadRequest` like `answer`."""
        fields = wire.parse_request(request)
        match fields:
            case {"verb": "open" | "report"}:
                return True
            case {"verb": "read", "what": "text" | "frame"}:
                start, stop = self._range(fields, _MAX_READ)
                with suppress(MonocontextError):  # the ends are damaged: `answer` tells the worker
                    return self._reader.ends.within(start, stop) is not None or self._reader.is_in_memory(start, stop)
        return False

    # -- the verbs -------------------------------------------------------------------------------------------------

    def _open(self, fields: dict[str, Any]) -> bytes:
        """What the worker has to know: the size of the text, and which of its characters are the worker's own text."""
        reader = self._reader
        return wire.encode_answer(
            {
                "url": reader.url, "generation": reader.generation, "characters": reader.characters,
                "final_newline": reader.final_newline, "start": self._start, "stop": self._stop, "limit": self._limit,
                "bytes": reader.manifest.text_bytes, "steps": self.steps,
            }
        )  # fmt: skip

    def _read(self, fields: dict[str, Any]) -> bytes:
        """Some characters, the frame of one character, or the next frames of a pass."""
        match fields.get("what"):
            case "text":
                start, stop = self._range(fields, _MAX_READ)
                return wire.encode_answer({}, [self._reader.read(start, stop).encode()])
            case "frame":
                start, _ = self._range(fields, _MAX_READ)
                if start == self._reader.characters:
                    raise BadRequest(f"start must be less than {start:,}, the length of the text, not {start:,}")
                text = self._reader.frame_within(start, start + 1)
                assert text is not None  # a frame holds each character
                return _frames_answer([text])
            case "pass":
                return self._pass(fields)
        raise _unknown_what(fields, "text", "frame", "pass")

    def _pass(self, fields: dict[str, Any]) -> bytes:
        """The next frames of a pass, at least one if there is one, of about as many bytes as the request asks for."""
        reader = self._reader
        start, stop = self._range(fields, _LARGEST)
        size_bytes = wire.check_int(fields, "bytes", 1, wire.MAX_BATCH_BYTES)
        only = self._named_candidates(fields, start, stop)
        reverse = fields.get("reverse") is True
        frames = reader.frames(
            start, stop, reverse=reverse, eager=fields.get("eager") is True, only=only, logged=False,
            is_search=fields.get("search") is True,
        )  # fmt: skip
        texts: list[FrameText] = []
        while size_bytes > 0 and (text := next(frames, None)):
            texts.append(text)
            size_bytes -= len(text.data)
        del frames  # and with it the requests that have not started
        if texts and only is None and not reader.is_one_wave(start, stop):
            self._fetch_ahead(texts, start, stop, reverse)
        return _frames_answer(texts)

    def _fetch_ahead(self, texts: list[FrameText], start: int, stop: int, reverse: bool) -> None:
        """Prefetch twice as many characters as a batch has, from where its pass over [start, stop) goes on."""
        characters, last, ahead = 2 * sum(text.frame.characters for text in texts), texts[-1].frame, self._reader.ahead
        if reverse:
            start, stop = max(start, last.start - characters), last.start
        else:
            start, stop = last.stop, min(stop, last.stop + characters)
        with LOCK:
            ahead.expect([Plan(ahead.between(start, stop, reverse), Priority.SEQUENTIAL, is_guess=True)])

    def _candidates(self, fields: dict[str, Any]) -> bytes:
        """The frames in which matches of a query may begin, or those that lack a flag."""
        reader, what = self._reader, fields.get("what")
        if what == "lacking":
            flag = wire.check_int(fields, "flag", 1, 1 << 16)
            return _candidates_answer(reader.frames_without(flag, *self._range(fields, _LARGEST)))
        query = wire.query_of(fields.get("query"))
        match what:
            case "holding":
                return _candidates_answer(reader.frames_holding(query, *self._range(fields, _LARGEST)))
            case "candidates":
                start, stop = self._range(fields, _LARGEST)
                return _candidates_answer(reader.candidates(query, start, stop, fields.get("within_line") is True))
        raise _unknown_what(fields, "candidates", "holding", "lacking")

    def _locate(self, fields: dict[str, Any]) -> bytes:
        """The record of a frame, the first character of a line, or the newlines before a character."""
        reader = self._reader
        most = {"frame": reader.manifest.frames - 1, "character": reader.characters - 1}
        number = wire.check_int(fields, "number", 0, most.get(str(fields.get("what")), _LARGEST))
        match fields.get("what"):
            case "frame":
                return wire.encode_answer({"value": wire.frame_row(reader.frame(number))})
            case "character":
                return wire.encode_answer({"value": wire.frame_row(reader.locate(number))})
            case "line":
                return wire.encode_answer({"value": reader.line_start(number)})
            case "newlines":
                return wire.encode_answer({"value": reader.line_of(number)})
        raise _unknown_what(fields, "frame", "character", "line", "newlines")

    def _documents(self, fields: dict[str, Any]) -> bytes:
        """The entries of all pages of documents, one page, or the number of the document with a name."""
        table = self._reader.documents
        if "page" in fields:
            number = wire.check_int(fields, "page", 0, len(table.page_refs) - 1)
            return wire.encode_answer({}, [table.page(number).data])
        if "name" in fields:
            if not isinstance(name := fields["name"], str):
                raise BadRequest(f"name must be a str, not {name!r:.50}")
            return wire.encode_answer({"number": table.find(name)})
        rows = [wire.page_row(ref) for ref in table.page_refs]
        return wire.encode_answer({"pages": rows, "names": table.name_count, "first_duplicate": table.first_duplicate})

    def _report(self, fields: dict[str, Any]) -> bytes:
        """Add what the worker read and found to the counts, and answer with all counts."""
        reader = self._reader
        looked_at, hits = (wire.check_int(fields, name, 0, _LARGEST) for name in ("looked_at", "hits"))
        self._add_to(reader.read_log, fields.get("read"))
        self._add_to(reader.piece_log, fields.get("handed"))
        real = fields.get("real", [])
        if not isinstance(real, list) or len(real) > _MAX_RANGES:
            raise BadRequest(f"real must be a list of at most {_MAX_RANGES:,} sizes, not {real!r:.50}")
        for size_bytes in [wire.check_int({"real": size}, "real", 0, _LARGEST) for size in real]:
            reader.count_real(size_bytes)
        with LOCK:
            reader.stats.search.looked_at += looked_at
            reader.stats.search.hits += hits
        return wire.encode_answer(asdict(reader.stats) | {"credentials_source": ""})  # a path of the host's

    # -- bounds ----------------------------------------------------------------------------------------------------

    def _range(self, fields: dict[str, Any], most: int) -> tuple[int, int]:
        """The characters [start, stop) of a request, at most `most`. Raises `BadRequest`."""
        end = self._reader.characters
        start = wire.check_int(fields, "start", 0, end)
        return start, wire.check_int(fields, "stop", start, min(end, start + most))

    def _named_candidates(self, fields: dict[str, Any], start: int, stop: int) -> Candidates | None:
        """The candidates that a request names; None if it names none."""
        if fields.get("runs") is None:
            return None
        pairs = wire.check_ranges(fields["runs"], self._reader.manifest.frames, _LARGEST)
        ends = [number for pair in pairs for number in pair]
        if any(first == end for first, end in pairs) or ends != sorted(ends):
            raise BadRequest(f"runs of frames must not be empty, and must ascend without overlaps: found {pairs!r:.50}")
        return Candidates(pairs, start, stop, self._reader.frame, self._reader.locate, SearchStats())

    def _add_to(self, log: ReadLog | None, ranges: Any) -> None:
        """Check the ranges of a report, and add them to a log if there is one."""
        for start, stop in wire.check_ranges(ranges, self._reader.characters, _MAX_RANGES):
            if log is not None:
                log.add(start, stop)


def _unknown_what(fields: dict[str, Any], *accepted: str) -> BadRequest:
    return BadRequest(f"what must be one of {', '.join(accepted)}, not {fields.get('what')!r:.50}")


def _frames_answer(texts: list[FrameText]) -> bytes:
    """The answer to a read of frames."""
    return wire.encode_answer({"frames": [wire.frame_row(text.frame) for text in texts]}, (text.data for text in texts))


def _candidates_answer(candidates: Candidates | None) -> bytes:
    """The answer to a request for candidates, which are None if a match may begin in all frames."""
    if candidates is None:
        return wire.encode_answer({"is_narrowed": False})
    ends = array("Q", (number for run in candidates.runs for number in run))
    header = {"is_narrowed": True, "start": candidates.start, "stop": candidates.stop}
    return wire.encode_answer(header, [ends.tobytes()])


_VERBS: dict[str, Callable[[ReaderServer, dict[str, Any]], bytes]] = {
    "open": ReaderServer._open,
    "read": ReaderServer._read,
    "candidates": ReaderServer._candidates,
    "locate": ReaderServer._locate,
    "documents": ReaderServer._documents,
    "report": ReaderServer._report,
}
