r"""Find the matches of a pattern in a text that is read piece by piece. They equal those of `re` on the whole text.

`re` searches a *window*, which grows piece by piece until its first characters are *decided*: no match that begins
there depends on text after the window (`PatternPlan.first_undecided`). These are yielded, and the window moves on. A
pattern that is undecided up to the end needs a window of the whole text, which must be within the limit.

A window also has the characters before these that the engine looks at, so its edge is never taken for the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from monocontext.engine.scan import find
from monocontext.errors import ContextTooLarge
from monocontext.records import replace
from monocontext.text.regex.plan import PatternPlan
from monocontext.text.source import Span
from monocontext.text.windows import Window

FIRST_READ = 1 << 12
"""The characters of the first read, if the window grows without pieces. Each further read doubles the window."""
LEAST_LIMIT = 1 << 20  # a window may always have this many characters: a pattern of bounded length needs no more

WindowMatch = tuple[re.Match[str], int]  # a match in a window, and the character of the text at which the window begins


def scan(plan: PatternPlan, span: Span, limit: int, pos: int, end: int, *, narrow: bool) -> Iterator[WindowMatch]:
    """Yield the matches from character `pos` on, in order, as if the text ended at `end`.

    `narrow`: the caller may stop early, so no more is read ahead than a match needs. Raises `ContextTooLarge` for a
    window above the limit. GETs: those of the frames in which a match may begin, and of their neighbours.
    """
    if pos > end:
        return
    candidates = span.candidates(plan.query, pos, end, plan.within_line)
    if candidates is not None and not candidates.runs:
        return
    if not plan.streams and end - pos > limit:
        if plan.literal and span.find(plan.literal, pos, end) < 0:
            return
        raise _too_large(plan, pos, limit)
    only = candidates.with_neighbours(plan.within_line) if candidates is not None else None
    eager = not narrow or not plan.streams
    pieces = span.windows(max(0, pos - plan.reach_back), end, eager=eager, only=only, is_search=not eager)
    window = _GrowingWindow(plan, span, limit, end, pieces)
    if candidates is None:
        yield from window.matches(pos, end)
        return
    for region in candidates.regions():  # whose offsets are the source's
        candidates.count_looked_at(region.frame_count)
        start, stop = region.start - span.start, region.stop - span.start
        if region.begins_line and plan.reach_back == 1 and pos < start:
            window.skip_to_line(start)  # which needs no read of the frame before
        for match, base in window.matches(max(pos, start), stop):
            candidates.record_match(span.start + base + match.start())
            pos = base + match.end()
            yield match, base
        pos = max(pos, stop)


def match_at(plan: PatternPlan, span: Span, limit: int, pos: int, end: int, *, full: bool) -> WindowMatch | None:
    """The match at `pos`, or with `full` the match of all of [pos, end); None without one. Reads until this is certain.

    Raises `ContextTooLarge` for a window above the limit.
    """
    if full:
        plan = replace(plan, parts=())  # a match that is not the nearest may be the full one
    if not plan.streams and end - pos > limit:
        raise _too_large(plan, pos, limit)
    window = _GrowingWindow(plan, span, limit, end)
    window.grow_until_decided(pos)
    if full and window.stop < end:
        return None
    match = (plan.compiled.fullmatch if full else plan.compiled.match)(window.text, pos - window.start)
    return (match, window.start) if match else None


class _GrowingWindow:
    """The part of a text that `re` sees: it grows at its end, and loses characters at its beginning."""

    def __init__(self, plan: PatternPlan, span: Span, limit: int, end: int, pieces: Iterable[Window] = ()):
        """`pieces`: parts of the text, in order. What they leave out is read when the window grows over it."""
        self._plan, self._span, self._limit, self._end = plan, span, limit, end
        self._pieces = iter(pieces)
        self._piece: Window | None = None
        self.start = self.stop = 0
        self.text = ""
        r"""Characters [`start`, `stop`). Before the end of the text, a `\n` in place of the next character follows."""

    def matches(self, pos: int, stop: int) -> Iterator[WindowMatch]:
        """Yield the matches that begin in [`pos`, `stop`), and an empty match at the end of the text."""
        plan = self._plan
        while pos < stop or pos == self._end:
            undecided = self.grow_until_decided(pos)
            if find(self.text, plan.literal) >= 0:
                for match in plan.compiled.finditer(self.text, pos - self.start):
                    if self.start + match.start() >= undecided:
                        break
                    yield match, self.start
                    pos = self.start + match.end()
            pos = max(pos, undecided)

    def grow_until_decided(self, pos: int) -> int:
        """Grow until it is decided whether a match begins at `pos`. Returns the first undecided character: at the end
        of the text, the character after it. Raises `ContextTooLarge` for a window above the limit."""
        plan = self._plan
        first = max(0, pos - plan.reach_back)
        if first > self.stop:
            self.text, self.start, self.stop = "", first, first
        while self.stop < self._end:
            undecided = self.start + plan.first_undecided(self.text, pos - self.start)
            if undecided > pos:
                return undecided
            if self.stop - pos > max(self._limit, LEAST_LIMIT):
                raise _too_large(plan, pos, self._limit)
            self._grow(first, max(self.stop - first, FIRST_READ))
        return self._end + 1

    def skip_to_line(self, start: int) -> None:
        """Begin the window with the newline before character `start`, unless the window goes further."""
        if start > self.stop:
            self.text, self.start, self.stop = "\n\n", start - 1, start

    def _grow(self, start: int, characters: int) -> None:
        """Append at least `characters` characters, or all up to the end, and drop those before `start`."""
        parts = [self.text[start - self.start : self.stop - self.start]]
        goal = min(self.stop + characters, self._end)
        while self.stop < goal:
            parts.append(self._read(goal))
            self.stop += len(parts[-1])
        if self.stop < self._end:
            parts.append("\n")
        self.text, self.start = "".join(parts), start

    def _read(self, goal: int) -> str:
        """Characters from `stop` on: the rest of a piece that has them, else those up to `goal` or the next piece."""
        first = self._span.start
        while self._piece is None or self._piece.stop - first <= self.stop:
            self._piece = next(self._pieces, None)
            if self._piece is None:
                return self._span.read(self.stop, goal)
        start = self._piece.start - first
        if start > self.stop:
            return self._span.read(self.stop, min(start, goal))
        return self._piece.text[self.stop - start :]


def _too_large(plan: PatternPlan, offset: int, limit: int) -> ContextTooLarge:
    """The error for a pattern that needs more text at once than the limit. It says what to write instead."""
    cause = "needs a whole line, which has" if plan.within_line else "may match across lines, and needs"
    return ContextTooLarge(
        f"re: the pattern {plan.compiled.pattern!r:.1000} {cause} more than {limit:,} characters (materialize_limit) "
        f"from character {offset:,} on: bound its repeats, such as .{{0,10000}}? for .*?, let it match within lines, "
        f"such as [ \\t]* for \\s*, or search a part, such as context[{offset}:{offset + limit}]"
    )
