"""Where a text gets its characters from: a `TextSource`, a `Span` of a source, and `StoredSource`, text in a store.

`derived` has sources that compute their characters from those of a span.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Protocol

from monocontext.engine.candidates import Candidates
from monocontext.engine.reader import Reader
from monocontext.format.filters.query import Literal, Query
from monocontext.records import dataclass
from monocontext.text import windows
from monocontext.text.windows import Window

if TYPE_CHECKING:
    from monocontext.engine.remote.reader import ServedReader


SHORT_READ_CHARACTERS = 1 << 20  # a read up to this size may lie in one frame, which is kept for the next read

NO_FRAME = sys.maxsize, ""  # stands for no frame: it begins after every character
NEAR_CHARACTERS = 1 << 14
"""A read that begins at most so far from the one before may belong to a loop over items or short slices."""

SPARSE_STEP = 1 << 19
"""A slice with at least this step, two frames of the usual size, fetches only the frames that have its characters.
Where the reader cannot name these frames, a slice with eight times this step reads character by character."""


class TextSource(Protocol):
    """A sequence of characters that can be read at any offset. Offsets count characters; ranges are within the text."""

    loop_frame: tuple[int, str]
    """The frame that a loop over items or short slices reads: its first character and its text; else `NO_FRAME`."""

    @property
    def characters(self) -> int: ...

    @property
    def knows_lines(self) -> bool:
        """Whether `line_start` and `line_of` need no pass."""
        ...

    @property
    def final_newline(self) -> bool | None:
        """Whether the text ends in a newline; None if only a read can tell."""
        ...

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop) as one `str`."""
        ...

    def windows(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[Window]:
        """Characters [start, stop) in windows, in order or from the end backwards.

        `eager`: the caller will read all. `only`: windows may leave out everything but these candidates.
        """
        ...

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """The frames that may hold matches of `query` that begin in [start, stop); None if matches may be anywhere."""
        ...

    def line_start(self, line: int) -> int:
        r"""The first character after `line` newlines; the length of a text that has fewer."""
        ...

    def line_of(self, character: int) -> int:
        r"""The number of `\n` before `character`, which may be the length of the text."""
        ...


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, stop) of a source, such as those of a view. Offsets in methods count from `start`."""

    source: TextSource
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def read(self, start: int, stop: int) -> str:
        return self.source.read(self.start + start, self.start + stop)

    def log_read(self, start: int, stop: int) -> None:
        """Record in the read log, if there is one, that code read characters [start, stop) from kept text."""
        if isinstance(self.source, StoredSource) and (read_log := self.source.reader.read_log) is not None:
            read_log.add(self.start + start, self.start + stop)

    def count_real(self, text: str) -> None:
        """Count in the statistics the bytes of a text that became one real `str`."""
        if isinstance(self.source, StoredSource):
            self.source.reader.count_real(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")))

    def log_received(self, start: int, stop: int) -> None:
        """Record in the piece log, if there is one, that code received characters [start, stop)."""
        if isinstance(self.source, StoredSource) and (piece_log := self.source.reader.piece_log) is not None:
            piece_log.add(self.start + start, self.start + stop)

    def windows(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        reverse: bool = False,
        eager: bool = False,
        only: Candidates | None = None,
        is_search: bool = False,
    ) -> Iterator[Window]:
        """The windows of [start, stop), with offsets in the source. `is_search`: the caller searches the windows."""
        end = self.stop if stop is None else self.start + stop
        if is_search and isinstance(self.source, StoredSource):
            return self.source.windows(self.start + start, end, reverse=reverse, eager=eager, only=only, is_search=True)
        return self.source.windows(self.start + start, end, reverse=reverse, eager=eager, only=only)

    def candidates(
        self, query: Query | None, start: int = 0, stop: int | None = None, within_line: bool = False
    ) -> Candidates | None:
        """As `TextSource.candidates`: `start` and `stop` count from the start of the span, the result does not."""
        end = self.stop if stop is None else self.start + stop
        return self.source.candidates(query, self.start + start, end, within_line)

    def filter_borders(self, start: int = 0, stop: int | None = None) -> list[int]:
        """The offsets in [start, stop) from which other search filters apply: one for each TB of a huge text."""
        if not isinstance(self.source, StoredSource):
            return []
        end = self.stop if stop is None else self.start + stop
        return [border - self.start for border in self.source.reader.filter_borders(self.start + start, end)]

    def all_candidates(self, query: Query) -> Candidates | None:
        """Like `candidates`, but also where most frames are candidates; None only if no search filter can tell (GETs:
        the rows of the filters, in 1 to 3 waves)."""
        if isinstance(self.source, StoredSource):
            return self.source.reader.frames_holding(query, self.start, self.start + len(self))
        return self.candidates(query)

    # -- search for a needle that is not empty, in the span's offsets ----------------------------------------------

    def find(self, needle: str, start: int = 0, stop: int | None = None) -> int:
        """The first occurrence, or -1; reads candidates up to it."""
        result, only = self._candidate_windows(needle, start, stop, ends_at_first=True)
        return self._report_match(next(windows.occurrences(result, needle), -1), only)

    def rfind(self, needle: str, start: int = 0, stop: int | None = None) -> int:
        """The last occurrence, or -1; reads candidates from the end down to it."""
        result, only = self._candidate_windows(needle, start, stop, reverse=True, ends_at_first=True)
        return self._report_match(next(windows.occurrences_from_right(result, needle), -1), only)

    def count(self, needle: str, start: int = 0, stop: int | None = None) -> int:
        """The number of occurrences that do not overlap; reads all candidates."""
        result, only = self._candidate_windows(needle, start, stop, eager=True)
        if only is None:
            return windows.count(result, needle)
        return sum(self._report_match(occurrence, only) >= 0 for occurrence in windows.occurrences(result, needle))

    def occurrences(self, needle: str, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """The first characters of occurrences, left to right, without overlaps; reads as the caller iterates."""
        result, only = self._candidate_windows(needle, start, stop)
        return (self._report_match(occurrence, only) for occurrence in windows.occurrences(result, needle))

    def _candidate_windows(
        self,
        needle: str,
        start: int,
        stop: int | None,
        *,
        reverse: bool = False,
        eager: bool = False,
        ends_at_first: bool = False,
    ) -> tuple[Iterator[Window], Candidates | None]:
        """The windows in which to look for a needle, and the candidates in them; None if they have the whole text.
        Windows between candidates hold the ends of occurrences that begin in a candidate."""
        only = self.candidates(Literal(needle), start, stop)
        if only is not None:
            only.ends_at_first = ends_at_first
        result = self.windows(start, stop, reverse=reverse, eager=eager, only=only, is_search=True)
        if only is not None:
            fill = windows.fill_gaps_from_right if reverse else windows.fill_gaps
            result = fill(result, needle, self.source.read, only.stop)
        return result, only

    def _report_match(self, offset: int, only: Candidates | None) -> int:
        """Count a match in the statistics, and convert its offset to this span's; -1 stays -1."""
        if offset < 0:
            return offset
        if only is not None:
            only.record_match(offset)
        elif isinstance(self.source, StoredSource):
            self.source.reader.record_hit(offset)
        return offset - self.start

    def texts(self, start: int = 0, stop: int | None = None, *, reverse: bool = False) -> Iterator[str]:
        """The windows of [start, stop) as `str`."""
        return (window.text for window in self.windows(start, stop, reverse=reverse))

    def pick(self, positions: range) -> str:
        """The characters at `positions` (GETs: the frames from the first to the last; with a step of `SPARSE_STEP` or
        more, only the frames that have them)."""
        if not positions:
            return ""
        first, last = sorted((positions[0], positions[-1]))
        step, only = abs(positions.step), None
        if step >= SPARSE_STEP and isinstance(self.source, StoredSource) and isinstance(self.source.reader, Reader):
            only = self.source.reader.frames_of_characters(range(first + self.start, last + self.start + 1, step))
        elif step >= 8 * SPARSE_STEP:
            return "".join([self.read(position, position + 1) for position in positions])
        is_reversed = positions.step < 0
        return _pick(self.windows(first, last + 1, reverse=is_reversed, eager=True, only=only), positions, self.start)

    def between(self, start: int, stop: int) -> Span:
        """The part [start, stop) of this span, in its own offsets."""
        return Span(self.source, self.start + start, self.start + stop)

    @property
    def is_whole(self) -> bool:
        """Whether the span has all characters of its source."""
        return self.start == 0 and self.stop == self.source.characters

    @property
    def newlines(self) -> int:
        return self.line_of(len(self))

    @property
    def lines_before(self) -> int:
        """The number of newlines in the source before the span."""
        return self.source.line_of(self.start) if self.start else 0

    def line_of(self, character: int) -> int:
        r"""The number of `\n` in the span before `character`, which counts from the start of the span."""
        return self.source.line_of(self.start + character) - self.lines_before

    def line_start(self, line: int) -> int:
        r"""The first character after `line` newlines; the length if there are fewer."""
        if line <= 0:
            return 0
        return min(self.source.line_start(self.lines_before + line) - self.start, len(self))


