r"""Find a needle in a text that comes in windows. Windows go in, character offsets come out.

A needle may cross any number of windows, so a search keeps the end of the data before each window, in which an
occurrence may begin: one byte or character less than the needle has. Windows may leave out stretches in which no
occurrence begins. `fill_gaps` adds the text of such a stretch into which an occurrence from before it may extend.

Stored text is searched as bytes of UTF-8. That is exact (no character's bytes begin inside another's) and three times
faster than to decode first. Derived text is searched as `str`. One search sees one kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from monocontext.engine import scan
from monocontext.engine.frame import FrameText

MOST_STARTS = 100
"""The most positions that `overlap` tries: a needle of one repeated character would take quadratic time."""


class Window:
    """A part of a text: `data` is UTF-8 (of one frame) or `str`; `start` is its first character in the text."""

    __slots__ = ("_frame", "_shift", "_stop", "data", "follows", "start")

    def __init__(self, start: int, data: Any, frame: FrameText | None = None, shift: int = 0, stop: int | None = None):
        self.start = start
        self.data = data
        self.follows = True
        """Whether this window is adjacent to the one that came before it; False in a search for the first one."""
        self._frame = frame
        self._shift = shift
        """The position of `data` in the frame, in bytes."""
        self._stop = stop
        """The character after the window, or None if it is to be counted."""

    @classmethod
    def of_frame(cls, text: FrameText, start: int, stop: int) -> Window:
        """The part of a frame within characters [start, stop) of the text."""
        frame = text.frame
        if start <= frame.start and stop >= frame.start + frame.characters:
            return cls(frame.start, text.data, text, 0, frame.start + frame.characters)
        low = text.to_byte(max(start - frame.start, 0))
        high = text.to_byte(min(stop - frame.start, frame.characters))
        return cls(max(start, frame.start), text.data[low:high], text, low, min(stop, frame.stop))

    @property
    def stop(self) -> int:
        """The character in the text after the window."""
        return self.start + characters_in(self.data) if self._stop is None else self._stop

    def character(self, position: int) -> int:
        """The character in the text at a position in `data`."""
        frame = self._frame
        if frame is None:
            return self.start + characters_in(self.data[:position])
        if frame.is_ascii:
            return self.start + position
        return frame.frame.start + frame.to_character(self._shift + position)

    @property
    def newlines_before(self) -> int | None:
        r"""The number of `\n` in the text before the window; None for windows without a frame."""
        frame = self._frame
        return None if frame is None else frame.frame.start_newline + frame.data.count(b"\n", 0, self._shift)

    @property
    def text(self) -> str:
        """The window as a `str`."""
        data, frame = self.data, self._frame
        if isinstance(data, str):
            return data
        if frame is None or self._stop is None or len(data) < len(frame.data):
            return str(data, "utf-8")
        return frame.text

    def encode(self, needle: str) -> Any:
        """The needle in the type of this window's data: UTF-8 bytes or `str`."""
        return needle if isinstance(self.data, str) else needle.encode("utf-8", "surrogatepass")


# -- search ------------------------------------------------------------------------------------------------------------


def count(windows: Iterable[Window], needle: str) -> int:
    """The number of occurrences that do not overlap, counted from the left, as `str.count` does."""
    if has_border(needle):
        return sum(1 for _ in occurrences(windows, needle))
    total = 0
    kept: Any = None  # the end of the data before a window, in which an occurrence may begin
    for window, target in _with_target(windows, needle):
        kept = kept if window.follows else target[:0]
        data, reach = window.data, len(target) - 1
        if kept:
            total += (kept + data[:reach]).count(target)
        first = scan.find(data, target)
        total += data.count(target, first) if first >= 0 else 0
        kept = _end_of(kept, data, reach)
    return total


def occurrences(windows: Iterable[Window], needle: str) -> Iterator[int]:
    """The first characters of occurrences, left to right, without overlaps: where `str.split` cuts."""
    kept: Any = None
    for window, target in _with_target(windows, needle):
        kept = kept if window.follows else target[:0]
        data, size = window.data, len(target)
        position = 0  # in data: nothing before it may be used again
        while kept:
            seam = kept + data[: size - 1]
            offset = seam.find(target)
            if offset < 0:
                break
            yield window.start - characters_in(kept[offset:])
            end = offset + size
            position = max(end - len(kept), 0)
            kept = kept[end:]
        while (offset := scan.find(data, target, position)) >= 0:
            yield window.character(offset)
            position = offset + size
            kept = target[:0]
        kept = _end_of(kept, data[position:], size - 1)


