"""Slice one decoded frame, and convert between its characters, bytes and newlines."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

from monocontext.errors import DamagedData
from monocontext.format.index import ASCII, Frame

FRAME_OVERHEAD_BYTES = 600  # the memory of a frame in the cache and in an index page, without its text
CHECKPOINT_EVERY = 1024  # bytes between two counts of characters: a short slice decodes 2 KB, not 256 KiB
NEWLINES_EVERY = 4096  # bytes between two checkpoints of the count of newlines: about 50 lines
_CONTINUATION = bytes(range(0x80, 0xC0))  # the bytes of UTF-8 that begin no character
_SHORT_ASCII = 1024  # a slice of ASCII up to this length is copied twice in less time than a `memoryview` takes
_OBJECT_BYTES = 300  # the memory of a `FrameText` besides its data


class FrameText:
    """The text of one frame, which never changes. Offsets are characters from its start unless named `byte`."""

    __slots__ = (
        "_character_checkpoints", "_newline_checkpoints", "data", "frame", "is_ascii", "is_prefetched", "is_used",
        "size_bytes", "was_awaited",
    )  # fmt: skip

    def __init__(self, frame: Frame, data: bytes, *, is_used: bool = False):
        self.frame = frame
        self.data = data
        self.size_bytes = len(data) + _OBJECT_BYTES
        self.is_ascii = bool(frame.flags & ASCII)
        self._character_checkpoints: array[int] | None = None
        self._newline_checkpoints: array[int] | None = None
        self.is_used = is_used  # whether a caller has looked at it since it was fetched
        self.is_prefetched = False  # whether no caller waited for it when its request was sent
        self.was_awaited = True  # whether a caller waited for it when it arrived

    @property
    def text(self) -> str:
        """The whole frame as `str`. Raises `DamagedData` if it does not have the recorded number of characters."""
        text = self._decode(0, len(self.data))
        if len(text) != self.frame.characters:
            raise self._damaged(f"expected {self.frame.characters} characters, found {len(text)}")
        return text

    def slice(self, start: int, stop: int) -> str:
        """Characters [start, stop), both within the frame."""
        if self.is_ascii:
            if stop - start <= _SHORT_ASCII:
                return str(self.data[start:stop], "ascii")
            return str(memoryview(self.data)[start:stop], "ascii")  # copies once
        if stop - start == self.frame.characters:
            return self.text
        checkpoints = self._character_counts()
        first = bisect_right(checkpoints, start) - 1
        last = bisect_left(checkpoints, stop, first)
        return self._decode_between(first, last)[start - checkpoints[first] : stop - checkpoints[first]]

    def part(self, start: int, stop: int) -> str:
        """The characters of the frame that are in [start, stop) of the text. There must be at least one."""
        first = self.frame.start
        return self.slice(max(start - first, 0), min(stop - first, self.frame.characters))

    def to_byte(self, character: int) -> int:
        """The byte offset of a character, or of the end."""
        if self.is_ascii:
            return character
        checkpoints = self._character_counts()
        i = bisect_right(checkpoints, character) - 1
        if character == checkpoints[i]:
            return self._first_byte(i)
        return self._first_byte(i) + len(self._decode_between(i, i + 1)[: character - checkpoints[i]].encode())

    def to_character(self, byte: int) -> int:
        """The character that begins at a byte offset; for the end, the number of characters."""
        if self.is_ascii:
            return byte
        i = byte // CHECKPOINT_EVERY
        first = self._first_byte(i)
        if first > byte:  # no character begins between this checkpoint and the requested byte
            first, i = self._first_byte(i - 1), i - 1
        return self._character_counts()[i] + len(self._decode(first, byte))

    def nth_newline(self, n: int) -> int:
        r"""The offset of the n-th `\n` of the frame, counted from 0, in characters."""
        if not 0 <= n < self.frame.newlines:
            found = self.data.count(b"\n")
            raise self._damaged(f"expected {self.frame.newlines} newlines, found {found}")
        checkpoints = self._newline_counts()
        i = bisect_right(checkpoints, n) - 1
        start = i * NEWLINES_EVERY
        lines = self.data[start : start + NEWLINES_EVERY].split(b"\n", n - checkpoints[i] + 1)
        return self.to_character(min(start + NEWLINES_EVERY, len(self.data)) - len(lines[-1]) - 1)

    def newlines_before(self, byte: int) -> int:
        r"""The number of `\n` before a byte offset. One count takes less time than to make the checkpoints."""
        checkpoints, i = self._newline_checkpoints, byte // NEWLINES_EVERY
        if checkpoints is None:
            return self.data.count(b"\n", 0, byte)
        return checkpoints[i] + self.data.count(b"\n", i * NEWLINES_EVERY, byte)

    def _decode(self, start: int, stop: int) -> str:
        try:
            return str(self.data[start:stop], "utf-8")
        except UnicodeDecodeError as error:
            raise self._damaged(f"not UTF-8 at byte {start + error.start}: {error.reason}") from None

    def _first_byte(self, checkpoint: int) -> int:
        """The first byte of the first character that begins at or after a checkpoint."""
        data, offset = self.data, checkpoint * CHECKPOINT_EVERY
        while offset < len(data) and data[offset] & 0xC0 == 0x80:
            offset += 1
        return min(offset, len(data))

    def _decode_between(self, first: int, last: int) -> str:
        """The characters that begin at or after checkpoint `first`, and before checkpoint `last`."""
        return self._decode(self._first_byte(first), self._first_byte(last))

    def _character_counts(self) -> array[int]:
        """The number of characters that begin before each checkpoint, and before the end (0.5 ms for 256 KiB). Uses no
        numpy, whose import takes 100 ms and which workers in WebAssembly lack."""
        if self._character_checkpoints is None:
            data = self.data
            counts = (
                len(data[offset : offset + CHECKPOINT_EVERY].translate(None, _CONTINUATION))
                for offset in range(0, len(data), CHECKPOINT_EVERY)
            )
            checkpoints = array("I", accumulate(counts, initial=0))
            if checkpoints[-1] != self.frame.characters:
                raise self._damaged(f"expected {self.frame.characters} characters, found {checkpoints[-1]}")
            self._character_checkpoints = checkpoints
        return self._character_checkpoints

    def _newline_counts(self) -> array[int]:
        r"""The number of `\n` before each of their checkpoints, and before the end. Takes 70 us for 256 KiB."""
        if self._newline_checkpoints is None:
            data = self.data
            counts = [
                data.count(b"\n", offset, offset + NEWLINES_EVERY) for offset in range(0, len(data), NEWLINES_EVERY)
            ]
            checkpoints = array("I", accumulate(counts, initial=0))
            if checkpoints[-1] != self.frame.newlines:
                raise self._damaged(f"expected {self.frame.newlines} newlines, found {checkpoints[-1]}")
            self._newline_checkpoints = checkpoints
        return self._newline_checkpoints

    def _damaged(self, problem: str) -> DamagedData:
        name = f"frame {self.frame.number} of {self.frame.object}"
        return DamagedData(f"{name}: {problem}; `monocontext verify` lists all damage")
