"""Frames: cut from text, stored, and read back with every check.

A frame is text in UTF-8 of about 256 KiB, cut at a newline where one is near, never inside a character and never
between CR and LF, and compressed on its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import google_crc32c
import zstandard

from monocontext.errors import DamagedData
from monocontext.index import (
    ASCII,
    ENDS_LINE,
    HAS_CR,
    HAS_OTHER_BREAKS,
    HAS_SIGMA,
    LOWER_KEEPS_LENGTH,
    Frame,
    FrameRecord,
)

ZSTD_LEVEL = 3

_local = threading.local()  # zstd contexts are cheap to keep and not safe to share between threads

_BREAKS_ASCII = (b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e")
_BREAKS_OTHER = tuple(c.encode() for c in "\x85\u2028\u2029")


def cut(data: bytes | bytearray, start: int, frame_bytes: int) -> int:
    """Where the frame that begins at byte `start` ends, given at least `frame_bytes + 2` more bytes of text."""
    limit = start + frame_bytes
    newline = data.rfind(b"\n", limit - frame_bytes // 4, limit)
    if newline >= 0:
        return newline + 1
    stop = limit
    while stop > start and data[stop] & 0xC0 == 0x80:
        stop -= 1
    if stop == start:  # a frame shorter than its first character takes the character whole
        stop = limit
        while stop < len(data) and data[stop] & 0xC0 == 0x80:
            stop += 1
    if data[stop - 1] == 0x0D and stop < len(data) and data[stop] == 0x0A:
        stop = stop - 1 if stop - 1 > start else stop + 1
    return stop


class Framer:
    """Cuts a stream of UTF-8 bytes into frames. Holds at most one frame and one piece of input."""

    def __init__(self, frame_bytes: int):
        self._frame_bytes = frame_bytes
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Frames that are complete now; `data` must end between characters."""
        data = self._rest + data if self._rest else data
        start = 0
        while len(data) - start >= self._frame_bytes + 4:  # a character and a CR LF pair may reach past the limit
            stop = cut(data, start, self._frame_bytes)
            yield data[start:stop]
            start = stop
        self._rest = data[start:]

    def finish(self) -> Iterator[bytes]:
        """The frames of what is left."""
        data, start = self._rest, 0
        self._rest = b""
        while len(data) - start > self._frame_bytes:
            stop = cut(data, start, self._frame_bytes)
            yield data[start:stop]
            start = stop
        if start < len(data):
            yield data[start:]


def describe(data: bytes, stored: bytes) -> FrameRecord:
    """The record of a frame. Raises `UnicodeDecodeError` when `data` is not UTF-8."""
    flags = 0
    characters = len(data)
    if data.isascii():
        flags |= ASCII | LOWER_KEEPS_LENGTH
    else:
        characters = len(data.decode())
        flags |= 0 if b"\xc4\xb0" in data else LOWER_KEEPS_LENGTH
        flags |= HAS_SIGMA if b"\xce\xa3" in data else 0
    if b"\r" in data:
        flags |= HAS_CR
    if data.endswith(b"\n"):
        flags |= ENDS_LINE
    others = _BREAKS_ASCII if flags & ASCII else _BREAKS_ASCII + _BREAKS_OTHER
    if any(mark in data for mark in others):
        flags |= HAS_OTHER_BREAKS
    return FrameRecord(len(stored), len(data), characters, data.count(b"\n"), google_crc32c.value(stored), flags)


def encode(data: bytes, codec: str) -> tuple[bytes, FrameRecord]:
    """A frame as it is stored, and its record. Safe in any thread; zstd releases the GIL."""
    if codec == "raw":
        return data, describe(data, data)
    compressor = getattr(_local, "compressor", None)
    if compressor is None:
        compressor = _local.compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    stored = compressor.compress(data)
    return stored, describe(data, stored)


def decode(stored: bytes | memoryview, frame: Frame) -> bytes:
    """The text of a frame, in UTF-8.

    Raises `DamagedData` unless it is text, and its length, checksum, size and characters are as recorded.

    Never allocates more than the recorded length: a frame that claims or holds more is refused before it is inflated.
    """
    where = f"frame {frame.number} of {frame.object}"
    if len(stored) != frame.stored_bytes:
        raise DamagedData(f"{where}: length differs: expected {frame.stored_bytes} stored bytes, found {len(stored)}")
    body = _held(stored)
    if (found := google_crc32c.value(body)) != frame.crc32c:
        raise DamagedData(f"{where}: crc32c differs: expected {frame.crc32c:08x}, found {found:08x}")
    data = body if frame.codec == "raw" else _inflate(body, frame, where)
    if len(data) != frame.bytes:
        raise DamagedData(f"{where}: expected {frame.bytes} bytes of text, found {len(data)}")
    if frame.flags & ASCII:
        if not data.isascii():
            raise DamagedData(f"{where}: expected ASCII, found other characters")
        return data
    try:
        characters = len(data.decode())  # 24 us in 256 KiB of code with an accent, 220 us of Chinese
    except UnicodeDecodeError as error:
        raise DamagedData(f"{where}: not UTF-8 at byte {error.start}: {error.reason}") from None
    if characters != frame.characters:
        raise DamagedData(f"{where}: expected {frame.characters} characters, found {characters}")
    return data


def _held(stored: bytes | memoryview) -> bytes:
    """The bytes of a view, copied unless they are all of the `bytes` that it looks at: a body of one frame stays where
    the socket put it. A part is copied once, for the checksum as for the cache: google-crc32c takes `bytes` alone, and
    a frame that is kept must not keep the bodies of its neighbours."""
    if isinstance(stored, memoryview):
        whole = stored.obj
        return whole if isinstance(whole, bytes) and len(whole) == stored.nbytes else bytes(stored)
    return stored


def _inflate(stored: bytes, frame: Frame, where: str) -> bytes:
    decompressor = getattr(_local, "decompressor", None)
    if decompressor is None:
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    try:
        claimed = zstandard.frame_content_size(stored)
        if claimed != frame.bytes:
            raise DamagedData(
                f"{where}: inflates to more or less than recorded: expected {frame.bytes} bytes, found {claimed}"
            )
        data: bytes = decompressor.decompress(stored)
    except zstandard.ZstdError as error:
        raise DamagedData(f"{where}: does not inflate: {error}") from None
    return data


RAW_FRAME_BYTES = 256 << 10


def raw_frames(data: bytes) -> tuple[FrameRecord, ...]:
    """The records of a text in UTF-8 that an object holds as it is: raw frames of about 256 KiB."""
    framer = Framer(RAW_FRAME_BYTES)
    return tuple(encode(frame, "raw")[1] for part in (framer.feed(data), framer.finish()) for frame in part)
