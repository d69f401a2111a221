"""Record which characters were read or passed to code, and when. Safe for use by many threads."""

from __future__ import annotations

import threading
from collections import deque

MOST_RANGES = 10_000
"""The most ranges between two marks; more are merged over gaps, so the log may have more characters, never fewer."""
MOST_PIECES = 1_000
"""The most pieces of one cell that are remembered."""
MOST_PIECE_CHARACTERS = 20_000
"""A longer piece is a part of a pass, and does not show what code used."""
KEPT_MARKS = 1_000
"""The number of marks that are kept."""


class ReadLog:
    """The ranges of characters that were read, with marks between them."""

    _most = MOST_RANGES

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settled: deque[list[tuple[int, int]]] = deque(maxlen=KEPT_MARKS)
        self._now: list[tuple[int, int]] = []
        self._marks = 0

    def add(self, start: int, stop: int) -> None:
        """Record a read of characters [start, stop)."""
        with self._lock:
            now = self._now
            if now and now[-1][0] <= start <= now[-1][1]:
                now[-1] = (now[-1][0], max(now[-1][1], stop))
                return
            now.append((start, stop))
            if len(now) > self._most:
                self._now = merge(now, self._most // 2)

    def since(self, mark: int | None) -> tuple[int, list[tuple[int, int]]]:
        """Make a mark; return it, and the ranges read since `mark`, the mark of an earlier call, sorted and merged.

        If `mark` is None, there are no ranges. If it is no longer kept, they begin at the oldest mark that is.
        """
        with self._lock:
            self._settled.append(merge(self._now, self._most))
            self._now = []
            self._marks += 1
            spans = 0 if mark is None else min(self._marks - mark, len(self._settled))
            ranges = [item for settled in list(self._settled)[len(self._settled) - spans :] for item in settled]
            return self._marks, merge(ranges, self._most)


class PieceLog(ReadLog):
    """The pieces that code received, each of at most `MOST_PIECE_CHARACTERS`."""

    _most = MOST_PIECES

    def add(self, start: int, stop: int) -> None:
        if stop - start <= MOST_PIECE_CHARACTERS:
            super().add(start, stop)


def merge(ranges: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """At most `most` sorted ranges that cover these: adjacent ones are merged, and others over ever larger gaps."""
    gap = 0
    while True:
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(ranges):
            if merged and start <= merged[-1][1] + gap:
                merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
            else:
                merged.append((start, stop))
        if len(merged) <= most:
            return merged
        ranges, gap = merged, max(2 * gap, 64)
