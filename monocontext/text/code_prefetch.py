"""Fetch what the code of a model will read, while the model writes it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType

from monocontext.engine.fetch.scheduler import Priority
from monocontext.engine.frame_table import Frames
from monocontext.engine.hints import CodeHints, Hint, Lines, Needle, Pattern, Ranges, Reach, Whole, read_block
from monocontext.engine.prefetch import Kind
from monocontext.engine.prefetch.read_ahead import PrefetchPlan
from monocontext.engine.prefetch.routes import FIRST_BYTES
from monocontext.engine.reader import Reader
from monocontext.format.filters.query import Literal


class CodePrefetcher:
    """Makes prefetch plans from the code that a model writes about one text, characters [start, stop) of a reader."""

    def __init__(self, reader: Reader, start: int, stop: int, limit: int):
        self._reader = reader
        self._start = start
        self._characters = stop - start
        self._limit = limit
        """The most characters of a text of which `lower()` makes a `str`, and so reads all."""
        self._is_whole = start == 0 and stop == reader.characters
        self._lines = reader.manifest.lines if self._is_whole else None
        self._hints = CodeHints(self._characters, lines=self._lines)
        self._reply_begins = True
        self._used_bytes = 0

    def reply_begins(self) -> None:
        """Treat the next hint as the beginning of a reply."""
        self._reply_begins = True

    def hint(self, delta: str) -> None:
        """Plan the reads of the next piece of a reply."""
        with self._reader.fetcher.lock:
            begins = self._reply_begins or self._has_run()
            self._reply_begins = False
            if begins:
                self._hints.begin()
            hints = self._hints.feed(delta)
        if begins:
            self._reader.fetcher.act(self._reader.ahead.turn)
        if hints:
            self._prefetch(hints)
        if self._reader.fetcher.hedging is not None:
            self._reader.ahead.look()

    def _has_run(self) -> bool:
        """Whether code has read since the last hint. Where the host does not call `thinking()`, a read ends a reply."""
        used, self._used_bytes = self._used_bytes, self._reader.stats.bytes_used
        return used != self._used_bytes and not self._reader.ahead.think.is_thinking

    def reply_ends(self) -> None:
        """Plan the reads of code that only the end of the reply completes."""
        with self._reader.fetcher.lock:
            hints = self._hints.end()
        if hints:
            self._prefetch(hints)

    def block(self, tree: ast.Module, known: Mapping[str, object]) -> None:
        """Plan the reads of a block of code that runs next. `known` has the values of names that it may use."""
        self._reply_begins = True
        hints = read_block(tree, self._characters, lines=self._lines, known=_code_variables(known))
        self._prefetch(hints, runs_now=True)

    def ran(self, known: Mapping[str, object]) -> None:
        """Remember the values of names after a block has run, for hints that depend on them."""
        with self._reader.fetcher.lock:
            self._hints.know(_code_variables(known))

    def _prefetch(self, hints: Iterable[Hint], *, runs_now: bool = False) -> None:
        plans = [plan for hint in hints for plan in self._plans(hint)]
        self._reader.fetcher.act(partial(self._reader.ahead.expect, plans, runs_now=runs_now))

    def _plans(self, hint: Hint) -> Iterator[PrefetchPlan]:
        routes, base, end = self._reader.ahead.routes, self._start, self._start + self._characters
        match hint:
            case Ranges(start, width, step, count, is_literal):
                priority = Priority.LITERAL_HINT if is_literal else Priority.COMPUTED_HINT
                route = routes.ranges(base + start, width, step, count)
                yield PrefetchPlan(route, priority, Kind.KNOWN, skips_used=not is_literal)
            case Lines(start, stop) if self._is_whole:
                yield PrefetchPlan(routes.lines(start, stop), Priority.LITERAL_HINT, Kind.KNOWN)
            case Needle(text, ignore_case, backward, start, stop, reach, hits):
                low, high = base + max(start, 0), min(base + stop, end)
                if ignore_case and self._characters <= self._limit:
                    yield _scan_plan(routes.whole(base, end))  # `lower()` of a text of this size is a `str`
                elif text:
                    yield _search_plan(routes.search(Literal(text), low, high, False, backward, reach), reach, hits)
            case Pattern(pattern, flags, start, stop, reach):
                low, high = base + max(start, 0), min(base + stop, end)
                yield _search_plan(self._match_route(pattern, flags, low, high, reach), reach)
            case Whole(backward, reach):
                yield _search_plan(routes.whole(base, end, backward), "all" if reach == "all" else "first")
            case _:
                pass  # lines of a part of the text, whose characters only a read can tell

    def _match_route(self, pattern: str, flags: int, start: int, stop: int, reach: Reach) -> Frames:
        """The frames that a search for a pattern reads. The pattern is compiled when the route is first walked; an
        invalid one gives no frames."""
        import re

        from monocontext.text.regex.plan import plan

        try:
            found = plan(re.compile(pattern, flags))
        except (re.error, ValueError, OverflowError, RecursionError):
            return
        yield from self._reader.ahead.routes.search(found.query, start, stop, found.within_line, False, reach)


def _code_variables(names: Mapping[str, object]) -> dict[str, object]:
    """The variables of the code, without those of its host."""
    return {name: value for name, value in list(names.items()) if not name.startswith("__")}


def _scan_plan(route: Frames) -> PrefetchPlan:
    return PrefetchPlan(route, Priority.COMPUTED_HINT, Kind.KNOWN, skips_used=True, is_scan=True)


def _search_plan(route: Frames, reach: Reach, hits: int = 0) -> PrefetchPlan:
    """The plan of a search, or of a loop of searches, which starts with a frame for each expected hit."""
    plan = _scan_plan(route)
    plan.is_scan = reach != "some"
    if reach != "all":
        plan.free_bytes = FIRST_BYTES if reach == "first" else max(3, hits // 2) * FIRST_BYTES
    return plan


@dataclass(frozen=True, slots=True)
class Thinking:
    """A context manager to enter while a model thinks. It can be entered again, also nested."""

    _reader: Reader | None
    _prefetcher: CodePrefetcher | None

    def __enter__(self) -> None:
        if self._reader is not None:
            if self._prefetcher is not None:
                self._prefetcher.reply_begins()
            self._reader.fetcher.act(self._reader.ahead.begin_thinking)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        reader = self._reader
        if reader is not None and reader.fetcher.act(reader.ahead.end_thinking) and self._prefetcher is not None:
            self._prefetcher.reply_ends()


def check_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges as a list. Raises `ValueError` for anything but a pair of 0 <= start <= stop."""
    pairs: list[tuple[int, int]] = []
    for one in ranges:
        match one:
            case (int(start), int(stop)) if 0 <= start <= stop:
                pairs.append((start, stop))
            case _:
                raise ValueError(f"prefetch takes pairs of characters (start, stop), 0 <= start <= stop, not {one!r}")
    return pairs


def prefetch(reader: Reader, pairs: Iterable[tuple[int, int]]) -> None:
    """Fetch these characters of a reader, in this order."""
    route = (step for start, stop in pairs for step in reader.ahead.routes.whole(start, stop))
    reader.fetcher.act(partial(reader.ahead.expect, [PrefetchPlan(route, Priority.LITERAL_HINT, Kind.ASKED)]))
