"""Decode streams of bytes into UTF-8, and tell text from binary files."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import IO

from monocontext.errors import InvalidText
from monocontext.writing.input_options import InputOptions

PIECE_BYTES = 1 << 20
"""The number of bytes that one read of a file or stream returns."""
HEAD_BYTES = 8_000
"""The first bytes of a file, which decide whether it is binary, as in git."""

_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
"""Bytes that no text has in an encoding that extends ASCII."""

Utf8 = tuple[bytes, int]
"""Text in UTF-8, and its number of characters."""


def encode_utf8(text: str) -> Utf8:
    try:
        return text.encode(), len(text)
    except UnicodeEncodeError as error:  # encodings such as `unicode_escape` can give half a character
        found = ord(text[error.start])
        raise InvalidText(
            f"text: the encoding gave a lone surrogate U+{found:04X}, which UTF-8 cannot represent"
        ) from None


def read_stream(file: IO[bytes], name: str, reading: InputOptions) -> Iterator[Utf8]:
    """Yield the text of a file that is open in binary mode. Messages call it `name`."""
    decoder = Decoder(name, reading)
    while data := file.read(PIECE_BYTES):
        yield decoder.feed(data)
    yield decoder.finish()


class Decoder:
    """Decodes one stream piece by piece, and drops its byte order mark with a note."""

    def __init__(self, name: str, reading: InputOptions, start: int = 0):
        """`name` is that of the stream in messages; `start` the offset in it, in bytes, of the first piece."""
        self._name = name
        self._reading = reading
        errors = "replace" if reading.errors == "replace" else "strict"
        self._decoder = codecs.getincrementaldecoder(reading.encoding)(errors)
        self._is_utf8 = codecs.lookup(reading.encoding).name == "utf-8" and errors == "strict"
        """Whether the text equals the bytes, but for a byte order mark."""
        self._read_bytes = start
        self._begun = start > 0

    def feed(self, data: bytes, final: bool = False) -> Utf8:
        """Decode the next piece, up to its last whole character. Raises `InvalidText`, with the offset in bytes."""
        pending = self._decoder.getstate()[0]  # the beginning of a character
        keeps = self._is_utf8 and self._begun
        if keeps and not pending and data.isascii():
            self._read_bytes += len(data)
            return data, len(data)
        if not self._read_bytes and (wide := _unexpected_utf_16(data, self._reading)):
            raise InvalidText(f"{self._name} looks like UTF-16, not {self._reading.encoding}: give encoding={wide!r}")
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            at = self._read_bytes - len(pending) + error.start
            found = error.object[error.start : error.start + 1].hex()
            raise InvalidText(
                f"{self._name}: not {self._reading.encoding} at byte {at} (0x{found}): {error.reason}; "
                f"exclude it, give its encoding, replace what is not text (errors='replace'), or leave such files out "
                f"(errors='skip')"
            ) from None
        except UnicodeError as error:  # an error of the whole stream, such as UTF-16 without its byte order mark
            reason = " ".join(str(error).split())
            raise InvalidText(
                f"{self._name}: not {self._reading.encoding}: {reason}; exclude it, or give its encoding"
            ) from None
        self._read_bytes += len(data)
        if keeps:
            data = pending + data
            return data[: len(data) - len(self._decoder.getstate()[0])], len(text)
        if text and not self._begun:
            self._begun = True
            if text[0] == "\ufeff":
                self._reading.note(f"{self._name}: dropped a byte order mark")
                text = text[1:]
        return encode_utf8(text)

    def finish(self) -> Utf8:
        """The text after the last piece. Raises `InvalidText` if that ended inside a character."""
        return self.feed(b"", final=True)


def decodes(file: IO[bytes], reading: InputOptions) -> bool:
    """Whether all of a file can be decoded; leaves it at its beginning."""
    decoder = codecs.getincrementaldecoder(reading.encoding)()
    try:
        data = file.read(PIECE_BYTES)
        if _unexpected_utf_16(data, reading):
            return False
        while data:
            decoder.decode(data)
            data = file.read(PIECE_BYTES)
        decoder.decode(b"", True)
    except UnicodeError:
        return False
    finally:
        file.seek(0)
    return True


def is_binary(head: bytes, encoding: str) -> bool:
    """Whether a file with this beginning is binary: it has a NUL, or control bytes and no valid encoding."""
    if "a".encode(encoding) != b"a" or not _CONTROL.search(head):
        return False
    if b"\0" in head:
        return True
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        return True
    return False


def utf_16_without_mark(head: bytes) -> str:
    """The encoding of a file that begins with `head`, if it is UTF-16 without a byte order mark, mostly Latin letters.

    Such a file is also valid UTF-8, with a NUL next to each letter, but no search would find a word in it.
    """
    if len(head) < 8:
        return ""
    for encoding, zeros, letters in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if 10 * zeros.count(0) > 9 * len(zeros) and b"\0" not in letters:
            return encoding
    return ""


def _unexpected_utf_16(data: bytes, reading: InputOptions) -> str:
    """The encoding of a file that begins with `data`, if that is UTF-16 but the options name an encoding that extends
    ASCII; else empty."""
    return utf_16_without_mark(data[:HEAD_BYTES]) if "a".encode(reading.encoding) == b"a" else ""
