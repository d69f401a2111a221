"""Record which characters were read, or handed to code, between two marks. Safe for use by many threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from itertools import chain, islice

MOST_RANGES = 10_000  # the most ranges between two marks; more are merged over gaps, which adds characters
MOST_PIECES = 1_000  # the same for pieces
MOST_PIECE_CHARACTERS = 20_000  # a longer piece is a part of a pass, and does not show what code used
KEPT_MARKS = 1_000  # older marks are forgotten


class ReadLog:
    """Records the ranges of characters that were read. `since` returns those after a mark, and makes a new mark."""

    _most = MOST_RANGES

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self._before_marks: deque[list[tuple[int, int]]] = deque(maxlen=KEPT_MARKS)
        """The ranges before each of the last marks and after the mark before it."""
        self._since_mark: list[tuple[int, int]] = []  # the ranges after the last mark, in the order of reading
        self._marks = 0

    def add(self, start: int, stop: int) -> None:
        """Record a read of characters [start, stop)."""
        with self._lock:
            ranges = self._since_mark
            if ranges and ranges[-1][0] <= start <= ranges[-1][1]:
                ranges[-1] = (ranges[-1][0], max(ranges[-1][1], stop))
                return
            ranges.append((start, stop))
            if len(ranges) > self._most:
                self._since_mark = merge(ranges, self._most // 2)

    def since(self, mark: int | None) -> tuple[int, list[tuple[int, int]]]:
        """Make a mark. Returns it, and the ranges that were read since the earlier `mark`, sorted and merged: no ranges
        if `mark` is None; the ranges since the oldest mark that is kept if `mark` is forgotten.
        """
        with self._lock:
            self._before_marks.append(merge(self._since_mark, self._most))
            self._since_mark = []
            self._marks += 1
            kept = len(self._before_marks)
            marks_back = 0 if mark is None else min(self._marks - mark, kept)
            ranges = chain.from_iterable(islice(self._before_marks, kept - marks_back, None))
            return self._marks, merge(ranges, self._most)


class PieceLog(ReadLog):
    """Records the pieces that code received, except those longer than `MOST_PIECE_CHARACTERS`."""

    _most = MOST_PIECES

    def add(self, start: int, stop: int) -> None:
        if stop - start <= MOST_PIECE_CHARACTERS:
            super().add(start, stop)


def merge(ranges: Iterable[tuple[int, int]], most_ranges: int) -> list[tuple[int, int]]:
    """Sorted ranges that cover these. Those that touch are merged; if over `most_ranges` remain, near ones too."""
    gap = 0
    while True:
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(ranges):
            if merged and start <= merged[-1][1] + gap:
                merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
            else:
                merged.append((start, stop))
        if len(merged) <= most_ranges:
            return merged
        ranges, gap = merged, max(2 * gap, 64)
