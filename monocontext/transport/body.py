"""The body of one answer, whatever tells its end: a length, chunks, or the end of the connection."""

from __future__ import annotations

from monocontext.transport.connection import Connection
from monocontext.transport.http11 import Chunks, Head

_PIECE_BYTES = 64 << 10


class Cut(OSError):
    """The connection ended before the body did."""


class Body:
    """Reads the body that follows `head` on `connection`."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._left = head.body_bytes
        self._chunks = Chunks() if head.is_chunked and self._left is None else None
        self._decoded = memoryview(b"")
        self._keeps_alive = head.keeps_alive
        self._read_bytes = 0

    @property
    def leaves_connection_usable(self) -> bool:
        """Whether, read to its end, it ends where the next answer begins."""
        ended = self._chunks.ended and not self._chunks.surplus if self._chunks else self._left == 0
        return ended and self._keeps_alive and not self._connection.has_surplus

    def read_into(self, view: memoryview) -> int:
        """Some bytes, into the beginning of `view`, which is not empty; 0 at the end. Raises `Cut`."""
        count = self._read_chunked(view) if self._chunks else self._read_plain(view)
        self._read_bytes += count
        return count

    def read(self, most_bytes: int) -> bytes:
        """All of it, up to a limit."""
        data, view = bytearray(), memoryview(bytearray(_PIECE_BYTES))
        while len(data) < most_bytes and (count := self.read_into(view)):
            data += view[:count]
        return bytes(data)

    def _read_plain(self, view: memoryview) -> int:
        if self._left == 0:
            return 0
        with view[: self._left] as part:
            count = self._connection.read_into(part)
        if self._left is not None:
            if not count:
                total = self._read_bytes + self._left
                raise Cut(f"the connection was closed after {self._read_bytes:,} of {total:,} bytes")
            self._left -= count
        return count

    def _read_chunked(self, view: memoryview) -> int:
        chunks = self._chunks
        assert chunks is not None
        piece = memoryview(bytearray(_PIECE_BYTES)) if not self._decoded else None
        while piece is not None and not self._decoded and not chunks.ended:
            count = self._connection.read_into(piece)
            if not count:
                raise Cut(f"the connection was closed after {self._read_bytes:,} bytes of chunks")
            self._decoded = memoryview(chunks.feed(bytes(piece[:count])))
        count = min(len(self._decoded), len(view))
        view[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count
