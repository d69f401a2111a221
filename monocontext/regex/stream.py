"""Matches of a pattern in a text that is pulled through windows, equal to those of `re` on the whole of it.

Invariants of the loop:
- all starts before `at` are decided, and their matches given;
- a window begins at least `left` characters before `at`, or at the beginning of the text;
- `at` never decreases, and each character is taken from the text once: what a wider or a later window needs again is
  in the buffer;
- when the last match was empty and ended at `at`, the next run from there finds it again first (the engine's own rule
  against it is lost between runs), and it is dropped: `replay`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from monocontext.candidates import Candidates
from monocontext.errors import ContextTooLarge
from monocontext.regex.plan import Plan
from monocontext.regex.rewrite import Marked
from monocontext.regex.skim import skim
from monocontext.source import Span

WINDOW = 1 << 20
"""Characters searched at once: the cost of a window's edges vanishes, and one window of text is little memory."""
FIRST_WINDOW = 1 << 15
"""Characters of the first one: `search` and `match` often find what they want near where they begin."""
FIRST_MATCH_WINDOW = 1 << 12
"""The same for a match at a given place."""
FAR = 1 << 14
"""Characters before a window's end in which stops are looked for, where there is another way: if they are rarer, much
would be searched twice, and looking for them is slow (20 MB/s)."""


class Feed:
    """Characters of a text from `start` to `stop`, pulled forward; keeps what was asked for last."""

    def __init__(self, span: Span, start: int, stop: int, *, eager: bool = False, only: Candidates | None = None):
        self._span = span
        self._stop = stop
        self._pieces = (
            (window.start - span.start, window.text) for window in span.windows(start, stop, eager=eager, only=only)
        )
        self._next: tuple[int, str] | None = None
        """Pulled, not yet asked for: where it begins, and the text."""
        self._buffer = ""
        self._start = start

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
        while self._next is None or self._next[0] + len(self._next[1]) <= at:
            self._next = next(self._pieces, None)
            if self._next is None:
                self._next = (self._stop, "")
                break
        start, text = self._next
        if start > at:  # candidates leave it out, and a match reaches into it
            return self._span.read(at, min(start, end))
        return text[at - start : end - start]

    def let_stand(self, start: int, character: str) -> None:
        """Take it as known that this character stands at `start`, before what is asked for next."""
        self._buffer, self._start = character, start


