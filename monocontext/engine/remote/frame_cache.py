"""Cache decoded frames in the worker: bounded in bytes, the least recently used is evicted first.

A change that an interrupt cuts short empties the cache.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from cachetools import Cache, LRUCache

from monocontext.engine.fetch.cache import MOST_BYTES, DecodedTexts, change
from monocontext.engine.frame import FrameText

P = ParamSpec("P")
T = TypeVar("T")


class _Frames(LRUCache[int, FrameText]):
    """Frames by their first character, also in order and by frame number."""

    def __init__(self, capacity_bytes: int):
        super().__init__(capacity_bytes, getsizeof=lambda text: text.size_bytes)
        self.starts: list[int] = []
        """The first characters of the frames, sorted."""
        self.numbers: dict[int, int] = {}
        """The first character of each frame, by frame number."""
        self.decoded = DecodedTexts()

    @property
    def used_bytes(self) -> int:
        return int(self.currsize) + self.decoded.size_bytes

    def peek(self, start: int) -> FrameText:
        """A frame that is in the cache, without counting a use of it."""
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


def _locked_change(method: Callable[Concatenate[FrameCache, P], T]) -> Callable[Concatenate[FrameCache, P], T]:
    """Run a method as a `change` under the lock of its cache."""
    changed = change(method)

    @wraps(method)
    def locked(self: FrameCache, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return changed(self, *args, **kwargs)

    return locked


class FrameCache:
    """Frames by number, character and newline. Safe for use by many threads."""

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._texts = _Frames(capacity_bytes)
        self._lock = threading.RLock()
        self._is_dirty = False

    @_locked_change
    def at(self, character: int) -> FrameText | None:
        """The cached frame that holds the character at this index; None if it is not in the cache."""
        i = bisect_right(self._texts.starts, character) - 1
        if i < 0:
            return None
        start = self._texts.starts[i]
        return self._texts[start] if character < self._texts.peek(start).frame.stop else None

    @_locked_change
    def with_newline(self, newline: int) -> FrameText | None:
        """The frame that holds newline number `newline` of the text, from 0, if it is here."""
        texts = self._texts
        i = bisect_right(texts.starts, newline, key=lambda start: texts.peek(start).frame.start_newline) - 1
        frame = texts.peek(texts.starts[i]).frame if i >= 0 else None
        if frame is None or newline >= frame.start_newline + frame.newlines:
            return None
        return texts[frame.start]

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

    @_locked_change
    def by_number(self, numbers: list[int]) -> list[FrameText] | None:
        """Frames by their numbers, if all of them are here."""
        if not all(number in self._texts.numbers for number in numbers):
            return None
        return [self._texts.peek(self._texts.numbers[number]) for number in numbers]

    @_locked_change
    def put(self, text: FrameText) -> None:
        """Keep a frame, and evict others to make room for it."""
        if text.frame.start not in self._texts and text.size_bytes <= self.capacity_bytes:
            self._texts[text.frame.start] = text
            self._evict_decoded()

    def keep_decoded(self, text: FrameText) -> None:
        """Keep the decoded text of a frame that is sliced again and again, if that needs no eviction."""
        if text.is_worth_keeping:
            text.decoding_work = 0
            if self._texts.used_bytes + MOST_BYTES * text.frame.characters + 100 <= self.capacity_bytes:
                self._put_decoded(text, text.text)

    @_locked_change
    def _put_decoded(self, text: FrameText, whole: str) -> None:
        if text.frame.start in self._texts:
            self._texts.decoded.keep(text.frame.start, text, whole)
            self._evict_decoded()

    def _evict_decoded(self) -> None:
        while self._texts.used_bytes > self.capacity_bytes:
            self._texts.decoded.drop_oldest()

    def clear(self) -> None:
        """Drop all frames."""
        with self._lock:
            self._recover()

    def _recover(self) -> None:
        self._texts.decoded.clear()
        self._texts = _Frames(self.capacity_bytes)