def occurrences_from_right(windows: Iterable[Window], needle: str) -> Iterator[int]:
    """Like `occurrences`, from right to left with windows from the end backwards: where `str.rsplit` cuts."""
    kept: Any = None
    for window, target in _with_target(windows, needle):
        kept = kept if window.follows else target[:0]
        data, reach = window.data, len(target) - 1
        position = len(data)  # nothing from it on may be used again
        head = data[-reach:] if reach else data[:0]
        if kept and (offset := (head + kept).rfind(target)) >= 0:
            position = len(data) - len(head) + offset
            yield window.character(position)
            kept = target[:0]
        while (offset := data.rfind(target, 0, position)) >= 0:
            yield window.character(offset)
            position = offset
            kept = target[:0]
        kept = (data[: min(position, reach)] + kept)[:reach]


def _end_of(kept: Any, data: Any, size: int) -> Any:
    """The last `size` bytes or characters of `kept + data`."""
    if not size:
        return data[:0]
    return data[-size:] if len(data) >= size else (kept + data)[-size:]


def _with_target(windows: Iterable[Window], needle: str) -> Iterator[tuple[Window, Any]]:
    """Each window, with the needle in the type of its data."""
    target: Any = None
    for window in windows:
        if target is None:
            target = window.encode(needle)
            window.follows = False
        yield window, target


# -- preparing windows for a search ------------------------------------------------------------------------------------


def fill_gaps(windows: Iterable[Window], needle: str, read: Callable[[int, int], str], stop: int) -> Iterator[Window]:
    """The windows, and between them the text of gaps into which an occurrence may extend from the window before.

    `read(start, stop)` reads that text. The search ends at `stop`.
    """
    last: Window | None = None
    for window in windows:
        if last is not None and last.stop < window.start:
            beyond = _read_beyond(last, needle, read, window.start)
            if beyond is not None:
                yield beyond
            window.follows = beyond is not None and beyond.stop == window.start
        yield window
        last = window
    if last is not None and last.stop < stop:
        beyond = _read_beyond(last, needle, read, stop)
        if beyond is not None:
            yield beyond


def fill_gaps_from_right(
    windows: Iterable[Window], needle: str, read: Callable[[int, int], str], stop: int
) -> Iterator[Window]:
    """Like `fill_gaps`, for windows from the end backwards: the text after a window is yielded before it."""
    limit = stop  # where the window that came before begins
    for window in windows:
        if window.stop < limit:
            beyond = _read_beyond(window, needle, read, limit)
            if beyond is not None:
                beyond.follows = beyond.stop == limit < stop
                yield beyond
            window.follows = beyond is not None
        yield window
        limit = window.start


def _read_beyond(window: Window, needle: str, read: Callable[[int, int], str], limit: int) -> Window | None:
    """The text after a window into which an occurrence that begins in the window may extend; None if none can."""
    data, target = window.data, window.encode(needle)
    if len(data) >= len(target) - 1 and not overlap(data, target):
        return None
    text = read(window.stop, min(window.stop + len(needle) - 1, limit))
    return Window(window.stop, text if isinstance(data, str) else text.encode())


# -- beginnings of a needle --------------------------------------------------------------------------------------------


def overlap(data: Any, target: Any) -> int:
    """The length of the longest proper prefix of a needle with which the data ends: an occurrence may begin there. If
    the first `MOST_STARTS` positions are no such prefix, an upper bound: the length from the next position."""
    tail = data[-(len(target) - 1) :] if len(target) > 1 else data[:0]
    offset = tail.find(target[:1])
    for _ in range(MOST_STARTS):
        if offset < 0 or target.startswith(tail[offset:]):
            break
        offset = tail.find(target[:1], offset + 1)
    return len(tail) - offset if offset >= 0 else 0


def has_border(needle: str) -> bool:
    """Whether two occurrences may overlap: some proper prefix is also a suffix."""
    return overlap(needle[1:], needle) > 0


# -- characters --------------------------------------------------------------------------------------------------------


def characters_in(data: Any) -> int:
    """The number of characters in a `str`, or in bytes of UTF-8."""
    return len(data) if isinstance(data, str) else len(str(data, "utf-8"))
