"""Cache frames in the worker: bounded in bytes, the least recently used is evicted first.

Each step leaves a valid cache, so an interrupt between two of them, or another thread, costs at most a frame.
"""

from __future__ import annotations

from bisect import bisect_right

from monocontext.engine.frame import FrameText


class FrameCache:
    """Frames by character, number and newline. Safe for use by many threads."""

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._texts: dict[int, FrameText] = {}
        """Frames by their first character, the least recently used first."""
        self._sorted: list[FrameText] = []
        """The frames in the order of the text: a list that is replaced, never changed."""

    def at(self, character: int) -> FrameText | None:
        """The cached frame that holds the character at this index; None if it is not in the cache."""
        texts = self._sorted
        i = bisect_right(texts, character, key=lambda text: text.frame.start) - 1
        if i < 0 or character >= texts[i].frame.stop:
            return None
        start = texts[i].frame.start
        if (text := self._texts.pop(start, None)) is not None:
            self._texts[start] = text  # it is the last used now
        return text

    def with_newline(self, newline: int) -> FrameText | None:
        """The frame that holds newline number `newline` of the text, from 0, if it is here."""
        texts = self._sorted
        i = bisect_right(texts, newline, key=lambda text: text.frame.start_newline) - 1
        if i < 0 or newline >= texts[i].frame.start_newline + texts[i].frame.newlines:
            return None
        return self.at(texts[i].frame.start)

    def covering(self, start: int, stop: int) -> list[FrameText] | None:
        """The frames that hold characters [start, stop), in order, if all of them are here."""
        texts = []
        while start < stop:
            if (text := self.at(start)) is None:
                return None
            texts.append(text)
            start = text.frame.stop
        return texts

    def by_number(self, numbers: list[int]) -> list[FrameText] | None:
        """Frames by their numbers, if all of them are here."""
        here = {text.frame.number: text for text in self._sorted}
        return [here[number] for number in numbers] if here.keys() >= set(numbers) else None

    def put(self, texts: list[FrameText]) -> None:
        """Keep frames, and evict others to make room for them."""
        self._texts.update({text.frame.start: text for text in texts})
        kept = list(self._texts.values())
        excess = sum(text.size_bytes for text in kept) - self.capacity_bytes
        for text in kept:
            if excess <= 0:
                break
            excess -= text.size_bytes
            self._texts.pop(text.frame.start, None)
        self._sorted = sorted(self._texts.copy().values(), key=lambda text: text.frame.start)

    def clear(self) -> None:
        """Drop all frames."""
        self._texts, self._sorted = {}, []
