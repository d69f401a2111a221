"""The worker's side: a reader that asks the host for what it does not have at hand."""

from __future__ import annotations

import ast
import json
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from monocontext import errors
from monocontext.candidates import Candidates
from monocontext.frametext import FrameText
from monocontext.index import Frame
from monocontext.needs import Need
from monocontext.readlog import ReadLog
from monocontext.served import wire
from monocontext.served.known import known as known_values
from monocontext.served.shelf import Shelf
from monocontext.stats import PrefetchStats, SearchStats, Stats

SHELF_BYTES = 64 << 20
"""Memory for frames in the worker; the cache proper is the host's."""
FIRST_BATCH_BYTES = 256 << 10
MAX_BATCH_BYTES = 4 << 20
"""A pass begins with a frame and doubles up to this: most `find`s of a model end early."""
SMALL_READ = 64 << 10
"""Characters up to which a first read is asked for alone; the second in its neighbourhood brings the whole frame."""
NEIGHBOURHOOD = 1 << 18
RUNS_AT_ONCE = 10_000
"""Runs of candidates in one request."""

REPORTED_AT_ONCE = 1_000

Ask = Callable[[bytes], bytes | memoryview]
"""Carries a request to the host and gives the answer; may be called by many threads."""


class ServedReader:
    """What a text needs of a reader, asked for over a channel. Safe for use by many threads.

    Costs are those of the host's reader; what is at hand costs no message.
    """

    def __init__(self, ask: Ask, *, shelf_bytes: int = SHELF_BYTES):
        self._send = ask
        self._shelf = Shelf(shelf_bytes)
        self._touched: OrderedDict[int, None] = OrderedDict()
        self._records: OrderedDict[int, Frame] = OrderedDict()
        self._search = SearchStats()
        self._told = (0, 0)
        self._ended: deque[int] = deque()  # passes given up early; the next request says so
        self._closed = False
        self.log = ReadLog()
        """What code here has looked at; the host, which sees whole frames pass, hears of it after each cell."""
        self._reported: int | None = self.log.since(None)[0]
        described, _ = self._ask("open")
        self.described: dict[str, Any] = described
        """What the host says of the text: its place in the source, its limit."""
        self.url: str = described["url"]
        self.generation: int = described["generation"]
        self.characters: int = described["characters"]
        self.final_newline: bool | None = described["final_newline"]

    @property
    def stats(self) -> Stats:
        """The host's counts (a message)."""
        fields, _ = self._ask("stats")
        search, prefetch = SearchStats(**fields.pop("search")), PrefetchStats(**fields.pop("prefetch"))
        return Stats(**fields, search=search, prefetch=prefetch)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop), both within the text, as one `str`."""
        if stop <= start:
            return ""
        texts = self._shelf.covering(start, stop)
        if texts is None and stop - start <= SMALL_READ:
            self.log.add(start, stop)
            _, body = self._ask("read", start=start, stop=stop)
            return str(body, "utf-8")
        if texts:
            self.log.add(start, stop)
        return "".join(
            text.slice(max(start - text.frame.start, 0), min(stop, text.frame.stop) - text.frame.start)
            for text in texts or self.frames(start, stop, eager=True)
        )

    def within(self, start: int, stop: int) -> FrameText | None:
        """The frame that holds characters [start, stop) whole, if it is at hand or worth bringing."""
        self._check_open()
        self.log.add(start, stop)
        text = self._shelf.at(start)
        if text is None:
            place = start // NEIGHBOURHOOD
            if place not in self._touched and stop - start <= SMALL_READ:
                self._touched[place] = None
                if len(self._touched) > 4096:
                    self._touched.popitem(last=False)
                return None
            text = self._batch(*self._ask("frame", character=start))[0]
            self._shelf.put(text)
        return text if stop <= text.frame.stop else None

    def peek(self, character: int) -> FrameText | None:
        """The frame that holds a character, if it is at hand."""
        return self._shelf.at(character)

    def frames(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[FrameText]:
        """The frames that hold characters [start, stop), in order or backwards; of `only` those among them."""
        self._check_open()
        if stop <= start:
            return
        for text in self._frames(start, stop, reverse, eager, only):
            self.log.add(max(start, text.frame.start), min(stop, text.frame.stop))
            yield text

    def _frames(
        self, start: int, stop: int, reverse: bool, eager: bool, only: Candidates | None
    ) -> Iterator[FrameText]:
        if only is None:
            here = self._shelf.covering(start, stop)
            if here is not None:
                yield from reversed(here) if reverse else here
            else:
                yield from self._streamed(start, stop, reverse, eager, None)
            return
        groups = [only.runs[i : i + RUNS_AT_ONCE] for i in range(0, len(only.runs), RUNS_AT_ONCE)]
        for runs in reversed(groups) if reverse else groups:
            here = self._at_hand(runs)
            if here is None:
                yield from self._streamed(start, stop, reverse, eager, runs)
            else:
                chosen = [text for text in here if text.frame.stop > start and text.frame.start < stop]
                yield from reversed(chosen) if reverse else chosen

    def _at_hand(self, runs: list[tuple[int, int]]) -> list[FrameText] | None:
        if sum(stop - start for start, stop in runs) > 4096:
            return None
        return self._shelf.numbered([number for start, stop in runs for number in range(start, stop)])

    def _streamed(
        self, start: int, stop: int, reverse: bool, eager: bool, runs: list[tuple[int, int]] | None
    ) -> Iterator[FrameText]:
        size = MAX_BATCH_BYTES if eager else FIRST_BATCH_BYTES
        kept_bytes, number = 0, None
        try:
            while start < stop:
                if number is None:
                    header, body = self._ask(
                        "pass", start=start, stop=stop, reverse=reverse, eager=eager, runs=runs, bytes=size
                    )
                else:
                    header, body = self._ask("next", **{"pass": number}, bytes=size)
                    if header.get("gone"):  # the host ended it for others: go on from here
                        number = None
                        continue
                number = header["pass"]
                for text in self._batch(header, body):
                    kept_bytes += text.size_bytes
                    if kept_bytes <= self._shelf.capacity_bytes // 2:  # a longer pass would flush all that is here
                        self._shelf.put(text)
                    if reverse:
                        stop = text.frame.start
                    else:
                        start = text.frame.stop
                    yield text
                if number is None:
                    return
                size = min(2 * size, MAX_BATCH_BYTES)
        finally:
            if number is not None:  # an iterator may be collected anywhere, also while a message is being written
                self._ended.append(number)

    def _batch(self, header: dict[str, Any], body: memoryview) -> list[FrameText]:
        texts, at = [], 0
        for row in header["frames"]:
            frame = wire.frame_of(row)
            texts.append(FrameText(frame, bytes(body[at : at + frame.bytes])))
            at += frame.bytes
        return texts

    # -- search ----------------------------------------------------------------------------------------------------

    def candidates(self, sought: Need | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """Where a match that starts in [start, stop) may begin; None: anywhere."""
        if stop <= start or sought is None:
            return None
        need = wire.need_row(sought)
        if len(json.dumps(need)) > wire.MAX_REQUEST_BYTES // 2:
            return None  # thousands of literals: no filter would narrow them
        return self._found(*self._ask("candidates", need=need, start=start, stop=stop, within_line=within_line))

    def lacking(self, flag: int, start: int, stop: int) -> Candidates | None:
        """The frames of a range that lack a flag, unless they are many."""
        if stop <= start:
            return Candidates([], start, stop, self.frame, self.locate, SearchStats())
        return self._found(*self._ask("lacking", flag=flag, start=start, stop=stop))

    def all_have(self, flag: int, start: int, stop: int) -> bool:
        """Whether every frame of a range has a flag."""
        return stop <= start or bool(self._ask("all_have", flag=flag, start=start, stop=stop)[0]["value"])

    def _found(self, header: dict[str, Any], body: memoryview) -> Candidates | None:
        if not header["some"]:
            return None
        ends = array("Q", body.tobytes())
        runs = list(zip(ends[::2], ends[1::2], strict=True))
        return Candidates(runs, header["start"], header["stop"], self.frame, self.locate, self._search)

    def frame(self, number: int) -> Frame:
        """The record of a frame."""
        found = self._records.get(number)
        if found is None:
            found = self._keep(wire.frame_of(self._ask("record", frame=number)[0]["frame"]))
        return found

    def locate(self, character: int) -> Frame:
        """The record of the frame that holds a character."""
        text = self._shelf.at(character)
        if text is not None:
            return text.frame
        return self._keep(wire.frame_of(self._ask("locate", character=character)[0]["frame"]))

    def _keep(self, frame: Frame) -> Frame:
        self._records[frame.number] = frame
        if len(self._records) > 10_000:
            self._records.popitem(last=False)
        return frame

    # -- lines -----------------------------------------------------------------------------------------------------

    def line_start(self, line: int) -> int:
        r"""First character after `line` newlines; the text's length when there are fewer."""
        return 0 if line <= 0 else int(self._ask("line_start", line=line)[0]["value"])

    def line_of(self, character: int) -> int:
        r"""Number of newlines before a character."""
        if character <= 0:
            return 0
        text = self._shelf.at(character)
        if text is not None:
            frame = text.frame
            return frame.start_newline + text.data.count(b"\n", 0, text.to_byte(character - frame.start))
        return int(self._ask("line_of", character=character)[0]["value"])

    # -- what was read ---------------------------------------------------------------------------------------------

    def block(self, tree: ast.Module, known: Mapping[str, object]) -> None:
        """A cell is about to run; what it will read, the host has told from the reply that it came in."""

    def ran(self, known: Mapping[str, object]) -> None:
        """A cell has run: tell the host what names hold and what was looked at (a message, 1 for 1,000 ranges)."""
        self._ask("ran", known=known_values(known))
        self._reported, ranges = self.log.since(self._reported)
        for i in range(0, len(ranges), REPORTED_AT_ONCE):
            self._ask("looked", ranges=ranges[i : i + REPORTED_AT_ONCE])

    # -- lifetime --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop what is at hand; the host's text stays open. Later reads raise `ContextClosed`. Idempotent."""
        self._closed = True
        self._shelf.clear()

    def __repr__(self) -> str:
        return f"<ServedReader {self.url} generation {self.generation}>"

    def _check_open(self) -> None:
        if self._closed:
            raise errors.ContextClosed(f"{self.url or 'this context'} is closed")

    def _ask(self, op: str, **fields: Any) -> tuple[dict[str, Any], memoryview]:
        self._check_open()
        search = self._search
        if (search.looked_at, search.hits) != self._told:
            looked_at, hits = self._told
            self._told = (search.looked_at, search.hits)
            fields |= {"looked_at": self._told[0] - looked_at, "hits": self._told[1] - hits}
        if self._ended:
            fields["ended"] = [self._ended.popleft() for _ in range(min(len(self._ended), 100))]
        header, body = wire.opened(self._send(wire.request(op, **fields)))
        if "error" in header:
            raise _typed(header["error"], header["message"])
        return header, body


def _typed(name: str, message: str) -> errors.MonocontextError:
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.MonocontextError):
        return kind(message)
    return errors.StoreFailure(f"{name}: {message}")
