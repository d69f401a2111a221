"""Find the matches of a pattern in a text that is read in windows. They equal those of `re` on the whole text.

Invariants of `Scan`:
- all matches that start before `at` are decided and yielded;
- a window begins at least `plan.left` characters before `at`, or at the beginning of the text;
- `at` never decreases;
- if the last match was empty and ended at `at`, a search from there finds it again first, since `re` knows only within
  one call that it was found. `_replay` is then True, and the match is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from monocontext.engine.candidates import Candidates
from monocontext.errors import ContextTooLarge
from monocontext.text.regex.buffer import TextBuffer
from monocontext.text.regex.plan import Plan
from monocontext.text.regex.prefilter import find_matches
from monocontext.text.regex.rewrite import Marked
from monocontext.text.source import Span

WINDOW = 1 << 20
"""Characters that are searched at once. At this size neither the edges of a window nor its memory cost much."""
FIRST_WINDOW = 1 << 15
"""Characters of the first window: `search` and `match` often succeed near their start."""
FIRST_MATCH_WINDOW = 1 << 12
"""Characters of the first window for a match at a given place."""
MOST_WAITS = 15
"""The most windows in a row that are searched without a look for the literal first, where earlier windows had it."""
FAR = 1 << 14
"""Characters at the end of a window in which to look for stops if the marked pattern can be used instead. With rarer
stops much text would be searched twice, and to find them is slow (20 MB/s)."""


class Scan:
    """One pass of a pattern over a text, from character `pos` on, as if the text ended at `end`.

    `hits` yields the matches in order. Their offsets are those in `window`, which begins at character `base` of the
    text. Before it moves to another window, `hits` yields None: no further match starts before `at`.
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
        """`narrow`: the caller needs no text between the matches, so frames without a match need not be read.

        `replay`: this pass continues another, whose last match was empty and ended at `pos`.
        """
        self._plan = plan
        self.span = span
        """The text, to note what is handed to code."""
        candidates = span.candidates(plan.query, pos, end, plan.within_line) if narrow else None
        self._candidates = None if candidates and candidates.runs and not plan.streams else candidates
        """The frames in which a match may begin; None if that may be any."""
        literal = plan.literal
        is_near = narrow and literal is not None and not literal.flags and literal.latest <= FIRST_WINDOW
        can_skip = is_near and plan.is_never_empty and plan.streams and self._candidates is None
        self._skip_to = literal if can_skip else None
        """A literal that every match has: text without it is skipped."""
        self._waits = self._waited = 0
        """How many windows to search before the next attempt to skip, and how many were searched since the last one."""
        frames = self._candidates.with_neighbours(plan.within_line) if self._candidates else None
        self._buffer = TextBuffer(
            span, max(0, pos - plan.left), end, eager=eager, frames=frames, literal=self._skip_to, searches=narrow
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
        if self._candidates is None:
            yield from self._scan_all()
            return
        for hit in self._scan_regions(self._candidates):
            if hit is not None:
                self._candidates.found(self.span.start + self.base + hit.start())
            yield hit

    def _scan_all(self) -> Iterator[re.Match[str] | None]:
        """Search window after window. One that decides nothing is replaced by one that is twice as large."""
        plan = self._plan
        size = min(FIRST_WINDOW, WINDOW)
        if not plan.streams:
            size = self._largest
            if self._end - self.at > size:
                raise self._too_large()
        is_moving = plan.streams
        while True:
            size = self._skip_ahead(size)
            at, replay = self.at, self._replay
            base, beyond = max(0, at - plan.left), plan.reach or 0
            least = min(size, FIRST_MATCH_WINDOW) if is_moving else size
            self.base, self.window = self._buffer.stretch(base, at - base + least + beyond, at - base + size + beyond)
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
                continue  # the window was a piece that was in memory: try one of the whole size
            elif size >= self._largest:
                raise self._too_large()
            else:
                size = min(2 * size, self._largest)

    def _skip_ahead(self, size: int) -> int:
        """Move `at` to the next place of the literal, unless earlier windows had it. Returns the size of the next
        window, which was `size` so far."""
        if self._skip_to is None or self._waited < self._waits:
            self._waited += 1
            return size
        self._waited = 0
        at = self._buffer.skip(self.at, self._skip_to)
        if at == self.at:
            self._waits = min(2 * self._waits + 1, MOST_WAITS)
            return size
        is_far = at - self.at > size
        self._waits, self.at, self._replay = 0, at, False
        return min(FIRST_WINDOW, WINDOW) if is_far else size  # of a rare literal, decode little text around each

    def _scan_regions(self, candidates: Candidates) -> Iterator[re.Match[str] | None]:
        """Search the frames in which a match may begin."""
        for region in candidates.regions():
            start, stop = region.start - self.span.start, region.stop - self.span.start
            candidates.looked_at(region.frames)
            if stop <= self.at:
                continue
            if start > self.at:
                self.at, self._replay = start, False
                if region.begins_line and start and self._plan.left == 1:
                    self._buffer.assume_character(start - 1, "\n")  # saves reading the frame before
            yield from self._scan_region(stop, region.ends_line and self._plan.within_line)
        self.at = self._end

    def _scan_region(self, stop: int, is_closed: bool) -> Iterator[re.Match[str] | None]:
        """Matches that begin before `stop`. `is_closed`: they also end before it, or with the newline there."""
        plan = self._plan
        size, beyond = min(FIRST_WINDOW, WINDOW), plan.reach or 0
        while self.at < stop:
            at, replay = self.at, self._replay
            self.base = max(0, at - plan.left)
            if is_closed and stop - at <= size:
                self.window = self._buffer.window(self.base, stop - self.base)
                if stop < self._end:
                    self.window += "\n"  # in place of the next character, which no match depends on
                yield from self._match_plain(stop - self.base)
                yield None
                return
            self.window = self._buffer.window(self.base, at - self.base + min(size, stop - at) + beyond)
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
        """The matches that the window decides, by the first way of the plan that applies."""
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
            # Go on with stops after a small window: one long line does not mean that all are.
            self._use_stops = plan.marked is None or len(self.window) < WINDOW
        if plan.marked is not None:
            return self._match_marked()
        return iter(())

    def _match_plain(self, limit: int) -> Iterator[re.Match[str]]:
        """Matches of the plain pattern that start before `limit` in the window. The window decides all of these."""
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
        """Matches of the marked pattern, up to the first start that the window does not decide."""
        plan, base = self._plan, self.base
        assert plan.marked is not None
        marker = plan.marked.marker
        undecided = len(self.window) - plan.marked.head
        last_end, was_empty = self.at - base, self._replay
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
            last_end, was_empty = match.end(), match.end() == start
        self.at = max(self.at, base + max(undecided, last_end))
        self._replay = was_empty and base + last_end == self.at

    def read(self, start: int) -> str:
        """All characters from `start` on, which must not be before the window. Ends the scan."""
        return self._buffer.window(start, self._end - start)

    def _too_large(self) -> ContextTooLarge:
        return too_large(self._plan, self.at, self._limit)


def match_at(plan: Plan, span: Span, limit: int, pos: int, end: int) -> tuple[re.Match[str], int] | None:
    """The match that starts at `pos` and the first character of its window, or None.

    Reads larger windows until one decides. Raises `ContextTooLarge` if none up to the limit does.
    """
    for window, base, is_last in _growing_windows(plan, span, limit, pos, end):
        first = pos - base
        is_decided = (
            is_last
            or (plan.reach is not None and len(window) - first >= plan.reach)
            or (plan.stops is not None and plan.stops.limit(window) > first)
        )
        if is_decided:
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
    """The match of all of [pos, end) and the first character of its window, or None.

    `to_end`: the marked pattern for `fullmatch`. Reads larger windows while the text can still match. Raises
    `ContextTooLarge` if it can up to the limit.
    """
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
    """Windows around `pos`, each twice as large, up to the limit: the text, its first character, whether it reaches the
    end."""
    base = max(0, pos - plan.left)
    buffer = TextBuffer(span, base, end)
    largest = max(limit, WINDOW)
    size = min(FIRST_MATCH_WINDOW, WINDOW)
    if not plan.streams:
        size = largest
        if end - pos > size:
            return
    while True:
        window = buffer.window(base, pos - base + size)
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
    most = f"{limit:,} characters (materialize_limit)"
    if limit < WINDOW:
        most = f"{WINDOW:,} characters (a window; materialize_limit is {limit:,})"
    return ContextTooLarge(
        f"re: the pattern {plan.real.pattern!r:.1000} {cause} {most} from character {at:,} on: bound its repeats, "
        f"such as .{{0,10000}}? for .*?, or search a part, such as context[{at}:{at + limit}]"
    )
