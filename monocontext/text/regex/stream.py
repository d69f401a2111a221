"""Find the matches of a pattern in a text that comes in windows, equal to those of `re` on the whole text.

Invariants of the loop:
- all matches that start before `at` are decided and yielded;
- a window begins at least `left` characters before `at`, or at the beginning of the text;
- `at` never decreases, and each character is read from the text once: the buffer keeps what a wider or later window
  needs again;
- when the last match was empty and ended at `at`, the next run from there finds it again first (the engine's own rule
  against it is lost between runs), and it is dropped: `replay`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from monocontext.engine.candidates import Candidates
from monocontext.errors import ContextTooLarge
from monocontext.format.filters.query import Literal
from monocontext.text.regex.plan import Plan
from monocontext.text.regex.prefilter import find_matches
from monocontext.text.regex.rewrite import Marked
from monocontext.text.source import Span
from monocontext.text.windows import Window

WINDOW = 1 << 20
"""Characters searched at once: the edges of a window cost little, and so does its memory."""
FIRST_WINDOW = 1 << 15
"""Characters of the first window: `search` and `match` often succeed near their start."""
FIRST_MATCH_WINDOW = 1 << 12
"""The same for a match at a given place."""
MOST_WAITS = 15
"""Windows that are searched without a look for the literal, where it was in many before."""
FAR = 1 << 14
"""Characters before a window's end in which to find stops, where `marked` is the other way: with rarer stops much text
would be searched twice, and finding them is slow (20 MB/s)."""


class TextWindow:
    """Reads characters [start, stop) of a text forward; keeps the last window."""

    def __init__(
        self,
        span: Span,
        start: int,
        stop: int,
        *,
        eager: bool = False,
        only: Candidates | None = None,
        literal: Literal | None = None,
        searches: bool = False,
    ):
        """`literal`: what `skip` will be asked for. `searches`: for a match anywhere, not for text in order."""
        self._span = span
        self._stop = stop
        needles = (literal.text,) if literal else () if searches else None
        self._windows = span.windows(start, stop, eager=eager, only=only, needles=needles)
        self._next: Window | None = None
        """Where the buffer ends, or after that."""
        self._text = ""
        """The text of `_next`, decoded when it is needed."""
        self._buffer = ""
        self._start = start

    def stretch(self, start: int, least: int, most: int) -> tuple[int, str]:
        """A window that begins at `start` or before, where it says: all of the piece that has `least` characters from
        `start`, which is not copied; else these, or `most` where pieces are short. Fewer at the end."""
        if start + least > self._start + len(self._buffer):
            shift, piece = self._span.start, self._advance(start)
            if piece is None or piece.stop - piece.start < 2 * least:
                return start, self.window(start, most)
            if piece.start - shift > start or not start + least <= piece.stop - shift <= self._stop:
                return start, self.window(start, least)
            self._text = self._text or piece.text
            self._buffer, self._start = self._text, piece.start - shift
        return self._start, self._buffer

    def window(self, start: int, size: int) -> str:
        """`size` characters from `start`, fewer at the end; `start` must not decrease."""
        offset = start - self._start
        if offset + size <= len(self._buffer):
            return self._buffer[offset : offset + size]
        parts = [self._buffer[offset:]]
        at = start + len(parts[0])
        end = min(start + size, self._stop)
        while at < end and (piece := self._piece(at, end)):
            parts.append(piece)
            at += len(piece)
        self._buffer, self._start = "".join(parts), start
        return self._buffer

    def _piece(self, at: int, end: int) -> str:
        """Some characters from `at` on, not beyond `end`; empty at the end of the text."""
        piece = self._advance(at)
        if piece is None:
            return "" if at >= self._stop else self._span.read(at, min(self._stop, end))
        start = piece.start - self._span.start
        if start > at:  # a match reaches into text that was left out
            return self._span.read(at, min(start, end))
        self._text = self._text or piece.text
        return self._text[at - start : end - start]

    def _advance(self, at: int) -> Window | None:
        """The piece that has this character, or a later one."""
        while self._next is None or self._next.stop - self._span.start <= at:
            self._next, self._text = next(self._windows, None), ""
            if self._next is None:
                return None
        return self._next

    def skip(self, at: int, literal: Literal) -> int:
        """Where the next match that has this literal may begin, `at` or later. Text before it is not decoded: to search
        bytes takes a third of the time."""
        needle, shift = literal.text, self._span.start
        if self._buffer.find(needle, max(at + literal.earliest - self._start, 0)) >= 0:
            return at
        if self._next is None:
            self._next, self._text = next(self._windows, None), ""
        window = self._next
        if window is not None and window.start - shift > self._start + len(self._buffer):
            return at  # what lies between is not read yet, and an occurrence may begin there
        first = 0 if window is None else max(window.start - shift - self._start, 0)
        if window is not None and window.stop - shift == self._start + len(self._buffer):  # all of it was looked at
            first, window = len(self._buffer), next(self._windows, None)
        carry: Any = self._buffer[max(first - len(needle) + 1, 0) : first]
        found: int | None = None
        while window is not None:
            found, carry = window.earliest(needle, carry, at + literal.earliest + shift)
            if found is not None:
                break
            window = next(self._windows, None)
        if window is not self._next:
            self._next, self._text = window, ""
        return self._stop if found is None else max(at, found - shift - literal.latest)

    def assume_character(self, start: int, character: str) -> None:
        """Assume this character at `start`, just before the next window, instead of reading it."""
        self._buffer, self._start = character, start


class Scan:
    """One pass of a pattern over characters [pos, end) of a text, `end` being to it the end of the text.

    `hits` yields the matches of `re` in order, with offsets in `window`, which begins at character `base` of the text;
    and None before it leaves a window: then no further match starts before `at`.
    """

    def __init__(
        self,
        plan: Plan,
        span: Span,
        limit: int,
        pos: int,
        end: int,
        *,
        eager: bool = False,
        narrow: bool = False,
        replay: bool = False,
    ):
        """`narrow`: the caller needs no text between the matches, so search filters may leave it out.

        `replay`: this pass continues another, whose last match was empty and ended at `pos`.
        """
        self._plan = plan
        self.span = span
        """The text, to note what is handed to code."""
        only = span.candidates(plan.query, pos, end, plan.within_line) if narrow else None
        self._only = None if only and only.runs and not plan.streams else only
        self._shift = span.start
        reading = self._only.with_neighbours(plan.within_line) if self._only else None
        literal = plan.literal
        is_near = narrow and literal is not None and not literal.flags and literal.latest <= FIRST_WINDOW
        skipping = literal if is_near and plan.is_never_empty and plan.streams and self._only is None else None
        self._skipping = skipping
        """A literal without which text need not be looked at."""
        self._feed = TextWindow(
            span, max(0, pos - plan.left), end, eager=eager, only=reading, literal=skipping, searches=narrow
        )
        self._end = end
        self._limit = limit
        self._largest = max(limit, WINDOW)
        self._replay = replay
        self._use_stops = plan.stops is not None
        self.at = pos
        self.base = max(0, pos - plan.left)
        self.window = ""

    @property
    def replays(self) -> bool:
        """Whether the last match was empty and ended at `at`."""
        return self._replay

    def hits(self) -> Iterator[re.Match[str] | None]:
        if self._only is None:
            yield from self._scan_all()
            return
        for hit in self._scan_regions(self._only):
            if hit is not None:
                self._only.found(self._shift + self.base + hit.start())
            yield hit

    def _scan_all(self) -> Iterator[re.Match[str] | None]:
        plan = self._plan
        size = min(FIRST_WINDOW, WINDOW)
        if not plan.streams:
            size = self._largest
            if self._end - self.at > size:
                raise self._too_large()
        is_moving = plan.streams
        waits = waited = 0
        while True:
            if self._skipping is not None and waited >= waits:
                at = self._feed.skip(self.at, self._skipping)
                waits, waited = 0 if at > self.at else min(2 * waits + 1, MOST_WAITS), 0
                if at > self.at:
                    if at - self.at > size:  # where the literal is rare little is decoded for each
                        size = min(FIRST_WINDOW, WINDOW)
                    self.at, self._replay = at, False
            else:
                waited += 1
            at, replay = self.at, self._replay
            base, beyond = max(0, at - plan.left), plan.reach or 0
            least = min(size, FIRST_MATCH_WINDOW) if is_moving else size
            self.base, self.window = self._feed.stretch(base, at - base + least + beyond, at - base + size + beyond)
            if self.base + len(self.window) >= self._end:
                yield from self._match_plain(len(self.window) + 1)
                self.at = self._end
                return
            yield from self._hits_in_window()
            is_moving = self.at > at or self._replay is not replay
            if is_moving:
                yield None
                size = min(2 * size, WINDOW) if size < WINDOW else max(size // 2, WINDOW)
            elif self.base + len(self.window) - at < size + beyond:
                continue  # the window was what was there already: now one of the whole size
            elif size >= self._largest:
                raise self._too_large()
            else:
                size = min(2 * size, self._largest)

    def _scan_regions(self, only: Candidates) -> Iterator[re.Match[str] | None]:
        """Search where the filters say that a match may begin."""
        for region in only.regions():
            start, stop = region.start - self._shift, region.stop - self._shift
            only.looked_at(region.frames)
            if stop <= self.at:
                continue
            if start > self.at:
                self.at, self._replay = start, False
                if region.begins_line and start and self._plan.left == 1:
                    self._feed.assume_character(start - 1, "\n")  # saves reading the frame before
            yield from self._scan_region(stop, region.ends_line and self._plan.within_line)
        self.at = self._end

    def _scan_region(self, stop: int, is_closed: bool) -> Iterator[re.Match[str] | None]:
        """Matches that begin before `stop`; with `is_closed` they also end before it, or in the newline there."""
        plan = self._plan
        size, beyond = min(FIRST_WINDOW, WINDOW), plan.reach or 0
        while self.at < stop:
            at, replay = self.at, self._replay
            self.base = max(0, at - plan.left)
            if is_closed and stop - at <= size:
                self.window = self._feed.window(self.base, stop - self.base)
                if stop < self._end:
                    self.window += "\n"  # a character follows; no match depends on which
                yield from self._match_plain(stop - self.base)
                yield None
                return
            self.window = self._feed.window(self.base, at - self.base + min(size, stop - at) + beyond)
            if self.base + len(self.window) >= self._end:
                yield from self._match_plain(len(self.window) + 1)
                self.at = self._end
                return
            yield from self._hits_in_window()
            if self.at > at or self._replay is not replay:
                yield None
                size = min(2 * size, WINDOW)
            elif min(size, stop - at) + beyond >= self._largest:
                raise self._too_large()
            elif size < stop - at:
                size = min(2 * size, self._largest)
            else:
                beyond = min(max(2 * beyond, FIRST_MATCH_WINDOW), self._largest)

    def _hits_in_window(self) -> Iterator[re.Match[str]]:
        plan = self._plan
        if plan.reach is not None:
            return self._match_plain(len(self.window) - plan.reach)
        if self._use_stops:
            assert plan.stops is not None
            limit = plan.stops.limit(self.window, FAR if plan.marked else len(self.window))
            first = self.at - self.base
            # A window that is mostly undecided is not worth searching twice.
            if 2 * limit > first + len(self.window) or (plan.marked is None and limit > first):
                return self._match_plain(limit)
            self._use_stops = (
                plan.marked is None or len(self.window) < WINDOW
            )  # one long line does not mean that all are
        if plan.marked is not None:
            return self._match_marked()
        return iter(())

    def _match_plain(self, limit: int) -> Iterator[re.Match[str]]:
        """Matches of the pattern itself that start before `limit` in the window, where all starts are decided."""
        plan, base = self._plan, self.base
        last = None
        hits = find_matches(
            plan.real,
            self.window,
            self.at - base,
            plan.literal,
            plan.is_never_empty,
            plan.within_line,
            plan.begins_with_literal,
        )
        for match in hits:
            if match.start() >= limit:
                break
            if self._replay:
                self._replay = False
                continue
            yield match
            last = match
        self.at = max(self.at, base + limit, base + last.end() if last else 0)
        self._replay = False

    def _match_marked(self) -> Iterator[re.Match[str]]:
        """Matches of the rewritten pattern, up to the first start that it does not decide."""
        plan, base = self._plan, self.base
        assert plan.marked is not None
        marker = plan.marked.marker
        undecided = len(self.window) - plan.marked.head
        last = (self.at - base, self._replay)  # the end of the last match, and whether it was empty
        hits = find_matches(plan.marked.pattern, self.window, self.at - base, plan.early_literal, plan.is_never_empty)
        for match in hits:
            start = match.start()
            if start >= undecided:
                break
            if match.start(marker) >= 0:
                undecided = start
                break
            if self._replay:
                self._replay = False
                continue
            yield match
            last = (match.end(), match.end() == start)
        reached = max(undecided, last[0])
        self.at = max(self.at, base + reached)
        self._replay = last[1] and base + last[0] == self.at

    def read(self, start: int) -> str:
        """All characters from `start` on, which must not lie before the window; ends the scan."""
        return self._feed.window(start, self._end - start)

    def _too_large(self) -> ContextTooLarge:
        return too_large(self._plan, self.at, self._limit)


def match_at(plan: Plan, span: Span, limit: int, pos: int, end: int) -> tuple[re.Match[str], int] | None:
    """The match that starts at `pos`, and the offset of its window; reads larger windows until it is decided."""
    for window, base, is_last in _growing_windows(plan, span, limit, pos, end):
        first = pos - base
        if is_last or (plan.reach is not None and len(window) - first >= plan.reach):
            found = plan.real.match(window, first)
            return (found, base) if found else None
        if plan.stops is not None and plan.stops.limit(window) > first:
            found = plan.real.match(window, first)
            return (found, base) if found else None
        marked = plan.marked
        if marked is not None and len(window) - first >= marked.head:
            found = marked.pattern.match(window, first)
            if found is None or found.start(marked.marker) < 0:
                return (found, base) if found else None
    raise too_large(plan, pos, limit)


def fullmatch_at(
    plan: Plan, to_end: Marked | None, span: Span, limit: int, pos: int, end: int
) -> tuple[re.Match[str], int] | None:
    """The match of all of [pos, end), and the offset of its window; reads on while the text can still match."""
    if plan.reach is not None and end - pos > plan.reach:
        return None
    for window, base, is_last in _growing_windows(plan, span, limit, pos, end):
        first = pos - base
        if is_last:
            found = plan.real.fullmatch(window, first)
            return (found, base) if found else None
        if to_end is not None and len(window) - first >= to_end.head and to_end.pattern.match(window, first) is None:
            return None
    raise too_large(plan, pos, limit)


def _growing_windows(plan: Plan, span: Span, limit: int, pos: int, end: int) -> Iterator[tuple[str, int, bool]]:
    """Windows from `pos` on, each twice as large, up to the limit: the text, its offset, whether it reaches the end."""
    base = max(0, pos - plan.left)
    feed = TextWindow(span, base, end)
    largest = max(limit, WINDOW)
    size = min(FIRST_MATCH_WINDOW, WINDOW)
    if not plan.streams:
        size = largest
        if end - pos > size:
            return
    while True:
        window = feed.window(base, pos - base + size)
        yield window, base, base + len(window) >= end
        if size >= largest:
            return
        size = min(2 * size, largest)


def check(plan: Plan, characters: int, limit: int) -> None:
    """Raise `ContextTooLarge` for a pattern that cannot be streamed and a text above the limit."""
    if not plan.streams and characters > max(limit, WINDOW):
        raise too_large(plan, 0, limit)


def too_large(plan: Plan, at: int, limit: int) -> ContextTooLarge:
    """The error of a pattern that needs more text at once than the limit, with what to write instead."""
    cause = "cannot be decided within" if plan.streams else "cannot be streamed, and the text has more than"
    tried = f"{limit:,} characters (materialize_limit)"
    if limit < WINDOW:
        tried = f"{WINDOW:,} characters (a window; materialize_limit is {limit:,})"
    return ContextTooLarge(
        f"re: the pattern {plan.real.pattern!r:.1000} {cause} {tried} from character {at:,} on: bound its repeats, "
        f"such as .{{0,10000}}? for .*?, or search a part, such as context[{at}:{at + limit}]"
    )
