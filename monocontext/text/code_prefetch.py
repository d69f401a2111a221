"""Fetch what the code of a model will read, while the model writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

from monocontext.engine.fetch.requests import Priority
from monocontext.engine.fetch.workers import LOCK
from monocontext.engine.hints import CodeHints, Hint, Ranges, Search
from monocontext.engine.prefetch.read_ahead import Plan, Route
from monocontext.engine.reader import Reader
from monocontext.format.filters.query import Literal, Query
from monocontext.text.regex.plan import plan


class CodePrefetcher:
    """Makes prefetch plans from the code that a model writes about one text, characters [start, stop) of a reader."""

    def __init__(self, reader: Reader, start: int, stop: int, limit: int):
        self._reader = reader
        self._start, self._stop = start, stop
        self._limit = limit
        """The most characters of a text of which `lower()` makes a `str`, and so reads all."""
        self._hints = CodeHints(stop - start)
        self._reply_begins = True
        self._used_bytes = 0

    def reply_begins(self) -> None:
        """Treat the next hint as the beginning of a reply."""
        self._reply_begins = True

    def hint(self, delta: str) -> None:
        """Plan the reads of the next piece of a reply."""
        with LOCK:
            if self._reply_begins or self._has_run():
                self._reply_begins = False
                self._hints.begin()
                self._reader.ahead.turn()
            self._prefetch(self._hints.feed(delta))

    def _has_run(self) -> bool:
        """Whether code has read since the last hint. Where the host does not call `thinking()`, a read ends a reply."""
        used, self._used_bytes = self._used_bytes, self._reader.stats.bytes_used
        return used != self._used_bytes and not self._reader.ahead.calls

    def reply_ends(self) -> None:
        """Plan the reads of a last line without an end."""
        with LOCK:
            self._prefetch(self._hints.end())

    def _prefetch(self, hints: list[Hint]) -> None:
        if hints and not self._reader.is_closed:
            self._reader.ahead.expect([self._plan(hint) for hint in hints])

    def _plan(self, hint: Hint) -> Plan:
        ahead, base = self._reader.ahead, self._start
        if isinstance(hint, Ranges):
            route = ahead.ranges(base + hint.start, hint.width, hint.step, hint.count)
            if hint.is_literal:
                return Plan(route, Priority.LITERAL_HINT)
            return Plan(route, Priority.COMPUTED_HINT)
        if hint.ignore_case and self._stop - base <= self._limit:
            route = ahead.between(base, self._stop)  # `lower()` of a text of this size is a `str`
        else:
            route = self._search_route(hint, base + hint.start, base + hint.stop)
        return Plan(route, Priority.COMPUTED_HINT)

    def _search_route(self, hint: Search, start: int, stop: int) -> Route:
        """The frames that a search reads. A pattern is parsed when the route is first walked; an invalid one has
        none."""
        if hint.flags is None:
            query: Query | None = Literal(hint.needle)
            within_line = False
        else:
            try:
                planned = plan(re.compile(hint.needle, hint.flags))
            except (re.error, ValueError, OverflowError, RecursionError):
                return
            query, within_line = planned.query, planned.within_line
        yield from self._reader.ahead.search(query, start, stop, within_line, hint.backward, hint.reach)


@dataclass(frozen=True, slots=True)
class Thinking:
    """A context manager to enter while a model thinks. It can be entered again, also nested."""

    _reader: Reader | None
    _prefetcher: CodePrefetcher | None

    def __enter__(self) -> None:
        if self._reader is not None:
            if self._prefetcher is not None:
                self._prefetcher.reply_begins()
            with LOCK:
                if not self._reader.is_closed:
                    self._reader.ahead.begin_thinking()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._reader is not None:
            with LOCK:
                is_last = self._reader.ahead.end_thinking()
            if is_last and self._prefetcher is not None:
                self._prefetcher.reply_ends()


def check_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges as a list. Raises `ValueError` for anything but a pair of 0 <= start <= stop."""
    pairs: list[tuple[int, int]] = []
    for item in ranges:
        match item:
            case (int(start), int(stop)) if 0 <= start <= stop:
                pairs.append((start, stop))
            case _:
                raise ValueError(f"prefetch takes pairs of characters (start, stop), 0 <= start <= stop, not {item!r}")
    return pairs


def prefetch(reader: Reader, pairs: Iterable[tuple[int, int]]) -> None:
    """Fetch these characters of a reader, in this order."""
    route = (step for start, stop in pairs for step in reader.ahead.between(start, stop))
    with LOCK:
        if not reader.is_closed:
            reader.ahead.expect([Plan(route, Priority.LITERAL_HINT)])
