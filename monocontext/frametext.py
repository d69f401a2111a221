"""One decoded frame: its bytes, and the way between its characters and them."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from monocontext.errors import DamagedData
from monocontext.index import ASCII, Frame

MARK_EVERY = 1024
"""Characters between two checkpoints of a frame that is not ASCII: a short slice decodes about 2 KB instead of 256 KiB,
for 4 bytes of memory in 1024 characters. Denser gains little, 4096 costs three times as much a slice."""


class FrameText:
    """The text of one frame. Immutable; offsets are characters from the frame's start unless named `_byte`."""

    __slots__ = ("_marks", "ahead", "data", "frame", "is_ascii", "late", "used")

    def __init__(self, frame: Frame, data: bytes):
        self.frame = frame
        self.data = data
        self.is_ascii = bool(frame.flags & ASCII)
        self._marks: array[int] | None = None
        self.used = False
        """Whether any caller has looked at it since it was fetched."""
        self.ahead = False
        """Whether it was fetched before anybody asked for it."""
        self.late = True
        """Whether somebody waited for it all the same."""

    @property
    def size_bytes(self) -> int:
        return len(self.data) + 300

    @property
    def text(self) -> str:
        """The whole frame as `str`."""
        text = self._decode(0, len(self.data))
        if len(text) != self.frame.characters:
            raise self._damaged(f"expected {self.frame.characters} characters, found {len(text)}")
        return text

    def slice(self, start: int, stop: int) -> str:
        """Characters [start, stop) of the frame; both within it."""
        if self.is_ascii:
            return str(self.data[start:stop], "ascii")
        if stop - start > MARK_EVERY * 64:
            return self.text[start:stop]
        marks = self._checkpoints()
        first = start // MARK_EVERY
        text = self._decode(marks[first], marks[min((stop + MARK_EVERY - 1) // MARK_EVERY, len(marks) - 1)])
        return text[start - first * MARK_EVERY : stop - first * MARK_EVERY]

    def to_byte(self, character: int) -> int:
        """Byte offset of a character (or of the end)."""
        if self.is_ascii:
            return character
        marks = self._checkpoints()
        i = min(character // MARK_EVERY, len(marks) - 2)
        return marks[i] + len(self._decode(marks[i], marks[i + 1])[: character - i * MARK_EVERY].encode())

    def to_character(self, byte: int) -> int:
        """Character at a byte offset that is a character's first byte (or the end)."""
        if self.is_ascii:
            return byte
        marks = self._checkpoints()
        i = min(bisect_right(marks, byte) - 1, len(marks) - 2)
        return i * MARK_EVERY + len(self._decode(marks[i], byte))

    def nth_newline(self, n: int) -> int:
        r"""Character offset of the n-th `\n` of the frame, counted from 0."""
        position = _nth(self.data, b"\n", n)
        if position < 0:
            raise self._damaged(f"expected {self.frame.newlines} newlines, found {self.data.count(10)}")
        return self.to_character(position)

    def _decode(self, start: int, stop: int) -> str:
        try:
            return str(self.data[start:stop], "utf-8")
        except UnicodeDecodeError as error:
            raise self._damaged(f"not UTF-8 at byte {start + error.start}: {error.reason}") from None

    def _checkpoints(self) -> array[int]:
        """Byte offset of every 1024th character, and of the end."""
        if self._marks is None:
            import numpy as np

            starts = np.flatnonzero(np.frombuffer(self.data, np.int8) >= -64)  # -128..-65 are continuation bytes
            if len(starts) != self.frame.characters:
                raise self._damaged(f"expected {self.frame.characters} characters, found {len(starts)}")
            self._marks = array("I", [*starts[::MARK_EVERY].tolist(), len(self.data)])
        return self._marks

    def _damaged(self, what: str) -> DamagedData:
        return DamagedData(f"frame {self.frame.number} of {self.frame.object}: {what}")


def _nth(data: bytes, mark: bytes, n: int) -> int:
    """Offset of the n-th `mark` (from 0), or -1; halves the range by counting, which runs at 2 GB/s."""
    start, stop = 0, len(data)
    while stop - start > 512:
        middle = (start + stop) // 2
        here = data.count(mark, start, middle)
        if n < here:
            stop = middle
        else:
            n -= here
            start = middle
    position = start - 1
    for _ in range(n + 1):
        position = data.find(mark, position + 1, stop)
        if position < 0:
            return -1
    return position