class Scan:
    """One pass of a pattern over characters [pos, end) of a text, `end` being to it the end of the text.

    `hits` gives the matches in order as those of `re`, with offsets in `window`, which begins at character `base` of
    the text; and None when it is about to leave a window: then no match starts in it before `at`.
    """

    def __init__(
        self, plan: Plan, span: Span, limit: int, pos: int, end: int, *, eager: bool = False, narrow: bool = False
    ):
        """`narrow`: who takes the matches needs no text between them, so search filters may leave it out."""
        self._plan = plan
        only = span.candidates(plan.need, pos, end, plan.within_line) if narrow else None
        self._only = None if only and only.runs and not plan.streams else only
        self._shift = span.start
        reading = self._only.with_neighbours(plan.within_line) if self._only else None
        self._feed = Feed(span, max(0, pos - plan.left), end, eager=eager, only=reading)
        self._end = end
        self._largest = max(limit, WINDOW)
        self._replay = False
        self._use_stops = plan.stops is not None
        self.at = pos
        self.base = max(0, pos - plan.left)
        self.window = ""

    def hits(self) -> Iterator[re.Match[str] | None]:
        if self._only is None:
            yield from self._everywhere()
            return
        for hit in self._in_regions(self._only):
            if hit is not None:
                self._only.found(self._shift + self.base + hit.start())
            yield hit

    def _everywhere(self) -> Iterator[re.Match[str] | None]:
        plan = self._plan
        size = min(FIRST_WINDOW, WINDOW)
        if not plan.streams:
            size = self._largest
            if self._end - self.at > size:
                raise self._too_large()
        while True:
            at, replay = self.at, self._replay
            self.base = max(0, at - plan.left)
            self.window = self._feed.window(self.base, at - self.base + size + (plan.reach or 0))
            if self.base + len(self.window) >= self._end:
                yield from self._decided(len(self.window) + 1)
                self.at = self._end
                return
            yield from self._hits_in_window()
            if self.at > at or self._replay is not replay:
                yield None
                size = min(2 * size, WINDOW) if size < WINDOW else max(size // 2, WINDOW)
            elif size >= self._largest:
                raise self._too_large()
            else:
                size = min(2 * size, self._largest)

    def _in_regions(self, only: Candidates) -> Iterator[re.Match[str] | None]:
        """Where search filters do not rule out that a match begins."""
        for region in only.regions():
            start, stop = region.start - self._shift, region.stop - self._shift
            only.looked_at(region.frames)
            if stop <= self.at:
                continue
            if start > self.at:
                self.at, self._replay = start, False
                if region.begins_line and start and self._plan.left == 1:
                    self._feed.let_stand(start - 1, "\n")  # and the frame before need not be read for it
            yield from self._in_region(stop, region.ends_line and self._plan.within_line)
        self.at = self._end

    def _in_region(self, stop: int, is_closed: bool) -> Iterator[re.Match[str] | None]:
        """Matches that begin before `stop`; `is_closed`: and end before it, in the newline there at the latest."""
        plan = self._plan
        size, beyond = min(FIRST_WINDOW, WINDOW), plan.reach or 0
        while self.at < stop:
            at, replay = self.at, self._replay
            self.base = max(0, at - plan.left)
            if is_closed and stop - at <= size:
                self.window = self._feed.window(self.base, stop - self.base)
                if stop < self._end:
                    self.window += "\n"  # some character follows; which one, no match can tell
                yield from self._decided(stop - self.base)
                yield None
                return
            self.window = self._feed.window(self.base, at - self.base + min(size, stop - at) + beyond)
            if self.base + len(self.window) >= self._end:
                yield from self._decided(len(self.window) + 1)
                self.at = self._end
                return
            yield from self._hits_in_window()
            if self.at > at or self._replay is not replay:
                yield None
                size = min(2 * size, WINDOW)
            elif max(size, beyond) >= self._largest:
                raise self._too_large()
            elif size < stop - at:
                size = min(2 * size, self._largest)
            else:
                beyond = min(max(2 * beyond, FIRST_MATCH_WINDOW), self._largest)

    def _hits_in_window(self) -> Iterator[re.Match[str]]:
        plan = self._plan
        if plan.reach is not None:
            return self._decided(len(self.window) - plan.reach)
        if self._use_stops:
            assert plan.stops is not None
            limit = plan.stops.limit(self.window, FAR if plan.marked else len(self.window))
            first = self.at - self.base
            # A window that is mostly undecided would be searched again for little.
            if 2 * limit > first + len(self.window) or (plan.marked is None and limit > first):
                return self._decided(limit)
            self._use_stops = plan.marked is None or len(self.window) < WINDOW  # one long line says little
        if plan.marked is not None:
            return self._until_marked()
        return iter(())

    def _decided(self, limit: int) -> Iterator[re.Match[str]]:
        """By the pattern itself, where all starts before `limit` (in the window) are decided."""
        plan, base = self._plan, self.base
        last = None
        for match in skim(plan.real, self.window, self.at - base, plan.literal, plan.is_never_empty):
            if match.start() >= limit:
                break
            if self._replay:
                self._replay = False
                continue
            yield match
            last = match
        self.at = max(self.at, base + limit, base + last.end() if last else 0)
        self._replay = False

    def _until_marked(self) -> Iterator[re.Match[str]]:
        """By the rewritten pattern: up to the first start that it does not decide."""
        plan, base = self._plan, self.base
        assert plan.marked is not None
        marker = plan.marked.marker
        undecided = len(self.window) - plan.marked.head
        last = (self.at - base, self._replay)  # where the match before ended, and whether it was empty
        hits = skim(plan.marked.pattern, self.window, self.at - base, plan.early_literal, plan.is_never_empty)
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
        """All characters from `start` on, which is not before the window; ends the scan."""
        return self._feed.window(start, self._end - start)

    def _too_large(self) -> ContextTooLarge:
        return too_large(self._plan, self.at, self._largest)


def match_at(plan: Plan, span: Span, limit: int, pos: int, end: int) -> tuple[re.Match[str], int] | None:
    """The match that starts at `pos`, with the offset in the text of what it was found in; widens until decided."""
    for window, base, is_last in _widening(plan, span, limit, pos, end):
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
    raise too_large(plan, pos, max(limit, WINDOW))


def fullmatch_at(
    plan: Plan, to_end: Marked | None, span: Span, limit: int, pos: int, end: int
) -> tuple[re.Match[str], int] | None:
    """The match of all of [pos, end); reads on while the text can still match, and to the end if it does."""
    if plan.reach is not None and end - pos > plan.reach:
        return None
    for window, base, is_last in _widening(plan, span, limit, pos, end):
        first = pos - base
        if is_last:
            found = plan.real.fullmatch(window, first)
            return (found, base) if found else None
        if to_end is not None and len(window) - first >= to_end.head and to_end.pattern.match(window, first) is None:
            return None
    raise too_large(plan, pos, max(limit, WINDOW))


def _widening(plan: Plan, span: Span, limit: int, pos: int, end: int) -> Iterator[tuple[str, int, bool]]:
    """Windows around `pos`, each twice the one before, up to what may be held; with each its offset, and if it is the
    last there is."""
    base = max(0, pos - plan.left)
    feed = Feed(span, base, end)
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


def too_large(plan: Plan, at: int, limit: int) -> ContextTooLarge:
    """The error of a pattern that needs more text at once than may be held, and what to write."""
    cause = "cannot be decided within" if plan.streams else "cannot be streamed, and the text has more than"
    return ContextTooLarge(
        f"re: the pattern {plan.real.pattern!r} {cause} {limit:,} characters (materialize_limit) from character "
        f"{at:,} on: bound its repeats, such as .{{0,10000}}? for .*?, or search a part, "
        f"such as context[{at}:{at + limit}]"
    )
