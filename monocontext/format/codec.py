"""Cut a text into frames, encode them, and decode and check them.

A frame is about 256 KiB of UTF-8 text. It ends at a newline where one is near, never inside a character and never
between CR and LF. Each frame is compressed on its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import google_crc32c
import zstandard

from monocontext.errors import DamagedData
from monocontext.format import index
from monocontext.format.index import Frame, FrameRecord

RAW_FRAME_BYTES = 256 << 10  # the frame size of uncompressed texts: those in memory, and the values of a `Memory`
_local = threading.local()  # compressors of zstd are cheap to keep, and not safe to share between threads
_ASCII_BREAKS: tuple[bytes, ...] = (b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e")  # where `str.splitlines` cuts too
_OTHER_BREAKS = tuple(character.encode() for character in "\x85\u2028\u2029")


def frame_end(data: bytes | bytearray, start: int, frame_bytes: int) -> int:
    """The end of the frame that begins at byte `start`. `data` has all of the character at `start + frame_bytes`."""
    limit = start + frame_bytes
    newline = data.rfind(b"\n", limit - frame_bytes // 4, limit)
    if newline >= 0:
        return newline + 1
    stop = limit
    while stop > start and data[stop] & 0xC0 == 0x80:
        stop -= 1
    if stop == start:  # the first character is longer than a frame: the frame takes it whole
        stop = limit
        while stop < len(data) and data[stop] & 0xC0 == 0x80:
            stop += 1
    if data[stop - 1] == 0x0D and stop < len(data) and data[stop] == 0x0A:
        stop = stop - 1 if stop - 1 > start else stop + 1
    return stop


class Framer:
    """Cuts a stream of UTF-8 bytes into frames. Keeps at most one frame and one piece of input in memory."""

    def __init__(self, frame_bytes: int):
        self._frame_bytes = frame_bytes
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next piece of the text, which ends between characters, and yield the frames that it completes."""
        start, needed = 0, self._frame_bytes + 4  # a character and a CR LF pair may reach past the limit
        while self._rest and len(self._rest) + len(data) - start >= needed:
            first = self._rest + data[start : start + needed - len(self._rest)]  # all of `data` would be copied
            stop = frame_end(first, 0, self._frame_bytes)
            yield first[:stop]
            start += max(stop - len(self._rest), 0)
            self._rest = self._rest[stop:]
        while len(data) - start >= needed:
            stop = frame_end(data, start, self._frame_bytes)
            yield data[start:stop]
            start = stop
        self._rest += data[start:]

    def finish(self) -> Iterator[bytes]:
        """Yield the frames that remain at the end of the text."""
        data, start, self._rest = self._rest, 0, b""
        while len(data) - start > self._frame_bytes:
            stop = frame_end(data, start, self._frame_bytes)
            yield data[start:stop]
            start = stop
        if start < len(data):
            yield data[start:]


def describe(data: bytes, stored: bytes) -> FrameRecord:
    """The record of a frame, given its text and stored form. Raises `UnicodeDecodeError` if the text is not UTF-8."""
    characters, flags, breaks = len(data), index.ASCII | index.LOWER_KEEPS_LENGTH, _ASCII_BREAKS
    if not data.isascii():
        characters, breaks = len(data.decode()), _ASCII_BREAKS + _OTHER_BREAKS
        flags = 0 if _has(data, b"\xc4\xb0") else index.LOWER_KEEPS_LENGTH
        flags |= index.HAS_SIGMA if _has(data, b"\xce\xa3") else 0
    flags |= index.HAS_CR if b"\r" in data else 0
    flags |= index.ENDS_LINE if data.endswith(b"\n") else 0
    flags |= index.HAS_OTHER_BREAKS if any(_has(data, mark) for mark in breaks) else 0
    return FrameRecord(len(stored), len(data), characters, data.count(b"\n"), google_crc32c.value(stored), flags)


def _has(data: bytes, character: bytes) -> bool:
    """Whether a text contains a character. Its first byte is searched for first, which is 20 times as fast."""
    return character[:1] in data and character in data


def encode(data: bytes, codec: str) -> tuple[bytes, FrameRecord]:
    """The stored form and the record of a frame. Thread-safe: each thread has a compressor. Releases the GIL."""
    if codec == "raw":
        return data, describe(data, data)
    compressor = _local.compressor = getattr(_local, "compressor", None) or zstandard.ZstdCompressor(level=3)
    stored = compressor.compress(data)
    return stored, describe(data, stored)


def decode(stored: bytes | memoryview, frame: Frame) -> bytes:
    """The text of a frame, in UTF-8. Raises `DamagedData` unless lengths, checksum and characters match the record."""
    # Copied unless it is a whole `bytes` object: google-crc32c takes only `bytes`, and a cached frame must not keep the
    # response with its neighbours alive.
    whole = stored.obj if isinstance(stored, memoryview) else stored
    body = whole if isinstance(whole, bytes) and len(whole) == len(stored) else bytes(stored)
    if len(body) != frame.stored_bytes:
        raise _damaged(frame, f"length differs: expected {frame.stored_bytes} stored bytes, found {len(body)}")
    if (checksum := google_crc32c.value(body)) != frame.crc32c:
        raise _damaged(frame, f"crc32c differs: expected {frame.crc32c:08x}, found {checksum:08x}")
    data = body if frame.codec == "raw" else _inflate(body, frame)
    if len(data) != frame.bytes:
        raise _damaged(frame, f"expected {frame.bytes} bytes of text, found {len(data)}")
    if frame.flags & index.ASCII:
        if not data.isascii():
            raise _damaged(frame, "expected ASCII, found other characters")
        return data
    try:
        characters = len(data.decode())  # 24 us in 256 KiB of code with an accent, 220 us of Chinese
    except UnicodeDecodeError as error:
        raise _damaged(frame, f"not UTF-8 at byte {error.start}: {error.reason}") from None
    if characters != frame.characters:
        raise _damaged(frame, f"expected {frame.characters} characters, found {characters}")
    return data


def _damaged(frame: Frame, problem: str) -> DamagedData:
    return DamagedData(f"frame {frame.number} of {frame.object}: {problem}")


def _inflate(stored: bytes, frame: Frame) -> bytes:
    """The text of a zstd frame. The size in its header, which decompression allocates, must be the recorded one."""
    decompressor = _local.decompressor = getattr(_local, "decompressor", None) or zstandard.ZstdDecompressor()
    try:
        size = zstandard.frame_content_size(stored)
        if size == frame.bytes:
            return bytes(decompressor.decompress(stored))
    except zstandard.ZstdError as error:
        raise _damaged(frame, f"not valid zstd: {error}") from None
    raise _damaged(frame, f"expected {frame.bytes} bytes of text, found {size} in its zstd header")


def raw_frames(data: bytes) -> tuple[FrameRecord, ...]:
    """The records of an uncompressed text in UTF-8, which is cut into frames of about 256 KiB."""
    framer = Framer(RAW_FRAME_BYTES)
    return tuple(encode(frame, "raw")[1] for part in (framer.feed(data), framer.finish()) for frame in part)
