"""Decompress files of gzip, zstd, bzip2 and xz while they are read."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from typing import IO, Any

from zstandard import ZstdDecompressor, ZstdError

_STEP_BYTES = 4 << 10  # the compressed bytes that are decompressed at a time: they may hold 100 MB of text
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "gzip": partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),
    "zstd": lambda: ZstdDecompressor().decompressobj(),
    "bzip2": bz2.BZ2Decompressor,
    "xz": partial(lzma.LZMADecompressor, lzma.FORMAT_XZ),
}
"""For each compression, a function that makes a decompressor for one stream."""
_PADDING_BYTES = {"gzip": 1, "xz": 4}  # zero bytes may follow a stream, in multiples of this number


class DamagedCompression(ValueError):
    """Compressed data is damaged or cut off."""


class DecompressedFile:
    """Reads the streams of a compressed file that is open at its beginning, one after another. Unlike the readers of
    `bz2`, `lzma` and `zstandard`, it refuses bytes after a stream that are not another stream."""

    def __init__(self, file: IO[bytes], compression: str, step_bytes: int = _STEP_BYTES) -> None:
        self._file, self._compression, self._step_bytes = file, compression, step_bytes
        self._unread = b""  # bytes of the file that were read, but not decompressed
        self._stream = _DECOMPRESSORS[compression]()

    def read(self, least_bytes: int) -> bytes:
        """The next bytes of the content: at least `least_bytes`, or fewer at its end. Raises `DamagedCompression`."""
        content = bytearray()
        try:
            while len(content) < least_bytes:
                compressed = self._unread or self._file.read(self._step_bytes)
                if self._stream.eof:
                    compressed = self._skip_padding(compressed)
                    if not compressed:
                        break
                    self._stream = _DECOMPRESSORS[self._compression]()
                elif not compressed:
                    raise ValueError("its end is missing")
                content += self._stream.decompress(compressed)
                self._unread = self._stream.unused_data
        except (OSError, ValueError, zlib.error, lzma.LZMAError, ZstdError) as error:
            raise DamagedCompression(f"damaged {self._compression} data: {error}") from None
        return bytes(content)

    def _skip_padding(self, compressed: bytes) -> bytes:
        """Skip the zero padding after a stream, and return what follows. Raises `ValueError` for a bad length."""
        unit_bytes = _PADDING_BYTES.get(self._compression, 0)
        padding_bytes = 0
        while unit_bytes and compressed.startswith(b"\0"):
            rest = compressed.lstrip(b"\0")
            padding_bytes += len(compressed) - len(rest)
            compressed = rest or self._file.read(self._step_bytes)
        if unit_bytes and padding_bytes % unit_bytes:
            raise ValueError(f"expected zero bytes in multiples of {unit_bytes}, found {padding_bytes:,}")
        return compressed
