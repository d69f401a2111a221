"""Frames at hand in the worker: bounded in bytes, the least recently used goes first."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections import OrderedDict

from monocontext.frametext import FrameText


class Shelf:
    """Frames by number and by character. Safe for use by many threads."""

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._texts: OrderedDict[int, FrameText] = OrderedDict()  # by first character
        self._starts: list[int] = []
        self._numbers: dict[int, int] = {}
        self._used_bytes = 0
        self._lock = threading.Lock()

    def at(self, character: int) -> FrameText | None:
        """The frame that holds a character."""
        with self._lock:
            i = bisect_right(self._starts, character) - 1
            if i < 0:
                return None
            start = self._starts[i]
            text = self._texts[start]
            if character >= text.frame.stop:
                return None
            self._texts.move_to_end(start)
            return text

    def covering(self, start: int, stop: int) -> list[FrameText] | None:
        """The frames that hold characters [start, stop), in order, if all of them are here."""
        found = []
        while start < stop:
            text = self.at(start)
            if text is None:
                return None
            found.append(text)
            start = text.frame.stop
        return found

    def numbered(self, numbers: list[int]) -> list[FrameText] | None:
        """Frames by their numbers, if all of them are here."""
        with self._lock:
            if not all(number in self._numbers for number in numbers):
                return None
            return [self._texts[self._numbers[number]] for number in numbers]

    def put(self, text: FrameText) -> None:
        start, size = text.frame.start, text.size_bytes
        with self._lock:
            if start in self._texts or size > self.capacity_bytes:
                return
            while self._used_bytes + size > self.capacity_bytes:
                self._give_up()
            self._texts[start] = text
            self._numbers[text.frame.number] = start
            insort(self._starts, start)
            self._used_bytes += size

    def clear(self) -> None:
        with self._lock:
            self._texts.clear()
            self._starts.clear()
            self._numbers.clear()
            self._used_bytes = 0

    def _give_up(self) -> None:
        start, text = self._texts.popitem(last=False)
        del self._starts[bisect_right(self._starts, start) - 1]
        del self._numbers[text.frame.number]
        self._used_bytes -= text.size_bytes
