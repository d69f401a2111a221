"""Cache the frames that a worker received, and find them by character, number or newline."""

from __future__ import annotations

from bisect import bisect_right

from monocontext.engine.frame import FrameText


class FrameCache:
    """Frames by character, number and newline, bounded in bytes; the least recently used is evicted first.

    Safe for use by many threads. Each step leaves a valid cache, so an interrupt between two of them, or another
    thread, costs at most a frame.
    """

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._texts: dict[int, FrameText] = {}  # frames by their first character, the least recently used first
        self._sorted: list[FrameText] = []  # the frames in the order of the text; the list is replaced, never changed

    def at(self, character: int) -> FrameText | None:
        """The frame that holds this character of the text; None if it is not in the cache."""
        texts = self._sorted
        i = bisect_right(texts, character, key=lambda text: text.frame.start) - 1
        if i < 0 or character >= texts[i].frame.stop:
            return None
        start = texts[i].frame.start
        text = self._texts.pop(start, None)
        if text is not None:
            self._texts[start] = text  # it is the last used now
        return text

    def with_newline(self, newline: int) -> FrameText | None:
        """The frame that holds newline number `newline` of the text, from 0; None if it is not in the cache."""
        texts = self._sorted
        i = bisect_right(texts, newline, key=lambda text: text.frame.start_newline) - 1
        if i < 0 or newline >= texts[i].frame.start_newline + texts[i].frame.newlines:
            return None
        return self.at(texts[i].frame.start)

    def covering(self, start: int, stop: int) -> list[FrameText] | None:
        """The frames that hold characters [start, stop), in order; None unless all of them are in the cache."""
        texts = []
        while start < stop:
            text = self.at(start)
            if text is None:
                return None
            texts.append(text)
            start = text.frame.stop
        return texts

    def by_number(self, numbers: list[int]) -> list[FrameText] | None:
        """The frames with these numbers; None unless all of them are in the cache."""
        cached = {text.frame.number: text for text in self._sorted}
        return [cached[number] for number in numbers] if cached.keys() >= set(numbers) else None

    def put(self, texts: list[FrameText]) -> None:
        """Keep frames, and evict others to make room for them."""
        self._texts.update({text.frame.start: text for text in texts})
        oldest_first = list(self._texts.values())
        excess_bytes = sum(text.size_bytes for text in oldest_first) - self.capacity_bytes
        for text in oldest_first:
            if excess_bytes <= 0:
                break
            excess_bytes -= text.size_bytes
            self._texts.pop(text.frame.start, None)
        self._sorted = sorted(self._texts.copy().values(), key=lambda text: text.frame.start)

    def clear(self) -> None:
        """Drop all frames."""
        self._texts, self._sorted = {}, []
