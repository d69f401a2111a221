"""Slice one decoded frame, and convert between its characters, bytes and newlines."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

from monocontext.errors import DamagedData
from monocontext.format.index import ASCII, Frame

FRAME_BYTES = 600
"""The memory that a frame takes in the cache and in an index page, without its text."""
MARK_EVERY = 1024
"""Bytes between two checkpoints of the count of characters, a multiple of 8: a short slice decodes 2 KB instead of 256
KiB, for 4 bytes of memory in 1024. Denser checkpoints gain little, with 4096 a slice takes three times as long."""
NEWLINES_EVERY = 4096
"""Bytes between two checkpoints of the count of newlines: about 50 lines."""
LONG_SLICE = 64 << 10
"""A slice of more characters decodes the whole frame."""
SHORT_SLICES = 16
"""After this many short slices, the whole frame is decoded: by then, finding their offsets took as long, 2 us each
against 100 to 700. A smaller number would keep four bytes a character of a text with a few slices."""


class FrameText:
    """The text of one frame, which never changes. Offsets are characters from its start unless named `byte`."""

    __slots__ = (
        "_character_marks",
        "_newline_marks",
        "ahead",
        "data",
        "frame",
        "is_ascii",
        "late",
        "scanned",
        "size_bytes",
        "spent",
        "used",
        "whole",
    )

    def __init__(self, frame: Frame, data: bytes, *, used: bool = False):
        self.frame = frame
        self.data = data
        self.size_bytes = len(data) + 300
        self.is_ascii = bool(frame.flags & ASCII)
        self._character_marks: array[int] | None = None
        self._newline_marks: array[int] | None = None
        self.whole: str | None = None
        """The decoded text, while a cache keeps and counts it (`fetch.cache.DecodedTexts`)."""
        self.spent = 0
        """The work of slices for decoding, about 1 for a byte: a frame is worth keeping decoded from the 16th short
        slice on; one of ASCII, a quarter of whose long slices is decoding, from its tenth or so."""
        self.used = used
        """Whether a caller has looked at it since it was fetched."""
        self.ahead = False
        """Whether it was prefetched."""
        self.late = True
        """Whether a caller waited for it."""
        self.scanned: tuple[tuple[bytes, ...], tuple[int, ...]] = (), ()
        """The needles that were looked for when it was decoded, and the first byte of each or -1."""

    @property
    def is_worth_keeping(self) -> bool:
        """Whether a cache should keep it decoded, if it has room."""
        return self.spent >= len(self.data) and self.whole is None

    @property
    def text(self) -> str:
        """The whole frame as `str`. Raises `DamagedData` if it does not have the recorded number of characters."""
        if self.whole is not None:
            return self.whole
        text = self._decode(0, len(self.data))
        if len(text) != self.frame.characters:
            raise self._damaged(f"expected {self.frame.characters} characters, found {len(text)}")
        return text

    def read(self) -> str:
        """The whole frame as `str`, counted as work of decoding, as for a slice."""
        if self.whole is None and not self.is_ascii:
            self.spent += len(self.data)
        return self.text

    def slice(self, start: int, stop: int) -> str:
        """Characters [start, stop), both within the frame."""
        whole = self.whole
        if whole is not None:
            return whole[start:stop]
        if self.is_ascii:
            if stop - start <= MARK_EVERY:
                return str(self.data[start:stop], "ascii")
            self.spent += (stop - start) // 4
            return str(memoryview(self.data)[start:stop], "ascii")  # copies once
        if stop - start > LONG_SLICE:
            self.spent += len(self.data)
            return self.text[start:stop]
        self.spent += max(-(-len(self.data) // SHORT_SLICES), stop - start)
        marks = self._characters()
        first = bisect_right(marks, start) - 1
        after = bisect_left(marks, stop, first)
        return self._between(first, after)[start - marks[first] : stop - marks[first]]

    def part(self, start: int, stop: int) -> str:
        """The characters of the frame that are among characters [start, stop) of the text, at least one."""
        first = self.frame.start
        return self.slice(max(start - first, 0), min(stop - first, self.frame.characters))

    def to_byte(self, character: int) -> int:
        """Byte offset of a character (or of the end)."""
        if self.is_ascii:
            return character
        marks = self._characters()
        i = bisect_right(marks, character) - 1
        if character == marks[i]:
            return self._first_byte(i)
        return self._first_byte(i) + len(self._between(i, i + 1)[: character - marks[i]].encode())

    def to_character(self, byte: int) -> int:
        """Character at a byte offset that is a character's first byte (or the end)."""
        if self.is_ascii:
            return byte
        i = byte // MARK_EVERY
        first = self._first_byte(i)
        if first > byte:  # no character begins between this checkpoint and the requested byte
            first, i = self._first_byte(i - 1), i - 1
        return self._characters()[i] + len(self._decode(first, byte))

    def nth_newline(self, n: int) -> int:
        r"""Character offset of the n-th `\n` of the frame, counted from 0."""
        return self.to_character(self._newline_byte(n))

    def between_newlines(self, n: int) -> str:
        r"""The text between the `\n` with number n - 1 and the one with number n. Faster than a slice."""
        start = self._newline_byte(n - 1) + 1
        return self._decode(start, self.data.index(b"\n", start))

    def _newline_byte(self, n: int) -> int:
        r"""Byte offset of the n-th `\n`, counted from 0."""
        if not 0 <= n < self.frame.newlines:
            raise self._damaged(f"expected {self.frame.newlines} newlines, found {self.data.count(10)}")
        marks = self._newlines()
        i = bisect_right(marks, n) - 1
        start = i * NEWLINES_EVERY
        lines = self.data[start : start + NEWLINES_EVERY].split(b"\n", n - marks[i] + 1)
        return min(start + NEWLINES_EVERY, len(self.data)) - len(lines[-1]) - 1

    def newlines_before(self, byte: int) -> int:
        r"""The number of `\n` before a byte offset."""
        marks, i = self._newline_marks, byte // NEWLINES_EVERY
        if marks is None:
            return self.data.count(b"\n", 0, byte)
        return marks[i] + self.data.count(b"\n", i * NEWLINES_EVERY, byte)

    def _decode(self, start: int, stop: int) -> str:
        try:
            return str(self.data[start:stop], "utf-8")
        except UnicodeDecodeError as error:
            raise self._damaged(f"not UTF-8 at byte {start + error.start}: {error.reason}") from None

    def _first_byte(self, mark: int) -> int:
        """The first byte of the first character that begins at or after a checkpoint."""
        data, at = self.data, mark * MARK_EVERY
        while at < len(data) and data[at] & 0xC0 == 0x80:
            at += 1
        return min(at, len(data))

    def _between(self, first: int, after: int) -> str:
        """The characters that begin between two checkpoints."""
        return self._decode(self._first_byte(first), self._first_byte(after))

    def _characters(self) -> array[int]:
        """The number of characters that begin before each checkpoint, and before the end. Takes 25 us for 256 KiB.

        Eight bytes are added at once, as the lanes of a 64-bit number: numpy adds those four times as fast as bytes. A
        lane counts to 255, so a checkpoint comes at least every 2040 bytes.
        """
        if self._character_marks is None:
            import numpy as np

            begins = np.frombuffer(self.data, np.int8) >= -64  # -128..-65 are continuation bytes
            blocks = len(begins) // MARK_EVERY
            whole = begins[: blocks * MARK_EVERY].view(np.uint64).reshape(blocks, MARK_EVERY // 8)
            lanes = whole.sum(axis=1, dtype=np.uint64).view(np.uint8).reshape(blocks, 8)
            marks = array("I", [0, *lanes.sum(axis=1, dtype=np.uint32).cumsum().tolist()])
            if blocks * MARK_EVERY < len(begins):
                marks.append(marks[-1] + int(np.count_nonzero(begins[blocks * MARK_EVERY :])))
            if marks[-1] != self.frame.characters:
                raise self._damaged(f"expected {self.frame.characters} characters, found {marks[-1]}")
            self._character_marks = marks
        return self._character_marks

    def _newlines(self) -> array[int]:
        r"""The number of `\n` before each of their checkpoints, and before the end. Takes 70 us for 256 KiB."""
        if self._newline_marks is None:
            data = self.data
            here = [data.count(b"\n", at, at + NEWLINES_EVERY) for at in range(0, len(data), NEWLINES_EVERY)]
            marks = array("I", accumulate(here, initial=0))
            if marks[-1] != self.frame.newlines:
                raise self._damaged(f"expected {self.frame.newlines} newlines, found {marks[-1]}")
            self._newline_marks = marks
        return self._newline_marks

    def _damaged(self, what: str) -> DamagedData:
        return DamagedData(f"frame {self.frame.number} of {self.frame.object}: {what}")
