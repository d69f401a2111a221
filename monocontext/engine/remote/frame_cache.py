"""Cache decoded frames in the worker: bounded in bytes, the least recently used goes first.

A change that an interrupt cut short empties the cache.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort

from cachetools import Cache, LRUCache

from monocontext.engine.fetch.cache import MOST_BYTES, DecodedTexts, change
from monocontext.engine.frame import FrameText


class _Frames(LRUCache[int, FrameText]):
    """Frames by their first character, which are also known in order and by frame number."""

    def __init__(self, capacity_bytes: int):
        super().__init__(capacity_bytes, getsizeof=lambda text: text.size_bytes)
        self.starts: list[int] = []
        self.numbers: dict[int, int] = {}
        self.decoded = DecodedTexts()

    @property
    def used_bytes(self) -> int:
        return int(self.currsize) + self.decoded.size_bytes

    def peek(self, start: int) -> FrameText:
        """A frame that is here; looking is no use of it."""
        text: FrameText = Cache.__getitem__(self, start)
        return text

    def __setitem__(self, start: int, text: FrameText) -> None:
        super().__setitem__(start, text)
        self.numbers[text.frame.number] = start
        insort(self.starts, start)

    def __delitem__(self, start: int) -> None:
        self.decoded.drop(start)
        del self.numbers[self.peek(start).frame.number]
        super().__delitem__(start)
        del self.starts[bisect_right(self.starts, start) - 1]


class FrameCache:
    """Frames by number and by character. Safe for use by many threads."""

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._texts = _Frames(capacity_bytes)
        self._lock = threading.RLock()
        self._is_dirty = False

    def at(self, character: int) -> FrameText | None:
        """The frame that holds a character."""
        with self._lock:
            return self._find(character)

    def with_newline(self, newline: int) -> FrameText | None:
        """The frame that holds newline number `newline` of the text, from 0."""
        with self._lock:
            return self._find_newline(newline)

    def keep_decoded(self, text: FrameText) -> None:
        """Keep a frame decoded that is here and sliced again and again, if there is room that no frame takes."""
        if text.is_worth_keeping:
            text.spent = 0
            if self._texts.used_bytes + MOST_BYTES * text.frame.characters + 100 <= self.capacity_bytes:
                whole = text.text
                with self._lock:
                    self._keep_whole(text, whole)

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

    def by_number(self, numbers: list[int]) -> list[FrameText] | None:
        """Frames by their numbers, if all of them are here."""
        with self._lock:
            return self._find_all(numbers)

    def put(self, text: FrameText) -> None:
        """Keep a frame; others go where there is no room."""
        with self._lock:
            self._keep(text)

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._recover()

    def _recover(self) -> None:
        self._texts.decoded.clear()
        self._texts = _Frames(self.capacity_bytes)

    @change
    def _find(self, character: int) -> FrameText | None:
        i = bisect_right(self._texts.starts, character) - 1
        if i < 0:
            return None
        start = self._texts.starts[i]
        return self._texts[start] if character < self._texts.peek(start).frame.stop else None

    @change
    def _find_newline(self, newline: int) -> FrameText | None:
        texts = self._texts
        i = bisect_right(texts.starts, newline, key=lambda start: texts.peek(start).frame.start_newline) - 1
        frame = texts.peek(texts.starts[i]).frame if i >= 0 else None
        if frame is None or newline >= frame.start_newline + frame.newlines:
            return None
        return texts[frame.start]

    @change
    def _keep_whole(self, text: FrameText, whole: str) -> None:
        if text.frame.start in self._texts:
            self._texts.decoded.keep(text.frame.start, text, whole)
            self._fit_decoded()

    def _fit_decoded(self) -> None:
        while self._texts.used_bytes > self.capacity_bytes:
            self._texts.decoded.drop_oldest()

    @change
    def _find_all(self, numbers: list[int]) -> list[FrameText] | None:
        if not all(number in self._texts.numbers for number in numbers):
            return None
        return [self._texts.peek(self._texts.numbers[number]) for number in numbers]

    @change
    def _keep(self, text: FrameText) -> None:
        if text.frame.start not in self._texts and text.size_bytes <= self.capacity_bytes:
            self._texts[text.frame.start] = text
            self._fit_decoded()
