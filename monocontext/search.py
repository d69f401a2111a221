r"""Finding in a text that comes in windows. Pure: windows in, character offsets out.

A needle may lie across any number of windows, so the last `len(needle) - 1` units of what was seen are carried along.
Windows may leave out stretches in which no occurrence begins; `bridged` then adds what one that begins before reaches.
Text in storage is searched as bytes of UTF-8, which is exact (no character's bytes begin inside another's) and three
times faster than decoding first; derived text is searched as `str`. One search sees one kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from monocontext.frametext import FrameText


class Window:
    """A stretch of text: `data` is UTF-8 (of one frame) or `str`; `start` is the character in the text it begins at."""

    __slots__ = ("_frame", "_shift", "_stop", "data", "follows", "start")

    def __init__(self, start: int, data: Any, frame: FrameText | None = None, shift: int = 0, stop: int | None = None):
        self.start = start
        self.data = data
        self.follows = True
        """Begins where the window before it ends (backwards: ends where that begins)."""
        self._frame = frame
        self._shift = shift
        self._stop = stop

    @classmethod
    def of_frame(cls, text: FrameText, start: int, stop: int) -> Window:
        """The part of a frame that lies within characters [start, stop) of the text."""
        frame = text.frame
        if start <= frame.start and stop >= frame.start + frame.characters:
            return cls(frame.start, text.data, text, 0, frame.stop)
        low = text.to_byte(max(start - frame.start, 0))
        high = text.to_byte(min(stop - frame.start, frame.characters))
        return cls(max(start, frame.start), text.data[low:high], text, low, min(stop, frame.stop))

    @property
    def stop(self) -> int:
        """The character in the text behind it."""
        return self.start + length(self.data) if self._stop is None else self._stop

    def character(self, position: int) -> int:
        """The character in the text at a position in `data`."""
        frame = self._frame
        if frame is None or frame.is_ascii:
            return self.start + position
        return frame.frame.start + frame.to_character(self._shift + position)

    @property
    def newlines_before(self) -> int | None:
        r"""Number of `\n` in the text before it; None where no frame says so."""
        frame = self._frame
        return None if frame is None else frame.frame.start_newline + frame.data.count(b"\n", 0, self._shift)

    @property
    def text(self) -> str:
        return self.data if isinstance(self.data, str) else _decode(self.data)


def _decode(data: bytes) -> str:
    return str(data, "utf-8")


def length(units: Any) -> int:
    """Characters in bytes that begin at a character, or in a `str`."""
    return len(units) if isinstance(units, str) else len(_decode(units))


def _as_units(needle: str, window: Window) -> Any:
    return needle if isinstance(window.data, str) else needle.encode("utf-8", "surrogatepass")


def bridged(
    windows: Iterable[Window], needle: str, read: Callable[[int, int], str], stop: int, reverse: bool = False
) -> Iterator[Window]:
    """Windows that leave stretches out, made fit for searching.

    Where an occurrence may begin at the end of a window and the next is missing, what it would reach follows, which
    `read(start, stop)` gives. `stop` is where the search ends.
    """
    last: Window | None = None
    for window in windows:
        if reverse:
            limit = stop if last is None else last.start
            if window.stop < limit:
                beyond = _beyond(window, needle, read, limit)
                if beyond is not None:
                    beyond.follows = last is not None and beyond.stop == limit
                    yield beyond
                window.follows = beyond is not None
        elif last is not None and last.stop < window.start:
            beyond = _beyond(last, needle, read, window.start)
            if beyond is not None:
                yield beyond
            window.follows = beyond is not None and beyond.stop == window.start
        yield window
        last = window
    if last is not None and not reverse and last.stop < stop:
        beyond = _beyond(last, needle, read, stop)
        if beyond is not None:
            yield beyond


def _beyond(window: Window, needle: str, read: Callable[[int, int], str], limit: int) -> Window | None:
    """The text behind a window, as far as an occurrence that begins before it may reach; None where none may."""
    data, units = window.data, _as_units(needle, window)
    if len(data) >= len(units) - 1 and not overlap(data, units):
        return None
    text = read(window.stop, min(window.stop + len(needle) - 1, limit))
    return Window(window.stop, text if isinstance(data, str) else text.encode())


def overlap(data: Any, units: Any) -> int:
    """Length of the longest proper prefix of a needle that the data ends with: an occurrence may begin there."""
    tail = data[-(len(units) - 1) :] if len(units) > 1 else data[:0]
    at = tail.find(units[:1])
    while at >= 0 and not units.startswith(tail[at:]):
        at = tail.find(units[:1], at + 1)
    return len(tail) - at if at >= 0 else 0


def find(windows: Iterable[Window], needle: str) -> int:
    """The first occurrence of a needle that is not empty, or -1."""
    carry: Any = None
    units: Any = None
    for window in windows:
        if units is None:
            units = _as_units(needle, window)
        if carry is None or not window.follows:
            carry = units[:0]
        data, reach = window.data, len(units) - 1
        if carry:
            at = (carry + data[:reach]).find(units)
            if at >= 0:
                return window.start - length(carry[at:])
        at = data.find(units)
        if at >= 0:
            return window.character(at)
        carry = data[-reach:] if len(data) >= reach > 0 else (carry + data)[-reach:] if reach else carry
    return -1


def rfind(windows: Iterable[Window], needle: str) -> int:
    """The last occurrence of a needle that is not empty, or -1; `windows` come from the end of the text backwards."""
    carry: Any = None
    units: Any = None
    for window in windows:
        if units is None:
            units = _as_units(needle, window)
        if carry is None or not window.follows:
            carry = units[:0]
        data, reach = window.data, len(units) - 1
        if carry:
            head = data[-reach:]
            at = (head + carry).rfind(units)
            if at >= 0:
                return window.character(len(data) - len(head) + at)
        at = data.rfind(units)
        if at >= 0:
            return window.character(at)
        carry = (data[:reach] + carry)[:reach] if reach else carry
    return -1


def has_border(needle: str) -> bool:
    """Whether two occurrences can overlap: some proper prefix is also a suffix."""
    borders = [0]  # for each prefix, the length of its longest border (Knuth, Morris and Pratt)
    for unit in needle[1:]:
        size = borders[-1]
        while size and needle[size] != unit:
            size = borders[size - 1]
        borders.append(size + (needle[size] == unit))
    return borders[-1] > 0


def count(windows: Iterable[Window], needle: str) -> int:
    """Occurrences that do not overlap, counted from the left, as `str.count` does."""
    if has_border(needle):
        return sum(1 for _ in occurrences(windows, needle))
    total = 0
    carry: Any = None
    units: Any = None
    for window in windows:
        if units is None:
            units = _as_units(needle, window)
        if carry is None or not window.follows:
            carry = units[:0]
        data, reach = window.data, len(units) - 1
        if carry:
            total += (carry + data[:reach]).count(units)
        total += data.count(units)
        carry = data[-reach:] if len(data) >= reach > 0 else (carry + data)[-reach:] if reach else carry
    return total


def occurrences(windows: Iterable[Window], needle: str) -> Iterator[int]:
    """Characters at which occurrences begin, left to right, not overlapping: where `str.split` cuts."""
    carry: Any = None
    units: Any = None
    for window in windows:
        if units is None:
            units = _as_units(needle, window)
        if carry is None or not window.follows:
            carry = units[:0]
        data, size = window.data, len(units)
        position = 0  # in data: nothing before it may be used again
        while carry:
            seam = carry + data[: size - 1]
            at = seam.find(units)
            if at < 0:
                break
            yield window.start - length(carry[at:])
            end = at + size
            position = max(end - len(carry), 0)
            carry = carry[end:]
        while (at := data.find(units, position)) >= 0:
            yield window.character(at)
            position = at + size
            carry = units[:0]
        rest = data[position:]
        carry = (rest if position else carry + rest)[-(size - 1) :] if size > 1 else carry


def occurrences_from_right(windows: Iterable[Window], needle: str) -> Iterator[int]:
    """The same from right to left, `windows` coming from the end backwards: where `str.rsplit` cuts."""
    carry: Any = None
    units: Any = None
    for window in windows:
        if units is None:
            units = _as_units(needle, window)
        if carry is None or not window.follows:
            carry = units[:0]
        data, reach = window.data, len(units) - 1
        position = len(data)  # nothing from it on may be used again
        head = data[-reach:] if reach else data[:0]
        if carry and (at := (head + carry).rfind(units)) >= 0:
            position = len(data) - len(head) + at
            yield window.character(position)
            carry = units[:0]
        while (at := data.rfind(units, 0, position)) >= 0:
            yield window.character(at)
            position = at
            carry = units[:0]
        carry = (data[: min(position, reach)] + carry)[:reach]