@dataclass(slots=True, eq=False)
class StoredSource:
    """Text in a store, read by a reader in this process, or by one in another process."""

    knows_lines = True
    reader: Reader | ServedReader
    loop_frame: tuple[int, str] = NO_FRAME
    last_read: int = -NEAR_CHARACTERS - 1
    """The first character of the last short read."""

    @property
    def characters(self) -> int:
        return self.reader.characters

    @property
    def final_newline(self) -> bool | None:
        return self.reader.final_newline

    def read(self, start: int, stop: int) -> str:
        text = self.reader.text_within(start, stop) if start < stop <= start + SHORT_READ_CHARACTERS else None
        if text is None:
            return self.reader.read(start, stop)
        first, is_near = text.frame.start, abs(start - self.last_read) <= NEAR_CHARACTERS
        size = text.frame.characters  # fewer than its frame has if it is an end of the text in the root
        if is_near and (first, size) != (self.loop_frame[0], len(self.loop_frame[1])) and self.reader.piece_log is None:
            self.loop_frame = first, text.slice(0, size)
        self.last_read = start
        return text.slice(start - first, stop - first)

    def find_cached(self, needle: str, start: int, stop: int) -> int:
        """The first occurrence in [start, stop) if the frame of `start` is in memory and has one, else -1. So a loop of
        `find(x, last + 1)` takes microseconds per hit, where opening a stream takes a hundred."""
        text = self.reader.peek(start) if start < stop else None
        if text is None:
            return -1
        offset = text.data.find(needle.encode("utf-8", "surrogatepass"), text.to_byte(start - text.frame.start))
        result = text.frame.start + text.to_character(offset) if offset >= 0 else stop
        return result if result + len(needle) <= stop else -1

    def windows(
        self,
        start: int,
        stop: int,
        *,
        reverse: bool = False,
        eager: bool = False,
        only: Candidates | None = None,
        is_search: bool = False,
    ) -> Iterator[Window]:
        frames = self.reader.frames(start, stop, reverse=reverse, eager=eager, only=only, is_search=is_search)
        counted = frames if only is None else only.count_each(frames)
        return map(Window.of_frame, counted, repeat(start), repeat(stop))

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        return self.reader.candidates(query, start, stop, within_line)

    def line_start(self, line: int) -> int:
        return self.reader.line_start(line)

    def line_of(self, character: int) -> int:
        return self.reader.line_of(character)


def _pick(windows: Iterable[Window], positions: range, base: int) -> str:
    """The characters at `positions`, counted from `base`. The windows come in the direction of the step."""
    pieces: list[str] = []
    taken = 0  # the number of positions whose characters are in `pieces`
    for window in windows:
        text, start = window.text, window.start - base
        stop = start + len(text)
        if positions.step > 0:
            reached = min(len(positions), -(-(stop - positions.start) // positions.step))
        else:
            reached = min(len(positions), (positions.start - start) // -positions.step + 1)
        if reached > taken:
            pieces.append(text[positions[taken] - start :: positions.step][: reached - taken])
            taken = reached
    return "".join(pieces)
