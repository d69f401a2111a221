"""Fetch what the code of a model will read, while the model writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from monocontext.engine.fetch.requests import Priority
from monocontext.engine.fetch.workers import LOCK
from monocontext.engine.filter_lookup import FilterSearch
from monocontext.engine.hints import CodeHints, Hint, Ranges, Search
from monocontext.engine.prefetch.read_ahead import Plan, Route
from monocontext.engine.reader import Reader
from monocontext.format.filters.query import Literal, Query
from monocontext.text.regex.plan import plan


class CodePrefetcher:
    """Plans prefetches from the code that a model writes about one text: characters [start, stop) of `reader`."""

    def __init__(self, reader: Reader, start: int, stop: int, limit: int):
        self._reader = reader
        self._start, self._stop = start, stop
        self._limit = limit
        """The `materialize_limit`. `lower()` of a text up to this size makes a `str`, and so reads all of it."""
        self._hints = CodeHints(stop - start)
        self.reply_begins = True
        """Whether the next hint begins a reply. Where the host does not call `thinking()`, a read ends a reply."""
        self._used_bytes = 0

    def hint(self, delta: str) -> None:
        """Plan the reads of the code in the next piece of a reply."""
        with LOCK:
            has_read = self._used_bytes != self._reader.stats.bytes_used
            self._used_bytes = self._reader.stats.bytes_used
            if self.reply_begins or (has_read and not self._reader.ahead.calls):
                self.reply_begins = False
                self._hints.begin()
                self._reader.ahead.begin_reply()
            self._prefetch(self._hints.feed(delta))

    def reply_ends(self) -> None:
        """Plan the reads of the last line of a reply, which may have no newline."""
        with LOCK:
            self._prefetch(self._hints.feed("\n"))

    def _prefetch(self, hints: list[Hint]) -> None:
        if hints and not self._reader.is_closed:
            self._reader.ahead.expect([self._plan(hint) for hint in hints])

    def _plan(self, hint: Hint) -> Plan:
        ahead, base = self._reader.ahead, self._start
        if isinstance(hint, Ranges):
            priority = Priority.LITERAL_HINT if hint.count == 1 else Priority.COMPUTED_HINT
            return Plan(ahead.ranges(base + hint.start, hint.width, hint.step, hint.count), priority)
        if hint.ignore_case and self._stop - base <= self._limit:  # `lower()` makes a `str` of all of it
            return Plan(ahead.between(base, self._stop), Priority.COMPUTED_HINT)
        return Plan(self._search_route(hint, base + hint.start, base + hint.stop), Priority.COMPUTED_HINT)

    def _search_route(self, hint: Search, start: int, stop: int) -> Route:
        """The frames that a search reads; none for an invalid pattern. It is parsed when a frame is first asked for."""
        query: Query | None = Literal(hint.needle)
        within_line = False
        if hint.flags is not None:
            try:
                planned = plan(re.compile(hint.needle, hint.flags))
            except (re.error, ValueError, OverflowError, RecursionError):
                return
            query, within_line = planned.query, planned.within_line
        search = FilterSearch(query, start, stop, within_line)
        yield from self._reader.ahead.search(search, backward=hint.backward, reach=hint.reach)


@dataclass(frozen=True, slots=True)
class Thinking:
    """A context manager to enter while a model thinks. It is reusable and reentrant."""

    _reader: Reader | None
    _prefetcher: CodePrefetcher | None

    def __enter__(self) -> None:
        if self._reader is not None:
            if self._prefetcher is not None:
                self._prefetcher.reply_begins = True
            with LOCK:
                if not self._reader.is_closed:
                    self._reader.ahead.begin_thinking()

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            with LOCK:
                is_last = self._reader.ahead.end_thinking()
            if is_last and self._prefetcher is not None:
                self._prefetcher.reply_ends()


def prefetch(reader: object, start: int, characters: int, ranges: Iterable[tuple[int, int]]) -> None:
    """Fetch ranges of a text, in this order. The text is characters [start, start + characters) of `reader`. Raises
    `ValueError` for anything but pairs (start, stop) with 0 <= start <= stop."""
    pairs: list[tuple[int, int]] = []
    for item in ranges:
        match item:
            case (int(first), int(stop)) if 0 <= first <= stop:
                pairs.append((start + min(first, characters), start + min(stop, characters)))
            case _:
                raise ValueError(f"prefetch takes pairs (start, stop) with 0 <= start <= stop, not {item!r}")
    if isinstance(reader, Reader):
        route = chain.from_iterable(reader.ahead.between(*pair) for pair in pairs)
        with LOCK:
            if not reader.is_closed:
                reader.ahead.expect([Plan(route, Priority.LITERAL_HINT)])
