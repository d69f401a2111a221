"""Read a stored text, or a part of it, as bytes of UTF-8."""

from __future__ import annotations

from monocontext.engine.reader import Reader
from monocontext.text.monocontext import Monocontext


def reader_of(text: Monocontext) -> Reader:
    """The reader of a text that `Monocontext.open` made, or of a part of it."""
    reader = text._reader
    assert isinstance(reader, Reader)
    return reader


def byte_of(reader: Reader, character: int) -> int:
    """The byte of the text at which a character begins (1 GET for its frame; none for the first one of a frame)."""
    if character == reader.characters:
        return reader.manifest.text_bytes
    frame = reader.locate(character)
    return frame.start_byte + len(reader.read(frame.start, character).encode())


class TextBytes:
    """Reads the UTF-8 bytes of a text that `Monocontext.open` made, or of a part of it."""

    def __init__(self, text: Monocontext) -> None:
        self._reader = reader_of(text)
        first = text.span.start
        self._start, self._stop = byte_of(self._reader, first), byte_of(self._reader, first + len(text))

    def __len__(self) -> int:
        return self._stop - self._start

    def read(self, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of the text, counted from its first byte (GETs: the frames that hold them)."""
        if start >= stop:
            return b""
        start, stop = self._start + start, self._start + stop
        table = self._reader.table
        first, last = table.frame_at_byte(start), table.frame_at_byte(stop - 1)
        data = self._reader.read(first.start, last.stop).encode()
        return data[start - first.start_byte : stop - first.start_byte]
