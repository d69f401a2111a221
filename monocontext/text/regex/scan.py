r"""Find the matches of a pattern in a text that is read in windows. They equal those of `re` on the whole text.

There are four ways, and the first that applies is taken:
- Matches have a bounded reach: windows overlap by it, and a window decides the matches that begin before the overlap.
  If only short lines and spaces bound it, the text from the first window with long ones on must be one `str`.
- No match goes over a newline: a window ends with a line, and decides all matches in its lines.
- The pattern consists of such parts with `(?s).*?` between them: each part is searched for after the one before it.
- Otherwise the text must be one `str`, up to the limit.

A window also has the characters before it that the engine looks at, so it never takes an edge for the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from monocontext.engine.candidates import Candidates
from monocontext.engine.scan import find
from monocontext.errors import ContextTooLarge
from monocontext.format.filters.query import INFINITE
from monocontext.text.regex.plan import PatternPlan
from monocontext.text.source import Span
from monocontext.text.windows import Window, as_units, overlap

WINDOW = 1 << 20
"""Characters that are searched at once. At this size neither the edges of a window nor its memory cost much."""
FIRST_WINDOW = 1 << 15  # characters of the first window: `search` often succeeds near its start

WindowMatch = tuple[re.Match[str], int]  # a match in a window, and the character of the text at which the window begins


def scan(plan: PatternPlan, span: Span, limit: int, pos: int, end: int, *, narrow: bool) -> Iterator[WindowMatch]:
    """The matches from character `pos` on, as if the text ended at `end`, in order.

    `narrow`: the caller may stop early, so read no more ahead than it takes. Raises `ContextTooLarge` for a window
    above the limit. GETs: those of the frames in which a match may begin, and of their neighbours.
    """
    candidates = span.candidates(plan.query, pos, end, plan.within_line)
    if candidates is not None and not candidates.runs:
        return
    if plan.parts:
        yield from _scan_parts(plan, span, limit, pos, end)
        return
    if not plan.streams:
        yield from _scan_whole(plan, span, limit, pos, end)
        return
    text = _Text(span, max(0, pos - plan.left), end, plan, candidates, eager=not narrow)
    try:
        if candidates is None:
            yield from _scan_region(plan, text, limit, pos, end)
        else:
            yield from _scan_candidates(plan, text, limit, pos, span.start, candidates)
    except _LongRunError as error:
        yield from _scan_whole(plan, span, limit, error.args[0], end)


class _LongRunError(Exception):
    """From character `args[0]` on, a match may reach further than its plan says."""


def _scan_candidates(
    plan: PatternPlan, text: _Text, limit: int, pos: int, first: int, candidates: Candidates
) -> Iterator[WindowMatch]:
    """The matches that begin in candidate frames. `first`: the character of the source at which the span begins."""
    reached = pos
    for region in candidates.regions():
        start, stop = max(region.start - first, reached), region.stop - first
        candidates.count_looked_at(region.frame_count)
        if region.begins_line and 0 < start == region.start - first and plan.left == 1:
            text.assume_newline(start - 1)  # saves a read of the frame before
        for result, base in _scan_region(plan, text, limit, start, stop):
            candidates.record_match(first + base + result.start())
            reached = base + result.end()
            yield result, base
        reached = max(reached, stop)


def _scan_parts(plan: PatternPlan, span: Span, limit: int, pos: int, end: int) -> Iterator[WindowMatch]:
    """The matches of a pattern in parts. A window that is too short for one is read again, twice as long."""
    heads = scan(plan.parts[0], span, limit, pos, end, narrow=True)
    while head_match := next(heads, None):
        head, base = head_match
        start, stop, size = base + head.start(), base + head.end(), 0
        if start < pos:
            if stop > pos:  # it overlaps the match before it, and may hide a head that begins later
                heads = scan(plan.parts[0], span, limit, pos, end, narrow=True)
            continue
        window = head.string if base == 0 or head.start() >= plan.left else ""
        while (result := _match_parts(plan, window, start - base, stop - base)) is None:
            if size == limit or start + size >= end:
                if all(span.find(part.literal, start, end) >= 0 for part in plan.parts if part.literal):
                    yield from _scan_whole(plan, span, limit, start, end)
                return
            size = min(2 * size or FIRST_WINDOW, limit)
            base = max(0, start - plan.left)
            window = span.read(base, min(start + size, end))
        yield result, base
        pos = base + result.end()


def _match_parts(plan: PatternPlan, window: str, start: int, stop: int) -> re.Match[str] | None:
    """The match at `start`, if it does not depend on text after the window. The first part ends at `stop`.

    After each part `re` takes the nearest match of the next. So if each part has one, `re` looks no further than they.
    """
    head, *others = plan.parts
    is_decided = _is_decided(head, window, start, stop)
    for part in others:
        nearest = part.real.search(window, stop) if is_decided else None
        if nearest is None:
            return None
        is_decided = _is_decided(part, window, stop, nearest.end())
        stop = nearest.end()
    return plan.real.match(window, start) if is_decided else None


def _is_decided(part: PatternPlan, window: str, start: int, stop: int) -> bool:
    """Whether the window has all text on which a match of a part depends, searched for from `start`, which ends at
    `stop`."""
    seen = stop + part.reach if part.reach else window.find("\n", stop)
    if not stop <= seen < len(window) - 1:  # the last character may stand for another
        return False
    return part.has_short_runs(window[:seen], stop)


def _scan_whole(plan: PatternPlan, span: Span, limit: int, pos: int, end: int) -> Iterator[WindowMatch]:
    """The matches from character `pos` on, in one `str`."""
    base = max(0, pos - plan.left)
    if end - pos > limit:
        if plan.literal and span.find(plan.literal, pos, end) < 0:
            return iter(())
        raise _too_large(plan, pos, limit)
    return ((match, base) for match in plan.real.finditer(span.read(base, end), pos - base))


def _scan_region(plan: PatternPlan, text: _Text, limit: int, pos: int, stop: int) -> Iterator[WindowMatch]:
    """The matches that begin in [pos, stop). All that begin before `pos` are known."""
    size, most = min(FIRST_WINDOW, WINDOW), stop
    # Candidates often end with a line: then the frame after them is not needed.
    reach = None if text.has_gaps and plan.within_line else plan.reach
    while pos < stop or stop == text.stop:
        pos = text.skip(pos)
        base, high = max(0, pos - plan.left), min(pos + size, most)
        window = text.read(base, high + (reach or 0))
        decided, is_last = high - base, base + len(window) >= text.stop
        if is_last:
            decided = len(window) + 1
        elif reach is None:
            decided = window.rfind("\n", pos - base) + 1
        elif not plan.has_short_runs(window, decided):
            decided = 0
        if not decided:  # a line or a run is longer than the window, and may continue after the region
            if reach == plan.reach:
                if size >= (max(limit, WINDOW) if reach is None else WINDOW):
                    raise _too_large(plan, pos, limit) if reach is None else _LongRunError(pos)
                size *= 2
                most = max(stop, pos + size)
            reach = plan.reach
            continue
        if reach is None and not is_last:
            window = window[:decided] + "\n"  # in place of the next character, which no match depends on
        if plan.literal in window:
            for match in plan.real.finditer(window, pos - base):
                if match.start() >= decided:
                    break
                yield match, base
                pos = base + match.end()
        if is_last:
            return
        pos = max(pos, base + decided)
        size, most = min(2 * size, WINDOW), stop


def match_at(plan: PatternPlan, span: Span, limit: int, pos: int, end: int, *, full: bool) -> WindowMatch | None:
    """The match at `pos`, or with `full` the match of all of [pos, end), or None; reads as far as it takes to decide.

    Raises `ContextTooLarge` where that is above the limit.
    """
    base, stop = max(0, pos - plan.left), end
    is_in_line = plan.reach is None and plan.within_line
    if is_in_line and (newline := span.find("\n", pos, end)) >= 0:
        stop = newline + 1
    elif plan.reach is not None:
        stop = min(pos + plan.reach, end)
        if stop < end and plan.run_stops and not plan.has_short_runs(span.read(base, stop), pos - base):
            stop = end
    if full and stop < end:
        return None  # a match does not go on after `stop`
    if stop - pos > max(limit, WINDOW):
        raise _too_large(plan, pos, limit)
    window = span.read(base, stop) + ("\n" if is_in_line and stop < end else "")
    result = (plan.real.fullmatch if full else plan.real.match)(window, pos - base)
    return (result, base) if result else None


class _Text:
    """Characters [start, stop) of a span, as windows that move forward."""

    def __init__(
        self, span: Span, start: int, stop: int, plan: PatternPlan, candidates: Candidates | None, *, eager: bool
    ):
        self._span, self._plan = span, plan
        self.stop = stop
        self.has_gaps = candidates is not None
        only = candidates.with_neighbours(plan.within_line) if candidates is not None else None
        self._pieces = span.windows(start, stop, eager=eager, only=only, is_search=not eager)
        """The text, in pieces of about a frame. Candidates leave some out."""
        self._piece: Window | None = None
        self._piece_text: str | None = None
        """The piece, once it is decoded."""
        self._kept, self._start = "", start
        """The last window, and its first character."""

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop), fewer at the end of the text. `start` must not decrease from call to call."""
        stop = min(stop, self.stop)
        parts = [self._kept[start - self._start : stop - self._start]]
        offset = start + len(parts[0])
        while offset < stop:
            parts.append(self._read_some(offset, stop))
            offset += len(parts[-1])
        if len(parts) == 1:
            return parts[0]
        self._kept, self._start = "".join(parts), start
        return self._kept

    def skip(self, pos: int) -> int:
        """A character from `pos` on before which no match begins, since the pieces up to it lack the literal."""
        literal, latest, first = self._plan.literal, self._plan.literal_latest, self._span.start
        piece, text = self._piece, self._piece_text
        can_skip = literal and not self.has_gaps and (latest < INFINITE or self._plan.within_line)
        if not can_skip or piece is None or text is None or pos < piece.start - first:
            return pos
        if text.find(literal, pos - piece.start + first) >= 0:
            return pos
        needle, newline = as_units(literal, piece), as_units("\n", piece)
        while not overlap(piece.data, needle):
            after_newline = piece.data.rfind(newline) + 1
            if latest == INFINITE and after_newline:
                pos = max(pos, piece.character(after_newline) - first)
            piece = next(self._pieces, None)
            if piece is None:
                return self.stop
            self._piece, self._piece_text = piece, None
            if latest < INFINITE:
                pos = max(pos, piece.start - first - latest)
            if find(piece.data, needle) >= 0:
                break
        return pos

    def assume_newline(self, character: int) -> None:
        """Take a newline for this character, just before the next window, instead of reading it."""
        self._kept, self._start = "\n", character

    def _read_some(self, offset: int, stop: int) -> str:
        """Some characters from `offset` on, not beyond `stop`."""
        first = self._span.start
        while self._piece is None or self._piece.stop - first <= offset:
            self._piece, self._piece_text = next(self._pieces, None), None
            if self._piece is None:
                return self._span.read(offset, stop)
        if self._piece_text is None:
            self._piece_text = self._piece.text
        start = self._piece.start - first
        if start > offset:  # a match reaches into a frame that the pieces leave out
            return self._span.read(offset, min(start, stop))
        return self._piece_text[offset - start : stop - start]


def _too_large(plan: PatternPlan, offset: int, limit: int) -> ContextTooLarge:
    """The error of a pattern that needs more text at once than the limit, with what to write instead."""
    cause = "has a line of" if plan.within_line else "may match over lines, and needs"
    return ContextTooLarge(
        f"re: the pattern {plan.real.pattern!r:.1000} {cause} more than {limit:,} characters (materialize_limit) "
        f"from character {offset:,} on: bound its repeats, such as .{{0,10000}}? for .*?, let it match within lines, "
        f"such as [ \\t]* for \\s*, or search a part, such as context[{offset}:{offset + limit}]"
    )
