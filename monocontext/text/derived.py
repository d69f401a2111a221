"""`lower()`, `upper()`, `casefold()` and `replace()` of a text that is too large for one `str`, computed as it is read.

The base text falls into *segments*. In a *plain* segment each character keeps its distance to the segment's beginning,
so any part of it can be computed alone. Any other segment is short, and is computed as a whole. Where the flags of the
frames prove that a change of case keeps every length, the whole text is one plain segment. Otherwise one pass finds the
segments when the text is made: it reads the frames without the flag, or those in which the replaced text may occur.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from monocontext.engine.candidates import Candidates
from monocontext.format.filters.query import Query
from monocontext.text.source import NO_FRAME, Span, StoredSource
from monocontext.text.windows import Window

SEGMENT_CHARACTERS = 1 << 18  # about the longest segment that is not plain


class _Segment(NamedTuple):
    """Characters [start, stop) of the base, and the offset of their output."""

    start: int
    stop: int
    output_start: int
    is_plain: bool


class Derived(ABC):
    """A text source whose characters are computed from those of a base text."""

    final_newline: bool | None = None
    loop_frame: tuple[int, str] = NO_FRAME
    knows_lines = True
    """Whether line i of the output comes from line i of the base."""

    def __init__(self, base: Span):
        self.base = base
        # One entry for each segment, which ends where the next one begins.
        self._base_starts, self._output_starts, self._is_plain = array("Q", [0]), array("Q", [0]), array("B", [True])
        self.characters = len(base)

    def _add_segment(self, start: int, output_start: int, *, is_plain: bool) -> None:
        self._base_starts.append(start)
        self._output_starts.append(output_start)
        self._is_plain.append(is_plain)

    def _segment(self, number: int) -> _Segment:
        is_last = number + 1 == len(self._base_starts)
        stop = len(self.base) if is_last else self._base_starts[number + 1]
        return _Segment(self._base_starts[number], stop, self._output_starts[number], bool(self._is_plain[number]))

    @abstractmethod
    def _map(self, text: str, start: int) -> str:
        """The output for `text`, the part of the base that begins at character `start`."""

    def read(self, start: int, stop: int) -> str:
        return "".join(window.data for window in self.windows(start, stop, eager=True))

    def windows(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[Window]:
        stop = min(stop, self.characters)
        if stop <= start or (only is not None and not only.runs):
            return
        base = self.base
        numbers = range(bisect_right(self._output_starts, start) - 1, bisect_right(self._output_starts, stop - 1))
        for number in reversed(numbers) if reverse else numbers:
            segment = self._segment(number)
            shift = segment.output_start - segment.start
            if segment.is_plain:
                low, high = max(start - shift, segment.start), min(stop - shift, segment.stop)
                for window in base.windows(low, high, reverse=reverse, eager=eager, only=only):
                    offset = window.start - base.start
                    yield Window(offset + shift, self._map(window.text, offset))
                continue
            parts = base.windows(segment.start, segment.stop, eager=True, only=only)
            first = max(start - segment.output_start, 0)
            output = self._map("".join(part.text for part in parts), segment.start)[first : stop - segment.output_start]
            if output:
                yield Window(segment.output_start + first, output)

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        return None

    def line_start(self, line: int) -> int:
        if self.knows_lines:
            return self._to_output(self.base.line_start(line))
        if line <= 0:
            return 0
        for window in self.windows(0, self.characters):
            newlines = window.data.count("\n")
            if newlines >= line:
                return window.start + len(window.data) - len(window.data.split("\n", line)[-1])
            line -= newlines  # those that are left to find
        return self.characters

    def line_of(self, character: int) -> int:
        if self.knows_lines:
            segment = self._segment(bisect_right(self._output_starts, character) - 1)
            if segment.is_plain:
                return self.base.line_of(segment.start + character - segment.output_start)
            return self.base.line_of(segment.start) + self.read(segment.output_start, character).count("\n")
        return sum(window.data.count("\n") for window in self.windows(0, character))

    def _to_output(self, character: int) -> int:
        """The offset in the output of a character of the base. In a segment that is not plain, it must begin a line."""
        segment = self._segment(bisect_right(self._base_starts, character) - 1)
        if segment.is_plain:
            return segment.output_start + character - segment.start
        return segment.output_start + len(self._map(self.base.read(segment.start, character), segment.start))

    def _to_base(self, character: int) -> int:
        """Where a character of the output comes from in the base: in a segment that is not plain, only about where."""
        segment = self._segment(bisect_right(self._output_starts, character) - 1)
        return min(segment.start + character - segment.output_start, max(segment.stop - 1, segment.start))


class CaseChanged(Derived):
    """A text under `lower`, `upper` or `casefold`. Frames with the flag `keeps_length` keep their length."""

    def __init__(self, base: Span, method: str, keeps_length: int):
        super().__init__(base)
        self._method = getattr(str, method)
        self._sees_neighbours = method == "lower"
        source = base.source
        only = None
        if isinstance(source, StoredSource):
            only = source.reader.frames_without(keeps_length, base.start, base.stop)
            if only is not None and not only.runs:
                return
        shift = 0
        for window in base.windows(eager=True, only=only):
            low, text = window.start - base.start, window.text
            size = len(self._map(text, low))
            if size != len(text):
                self._add_segment(low, low + shift, is_plain=False)
                shift += size - len(text)
                self._add_segment(low + len(text), low + len(text) + shift, is_plain=True)
        self.characters += shift

    def _map(self, text: str, start: int) -> str:
        # A capital sigma gets its final form if a cased letter comes before it and none after it, where both looks
        # skip case-ignorable characters. So the text is mapped between the two that decide, which are then cut off.
        if not self._sees_neighbours or "\u03a3" not in text:
            return self._method(text)  # type: ignore[no-any-return]
        left, right = self._deciding_character(start, 0), self._deciding_character(start + len(text), len(self.base))
        mapped: str = self._method(left + text + right)
        return mapped[len(self._method(left)) : len(mapped) - len(self._method(right))]

    def _deciding_character(self, begin: int, end: int) -> str:
        """The first character from `begin` towards `end` that is not case-ignorable; empty if there is none."""
        length, step = 1, 1 if begin < end else -1  # most often the first character decides
        while begin != end:
            border = begin + step * min(length, abs(end - begin))
            text = self.base.read(min(begin, border), max(begin, border))[::step]
            if character := next((character for character in text if not _is_case_ignorable(character)), ""):
                return character
            begin, length = border, min(2 * length, SEGMENT_CHARACTERS)
        return ""

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """The candidates of the base text, since search filters ignore case."""
        stop = min(stop, self.characters)
        if stop <= start:
            return None
        result = self.base.candidates(query, self._to_base(start), self._to_base(stop - 1) + 1, within_line)
        if result is None or not result.runs:
            return result
        result = result.shifted_by(self.base.start)
        if len(self._base_starts) > 1:
            result = result.mapped(self._to_output, self._to_base)
        result.start, result.stop = start, stop
        return result


def _is_case_ignorable(character: str) -> bool:
    """Whether the rule of the final sigma skips a character, tested with `str.lower` itself."""
    is_cased_or_skipped = ("A" + character + "\u03a3").lower().endswith("\u03c2")
    is_cased = (character + "\u03a3").lower().endswith("\u03c2")
    return is_cased_or_skipped and not is_cased


class Replaced(Derived):
    """A text under `replace(old, new)`. If both are single characters, it is made without a pass."""

    def __init__(self, base: Span, old: str, new: str):
        super().__init__(base)
        self._old, self._new = old, new
        self.knows_lines = "\n" not in old + new
        if len(old) == len(new) == 1:
            return
        # Occurrences near each other share a segment that is not plain, from the first of them to the end of the last.
        first: int | None = None
        end = shift = 0
        for occurrence in base.occurrences(old):
            if first is None or occurrence - end > SEGMENT_CHARACTERS or end - first > SEGMENT_CHARACTERS:
                if first is not None:
                    self._add_segment(end, end + shift, is_plain=True)
                self._add_segment(occurrence, occurrence + shift, is_plain=False)
                first = occurrence
            end = occurrence + len(old)
            shift += len(new) - len(old)
        if first is not None:
            self._add_segment(end, end + shift, is_plain=True)
        self.characters += shift

    def _map(self, text: str, start: int) -> str:
        return text.replace(self._old, self._new)
