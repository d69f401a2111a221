"""From what a model writes to what is fetched before its code runs: hints become courses of a reader."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType

from monocontext.hints import CodeHints, Hint, Lines, Needle, Pattern, Ranges, Reach, Whole, read_block
from monocontext.needs import Literal
from monocontext.prefetch import Kind
from monocontext.readahead import Course
from monocontext.reader import Reader
from monocontext.routes import Route
from monocontext.scheduler import Priority


class CodeAhead:
    """Follows the code that a model writes about one text: characters [start, stop) of what a reader reads."""

    def __init__(self, reader: Reader, start: int, stop: int, limit: int):
        self._reader = reader
        self._start = start
        self._characters = stop - start
        self._limit = limit
        """Characters up to which `lower()` and its kin read the whole text."""
        self._is_whole = start == 0 and stop == reader.characters
        self._hints = CodeHints(self._characters, lines=reader.manifest.lines if self._is_whole else None)
        self._reply_begins = True
        self._used_bytes = 0

    def reply_begins(self) -> None:
        """The next hint is the beginning of a reply."""
        self._reply_begins = True

    def hint(self, delta: str) -> None:
        """The next piece of a reply."""
        with self._reader.lock:
            begins = self._reply_begins or self._has_run()
            self._reply_begins = False
            if begins:
                self._hints.begin()
            hints = self._hints.feed(delta)
        if begins:
            self._reader.turn()
        if hints:
            self._expect(hints)
        self._reader.look()

    def _has_run(self) -> bool:
        """Whether code has read since the last hint; while nobody says when a model is at work, that ends a reply."""
        used, self._used_bytes = self._used_bytes, self._reader.stats.bytes_used
        return used != self._used_bytes and not self._reader.is_thinking

    def reply_ends(self) -> None:
        """The reply is complete."""
        with self._reader.lock:
            hints = self._hints.end()
        if hints:
            self._expect(hints)

    def block(self, tree: ast.Module, known: Mapping[str, object]) -> None:
        """This block runs next, where names hold `known`."""
        self._reply_begins = True
        lines = self._reader.manifest.lines if self._is_whole else None
        self._expect(read_block(tree, self._characters, lines=lines, known=_of_code(known)), runs_now=True)

    def ran(self, known: Mapping[str, object]) -> None:
        """A block has run: where the next looks may follow from what names hold now."""
        with self._reader.lock:
            self._hints.know(_of_code(known))

    def _expect(self, hints: Iterable[Hint], *, runs_now: bool = False) -> None:
        self._reader.expect([course for hint in hints for course in self._courses(hint)], runs_now=runs_now)

    def _courses(self, hint: Hint) -> Iterator[Course]:
        routes, base, end = self._reader.routes, self._start, self._start + self._characters
        match hint:
            case Ranges(start, width, step, count, is_literal):
                priority = Priority.LITERAL_HINT if is_literal else Priority.COMPUTED_HINT
                route = routes.ranges(base + start, width, step, count)
                yield Course(route, priority, Kind.KNOWN, skips_used=not is_literal)
            case Lines(start, stop) if self._is_whole:
                yield Course(routes.lines(start, stop), Priority.LITERAL_HINT, Kind.KNOWN)
            case Needle(text, ignore_case, backward, start, stop, reach):
                low, high = base + max(start, 0), min(base + stop, end)
                if ignore_case and self._characters <= self._limit:
                    yield _scan(routes.whole(base, end))  # `lower()` of a text of this size is a `str`
                elif text:
                    yield _scan(routes.search(Literal(text), low, high, False, backward, reach))
            case Pattern(pattern, flags, start, stop, reach):
                low, high = base + max(start, 0), min(base + stop, end)
                yield _scan(self._matches(pattern, flags, low, high, reach))
            case Whole(backward):
                yield _scan(routes.whole(base, end, backward))
            case _:
                pass  # lines of a part of the text: where they lie is not known without reading

    def _matches(self, pattern: str, flags: int, start: int, stop: int, reach: Reach) -> Route:
        """A search for a pattern. It is compiled when the route is first walked; one that does not compile is none."""
        import re

        from monocontext.regex.plan import plan

        try:
            found = plan(re.compile(pattern, flags))
        except (re.error, ValueError, OverflowError, RecursionError):
            return
        yield from self._reader.routes.search(found.need, start, stop, found.within_line, False, reach)


def _of_code(names: Mapping[str, object]) -> dict[str, object]:
    """What code has named, without what its host gave it."""
    return {name: value for name, value in list(names.items()) if not name.startswith("__")}


def _scan(route: Route) -> Course:
    return Course(route, Priority.COMPUTED_HINT, Kind.KNOWN, skips_used=True, is_scan=True)


class Thinking:
    """Held while a model is at work. May be entered again, also while it is held."""

    __slots__ = ("_code", "_reader")

    def __init__(self, reader: Reader | None, code: CodeAhead | None):
        self._reader = reader
        self._code = code

    def __enter__(self) -> None:
        if self._reader is not None:
            if self._code is not None:
                self._code.reply_begins()
            self._reader.begin_thinking()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._reader is not None and self._reader.end_thinking() and self._code is not None:
            self._code.reply_ends()


def pairs_of(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same as a list. Raises `ValueError` for what is not a pair of 0 <= start <= stop."""
    pairs: list[tuple[int, int]] = []
    for one in ranges:
        match one:
            case (int(start), int(stop)) if 0 <= start <= stop:
                pairs.append((start, stop))
            case _:
                raise ValueError(f"prefetch takes pairs of characters (start, stop), 0 <= start <= stop, not {one!r}")
    return pairs


def prefetch(reader: Reader, pairs: Iterable[tuple[int, int]]) -> None:
    """Fetch these characters of what a reader reads, in this order."""
    route = (step for start, stop in pairs for step in reader.routes.whole(start, stop))
    reader.expect([Course(route, Priority.LITERAL_HINT, Kind.ASKED)])
